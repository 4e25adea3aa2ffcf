//! Whether the database is still where it was opened.
//!
//! A file that was deleted, or whose file system was unmounted, accepts writes for as long as it is open, and all
//! of them are lost afterwards.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use provost_harness::BackendError;

/// A database's file and its write-ahead log.
pub(super) struct Presence {
    path: PathBuf,
    log: PathBuf,
    identity: Option<Identity>,
}

/// Distinguishes a file from earlier and later files of the same name.
type Identity = (u64, u64);

impl Presence {
    /// The current files at `path`.
    pub(super) fn of(path: &Path) -> Self {
        let mut log = OsString::from(path);
        log.push("-wal");
        Self { path: path.to_owned(), log: log.into(), identity: identity(path) }
    }

    /// Checks that the written data is still reachable by its path.
    ///
    /// # Errors
    /// [`BackendError::Storage`] when it isn't.
    pub(super) fn check(&self) -> Result<(), BackendError> {
        if cfg!(not(unix)) || (identity(&self.path) == self.identity && self.log.exists()) {
            return Ok(());
        }
        let message = if self.path.exists() {
            "is no longer what it was: it was replaced, or its log was deleted"
        } else {
            "is gone: it was deleted, moved, or its file system unmounted"
        };
        Err(BackendError::Storage {
            attempt: "write to the log",
            message: format!("{} {message}", self.path.display()),
            hint: Some("put it back where it was, then `provost resume`; what was deleted is lost"),
        })
    }
}

#[cfg(unix)]
fn identity(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(path).ok().map(|facts| (facts.dev(), facts.ino()))
}

#[cfg(not(unix))]
fn identity(_path: &Path) -> Option<Identity> {
    None
}
