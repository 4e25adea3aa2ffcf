//! What the user has agreed to, kept in one small file of the state folder.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use provost_event::Timestamp;
use serde::{Deserialize, Serialize};

use crate::errors::ConfigError;
use crate::whole_file::{WholeFile, read_limited};

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
pub struct Trusted {
    /// Since when.
    pub at: Timestamp,
    /// The files, by their paths in the folder.
    pub files: BTreeMap<String, TrustedFile>,
}

/// A file that is trusted as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedFile {
    /// The BLAKE3 of its bytes, in hexadecimal digits.
    pub blake3: String,
    /// What it requested: each what and how.
    pub requests: Vec<(String, String)>,
}

/// Where trust is kept.
pub struct TrustStore {
    file: PathBuf,
}

impl TrustStore {
    /// In the state folder `folder`.
    pub fn new(folder: &Path) -> Self {
        Self { file: folder.join(FILE) }
    }

    /// The folders that are trusted.
    ///
    /// # Errors
    /// When the file is there and can't be read, or isn't one.
    pub fn all(&self) -> Result<BTreeMap<PathBuf, Trusted>, ConfigError> {
        let cant = |source: io::Error| ConfigError::TrustUnread { file: self.file.clone(), source };
        let Some(text) = read_limited(&self.file, FILE_BYTES_MAX).map_err(cant)? else {
            return Ok(BTreeMap::new());
        };
        let kept = serde_json::from_str::<Kept>(&text).map_err(|error| cant(error.into()))?;
        if kept.version != VERSION {
            let why = format!("it is of version {}, which this program doesn't know", kept.version);
            return Err(cant(io::Error::other(why)));
        }
        Ok(kept.projects)
    }

    /// Changes what is trusted, all of it or nothing. Of processes that do so at once, each does its part.
    ///
    /// # Errors
    /// When it can't be read or written. It is unchanged then.
    pub fn change<T>(
        &self,
        change: impl FnOnce(&mut BTreeMap<PathBuf, Trusted>) -> T,
    ) -> Result<T, ConfigError> {
        let cant = |source: io::Error| ConfigError::TrustUnkept { file: self.file.clone(), source };
        let whole = WholeFile::lock(&self.file).map_err(cant)?;
        let mut projects = self.all()?;
        let result = change(&mut projects);
        let kept =
            serde_json::to_value(Kept { version: VERSION, projects }).map_err(|error| cant(error.into()))?;
        whole.replace(&format!("{kept:#}\n"), None).map_err(cant)?;
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
