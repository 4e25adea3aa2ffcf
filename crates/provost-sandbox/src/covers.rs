//! Empty files and folders that are made so that something can be mounted over them: recorded before they are made,
//! removed when no box needs them, after a crash too.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::repository::THIS_FOLDER;

/// The covers that this process has made, in a file of its own that is locked as long as it lives.
#[derive(Debug)]
pub(crate) struct Covers {
    folder: PathBuf,
    record: PathBuf,
    held: Mutex<Held>,
}

#[derive(Debug)]
struct Held {
    file: File,
    made: BTreeSet<PathBuf>,
}

/// The file whose lock serializes changes.
const LOCK: &str = "lock";

impl Covers {
    /// Covers recorded in `folder`; what dead processes have left is removed.
    ///
    /// # Errors
    /// When the folder can't be written.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        crate::folders::private(folder)?;
        let _alone = lock(folder)?;
        sweep(folder);
        let record = folder.join(format!("{}.txt", crate::folders::unique()));
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&record)?;
        file.lock()?;
        let held = Mutex::new(Held { file, made: BTreeSet::new() });
        Ok(Self { folder: folder.to_owned(), record, held })
    }

    /// Makes an empty file or folder, unless something is there.
    ///
    /// # Errors
    /// When it can't be recorded or made.
    pub(crate) fn make(&self, path: &Path, kind: CoverKind) -> io::Result<()> {
        let _alone = lock(&self.folder)?;
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if !held.made.contains(path) && (path.symlink_metadata().is_err() || self.is_others(path)) {
            let line = path.to_str().filter(|text| !text.contains('\n'));
            let line = line.ok_or_else(|| {
                io::Error::other("its path has a line break or isn't text: rename the folder")
            })?;
            writeln!(held.file, "{line}")?;
            held.file.sync_data()?;
            held.made.insert(path.to_owned());
        }
        match kind {
            CoverKind::Folder => fs::create_dir(path),
            CoverKind::Unlisted => unlisted(path),
            CoverKind::File => OpenOptions::new().write(true).create_new(true).open(path).map(drop),
            CoverKind::ThisFolder => whole_at_once(path),
        }
        .or_else(|error| if error.kind() == io::ErrorKind::AlreadyExists { Ok(()) } else { Err(error) })
    }

    /// Whether another process has made it, and may remove it before this one is done.
    fn is_others(&self, path: &Path) -> bool {
        records(&self.folder)
            .iter()
            .filter(|record| **record != self.record)
            .any(|record| paths(record).contains(path))
    }

    /// Removes those that no other living process has made too.
    pub(crate) fn remove(&self) {
        let Ok(_alone) = lock(&self.folder) else { return };
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let others = records(&self.folder).into_iter().filter(|record| *record != self.record);
        let needed = others.flat_map(|record| paths(&record)).collect::<BTreeSet<_>>();
        remove(held.made.iter().filter(|path| !needed.contains(*path)));
        held.made.clear();
        let _ = held.file.set_len(0);
    }
}

impl Drop for Covers {
    fn drop(&mut self) {
        self.remove();
        let _ = fs::remove_file(&self.record);
    }
}

/// What kind of a thing a cover is mounted over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CoverKind {
    Folder,
    File,
    /// A file that version control doesn't list.
    Unlisted,
    /// A file that names the folder it is in.
    ThisFolder,
}

/// Makes what version control neither lists nor adds: a socket, or where the file system has none an empty file.
fn unlisted(path: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    match mknodat(CWD, path, FileType::Socket, Mode::RUSR | Mode::WUSR, 0) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::EXIST) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => OpenOptions::new().write(true).create_new(true).open(path).map(drop),
    }
}

/// Makes a file that is never seen without its content.
fn whole_at_once(path: &Path) -> io::Result<()> {
    let new = path.with_extension(format!("{}.tmp", crate::folders::unique()));
    fs::write(&new, THIS_FOLDER)?;
    let made = fs::hard_link(&new, path);
    fs::remove_file(new)?;
    made
}

fn lock(folder: &Path) -> io::Result<File> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(folder.join(LOCK))?;
    file.lock()?;
    Ok(file)
}

fn records(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "txt"))
        .collect()
}

fn paths(record: &Path) -> BTreeSet<PathBuf> {
    fs::read_to_string(record).unwrap_or_default().lines().map(PathBuf::from).collect()
}

/// Removes what processes that are gone have made, as long as no living one needs it.
pub(crate) fn sweep(folder: &Path) {
    let is_dead = |record: &PathBuf| File::open(record).is_ok_and(|file| file.try_lock().is_ok());
    let (dead, living): (Vec<_>, Vec<_>) = records(folder).into_iter().partition(is_dead);
    let needed = living.iter().flat_map(|record| paths(record)).collect::<BTreeSet<_>>();
    for record in dead {
        let made = paths(&record);
        remove(made.iter().filter(|path| !needed.contains(*path)));
        let _ = fs::remove_file(record);
    }
}

/// Removes what is still empty: the deepest first.
fn remove<'a>(made: impl DoubleEndedIterator<Item = &'a PathBuf>) {
    for path in made.rev() {
        let Ok(facts) = path.symlink_metadata() else { continue };
        if facts.is_dir() {
            let _ = fs::remove_dir(path);
            continue;
        }
        let is_empty_file = facts.is_file()
            && (facts.len() == 0 || fs::read(path).is_ok_and(|text| text == THIS_FOLDER.as_bytes()));
        if is_empty_file || facts.file_type().is_socket() {
            let _ = fs::remove_file(path);
        }
    }
}
