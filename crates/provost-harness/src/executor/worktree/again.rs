//! Creating a lost worktree again.

use provost_engine::WorktreeOrder;
use provost_event::{Timestamp, WorktreeMade};
use tokio_util::sync::CancellationToken;

use super::make::{Source, add};
use crate::git::Git;

const MS_A_SECOND: u64 = 1_000;

/// Creates the worktree of `order` again, whose creation is recorded in `made`: at the last commit of its branch,
/// or, if the branch is gone too, at its base commit. Returns the commit.
///
/// # Errors
/// Why it can't be created.
pub(crate) async fn make_again(order: &WorktreeOrder, made: &WorktreeMade) -> Result<String, String> {
    let cancel = CancellationToken::new();
    let git = Git::of(&made.repository, &cancel).await.map_err(|error| error.to_string())?;
    let branch = format!("refs/heads/{}", order.branch);
    let tip = git.find(["rev-parse", "--verify", "--quiet", &branch]).await.map_err(|e| e.to_string())?;
    let wanted = tip.unwrap_or_else(|| made.commit.clone());
    let wanted = format!("{wanted}^{{commit}}");
    let commit = git.find(["rev-parse", "--verify", "--quiet", &wanted]).await.map_err(|e| e.to_string())?;
    let commit = commit.ok_or_else(|| format!("the repository has no commit {} any more", made.commit))?;
    let source =
        Source { repository: made.repository.clone(), commit: commit.clone(), uncommitted: made.uncommitted };
    add(order, &source, &cancel).await?;
    Ok(commit)
}

/// The last commit on `branch` of a worktree, whose creation is recorded in `made`, at the time `at`: to the
/// second, by the commits' own times. The base commit if there is none, or the branch is gone.
///
/// # Errors
/// Why git can't answer.
pub(crate) async fn commit_at(made: &WorktreeMade, branch: &str, at: Timestamp) -> Result<String, String> {
    let cancel = CancellationToken::new();
    let git = Git::of(&made.repository, &cancel).await.map_err(|error| error.to_string())?;
    let until = format!("--until=@{}", at.0 / MS_A_SECOND);
    let since = format!("^{}", made.commit);
    let branch = format!("refs/heads/{branch}");
    let found = git.find(["rev-list", "-1", &until, &branch, &since]).await.map_err(|e| e.to_string())?;
    let found = found.map(|commit| commit.trim().to_owned()).filter(|commit| !commit.is_empty());
    Ok(found.unwrap_or_else(|| made.commit.clone()))
}
