//! The workspace and what else file tools reach: paths that stay in it.

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

use provost_harness::{FileReach, MaskedPaths};

use crate::failure::Failure;

pub(crate) use replace::Replaced;

/// Maximum symbolic links in a path; Linux's own limit.
const LINKS_MAX: usize = 40;

/// What file tools reach: an agent's working folder, held open, and the folders besides.
pub(crate) struct Workspace {
    /// The agent's working folder first.
    areas: Vec<Area>,
    masked: Arc<MaskedPaths>,
    sandbox: Arc<dyn AgentSandbox>,
}

/// A folder with all that is in it.
struct Area {
    root: Arc<Path>,
    dir: Dir,
    /// The only thing in it that is reached, and that only to read it.
    granted: Option<PathBuf>,
}

/// Whether a path is to be read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Intent {
    Read,
    Write,
}

/// A path that is reached; it may exist or not.
#[derive(Debug, Clone)]
pub(crate) struct WorkspacePath {
    /// As the model wrote it.
    pub(crate) asked: String,
    /// Relative to its area, without links and `..`; empty for the area's folder itself.
    pub(crate) relative: PathBuf,
    /// The same from the root of the file system.
    pub(crate) absolute: PathBuf,
    /// The number of the area.
    area: usize,
}

impl Workspace {
    /// Opens `root`, which is absolute and without links, and what `reach` adds. What of that isn't there is left out.
    /// `sandbox` says what of all that may be read and written.
    pub(crate) fn open(
        root: Arc<Path>,
        reach: &FileReach,
        sandbox: Arc<dyn AgentSandbox>,
    ) -> Result<Self, Failure> {
        let dir = Dir::open_ambient_dir(&root, ambient_authority())
            .map_err(|error| Failure::io("open the workspace", &root.to_string_lossy(), error))?;
        let mut areas = vec![Area { root, dir, granted: None }];
        areas.extend(reach.roots.iter().filter_map(|root| Area::open(&root.canonicalize().ok()?, None)));
        areas.extend(reach.granted.as_deref().and_then(|path| {
            let folder = if path.is_dir() { Some(path) } else { path.parent() };
            Area::open(folder?, Some(path.to_owned()))
        }));
        Ok(Self { areas, masked: Arc::clone(&reach.masked), sandbox })
    }

    pub(crate) fn root(&self) -> &Path {
        self.areas.first().map_or(Path::new("/"), |area| &area.root)
    }

    /// The folder with all that is reached beside `place`.
    pub(crate) fn root_of(&self, place: &WorkspacePath) -> &Path {
        self.areas.get(place.area).map_or(self.root(), |area| &area.root)
    }

    fn dir(&self, place: &WorkspacePath) -> Result<&Dir, Failure> {
        let area = self.areas.get(place.area).or(self.areas.first());
        area.map(|area| &area.dir).ok_or_else(|| self.outside(&place.asked, &place.absolute, Intent::Read))
    }

    /// The target of `asked`, if it may be read.
    pub(crate) fn locate(&self, asked: &str) -> Result<WorkspacePath, Failure> {
        let absolute = resolve(self.root(), asked)?;
        self.reached(asked, absolute, Intent::Read)
    }

    /// The target of `asked`, if it may be written.
    pub(crate) fn locate_to_write(&self, asked: &str) -> Result<WorkspacePath, Failure> {
        let absolute = resolve(self.root(), asked)?;
        self.reached(asked, absolute, Intent::Write)
    }

    /// An entry that was met below a folder, if it may be read.
    pub(crate) fn met(&self, absolute: &Path) -> Option<WorkspacePath> {
        let asked = self.shown(absolute).display().to_string();
        self.reached(&asked, absolute.to_owned(), Intent::Read).ok()
    }

    /// The path as answers show it: relative to the workspace, if it is in there.
    pub(crate) fn shown<'p>(&self, absolute: &'p Path) -> &'p Path {
        absolute.strip_prefix(self.root()).unwrap_or(absolute)
    }

    /// Whether `path`, without links, stays hidden.
    fn hides(&self, path: &Path) -> bool {
        self.masked.hides(path, self.root())
    }

    /// What stays hidden.
    pub(crate) fn masked(&self) -> Arc<MaskedPaths> {
        Arc::clone(&self.masked)
    }

    fn reached(&self, asked: &str, absolute: PathBuf, intent: Intent) -> Result<WorkspacePath, Failure> {
        if self.hides(&absolute) {
            return Err(Failure::Masked { asked: asked.to_owned() });
        }
        self.sandbox.may_read(&absolute).map_err(Failure::Said)?;
        if intent == Intent::Write {
            self.sandbox.may_write(&absolute).map_err(Failure::Said)?;
        }
        let mut areas = self.areas.iter().enumerate();
        match areas.find(|(_, area)| area.has(&absolute, intent)) {
            Some((number, area)) => Ok(WorkspacePath {
                asked: asked.to_owned(),
                relative: absolute.strip_prefix(&area.root).unwrap_or(&absolute).to_owned(),
                absolute,
                area: number,
            }),
            None => Err(self.outside(asked, &absolute, intent)),
        }
    }

    fn outside(&self, asked: &str, target: &Path, intent: Intent) -> Failure {
        let is_granted = |area: &Area| area.granted.is_some();
        let way = match intent {
            Intent::Write => "file tools write there only if its folder is in `roots` of [tools]".to_owned(),
            // The call was allowed to read the path as it is written.
            Intent::Read if self.areas.iter().any(is_granted) => {
                format!("a link leads to `{}`: name that path itself", target.display())
            }
            Intent::Read => {
                "use a path inside it; elsewhere, reading needs a permission with the path, or its folder in `roots` \
                 of [tools]"
                    .to_owned()
            }
        };
        Failure::Outside { asked: asked.to_owned(), workspace: self.root().to_path_buf(), way }
    }

    /// The metadata of `place`; a helpful failure if it doesn't exist.
    pub(crate) fn metadata(&self, place: &WorkspacePath) -> Result<Metadata, Failure> {
        let dir = self.dir(place)?;
        if place.relative.as_os_str().is_empty() {
            return dir.dir_metadata().map_err(|error| Failure::io("look at", &place.asked, error));
        }
        dir.symlink_metadata(&place.relative).map_err(|error| match error.kind() {
            NotFound | NotADirectory => {
                Failure::NotFound { asked: place.asked.clone(), hint: self.hint(dir, place) }
            }
            _ => Failure::io("look at", &place.asked, error),
        })
    }

    /// Similar names, where the agent may know them.
    fn hint(&self, dir: &Dir, place: &WorkspacePath) -> String {
        if place.area == 0 { nearest::hint(dir, &place.relative) } else { String::new() }
    }

    /// Opens the regular file at `place` for reading. Never waits for a process at the other end.
    pub(crate) fn open_file(&self, place: &WorkspacePath) -> Result<(File, Metadata), Failure> {
        // Opening a device may have effects, so the kind is checked before, and again on the opened file.
        self.regular(place, &self.metadata(place)?)?;
        let failed = |error| Failure::io("open", &place.asked, error);
        let file = self.dir(place)?.open_with(&place.relative, &reading()).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        self.regular(place, &metadata)?;
        self.is_the_one(place, &file)?;
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

impl Workspace {
    /// Fails if a link has been put on the way to `place` since it was located, and leads to another file of its area.
    #[cfg(target_os = "linux")]
    fn is_the_one(&self, place: &WorkspacePath, file: &cap_std::fs::File) -> Result<(), Failure> {
        use std::os::fd::AsRawFd;
        // Without /proc there is nothing to compare: the file is still one of the area.
        let Ok(opened) = Path::new("/proc/self/fd").join(file.as_raw_fd().to_string()).read_link() else {
            return Ok(());
        };
        if opened != place.absolute && self.reached(&place.asked, opened, Intent::Read).is_err() {
            return Err(Failure::Masked { asked: place.asked.clone() });
        }
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    fn is_the_one(&self, _: &WorkspacePath, _: &cap_std::fs::File) -> Result<(), Failure> {
        Ok(())
    }
}

impl Area {
    fn open(root: &Path, granted: Option<PathBuf>) -> Option<Self> {
        let dir = Dir::open_ambient_dir(root, ambient_authority()).ok()?;
        Some(Self { root: root.into(), dir, granted })
    }

    fn has(&self, path: &Path, intent: Intent) -> bool {
        match &self.granted {
            Some(granted) => intent == Intent::Read && path.starts_with(granted),
            None => path.starts_with(&self.root),
        }
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
