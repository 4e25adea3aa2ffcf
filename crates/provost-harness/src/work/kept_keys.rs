//! Idempotency keys: which run a request has started, so that the same request doesn't start another.
//!
//! A file for each key is written before the run's process is started, and holds the run's id. A request that comes again,
//! also to another program over the same store, gets the run; if the program was killed before there was one, it starts it
//! under the same id.

use std::collections::HashSet;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use provost_event::{RunId, Timestamp};
use serde::{Deserialize, Serialize};

/// How long a key is remembered.
const KEY_MAX_AGE_MS: u64 = 24 * 60 * 60 * 1_000;
/// Keys that are remembered.
const KEYS_MAX: usize = 10_000;

/// What is remembered of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeptKey {
    /// The request's hash.
    pub(super) request: String,
    /// The run.
    pub(super) run: RunId,
    /// When it came first.
    pub(super) at: Timestamp,
}

/// The keys of a folder.
pub(super) struct KeptKeys {
    folder: PathBuf,
    /// Those whose requests are being fulfilled.
    busy: Mutex<HashSet<String>>,
}

/// A key whose request is being fulfilled: no other request with it is.
pub(super) struct HeldKey<'k> {
    keys: &'k KeptKeys,
    name: String,
}

impl KeptKeys {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, busy: Mutex::default() }
    }

    /// Holds a key; `None` while another request with it is being fulfilled.
    pub(super) fn hold(&self, key: &str) -> Option<HeldKey<'_>> {
        let name = blake3::hash(key.as_bytes()).to_hex().to_string();
        // What is dropped frees its key, so it is made only where that was free.
        let is_free = self.busy().insert(name.clone());
        is_free.then(|| HeldKey { keys: self, name })
    }

    fn busy(&self) -> MutexGuard<'_, HashSet<String>> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what is too old. Whether another key can be kept.
    fn has_room(&self, now: Timestamp) -> bool {
        let Ok(files) = std::fs::read_dir(&self.folder) else { return true };
        let mut kept = 0;
        for path in files.flatten().map(|file| file.path()) {
            match read(&path) {
                Some(key) if now.since_ms(key.at) < KEY_MAX_AGE_MS => kept += 1,
                // One that can't be read is that of a program that was killed while it wrote it: nothing was started.
                _ => drop(std::fs::remove_file(&path)),
            }
        }
        kept < KEYS_MAX
    }
}

impl HeldKey<'_> {
    fn path(&self) -> PathBuf {
        self.keys.folder.join(&self.name)
    }

    /// What is remembered of it.
    pub(super) fn known(&self, now: Timestamp) -> Option<KeptKey> {
        read(&self.path()).filter(|key| now.since_ms(key.at) < KEY_MAX_AGE_MS)
    }

    /// Remembers it, on disk.
    ///
    /// # Errors
    /// When it can't be written, or too many are remembered.
    pub(super) fn keep(&self, key: &KeptKey) -> io::Result<()> {
        std::fs::create_dir_all(&self.keys.folder)?;
        if !self.keys.has_room(key.at) {
            return Err(io::Error::other(format!("{KEYS_MAX} keys of the last day are remembered already")));
        }
        let path = self.path();
        let written = path.with_extension("new");
        let mut file = std::fs::File::create(&written)?;
        file.write_all(&serde_json::to_vec(key)?)?;
        file.sync_all()?;
        std::fs::rename(&written, &path)
    }

    /// Forgets it: nothing was started.
    pub(super) fn forget(&self) {
        let _ = std::fs::remove_file(self.path());
    }
}

impl Drop for HeldKey<'_> {
    fn drop(&mut self) {
        self.keys.busy().remove(&self.name);
    }
}

fn read(path: &Path) -> Option<KeptKey> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use provost_event::{RunId, Timestamp};

    use super::{KEY_MAX_AGE_MS, KeptKey, KeptKeys};

    #[test]
    fn a_key_is_held_once_and_remembered_for_a_day() {
        let folder = tempfile::tempdir().unwrap();
        let keys = KeptKeys::new(folder.path().join("keys"));
        let held = keys.hold("../odd key").unwrap();
        assert!(keys.hold("../odd key").is_none() && keys.hold("other").is_some());
        let kept = KeptKey { request: "x".to_owned(), run: RunId::from_entropy(7), at: Timestamp(1_000) };
        held.keep(&kept).unwrap();
        drop(held);
        let again = KeptKeys::new(folder.path().join("keys"));
        let held = again.hold("../odd key").unwrap();
        assert_eq!(held.known(Timestamp(2_000)), Some(kept));
        assert_eq!(held.known(Timestamp(1_000 + KEY_MAX_AGE_MS)), None);
        held.forget();
        assert_eq!(held.known(Timestamp(2_000)), None);
    }
}
