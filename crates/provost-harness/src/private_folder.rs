//! Temporary folders of Provost, accessible only to its user. Folders that a killed process has left are removed
//! when the next one is created.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

/// The prefix of all their names, before the purpose.
const PREFIX: &str = "provost-";
/// Locked while the folder is in use.
const LOCK: &str = ".lock";
/// The lock's name before it is locked.
const LOCK_UNHELD: &str = ".lock-new";
/// Maximum folders inspected when one is created.
const LOOKED_AT_MAX: usize = 1_000;
/// A folder without a lock that is this old won't get one any more.
const UNLOCKED_MAX: Duration = Duration::from_secs(60 * 60);

/// A temporary folder that is removed when this is dropped. On Unix only its owner may read it.
#[derive(Debug)]
pub struct PrivateFolder {
    folder: TempDir,
    _lock: File,
}

impl PrivateFolder {
    /// Creates a folder; `purpose` is part of its name. Folders of the same purpose whose process was killed are
    /// removed. Blocking.
    ///
    /// # Errors
    /// When it can't be created.
    pub fn new(purpose: &str) -> io::Result<Self> {
        let prefix = format!("{PREFIX}{purpose}-");
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = builder.tempdir()?;
        // The lock gets its name after it is locked: an unlocked one is taken for that of a killed process.
        let unnamed = folder.path().join(LOCK_UNHELD);
        let lock = File::create_new(&unnamed)?;
        lock.lock()?;
        std::fs::rename(unnamed, folder.path().join(LOCK))?;
        if let Some(all) = folder.path().parent() {
            sweep(all, &prefix);
        }
        Ok(Self { folder, _lock: lock })
    }

    /// Creates a folder in `parent`, which a program of an agent may write. Blocking.
    ///
    /// # Errors
    /// When it can't be created.
    pub fn within(parent: &Path, purpose: &str) -> io::Result<Self> {
        let prefix = format!("{PREFIX}{purpose}-");
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = builder.tempdir_in(parent)?;
        let lock = File::create_new(folder.path().join(LOCK))?;
        Ok(Self { folder, _lock: lock })
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes folders that no process has locked. Folders that can't be read or removed belong to other users.
fn sweep(all: &Path, prefix: &str) {
    let entries = std::fs::read_dir(all).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
    for entry in ours.take(LOOKED_AT_MAX) {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && is_left(&entry.path()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn is_left(folder: &Path) -> bool {
    match File::open(folder.join(LOCK)) {
        Ok(lock) => lock.try_lock().is_ok(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let made = folder.metadata().and_then(|metadata| metadata.modified());
            made.is_ok_and(|made| SystemTime::now().duration_since(made).is_ok_and(|age| age > UNLOCKED_MAX))
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_made_at_the_same_time_leave_each_other_alone() {
        let purpose = format!("race-{}", std::process::id());
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let folder = PrivateFolder::new(&purpose).unwrap();
                        assert!(folder.path().join(LOCK).exists());
                    }
                });
            }
        });
    }

    #[test]
    fn what_a_killed_process_left_goes_with_the_next_and_what_is_held_stays() {
        let purpose = format!("test-{}", std::process::id());
        let held = PrivateFolder::new(&purpose).unwrap();
        let left = std::env::temp_dir().join(format!("{PREFIX}{purpose}-left"));
        std::fs::create_dir(&left).unwrap();
        std::fs::write(left.join(LOCK), "").unwrap();
        let young = std::env::temp_dir().join(format!("{PREFIX}{purpose}-young"));
        std::fs::create_dir(&young).unwrap();
        let next = PrivateFolder::new(&purpose).unwrap();
        assert!(held.path().exists() && next.path().exists() && young.exists());
        assert!(!left.exists());
        std::fs::remove_dir(young).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(next.path().metadata().unwrap().permissions().mode() & 0o777, 0o700);
        }
        let path = next.path().to_path_buf();
        drop(next);
        assert!(!path.exists());
    }
}
