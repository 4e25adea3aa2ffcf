//! Creating a worktree.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use provost_engine::WorktreeOrder;
use provost_event::WorktreeMade;
use provost_process::SpawnError;
use tokio_util::sync::CancellationToken;

use super::list;
use crate::git::{CHECKOUT_MAX, Git, GitError};

/// A remedy for every error.
const OTHERWISE: &str = "or have the agent work in the shared folder (isolation `shared`)";

/// The source of a worktree.
pub(super) struct Source {
    pub(super) repository: PathBuf,
    pub(super) commit: String,
    pub(super) uncommitted: u32,
}

/// Creates the worktree, unless it exists. A failed attempt leaves nothing.
///
/// # Errors
/// Why it can't be created, and the remedy.
pub(super) async fn make(order: &WorktreeOrder, cancel: &CancellationToken) -> Result<WorktreeMade, String> {
    let source = source(order, cancel).await?;
    let commit = match found(order, &source, cancel).await {
        Some(commit) => commit,
        None => {
            if let Err(why) = add(order, &source, cancel).await {
                let unhurried = CancellationToken::new();
                clear(&order.path, &source.repository, &unhurried).await;
                drop_branch(&source.repository, &order.branch, &source.commit, &unhurried).await;
                return Err(why);
            }
            source.commit.clone()
        }
    };
    let unfiltered = match Git::at(&order.path, cancel).await {
        Ok(git) => git.unfiltered().await.unwrap_or_default(),
        Err(_) => 0,
    };
    let Source { repository, uncommitted, .. } = source;
    Ok(WorktreeMade { repository, commit, uncommitted, unfiltered })
}

/// The repository and the commit, if all preconditions hold.
async fn source(order: &WorktreeOrder, cancel: &CancellationToken) -> Result<Source, String> {
    let from = order.from.display();
    let git = Git::within(&order.from, cancel).await.map_err(|error| no_work_tree(order, error))?;
    let real = real(&order.from);
    let top = git.top().unwrap_or(&real);
    if top != real {
        return Err(format!(
            "{from} is a folder inside of the git work tree {}, and a worktree is a copy of the whole: start Provost \
             in the top folder, {OTHERWISE}",
            top.display(),
        ));
    }
    if !order.path.is_absolute() || order.path.starts_with(&order.from) || order.path.starts_with(top) {
        return Err(format!(
            "{} would lie inside of the git work tree {from}: have worktrees made in a folder outside of it",
            order.path.display(),
        ));
    }
    let wanted = format!("{}^{{commit}}", order.commit.as_deref().unwrap_or("HEAD"));
    let commit = git.find(["rev-parse", "--verify", "--quiet", &wanted]).await;
    match commit.map_err(|error| no_work_tree(order, error))? {
        Some(commit) if order.commit.is_some() => {
            Ok(Source { repository: git.repository().to_path_buf(), commit, uncommitted: 0 })
        }
        Some(commit) => {
            let uncommitted = changed_files(&git).await;
            let uncommitted = uncommitted
                .map_err(|error| format!("what isn't committed in {from} can't be told: {error}"))?;
            Ok(Source { repository: git.repository().to_path_buf(), commit, uncommitted })
        }
        None if order.commit.is_some() => {
            Err(format!("the git repository in {from} has no commit {wanted}, {OTHERWISE}"))
        }
        None => Err(format!(
            "the git repository in {from} has no commit yet, and a worktree begins with one: commit something first, \
             {OTHERWISE}"
        )),
    }
}

fn no_work_tree(order: &WorktreeOrder, error: GitError) -> String {
    let from = order.from.display();
    match error {
        GitError::Start(SpawnError::ProgramNotFound { .. }) => {
            format!("the program `git` isn't there: install it, {OTHERWISE}")
        }
        GitError::NoFolder(_) | GitError::Start(SpawnError::FolderNotFound { .. }) => {
            format!("the folder {from}, which it is to be made from, isn't there")
        }
        GitError::Refused(said) => format!(
            "{from} is no git work tree that a worktree can be made from ({said}): make it one with `git init` and a \
             first commit, {OTHERWISE}"
        ),
        error @ (GitError::Start(_)
        | GitError::StandIn(_)
        | GitError::Files(_)
        | GitError::TimedOut(_)
        | GitError::Lock(_)
        | GitError::Cancelled) => error.to_string(),
    }
}

/// The commit of a complete worktree from an earlier attempt, if there is one.
async fn found(order: &WorktreeOrder, source: &Source, cancel: &CancellationToken) -> Option<String> {
    if !order.path.join(".git").is_file() {
        return None;
    }
    let git = Git::at(&order.path, cancel).await.ok()?;
    let branch = git.ask(["symbolic-ref", "--quiet", "HEAD"]).await.ok()?;
    // A worktree is locked until all its files are there.
    let is_whole = git.repository() == source.repository
        && branch == format!("refs/heads/{}", order.branch)
        && !git.own_data().join("locked").exists();
    if !is_whole {
        return None;
    }
    git.ask(["rev-parse", "HEAD"]).await.ok()
}

pub(super) async fn add(
    order: &WorktreeOrder,
    source: &Source,
    cancel: &CancellationToken,
) -> Result<(), String> {
    clear(&order.path, &source.repository, cancel).await;
    let git = Git::within(&order.from, cancel).await.map_err(|error| error.to_string())?;
    let branch = format!("refs/heads/{}", order.branch);
    let tip = git.find(["rev-parse", "--verify", "--quiet", &branch]).await.map_err(|e| e.to_string())?;
    if let Some(tip) = tip {
        let known = git.find(["merge-base", "--is-ancestor", &tip, &source.commit]).await;
        if known.map_err(|error| error.to_string())?.is_none() {
            return Err(format!(
                "the branch {} is there already, with commits of its own: rename or delete it",
                order.branch
            ));
        }
    }
    let folder = order.path.parent().unwrap_or(&order.path);
    let made = apart(folder, |folder| std::fs::create_dir_all(folder)).await;
    made.map_err(|error| format!("the folder {} can't be made: {error}", folder.display()))?;
    fill(order, source, &git).await.map_err(|error| no_room(order, &error))
}

/// The checkout, which may take long, runs without the lock of the list.
async fn fill(order: &WorktreeOrder, source: &Source, git: &Git<'_>) -> Result<(), GitError> {
    list::enter(git, &order.path, &order.branch, &source.commit).await?;
    let checkout = ["reset", "--hard", "--quiet", "--no-recurse-submodules"].map(OsStr::new);
    Git::at(&order.path, git.cancel()).await?.run(CHECKOUT_MAX, checkout).await?;
    list::unlock(git, &order.path).await
}

fn no_room(order: &WorktreeOrder, error: &GitError) -> String {
    let path = order.path.display();
    match error {
        // On a full disk, this is all that git reports.
        GitError::Refused(said) if said.contains("No space left") || said.contains("unable to write") => {
            format!(
                "a copy of {} can't be written to {path}: see whether there is room on that disk, {OTHERWISE} ({error})",
                order.from.display()
            )
        }
        GitError::Cancelled => error.to_string(),
        error => format!("it can't be made at {path}: {error}; see to that, {OTHERWISE}"),
    }
}

/// Runs `act` on `path` on a thread that may block.
async fn apart(path: &Path, act: impl FnOnce(&Path) -> io::Result<()> + Send + 'static) -> io::Result<()> {
    let path = path.to_path_buf();
    tokio::task::spawn_blocking(move || act(&path)).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

/// Removes an incomplete or unused worktree, and git's record of it.
pub(super) async fn clear(path: &Path, repository: &Path, cancel: &CancellationToken) {
    if let Err(error) = apart(path, |path| std::fs::remove_dir_all(path)).await
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(%error, path = %path.display(), "a half-made worktree can't be removed");
    }
    // Usually it has no record.
    if let Ok(git) = Git::of(repository, cancel).await {
        let _ = list::throw_out(&git, path).await;
    }
}

/// Deletes a branch, if it is still at `commit`.
pub(super) async fn drop_branch(repository: &Path, branch: &str, commit: &str, cancel: &CancellationToken) {
    let branch = format!("refs/heads/{branch}");
    let Ok(git) = Git::of(repository, cancel).await else { return };
    if let Ok(Some(_)) = git.find(["rev-parse", "--verify", "--quiet", &branch]).await
        && let Err(error) = git.ask(["update-ref", "-d", &branch, commit]).await
    {
        tracing::debug!(%error, branch, "a branch stays");
    }
}

/// Files with uncommitted changes, and files that are neither tracked nor ignored. A repository that is checked
/// out inside counts as one: its changes can't be determined without its own settings.
pub(crate) async fn changed_files(git: &Git<'_>) -> Result<u32, GitError> {
    let arguments =
        ["status", "--porcelain", "--no-renames", "--untracked-files=all", "--ignore-submodules=all"];
    let status = git.run(CHECKOUT_MAX, arguments.map(OsStr::new)).await?;
    let files = u32::try_from(status.lines().count()).unwrap_or(u32::MAX);
    Ok(files.saturating_add(git.repositories_within().await?))
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}
