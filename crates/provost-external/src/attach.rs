//! User terminals attached to a program's terminal from other processes, through one socket per session.

#[cfg(unix)]
mod client;
#[cfg(unix)]
mod hub;
#[cfg(not(unix))]
mod nowhere;
#[cfg(unix)]
mod socket_path;
#[cfg_attr(not(unix), expect(dead_code, reason = "unused where attaching isn't possible"))]
mod wire;

use std::io;
use std::path::PathBuf;

use provost_event::SessionId;
use tokio::time::Instant;

#[cfg(unix)]
pub use client::{Attached, AttachedInput, attach};
#[cfg(unix)]
pub(crate) use hub::Hub;
#[cfg(not(unix))]
pub(crate) use nowhere::Hub;
#[cfg(not(unix))]
pub use nowhere::{Attached, AttachedInput, attach};
pub use wire::{AttachUpdate, Display, Hello, Role, Welcome};

/// The attached terminals that may type.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Attendance {
    /// How many.
    pub(crate) controls: usize,
    /// Whether there ever was one.
    pub(crate) has_been: bool,
    /// When the last one left.
    pub(crate) left: Option<Instant>,
    /// When a key was typed last.
    pub(crate) last_key: Option<Instant>,
}

/// Why attaching failed, or why an attached terminal was disconnected.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// No program runs for the session, or not at a terminal.
    #[error("no program runs at a terminal for {session} (there is no {})", path.display())]
    NotThere {
        /// The session.
        session: SessionId,
        /// The path its socket would have.
        path: PathBuf,
    },
    /// Provost refuses the connection.
    #[error("it isn't let in: {why}")]
    Refused {
        /// Why.
        why: String,
    },
    /// The socket failed, or this version doesn't understand what arrived.
    #[error("can't {attempt}")]
    Failed {
        /// What was attempted.
        attempt: &'static str,
        /// Why.
        source: io::Error,
    },
    /// This platform has no such sockets.
    #[error("attaching to a terminal isn't possible on this platform")]
    Unsupported,
}
