//! Platforms without Unix sockets: attaching isn't available.

use std::path::Path;
use std::sync::Arc;

use provost_event::{Exit, SessionId, WindowSize};
use provost_process::PtySupervisor;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{AttachError, AttachUpdate, Attendance, Hello, Welcome};
use crate::driver::RecorderHandle;

pub(crate) struct Hub(watch::Sender<Attendance>);

impl Hub {
    pub(crate) fn open(
        _: &Path,
        _: SessionId,
        _: (&str, WindowSize),
        _: &Arc<PtySupervisor>,
        _: &RecorderHandle,
    ) -> Result<Self, AttachError> {
        Err(AttachError::Unsupported)
    }

    pub(crate) fn attendance(&self) -> watch::Receiver<Attendance> {
        self.0.subscribe()
    }

    pub(crate) async fn close(self, _: Option<Exit>, _: Option<Instant>) {}
}

/// The output half of an attached terminal.
pub struct Attached {
    _private: (),
}

/// The input half of an attached terminal.
pub struct AttachedInput {
    _private: (),
}

/// Attaches to the program of `session`.
///
/// # Errors
/// Always, on this platform.
pub async fn attach(
    _: &Path,
    _: SessionId,
    _: Hello,
) -> Result<(Welcome, Attached, AttachedInput), AttachError> {
    Err(AttachError::Unsupported)
}

impl Attached {
    /// Waits for the next frame.
    ///
    /// # Errors
    /// Never.
    pub async fn next(&mut self) -> Result<Option<AttachUpdate>, AttachError> {
        Ok(None)
    }
}

impl AttachedInput {
    /// Sends keyboard input.
    ///
    /// # Errors
    /// Always.
    pub async fn send(&mut self, _: &[u8]) -> Result<(), AttachError> {
        Err(AttachError::Unsupported)
    }

    /// Reports a new window size.
    ///
    /// # Errors
    /// Always.
    pub async fn resize(&mut self, _: WindowSize) -> Result<(), AttachError> {
        Err(AttachError::Unsupported)
    }

    /// Requests a repaint of the whole screen.
    ///
    /// # Errors
    /// Always.
    pub async fn repaint(&mut self) -> Result<(), AttachError> {
        Err(AttachError::Unsupported)
    }

    /// Detaches.
    ///
    /// # Errors
    /// Always.
    pub async fn detach(&mut self) -> Result<(), AttachError> {
        Err(AttachError::Unsupported)
    }
}
