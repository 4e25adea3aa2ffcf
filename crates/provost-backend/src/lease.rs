//! Leases: which process holds which run. They end with their process.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use provost_event::{Elapsed, RunId};
use provost_harness::{BackendError, Holder};
use provost_process::ProcessIdentity;

use crate::folder;

/// Attempts at a lock that another process may only be checking, and the wait between them.
const LOOKED_AT_TRIES: u32 = 5;
const LOOKED_AT_WAIT: Duration = Duration::from_millis(10);

/// A lease on a run; dropping it releases the run.
pub struct HeldLease {
    _held: Box<dyn Send + Sync>,
}

impl HeldLease {
    /// A lease that lasts until `held` is dropped.
    pub fn new(held: impl Send + Sync + 'static) -> Self {
        Self { _held: Box::new(held) }
    }
}

/// Grants at most one lease on a run at a time among all users of a store.
///
/// A lease keeps two processes from serving one run; the log itself is protected by the fence of
/// [`append`](crate::SessionStore::append) and the owner's epoch.
pub trait RunLeases: Send + Sync {
    /// Acquires the lease on `run`. May block for some tens of milliseconds.
    ///
    /// # Errors
    /// [`BackendError::Held`] while another lease is held.
    fn claim(&self, run: RunId) -> Result<HeldLease, BackendError>;

    /// Whether a process holds the lease on `run`.
    ///
    /// # Errors
    /// When that can't be determined.
    fn is_claimed(&self, run: RunId) -> Result<bool, BackendError>;

    /// Who holds the lease on `run`; `None` if no process does.
    ///
    /// # Errors
    /// When that can't be determined.
    fn holder(&self, run: RunId) -> Result<Option<Holder>, BackendError>;

    /// Notes the elapsed time of `run`, whose lease is held. Cheap, and not synced to disk: the note outlives the
    /// holder's process, not the machine. Best effort: without a note the time in the logs counts.
    fn note(&self, run: RunId, elapsed: Elapsed);

    /// The elapsed time that the holder of `run`, or the last one that was killed, noted last; 0 without a note.
    fn noted(&self, run: RunId) -> Elapsed;

    /// Removes the note, which the logs of `run` make superfluous.
    fn forget_note(&self, run: RunId);
}

/// Leases within one process.
#[derive(Debug, Clone, Default)]
pub struct LocalLeases {
    held: Arc<Mutex<HashMap<RunId, String>>>,
    notes: Arc<Mutex<HashMap<RunId, Elapsed>>>,
}

impl LocalLeases {
    /// Leases shared only with clones of this value.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

struct LocalLease {
    leases: LocalLeases,
    run: RunId,
}

impl Drop for LocalLease {
    fn drop(&mut self) {
        self.leases.held.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.run);
    }
}

impl RunLeases for LocalLeases {
    fn claim(&self, run: RunId) -> Result<HeldLease, BackendError> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(by) = held.get(&run) {
            return Err(BackendError::Held { run, by: by.clone() });
        }
        held.insert(run, me());
        Ok(HeldLease::new(LocalLease { leases: self.clone(), run }))
    }

    fn is_claimed(&self, run: RunId) -> Result<bool, BackendError> {
        Ok(self.held.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&run))
    }

    fn holder(&self, run: RunId) -> Result<Option<Holder>, BackendError> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let by = held.get(&run).cloned();
        Ok(by.map(|by| Holder { by, process: ProcessIdentity::own() }))
    }

    fn note(&self, run: RunId, elapsed: Elapsed) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).insert(run, elapsed);
    }

    fn noted(&self, run: RunId) -> Elapsed {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).get(&run).copied().unwrap_or_default()
    }

    fn forget_note(&self, run: RunId) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).remove(&run);
    }
}

/// Leases as file locks, one per run; the system releases them when their process is gone, for whatever cause.
#[derive(Debug, Clone)]
pub struct FileLeases {
    folder: PathBuf,
}

impl FileLeases {
    /// Leases in `folder`, which is created on first use.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    fn path(&self, run: RunId) -> PathBuf {
        self.folder.join(format!("{run}.lock"))
    }

    /// Beside the lock, which other handles can't write to on every system.
    fn note_path(&self, run: RunId) -> PathBuf {
        self.folder.join(format!("{run}.elapsed"))
    }

    /// The file, if a process holds its lock.
    fn locked(&self, run: RunId) -> Result<Option<File>, BackendError> {
        let file = match File::open(self.path(run)) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(&error)),
        };
        // A shared lock, held briefly: two checks don't see each other, and an acquisition retries.
        match file.try_lock_shared() {
            Ok(()) => Ok(None),
            Err(TryLockError::WouldBlock) => Ok(Some(file)),
            Err(TryLockError::Error(error)) => Err(failed(&error)),
        }
    }

    /// Tries once. `Ok(None)` if the last owner removed the file in between.
    fn try_claim(&self, run: RunId) -> Result<Option<FileLease>, Denied> {
        let path = self.path(run);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        folder::only_for_the_owner(&mut options);
        let file = options.open(&path).map_err(Denied::Failed)?;
        lock(file, path)
    }
}

fn lock(mut file: File, path: PathBuf) -> Result<Option<FileLease>, Denied> {
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(Denied::Locked(file)),
        Err(TryLockError::Error(error)) => return Err(Denied::Failed(error)),
    }
    if !is_still_at(&file, &path) {
        return Ok(None);
    }
    // The file's text names the holder; the lock is the lease.
    let process = ProcessIdentity::own().map(|own| own.to_string()).unwrap_or_default();
    let _ = file.set_len(0).and_then(|()| file.write_all(format!("{}\n{process}\n", me()).as_bytes()));
    Ok(Some(FileLease { path, _file: file }))
}

enum Denied {
    Locked(File),
    Failed(std::io::Error),
}

struct FileLease {
    path: PathBuf,
    _file: File,
}

impl Drop for FileLease {
    fn drop(&mut self) {
        // Before the lock is released: a process that opened the file by then sees that it is no longer at its
        // path.
        if cfg!(unix) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl RunLeases for FileLeases {
    fn claim(&self, run: RunId) -> Result<HeldLease, BackendError> {
        folder::create(&self.folder).map_err(|error| failed(&error))?;
        let mut by = String::new();
        for attempt in 0..LOOKED_AT_TRIES {
            if attempt > 0 {
                std::thread::sleep(LOOKED_AT_WAIT);
            }
            match self.try_claim(run) {
                Ok(Some(lease)) => return Ok(HeldLease::new(lease)),
                Ok(None) => {}
                Err(Denied::Locked(file)) => by = holder(file).by,
                Err(Denied::Failed(error)) => return Err(failed(&error)),
            }
        }
        Err(BackendError::Held { run, by })
    }

    fn is_claimed(&self, run: RunId) -> Result<bool, BackendError> {
        Ok(self.locked(run)?.is_some())
    }

    fn holder(&self, run: RunId) -> Result<Option<Holder>, BackendError> {
        Ok(self.locked(run)?.map(holder))
    }

    fn note(&self, run: RunId, elapsed: Elapsed) {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        folder::only_for_the_owner(&mut options);
        // One write of a constant length: a reader sees the previous note or this one.
        let text = note_text(elapsed);
        let written = options.open(self.note_path(run)).and_then(|mut file| file.write_all(text.as_bytes()));
        if let Err(error) = written {
            tracing::debug!(%run, %error, "can't note the elapsed time");
        }
    }

    fn noted(&self, run: RunId) -> Elapsed {
        let text = std::fs::read_to_string(self.note_path(run)).unwrap_or_default();
        elapsed_in(&text).unwrap_or_default()
    }

    fn forget_note(&self, run: RunId) {
        let _ = std::fs::remove_file(self.note_path(run));
    }
}

/// Milliseconds, twice: a note that was written in part is none.
fn note_text(elapsed: Elapsed) -> String {
    format!("{0:020} {0:020}\n", elapsed.0)
}

fn elapsed_in(text: &str) -> Option<Elapsed> {
    let (one, other) = text.strip_suffix('\n')?.split_once(' ')?;
    (one == other).then(|| one.parse().ok().map(Elapsed)).flatten()
}

fn failed(error: &std::io::Error) -> BackendError {
    BackendError::Storage {
        attempt: "claim the run",
        message: error.to_string(),
        hint: Some("check that the state folder is yours and can be written"),
    }
}

fn me() -> String {
    let since = jiff::Timestamp::try_from(SystemTime::now()).unwrap_or_default();
    format!("process {} since {since:.0}", std::process::id())
}

fn holder(file: File) -> Holder {
    let mut text = String::new();
    // It may be empty: the holder hasn't written it yet.
    let _ = file.take(200).read_to_string(&mut text);
    let mut lines = text.lines();
    let by = lines.next().filter(|by| !by.is_empty()).unwrap_or("another process").to_owned();
    Holder { by, process: lines.next().and_then(|process| process.parse().ok()) }
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

#[cfg(test)]
mod notes {
    use super::*;

    #[test]
    fn a_note_that_was_written_in_part_is_none() {
        let note = note_text(Elapsed(61_234));
        assert_eq!(elapsed_in(&note), Some(Elapsed(61_234)));
        assert_eq!(elapsed_in(&note[..note.len() - 1]), None);
        assert_eq!(elapsed_in(&note.replacen("61234", "71234", 1)), None);
        assert_eq!(elapsed_in(&"\0".repeat(note.len())), None);
        assert_eq!(elapsed_in(""), None);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_lock_on_a_file_that_is_no_longer_there_is_no_claim() {
        let folder = tempfile::tempdir().unwrap();
        let leases = FileLeases::new(folder.path());
        let run = RunId::from_entropy(1);
        let first = leases.claim(run).unwrap();
        let opened_by_another = File::open(leases.path(run)).unwrap();
        drop(first);
        let _third = leases.claim(run).unwrap();
        assert!(matches!(lock(opened_by_another, leases.path(run)), Ok(None)));
    }
}
