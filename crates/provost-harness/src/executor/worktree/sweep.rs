//! Worktrees that were never inspected: their sessions ended while suspended, or after a crash.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use provost_engine::{CleanWorktree, WorktreeCheck};
use provost_event::{
    Entry, LifecycleEntry, Record, RunId, Seq, SessionId, SessionStarted, WorktreeEntry, WorktreeLeft,
    WorktreeMade,
};
use tokio_util::sync::CancellationToken;

use super::check::check;
use super::make::clear;
use crate::git::Git;
use crate::{BackendError, Log};

/// Worktrees inspected in one sweep.
const WORKTREES_MAX: usize = 100;
/// Entries read at a time.
const READ_MAX: usize = 1_000;

/// Removes the worktrees in `folder` whose sessions have ended, if they are unchanged or a branch of a remote repository has
/// all that is in them. All others stay: those of sessions that continue or may continue, those recorded as changed, and
/// those unknown to `backend`.
pub(super) async fn sweep(backend: &dyn Log, folder: PathBuf, cancel: &CancellationToken) {
    for (path, session) in worktrees(folder).await {
        if cancel.is_cancelled() {
            return;
        }
        match story(backend, session).await {
            Ok(Some(story)) => tidy(&path, session, story, cancel).await,
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, %session, "a worktree stays"),
        }
    }
}

/// The worktrees in a folder, with their sessions.
async fn worktrees(folder: PathBuf) -> Vec<(PathBuf, SessionId)> {
    let look = move || {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let found = entries.filter_map(|entry| {
            let session = session_of(&entry.file_name().to_string_lossy())?;
            Some((entry.path(), session))
        });
        found.take(WORKTREES_MAX).collect()
    };
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}

/// The session whose worktree has this name.
pub(super) fn session_of(name: &str) -> Option<SessionId> {
    let (run, agent) = name.split_once('-')?;
    Some(SessionId { run: run.parse::<RunId>().ok()?, agent: agent.parse().ok()? })
}

/// A session's log about its worktree.
struct Story {
    started: SessionStarted,
    made: Option<WorktreeMade>,
    is_pushed: bool,
}

/// `None` if there is nothing to do: the session hasn't ended, or its worktree has been inspected.
async fn story(backend: &dyn Log, session: SessionId) -> Result<Option<Story>, BackendError> {
    let (mut story, mut is_over, mut is_seen_to) = (None, false, false);
    let mut head = Seq::START;
    loop {
        let records: Vec<Arc<Record>> = backend.read(session.into(), head, READ_MAX).await?;
        let Some(last) = records.last() else { break };
        head = last.seq;
        for record in &records {
            match (&record.entry, &mut story) {
                (Entry::Lifecycle(LifecycleEntry::SessionStarted(started)), None) => {
                    story = Some(Story { started: started.clone(), made: None, is_pushed: false });
                }
                (Entry::Worktree(WorktreeEntry::Made(made)), Some(story)) => story.made = Some(made.clone()),
                (Entry::Worktree(WorktreeEntry::Found(found)), Some(story)) => {
                    is_seen_to = has_more(&found.left);
                    story.is_pushed = matches!(found.left, WorktreeLeft::Changed { .. }) && !is_seen_to;
                }
                (Entry::Lifecycle(LifecycleEntry::Ended(_)), _) => is_over = true,
                _ => {}
            }
        }
    }
    Ok(story.filter(|story| is_over && !is_seen_to && story.started.worktree.is_some()))
}

/// Whether a worktree has changes that are in no remote repository.
const fn has_more(left: &WorktreeLeft) -> bool {
    match left {
        WorktreeLeft::Changed { pushed, unpushed, .. } => pushed.is_none() || unpushed.is_some(),
        WorktreeLeft::Clean | WorktreeLeft::Removed | WorktreeLeft::Unknown { .. } => false,
    }
}

async fn tidy(path: &Path, session: SessionId, story: Story, cancel: &CancellationToken) {
    let Some(worktree) = story.started.worktree.filter(|_| story.started.policy.workspace == path) else {
        return;
    };
    match story.made {
        Some(WorktreeMade { repository, .. }) if story.is_pushed => {
            clear(path, &repository, cancel).await;
            let Ok(git) = Git::of(&repository, cancel).await else { return };
            let branch = format!("refs/heads/{}", worktree.branch);
            if let Err(error) = git.ask(["update-ref", "-d", &branch]).await {
                tracing::debug!(%error, branch, "a branch stays");
            }
        }
        Some(WorktreeMade { repository, commit, .. }) => {
            let path = path.to_path_buf();
            let when_clean = CleanWorktree::Goes;
            let asked =
                WorktreeCheck { session, path, branch: worktree.branch, repository, commit, when_clean };
            let left = check(&asked, cancel).await;
            tracing::debug!(%session, ?left, "a worktree that was not inspected");
        }
        // The agent never started.
        None => {
            if let Ok(git) = Git::within(&worktree.from, cancel).await {
                clear(path, git.repository(), cancel).await;
            }
        }
    }
}
