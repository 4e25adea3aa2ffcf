//! The workspace: paths that stay in it.

mod nearest;
mod replace;

use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind::{NotADirectory, NotFound};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, FileType, Metadata, OpenOptions};
use provost_harness::AgentSandbox;

use crate::failure::Failure;

pub(crate) use replace::Replaced;

/// Maximum symbolic links in a path; Linux's own limit.
const LINKS_MAX: usize = 40;

/// An agent's working folder, held open.
pub(crate) struct Workspace {
    root: Arc<Path>,
    dir: Dir,
    sandbox: Arc<dyn AgentSandbox>,
}

/// A path in the workspace; it may exist or not.
#[derive(Debug, Clone)]
pub(crate) struct WorkspacePath {
    /// As the model wrote it.
    pub(crate) asked: String,
    /// Relative to the workspace, without links and `..`; empty for the workspace itself.
    pub(crate) relative: PathBuf,
    /// The same from the root of the file system.
    pub(crate) absolute: PathBuf,
}

impl Workspace {
    /// Opens `root`, which is absolute and without links; `sandbox` says what of it may be read and written.
    pub(crate) fn open(root: Arc<Path>, sandbox: Arc<dyn AgentSandbox>) -> Result<Self, Failure> {
        let dir = Dir::open_ambient_dir(&root, ambient_authority())
            .map_err(|error| Failure::io("open the workspace", &root.to_string_lossy(), error))?;
        Ok(Self { root, dir, sandbox })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The target of `asked`, if it is in the workspace.
    pub(crate) fn locate(&self, asked: &str) -> Result<WorkspacePath, Failure> {
        let absolute = resolve(&self.root, asked)?;
        self.sandbox.may_read(&absolute).map_err(Failure::Said)?;
        match absolute.strip_prefix(&self.root) {
            Ok(relative) => Ok(WorkspacePath {
                asked: asked.to_owned(),
                relative: relative.to_owned(),
                absolute: absolute.clone(),
            }),
            Err(_) => Err(Failure::Outside { asked: asked.to_owned(), workspace: self.root.to_path_buf() }),
        }
    }

    /// The metadata of `place`; a helpful failure if it doesn't exist.
    pub(crate) fn metadata(&self, place: &WorkspacePath) -> Result<Metadata, Failure> {
        if place.relative.as_os_str().is_empty() {
            return self.dir.dir_metadata().map_err(|error| Failure::io("look at", &place.asked, error));
        }
        self.dir.symlink_metadata(&place.relative).map_err(|error| match error.kind() {
            NotFound | NotADirectory => Failure::NotFound {
                asked: place.asked.clone(),
                hint: nearest::hint(&self.dir, &place.relative),
            },
            _ => Failure::io("look at", &place.asked, error),
        })
    }

    /// Opens the regular file at `place` for reading. Never waits for a process at the other end.
    pub(crate) fn open_file(&self, place: &WorkspacePath) -> Result<(File, Metadata), Failure> {
        // Opening a device may have effects, so the kind is checked before, and again on the opened file.
        self.regular(place, &self.metadata(place)?)?;
        let failed = |error| Failure::io("open", &place.asked, error);
        let file = self.dir.open_with(&place.relative, &reading()).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        self.regular(place, &metadata)?;
        Ok((file.into_std(), metadata))
    }

    fn regular(&self, place: &WorkspacePath, metadata: &Metadata) -> Result<(), Failure> {
        let kind = metadata.file_type();
        if kind.is_file() {
            return Ok(());
        }
        let path = place.asked.clone();
        if kind.is_dir() {
            return Err(Failure::IsFolder { path, hint: "" });
        }
        Err(Failure::Special { path, kind: special_kind(kind) })
    }
}

#[cfg(unix)]
fn reading() -> OpenOptions {
    use cap_std::fs::OpenOptionsExt;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    options
}

#[cfg(not(unix))]
fn reading() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true);
    options
}

#[cfg(unix)]
fn special_kind(kind: FileType) -> &'static str {
    use cap_std::fs::FileTypeExt;
    if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_char_device() || kind.is_block_device() {
        "a device"
    } else {
        "no regular file"
    }
}

#[cfg(not(unix))]
fn special_kind(_: FileType) -> &'static str {
    "no regular file"
}

/// The absolute path that `asked`, relative to `root`, leads to: links are followed before `..` applies, as the
/// system does. Missing parts are kept as written, including the target of a dangling link.
fn resolve(root: &Path, asked: &str) -> Result<PathBuf, Failure> {
    let steps = |path: &Path| -> Vec<OsString> {
        path.components().rev().map(|step| step.as_os_str().to_owned()).collect()
    };
    let mut real = PathBuf::new();
    let mut links = 0;
    let mut ahead = steps(&root.join(asked));
    while let Some(step) = ahead.pop() {
        if step == ".." {
            real.pop();
            continue;
        }
        if step == "." {
            continue;
        }
        // Pushing the root replaces the path.
        real.push(&step);
        let is_link = match real.symlink_metadata() {
            Ok(metadata) => metadata.is_symlink(),
            Err(error) if matches!(error.kind(), NotFound | NotADirectory) => false,
            Err(error) => return Err(Failure::io("look at", asked, error)),
        };
        if is_link {
            links += 1;
            if links > LINKS_MAX {
                return Err(Failure::TooManyLinks { asked: asked.to_owned(), links_max: LINKS_MAX });
            }
            let target = real.read_link().map_err(|error| Failure::io("follow the link", asked, error))?;
            real.pop();
            ahead.extend(steps(&target));
        }
    }
    Ok(real)
}
