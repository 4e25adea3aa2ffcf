//! A folder that git takes for the shared folder of a repository's work trees. Objects, branches and lists in it
//! are links to those of the repository; its settings, attributes and hooks are not: the settings are [a few plain
//! ones](super::settings), and the others don't exist. (`git-new-workdir` in git's own contributions uses the same
//! links.)

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{GitError, settings};
use crate::PrivateFolder;

/// The repository's own parts. Branches are created and deleted there.
const LINKED: [&str; 7] = ["HEAD", "objects", "refs", "packed-refs", "reftable", "logs", "shallow"];
/// Linked before it exists: git creates it with the first worktree.
const WORKTREES: &str = "worktrees";

/// Removed when it is dropped; the link targets stay.
#[derive(Debug)]
pub(super) struct StandIn {
    folder: PrivateFolder,
}

impl StandIn {
    /// A stand-in for the repository with the shared folder `common`. Blocking.
    pub(super) fn of(common: &Path, user: &[PathBuf]) -> Result<Self, GitError> {
        let own = settings::of_repository(common).map_err(GitError::Refused)?;
        let text = settings::of_user(user) + &own;
        Self::make(common, &text).map_err(GitError::StandIn)
    }

    fn make(common: &Path, settings: &str) -> io::Result<Self> {
        let folder = PrivateFolder::new("git")?;
        for name in LINKED {
            link_if_there(&common.join(name), &folder.path().join(name))?;
        }
        make_link(&common.join(WORKTREES), &folder.path().join(WORKTREES), true)?;
        fs::create_dir(folder.path().join("info"))?;
        link_if_there(&common.join("info/exclude"), &folder.path().join("info/exclude"))?;
        fs::write(folder.path().join("config"), settings)?;
        Ok(Self { folder })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

fn link_if_there(target: &Path, link: &Path) -> io::Result<()> {
    match fs::metadata(target) {
        Ok(target_is) => make_link(target, link, target_is.is_dir()),
        Err(_) => Ok(()),
    }
}

#[cfg(unix)]
fn make_link(target: &Path, link: &Path, _is_folder: bool) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(not(unix))]
fn make_link(target: &Path, link: &Path, is_folder: bool) -> io::Result<()> {
    if is_folder {
        std::os::windows::fs::symlink_dir(target, link)
    } else {
        std::os::windows::fs::symlink_file(target, link)
    }
}
