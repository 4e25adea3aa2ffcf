//! What the user has agreed to, kept in one small file of the state folder.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use provost_event::Timestamp;
use serde::{Deserialize, Serialize};

const FILE: &str = "trust.json";
const LOCK: &str = "trust.lock";
const VERSION: u32 = 1;
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// How long another process may keep the file to itself, and how often it is asked for.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(5);
const LOCK_AGAIN: Duration = Duration::from_millis(10);

/// The folders whose files are trusted.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    version: u32,
    projects: BTreeMap<PathBuf, Trusted>,
}

/// A folder whose files are trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trusted {
    /// Since when.
    pub(crate) at: Timestamp,
    /// The files, by their paths in the folder.
    pub(crate) files: BTreeMap<String, TrustedFile>,
}

/// A file that is trusted as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TrustedFile {
    /// The BLAKE3 of its bytes, in hexadecimal digits.
    pub(crate) blake3: String,
    /// What it wished: each what and how.
    pub(crate) wishes: Vec<(String, String)>,
}

/// Where trust is kept.
pub(crate) struct TrustStore {
    folder: PathBuf,
}

impl TrustStore {
    /// In the state folder `folder`.
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// The folders that are trusted.
    ///
    /// # Errors
    /// When the file is there and can't be read, or isn't one.
    pub(crate) fn all(&self) -> anyhow::Result<BTreeMap<PathBuf, Trusted>> {
        let path = self.folder.join(FILE);
        let cant = || format!("can't read what you trust from {}", path.display());
        let file = match File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
            opened => opened.with_context(cant)?,
        };
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).with_context(cant)?;
        let kept = serde_json::from_slice::<Kept>(&bytes).with_context(cant)?;
        if kept.version != VERSION {
            bail!("{}: it is of version {}, which this program doesn't know", cant(), kept.version);
        }
        Ok(kept.projects)
    }

    /// Changes what is trusted, all of it or nothing. Of processes that do so at once, each does its part.
    ///
    /// # Errors
    /// When it can't be read or written. It is unchanged then.
    pub(crate) fn change<T>(
        &self,
        change: impl FnOnce(&mut BTreeMap<PathBuf, Trusted>) -> T,
    ) -> anyhow::Result<T> {
        let cant = || format!("can't keep what you trust in {}", self.folder.display());
        make_folder(&self.folder).with_context(cant)?;
        let _lock = self.lock().with_context(cant)?;
        let mut projects = self.all()?;
        let result = change(&mut projects);
        self.write(&Kept { version: VERSION, projects }).with_context(cant)?;
        Ok(result)
    }

    /// A file made by `tempfile` is its owner's alone.
    fn write(&self, kept: &Kept) -> anyhow::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        file.write_all(format!("{:#}\n", serde_json::to_value(kept)?).as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(self.folder.join(FILE))?;
        #[cfg(unix)]
        File::open(&self.folder)?.sync_all()?;
        Ok(())
    }

    fn lock(&self) -> anyhow::Result<File> {
        let file = File::options().write(true).create(true).truncate(false).open(self.folder.join(LOCK))?;
        let until = Instant::now() + LOCK_WAIT_MAX;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if Instant::now() < until => std::thread::sleep(LOCK_AGAIN),
                Err(TryLockError::WouldBlock) => bail!("another process keeps it locked"),
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
        }
    }
}

/// Makes `folder` and what is missing above it, for its owner only; leaves one that is there as it is.
fn make_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
