//! Who works on which run: claims that end with their process.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use provost_event::RunId;
use provost_harness::HomeError;

use crate::folder;

/// Attempts at a lock that somebody may only be looking at, and the wait between them.
const LOOKED_AT_TRIES: u32 = 5;
const LOOKED_AT_WAIT: Duration = Duration::from_millis(10);

/// A claim on a run; dropping it gives the run free.
pub struct Claim {
    _held: Box<dyn Send + Sync>,
}

impl Claim {
    /// A claim that lasts as long as `held` isn't dropped.
    pub fn new(held: impl Send + Sync + 'static) -> Self {
        Self { _held: Box::new(held) }
    }
}

/// Hands out at most one claim on a run at a time, among all who share a store.
///
/// A claim is what keeps two from working on one run; it isn't what keeps the log whole, which is the fence of
/// [`append`](crate::SessionStore::append) and of the owner's epoch.
pub trait Claims: Send + Sync {
    /// Claims `run`. May block for some tens of milliseconds.
    ///
    /// # Errors
    /// [`HomeError::Held`] while another claim lasts.
    fn claim(&self, run: RunId) -> Result<Claim, HomeError>;

    /// Whether somebody has claimed `run`.
    ///
    /// # Errors
    /// When that can't be found out.
    fn is_claimed(&self, run: RunId) -> Result<bool, HomeError>;
}

/// Claims within one process.
#[derive(Debug, Clone, Default)]
pub struct LocalClaims {
    held: Arc<Mutex<HashMap<RunId, String>>>,
}

impl LocalClaims {
    /// Claims that share nothing with others, but with their clones.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

struct LocalClaim {
    claims: LocalClaims,
    run: RunId,
}

impl Drop for LocalClaim {
    fn drop(&mut self) {
        self.claims.held.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.run);
    }
}

impl Claims for LocalClaims {
    fn claim(&self, run: RunId) -> Result<Claim, HomeError> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(by) = held.get(&run) {
            return Err(HomeError::Held { run, by: by.clone() });
        }
        held.insert(run, me());
        Ok(Claim::new(LocalClaim { claims: self.clone(), run }))
    }

    fn is_claimed(&self, run: RunId) -> Result<bool, HomeError> {
        Ok(self.held.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&run))
    }
}

/// Claims as locks on files, one a run, which the system releases when their process is gone, however it went.
#[derive(Debug, Clone)]
pub struct FileClaims {
    folder: PathBuf,
}

impl FileClaims {
    /// Claims in `folder`, which is made when first needed.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    fn path(&self, run: RunId) -> PathBuf {
        self.folder.join(format!("{run}.lock"))
    }

    /// Tries once. `Ok(None)` when the file was taken away by its last owner in between.
    fn try_claim(&self, run: RunId) -> Result<Option<FileClaim>, Denied> {
        let path = self.path(run);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        folder::only_for_the_owner(&mut options);
        let file = options.open(&path).map_err(Denied::Failed)?;
        lock(file, path)
    }
}

fn lock(mut file: File, path: PathBuf) -> Result<Option<FileClaim>, Denied> {
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(Denied::Locked(file)),
        Err(TryLockError::Error(error)) => return Err(Denied::Failed(error)),
    }
    if !is_still_at(&file, &path) {
        return Ok(None);
    }
    // What the file says is only for people; the lock is the claim.
    let _ = file.set_len(0).and_then(|()| file.write_all(me().as_bytes()));
    Ok(Some(FileClaim { path, _file: file }))
}

enum Denied {
    Locked(File),
    Failed(std::io::Error),
}

struct FileClaim {
    path: PathBuf,
    _file: File,
}

impl Drop for FileClaim {
    fn drop(&mut self) {
        // Before the lock goes: whoever opened the file by then sees that it is no longer at its place.
        if cfg!(unix) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Claims for FileClaims {
    fn claim(&self, run: RunId) -> Result<Claim, HomeError> {
        folder::create(&self.folder).map_err(|error| failed(&error))?;
        let mut by = String::new();
        for attempt in 0..LOOKED_AT_TRIES {
            if attempt > 0 {
                std::thread::sleep(LOOKED_AT_WAIT);
            }
            match self.try_claim(run) {
                Ok(Some(claim)) => return Ok(Claim::new(claim)),
                Ok(None) => {}
                Err(Denied::Locked(file)) => by = holder(file),
                Err(Denied::Failed(error)) => return Err(failed(&error)),
            }
        }
        Err(HomeError::Held { run, by })
    }

    fn is_claimed(&self, run: RunId) -> Result<bool, HomeError> {
        let file = match File::open(self.path(run)) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(failed(&error)),
        };
        // A shared lock, held for a moment: two who look don't see each other, and a claim tries again.
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(failed(&error)),
        }
    }
}

fn failed(error: &std::io::Error) -> HomeError {
    HomeError::Storage {
        attempt: "claim the run",
        message: error.to_string(),
        hint: Some("check that the state folder is yours and can be written"),
    }
}

fn me() -> String {
    let since = jiff::Timestamp::try_from(SystemTime::now()).unwrap_or_default();
    format!("process {} since {since:.0}", std::process::id())
}

fn holder(file: File) -> String {
    let mut text = String::new();
    match file.take(200).read_to_string(&mut text) {
        Ok(_) if !text.is_empty() => text,
        _ => "another process".to_owned(),
    }
}

#[cfg(unix)]
fn is_still_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(held), Ok(there)) => (held.dev(), held.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_still_at(_file: &File, _path: &Path) -> bool {
    true
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_lock_on_a_file_that_is_no_longer_there_is_no_claim() {
        let folder = tempfile::tempdir().unwrap();
        let claims = FileClaims::new(folder.path());
        let run = RunId::from_entropy(1);
        let first = claims.claim(run).unwrap();
        let opened_by_another = File::open(claims.path(run)).unwrap();
        drop(first);
        let _third = claims.claim(run).unwrap();
        assert!(matches!(lock(opened_by_another, claims.path(run)), Ok(None)));
    }
}
