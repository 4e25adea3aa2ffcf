//! State of a program's session that survives its process and Provost's.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use provost_event::{MicroDollars, SessionId, Usage};
use serde::{Deserialize, Serialize};

/// One file per session of Provost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Kept {
    /// The program's id of its session.
    pub(super) session: Option<String>,
    /// Its usage since the session's beginning, if it counts that way.
    pub(super) used: Usage,
    /// Its cost since the session's beginning, if it counts that way.
    pub(super) spent: MicroDollars,
    /// The number of processes started for it.
    pub(super) starts: u64,
}

impl Kept {
    /// Reads the state of `session`; empty if there is no readable file.
    pub(super) fn read(folder: &Path, session: SessionId) -> Self {
        let path = path(folder, session);
        match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_else(|error| {
                tracing::warn!(%error, path = %path.display(), "a program's session can't be taken up again");
                Self::default()
            }),
            Err(_) => Self::default(),
        }
    }

    /// Replaces the file as a whole.
    pub(super) fn write(&self, folder: &Path, session: SessionId) -> io::Result<()> {
        let path = path(folder, session);
        let place = path.parent().unwrap_or(folder);
        make_private(place)?;
        let fresh = path.with_extension("new");
        let mut file = create_private(&fresh)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        std::fs::rename(fresh, path)
    }
}

fn path(folder: &Path, session: SessionId) -> PathBuf {
    folder.join("streams").join(format!("{session}.json"))
}

#[cfg(unix)]
fn make_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(not(unix))]
fn make_private(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)
}

#[cfg(unix)]
fn create_private(path: &Path) -> io::Result<std::fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

#[cfg(not(unix))]
fn create_private(path: &Path) -> io::Result<std::fs::File> {
    std::fs::File::create(path)
}
