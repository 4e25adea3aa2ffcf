//! Small files that several processes change: one after the other, and each time as a whole or not at all.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long another process may hold the lock of a file, and how often to try.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(5);
const LOCK_AGAIN: Duration = Duration::from_millis(10);

/// The text of the file at `path`, of at most `bytes_max` bytes; `None` if it isn't there.
///
/// # Errors
/// When it can't be read, is longer, or isn't UTF-8.
pub fn read_limited(path: &Path, bytes_max: u64) -> io::Result<Option<String>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut bytes = Vec::new();
    let read = file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if read as u64 > bytes_max {
        return Err(io::Error::other(format!("it is longer than {bytes_max} bytes")));
    }
    Ok(Some(String::from_utf8(bytes).map_err(io::Error::other)?))
}

/// A file that no other process changes by this module until this is dropped. It need not be there.
pub(crate) struct WholeFile {
    path: PathBuf,
    folder: PathBuf,
    /// The lock file stays: a process that removed it could lock one that others no longer see.
    _lock: File,
}

impl WholeFile {
    /// Waits until this process holds it, and creates its folder, for its owner only, if that is missing. Blocks
    /// for at most 5 s.
    ///
    /// # Errors
    /// When another process keeps it longer, or folder or lock can't be made.
    pub(crate) fn lock(path: &Path) -> io::Result<Self> {
        let folder = path.parent().ok_or_else(|| io::Error::other("it is in no folder"))?;
        make_folder(folder)?;
        let mut name = OsString::from(".");
        name.push(path.file_name().ok_or_else(|| io::Error::other("it has no name"))?);
        name.push(".lock");
        let lock = locked(&folder.join(name))?;
        Ok(Self { path: path.to_owned(), folder: folder.to_owned(), _lock: lock })
    }

    /// Writes a file beside it, brings that to disk and renames it: either all of `text` is in the file or it is
    /// as it was. Without `permissions` its owner alone may read and write it, whatever was allowed before.
    ///
    /// # Errors
    /// When that can't be done.
    pub(crate) fn replace(&self, text: &str, permissions: Option<Permissions>) -> io::Result<()> {
        // A file made like this is its owner's alone.
        let mut file =
            tempfile::Builder::new().prefix(".provost-").suffix(".tmp").tempfile_in(&self.folder)?;
        if let Some(permissions) = permissions {
            file.as_file().set_permissions(permissions)?;
        }
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(&self.path)?;
        // The new text is there and whole, even on a file system that can't sync folders.
        if cfg!(unix) {
            let _ = File::open(&self.folder).and_then(|folder| folder.sync_all());
        }
        Ok(())
    }
}

/// Creates `folder` and missing parents, for its owner only; leaves an existing one as it is.
fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn locked(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    // Who may open it may lock it, and so keep its owner out.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    let until = Instant::now() + LOCK_WAIT_MAX;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < until => std::thread::sleep(LOCK_AGAIN),
            Err(TryLockError::WouldBlock) => {
                let why = format!("another process keeps {} locked", path.display());
                return Err(io::Error::other(why));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{WholeFile, read_limited};

    #[test]
    fn a_file_is_read_up_to_its_limit_and_not_beyond() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("text");
        assert_eq!(read_limited(&file, 4).unwrap(), None);
        std::fs::write(&file, "four").unwrap();
        assert_eq!(read_limited(&file, 4).unwrap().unwrap(), "four");
        assert_eq!(read_limited(&file, 3).unwrap_err().to_string(), "it is longer than 3 bytes");
        std::fs::write(&file, [0xff]).unwrap();
        assert!(read_limited(&file, 4).is_err());
    }

    #[test]
    fn the_next_one_waits_until_the_file_is_free() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/text");
        let held = WholeFile::lock(&path).unwrap();
        let lock = std::fs::File::open(folder.path().join("a/b/.text.lock")).unwrap();
        assert!(lock.try_lock().is_err(), "it is held here only");
        std::thread::scope(|scope| {
            let next = scope.spawn(|| WholeFile::lock(&path).unwrap().replace("second", None).unwrap());
            held.replace("first", None).unwrap();
            assert_eq!(read_limited(&path, 9).unwrap().unwrap(), "first");
            drop(held);
            next.join().unwrap();
        });
        assert_eq!(read_limited(&path, 9).unwrap().unwrap(), "second");
    }

    #[cfg(unix)]
    #[test]
    fn folder_file_and_lock_are_the_owners_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let mode = |name: &str| folder.path().join(name).metadata().unwrap().permissions().mode() & 0o777;
        let path = folder.path().join("a/text");
        let file = WholeFile::lock(&path).unwrap();
        file.replace("x", None).unwrap();
        assert_eq!(["a", "a/text", "a/.text.lock"].map(mode), [0o700, 0o600, 0o600]);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        file.replace("y", Some(path.metadata().unwrap().permissions())).unwrap();
        assert_eq!(mode("a/text"), 0o644);
        file.replace("z", None).unwrap();
        assert_eq!(mode("a/text"), 0o600);
    }
}
