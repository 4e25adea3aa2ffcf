//! What a run's user was told already, over all processes that worked on the run.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use provost_event::RunId;

/// Notifications of one run; more are not told.
const TOLD_MAX: usize = 10_000;

pub(super) struct Told {
    path: PathBuf,
    keys: HashSet<String>,
}

impl Told {
    /// Those of a run, whose file is in `folder`.
    pub(super) fn of(folder: &Path, run: RunId) -> Self {
        let path = super::file(folder, run);
        let text = fs::read_to_string(&path).unwrap_or_default();
        Self { keys: text.lines().map(str::to_owned).collect(), path }
    }

    /// Whether this wasn't told yet; it counts as told from here on.
    ///
    /// # Errors
    /// When that can't be written down: then it isn't to be told, since it could be told again and again.
    pub(super) fn is_new(&mut self, key: &str) -> io::Result<bool> {
        if self.keys.contains(key) || self.keys.len() >= TOLD_MAX {
            return Ok(false);
        }
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&self.path)?.write_all(format!("{key}\n").as_bytes())?;
        self.keys.insert(key.to_owned());
        Ok(true)
    }
}
