//! Finds a repository as git does, without calling git, which would read the repository's settings.

use std::fs;
use std::path::{Path, PathBuf};

/// Maximum bytes read of a file that names a folder.
const LINK_BYTES_MAX: u64 = 16 * 1024;

/// Git's message if there is none.
const NONE: &str = "not a git repository (or any of the parent directories)";

/// The folders of a repository's data; all paths are absolute and without symlinks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// The top folder of the work tree, if the repository was found by one.
    pub(super) top: Option<PathBuf>,
    /// The work tree's own data: its index, its HEAD.
    pub(super) own: PathBuf,
    /// The data shared by all work trees: objects, branches, settings.
    pub(super) common: PathBuf,
}

/// The repository of the first folder from `folder` upwards that is the top of a work tree. Blocking.
pub(super) fn above(folder: &Path) -> Result<Found, String> {
    let folder = folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut folders = folder.ancestors().filter(|folder| folder.join(".git").symlink_metadata().is_ok());
    folders.find_map(|top| of_work_tree(top).ok()).ok_or_else(|| NONE.to_owned())
}

/// The repository of the work tree with the top `folder`. Blocking.
pub(super) fn at(folder: &Path) -> Result<Found, String> {
    let folder = folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?;
    of_work_tree(&folder)
}

/// The repository with its data in `folder`. Blocking.
pub(super) fn data(folder: &Path) -> Result<Found, String> {
    let own = folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?;
    with_common(None, own)
}

fn of_work_tree(top: &Path) -> Result<Found, String> {
    let link = top.join(".git");
    let own = if link.is_dir() {
        link
    } else {
        let text = text_of(&link).ok_or_else(|| format!("{} can't be read", link.display()))?;
        let named = text.strip_prefix("gitdir: ");
        top.join(named.ok_or_else(|| format!("{} names no repository", link.display()))?)
    };
    let own = own.canonicalize().map_err(|error| format!("{}: {error}", own.display()))?;
    with_common(Some(top.to_path_buf()), own)
}

fn with_common(top: Option<PathBuf>, own: PathBuf) -> Result<Found, String> {
    let common = match text_of(&own.join("commondir")) {
        Some(named) => {
            own.join(named).canonicalize().map_err(|error| format!("{}: {error}", own.display()))?
        }
        None => own.clone(),
    };
    let is_one = own.join("HEAD").symlink_metadata().is_ok()
        && common.join("objects").is_dir()
        && common.join("refs").is_dir();
    if is_one { Ok(Found { top, own, common }) } else { Err(NONE.to_owned()) }
}

/// The text of a small file, without the trailing newline.
fn text_of(path: &Path) -> Option<String> {
    let is_small = fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= LINK_BYTES_MAX);
    let text = is_small.then(|| fs::read_to_string(path).ok()).flatten()?;
    Some(text.trim_end_matches(['\n', '\r']).to_owned())
}
