//! Inspecting the changes in a worktree.

use provost_engine::{CleanWorktree, WorktreeCheck};
use provost_event::WorktreeLeft;
use tokio_util::sync::CancellationToken;

use super::list;
use super::make::{changed_files, clear, drop_branch};
use crate::git::{Git, GitError};

/// The changes in a worktree; it is removed if that is requested and there are none. If they can't be determined,
/// it stays.
pub(super) async fn check(check: &WorktreeCheck, cancel: &CancellationToken) -> WorktreeLeft {
    let left =
        if check.path.exists() { look(check, cancel).await } else { look_at_branch(check, cancel).await };
    left.unwrap_or_else(|error| WorktreeLeft::Unknown { why: error.to_string() })
}

async fn look(check: &WorktreeCheck, cancel: &CancellationToken) -> Result<WorktreeLeft, GitError> {
    let git = Git::at(&check.path, cancel).await?;
    if git.repository() != check.repository {
        let other = git.repository().display();
        return Err(GitError::Refused(format!("it belongs to another repository, {other}")));
    }
    let head = git.ask(["rev-parse", "--verify", "HEAD^{commit}"]).await?;
    let uncommitted = changed_files(&git).await?;
    let tip = tip(check, cancel).await?;
    let branch = git.find(["symbolic-ref", "--quiet", "--short", "HEAD"]).await?;
    let is_clean = uncommitted == 0 && head == check.commit && tip.is_none_or(|tip| tip == check.commit);
    match (is_clean, check.when_clean) {
        (true, CleanWorktree::Stays) => Ok(WorktreeLeft::Clean),
        (true, CleanWorktree::Goes) => Ok(remove(check, cancel).await),
        (false, _) => {
            let (commits, summary) = differs(&git, &check.commit, &head).await?;
            Ok(WorktreeLeft::Changed { branch, commits, summary, uncommitted, pushed: None, unpushed: None })
        }
    }
}

/// The folder is gone: it was removed by another program, or by an interrupted attempt.
async fn look_at_branch(check: &WorktreeCheck, cancel: &CancellationToken) -> Result<WorktreeLeft, GitError> {
    let Some(tip) = tip(check, cancel).await?.filter(|tip| *tip != check.commit) else {
        clear(&check.path, &check.repository, cancel).await;
        drop_branch(&check.repository, &check.branch, &check.commit, cancel).await;
        return Ok(WorktreeLeft::Removed);
    };
    let git = Git::of(&check.repository, cancel).await?;
    let (commits, summary) = differs(&git, &check.commit, &tip).await?;
    let branch = Some(check.branch.clone());
    Ok(WorktreeLeft::Changed { branch, commits, summary, uncommitted: 0, pushed: None, unpushed: None })
}

/// The last commit of the worktree's branch, if that still exists.
async fn tip(check: &WorktreeCheck, cancel: &CancellationToken) -> Result<Option<String>, GitError> {
    let branch = format!("refs/heads/{}", check.branch);
    Git::of(&check.repository, cancel).await?.find(["rev-parse", "--verify", "--quiet", &branch]).await
}

/// The number of commits since `before`, and the difference to `after`.
async fn differs(git: &Git<'_>, before: &str, after: &str) -> Result<(u32, String), GitError> {
    let range = format!("{before}..{after}");
    let commits = git.ask(["rev-list", "--count", &range]).await?;
    let summary = git.ask(["diff", "--shortstat", "--no-ext-diff", "--no-textconv", before, after]).await?;
    Ok((commits.parse().unwrap_or(u32::MAX), summary.trim().to_owned()))
}

/// Git itself checks again, and keeps a changed worktree.
async fn remove(check: &WorktreeCheck, cancel: &CancellationToken) -> WorktreeLeft {
    let removed = match Git::of(&check.repository, cancel).await {
        Ok(git) => list::take_out(&git, &check.path).await,
        Err(error) => Err(error),
    };
    if let Err(error) = removed {
        tracing::warn!(%error, path = %check.path.display(), "a worktree that nothing was done to stays");
        return WorktreeLeft::Clean;
    }
    drop_branch(&check.repository, &check.branch, &check.commit, cancel).await;
    WorktreeLeft::Removed
}
