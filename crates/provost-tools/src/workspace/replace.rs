//! Replaces a file atomically.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use cap_std::fs::{Dir, OpenOptions, Permissions};

use super::{Workspace, WorkspacePath};
use crate::failure::Failure;
use crate::job::Job;

/// Maximum names to try for the temporary file; only a crash leaves a name taken.
const NAMES_MAX: u32 = 100;

/// What the new content replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replaced {
    /// No file.
    Nothing,
    /// A file; its permissions are kept.
    File,
}

impl Workspace {
    /// Writes `content` to `place`, and makes missing parent folders. Until all of it is on disk, the old content
    /// stays. Owner and extended attributes of an old file aren't kept.
    pub(crate) fn replace(
        &self,
        place: &WorkspacePath,
        content: &[u8],
        job: &Job,
    ) -> Result<Replaced, Failure> {
        let Some(name) = place.relative.file_name() else {
            return Err(Failure::IsFolder { path: place.asked.clone(), hint: "" });
        };
        job.go_on()?;
        self.sandbox.may_write(&place.absolute).map_err(Failure::Said)?;
        let folder = self.folder_of(place)?;
        let permissions = match folder.symlink_metadata(name) {
            Ok(metadata) => {
                self.regular(place, &metadata)?;
                // A rename would succeed anyway: it only needs permissions on the folder.
                if metadata.permissions().readonly() {
                    return Err(Failure::ReadOnly { path: place.asked.clone() });
                }
                Some(metadata.permissions())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(Failure::io("look at", &place.asked, error)),
        };
        let replaced = if permissions.is_some() { Replaced::File } else { Replaced::Nothing };
        replace_in(&folder, name, content, permissions)
            .map_err(|error| Failure::io("write", &place.asked, error))?;
        Ok(replaced)
    }

    /// Removes the file at `place`.
    pub(crate) fn remove(&self, place: &WorkspacePath) -> Result<(), Failure> {
        self.regular(place, &self.metadata(place)?)?;
        let removed = self.dir(place)?.remove_file(&place.relative);
        removed.map_err(|error| Failure::io("delete", &place.asked, error))
    }

    /// The folder of `place`, made if it is missing.
    fn folder_of(&self, place: &WorkspacePath) -> Result<Dir, Failure> {
        let parent = place.relative.parent().filter(|parent| !parent.as_os_str().is_empty());
        let path = parent.unwrap_or(Path::new("."));
        let dir = self.dir(place)?;
        let failed = |error| Failure::io("make the folder of", &place.asked, error);
        dir.create_dir_all(path).map_err(failed)?;
        dir.open_dir(path).map_err(failed)
    }
}

/// Writes a temporary file beside `name`, syncs it and renames it.
fn replace_in(
    folder: &Dir,
    name: &OsStr,
    content: &[u8],
    permissions: Option<Permissions>,
) -> io::Result<()> {
    let (temporary, mut file) = create_temporary(folder)?;
    let written = (|| {
        // Before the content: a process that couldn't read the old file must not read the new content.
        if let Some(permissions) = permissions {
            file.set_permissions(permissions)?;
        }
        file.write_all(content)?;
        file.sync_all()?;
        folder.rename(&temporary, folder, name)
    })();
    if written.is_err() {
        // The first failure is reported; a second one adds nothing.
        let _ = folder.remove_file(&temporary);
    }
    written?;
    // The new content is in place. If the file system can't sync folders, that is no failure.
    let _ = sync_folder(folder);
    Ok(())
}

fn create_temporary(folder: &Dir) -> io::Result<(OsString, cap_std::fs::File)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    for _ in 0..NAMES_MAX {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = OsString::from(format!(".provost-{}-{number}.tmp", std::process::id()));
        match folder.open_with(&name, &options) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return opened.map(|file| (name, file)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Syncs the rename to disk. The folder's handle may only allow path lookups, so it is opened again.
#[cfg(unix)]
fn sync_folder(folder: &Dir) -> io::Result<()> {
    folder.open(".")?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Dir) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use cap_std::ambient_authority;
    use cap_std::fs::Dir;

    use super::replace_in;

    #[test]
    fn a_failing_rename_leaves_what_was_there_and_no_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("taken")).unwrap();
        std::fs::write(folder.path().join("taken/inside"), "old").unwrap();
        let dir = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();

        replace_in(&dir, OsStr::new("taken"), b"new", None).unwrap_err();

        let names: Vec<_> =
            folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["taken"]);
        assert_eq!(std::fs::read(folder.path().join("taken/inside")).unwrap(), b"old");
    }
}
