//! Platforms without sockets in the file system: nobody attaches.

use std::path::Path;
use std::sync::Arc;

use provost_event::{Exit, SessionId, WindowSize};
use provost_process::PtySupervisor;
use tokio::sync::watch;

use super::{AttachError, Attendance, Hello, Shown, Welcome};
use crate::driver::Desk;

pub(crate) struct Hub(watch::Sender<Attendance>);

impl Hub {
    pub(crate) fn open(
        _: &Path,
        _: SessionId,
        _: (&str, WindowSize),
        _: &Arc<PtySupervisor>,
        _: &Desk,
    ) -> Result<Self, AttachError> {
        Err(AttachError::Unsupported)
    }

    pub(crate) fn attendance(&self) -> watch::Receiver<Attendance> {
        self.0.subscribe()
    }

    pub(crate) async fn close(self, _: Option<Exit>) {}
}

/// An attached terminal: what it is shown.
pub struct Attached {
    _private: (),
}

/// An attached terminal: what it types.
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
    /// What it is shown next.
    ///
    /// # Errors
    /// Never.
    pub async fn next(&mut self) -> Result<Option<Shown>, AttachError> {
        Ok(None)
    }
}

impl AttachedInput {
    /// Types.
    ///
    /// # Errors
    /// Always.
    pub async fn send(&mut self, _: &[u8]) -> Result<(), AttachError> {
        Err(AttachError::Unsupported)
    }

    /// Has another size.
    ///
    /// # Errors
    /// Always.
    pub async fn resize(&mut self, _: WindowSize) -> Result<(), AttachError> {
        Err(AttachError::Unsupported)
    }

    /// Wants the screen anew.
    ///
    /// # Errors
    /// Always.
    pub async fn repaint(&mut self) -> Result<(), AttachError> {
        Err(AttachError::Unsupported)
    }

    /// Leaves.
    ///
    /// # Errors
    /// Always.
    pub async fn detach(&mut self) -> Result<(), AttachError> {
        Err(AttachError::Unsupported)
    }
}
