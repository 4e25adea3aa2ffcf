//! Changes to git's list of a repository's worktrees. For each one git reads the whole list, and fails at a
//! worktree that another git process is adding or removing: so one change is made at a time, across all processes.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

use super::sweep::session_of;
use crate::git::{ASKING_MAX, CHECKOUT_MAX, Git, GitError};

/// Adds the worktree `path` with a branch at `commit`, without its files. It is locked until [`unlock`] is called
/// after the checkout.
pub(super) async fn enter(git: &Git<'_>, path: &Path, branch: &str, commit: &str) -> Result<(), GitError> {
    let arguments = ["worktree", "add", "--no-checkout", "--lock", "-B", branch].map(OsStr::new);
    let [worktree, add, empty, lock, reset, branch] = arguments;
    let commit = OsStr::new(commit);
    let _turn = turn(path, git.cancel()).await?;
    let worktrees = git.repository().join("worktrees");
    let ready = move || {
        std::fs::create_dir_all(&worktrees)?;
        remove_half_recorded(&worktrees)
    };
    let made = tokio::task::spawn_blocking(ready).await;
    made.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(GitError::StandIn)?;
    let arguments = [worktree, add, empty, lock, reset, branch, path.as_os_str(), commit];
    git.run(CHECKOUT_MAX, arguments).await?;
    let (path, repository) = (path.to_path_buf(), git.repository().to_path_buf());
    let named = tokio::task::spawn_blocking(move || name_repository(&path, &repository)).await;
    named.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(GitError::StandIn)
}

/// Removes the records of agents' worktrees that a git that was killed had begun to write: an empty `commondir` in one of
/// them has git fail at the whole list. Those of others stay.
fn remove_half_recorded(worktrees: &Path) -> io::Result<()> {
    for record in std::fs::read_dir(worktrees)? {
        let record = record?;
        let is_empty = record.path().join("commondir").metadata().is_ok_and(|file| file.len() == 0);
        if is_empty && session_of(&record.file_name().to_string_lossy()).is_some() {
            std::fs::remove_dir_all(record.path())?;
        }
    }
    Ok(())
}

/// Makes a worktree refer to its repository: git has recorded the stand-in that it was given.
fn name_repository(path: &Path, repository: &Path) -> io::Result<()> {
    let link = path.join(".git");
    let text = std::fs::read_to_string(&link)?;
    let id = Path::new(text.trim_end()).file_name().ok_or(io::ErrorKind::InvalidData)?;
    let own = repository.join("worktrees").join(id);
    let own = own.to_str().ok_or(io::ErrorKind::InvalidFilename)?;
    std::fs::write(link, format!("gitdir: {own}\n"))
}

/// Marks a worktree as complete.
pub(super) async fn unlock(git: &Git<'_>, path: &Path) -> Result<(), GitError> {
    let _turn = turn(path, git.cancel()).await?;
    let arguments = [OsStr::new("worktree"), OsStr::new("unlock"), path.as_os_str()];
    git.run(ASKING_MAX, arguments).await.map(drop)
}

/// Removes a worktree with its files; fails if git finds changes in it.
pub(super) async fn take_out(git: &Git<'_>, path: &Path) -> Result<(), GitError> {
    let _turn = turn(path, git.cancel()).await?;
    let arguments = [OsStr::new("worktree"), OsStr::new("remove"), path.as_os_str()];
    git.run(CHECKOUT_MAX, arguments).await.map(drop)
}

/// Removes a worktree with all changes.
pub(super) async fn throw_out(git: &Git<'_>, path: &Path) -> Result<(), GitError> {
    let arguments = ["worktree", "remove", "--force", "--force"].map(OsStr::new);
    let [worktree, remove, force, locked] = arguments;
    let _turn = turn(path, git.cancel()).await?;
    git.run(ASKING_MAX, [worktree, remove, force, locked, path.as_os_str()]).await.map(drop)
}

/// Waits for the exclusive right to change the list, held until this is dropped. All worktrees of a repository
/// that Provost makes are in one folder, whose lock it is.
async fn turn(path: &Path, cancel: &CancellationToken) -> Result<File, GitError> {
    let folder = path.parent().unwrap_or(path).to_path_buf();
    let locked = tokio::task::spawn_blocking(move || lock(folder));
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(GitError::Cancelled),
        file = locked => file.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(GitError::Lock),
    }
}

fn lock(folder: PathBuf) -> io::Result<File> {
    std::fs::create_dir_all(&folder)?;
    let file = File::options().create(true).append(true).open(folder.join(".lock"))?;
    file.lock()?;
    Ok(file)
}
