//! What the user has agreed to, kept in one small file of the state folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use provost_event::Timestamp;
use serde::{Deserialize, Serialize};

use crate::whole_file::{WholeFile, read};

const FILE: &str = "trust.json";
const VERSION: u32 = 1;
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

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
    /// What it requested: each what and how.
    pub(crate) requests: Vec<(String, String)>,
}

/// Where trust is kept.
pub(crate) struct TrustStore {
    file: PathBuf,
}

impl TrustStore {
    /// In the state folder `folder`.
    pub(crate) fn new(folder: &Path) -> Self {
        Self { file: folder.join(FILE) }
    }

    /// The folders that are trusted.
    ///
    /// # Errors
    /// When the file is there and can't be read, or isn't one.
    pub(crate) fn all(&self) -> anyhow::Result<BTreeMap<PathBuf, Trusted>> {
        let cant = || format!("can't read what you trust from {}", self.file.display());
        let Some(text) = read(&self.file, FILE_BYTES_MAX).with_context(cant)? else {
            return Ok(BTreeMap::new());
        };
        let kept = serde_json::from_str::<Kept>(&text).with_context(cant)?;
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
        let cant = || format!("can't keep what you trust in {}", self.file.display());
        let whole = WholeFile::lock(&self.file).with_context(cant)?;
        let mut projects = self.all()?;
        let result = change(&mut projects);
        let kept = serde_json::to_value(Kept { version: VERSION, projects }).with_context(cant)?;
        whole.replace(&format!("{kept:#}\n"), None).with_context(cant)?;
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use super::{TrustStore, Trusted};

    #[test]
    fn of_many_at_once_none_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state/provost");
        let trust = |number: usize| {
            let store = TrustStore::new(&state);
            store.change(|all| all.insert(format!("/project/{number}").into(), Trusted::default())).unwrap();
        };
        std::thread::scope(|scope| {
            for number in 0..16 {
                scope.spawn(move || trust(number));
            }
        });
        assert_eq!(TrustStore::new(&state).all().unwrap().len(), 16);
    }
}
