//! What was changed in the workspace of a run, or of an agent with its own, since its start.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use provost_event::{
    Entry, LifecycleEntry, RunId, RunStarted, Seq, SessionId, SessionStarted, Timestamp, WorktreeEntry,
};
use tokio_util::sync::CancellationToken;

use super::diff::{Base, Comparison, FileChange};
use crate::git::GitError;
use crate::git::remote::reference;
use crate::{BackendError, Log, Redactor};

/// Entries at a log's beginning that contain the creation of a worktree.
const BEGINNING_ENTRIES: usize = 16;
/// Maximum bytes of all patches together.
const PATCHES_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What is to be compared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkspaceDiffQuery {
    /// Files and folders to report, relative to the workspace; empty for all.
    pub paths: Vec<String>,
    /// Whether the changes are reported as patches too. Default: no.
    pub has_patches: bool,
}

impl WorkspaceDiffQuery {
    fn includes(&self, change: &FileChange) -> bool {
        self.paths.is_empty() || self.paths.iter().any(|path| Path::new(&change.path).starts_with(path))
    }
}

/// What differs between a workspace now and at the start, changes by others included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceDiff {
    /// The workspace.
    pub workspace: PathBuf,
    /// The start: of the run, or of the agent if the workspace is its own worktree.
    pub since: Timestamp,
    /// Whether the workspace is the agent's own worktree.
    pub is_own_worktree: bool,
    /// The files that differ, by path.
    pub changes: Vec<FileChange>,
}

/// Why a workspace can't be compared with its start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceDiffError {
    /// The log has no start of the run or the agent.
    #[error("there is no agent {0}")]
    NoAgent(SessionId),
    /// The files at the start aren't known.
    #[error("how the files in {} were when run {run} began isn't known: it began outside of a git work tree, or git \
             couldn't read it", workspace.display())]
    NoBaseline {
        /// The run.
        run: RunId,
        /// Its workspace.
        workspace: PathBuf,
    },
    /// The agent's own worktree isn't there: it wasn't made yet, or was removed.
    #[error("the worktree {} isn't there: it is made when its agent begins, and removed when the agent has changed \
             nothing in it", .0.display())]
    NoWorktree(PathBuf),
    /// The worktree is on the machine that works on the run; the remote repository has its content.
    #[error("the worktree {} isn't on this machine: `git fetch {url} {reference}` gets what was pushed of it, and `git diff \
             {commit} FETCH_HEAD` shows what was changed", path.display())]
    Remote {
        /// Its path.
        path: PathBuf,
        /// The repository's address.
        url: String,
        /// What it is called there.
        reference: String,
        /// The commit that it began with.
        commit: String,
    },
    /// Git can't compare the files.
    #[error("the files in {} can't be compared: {message}", workspace.display())]
    Git {
        /// The workspace.
        workspace: PathBuf,
        /// Its message.
        message: String,
    },
    /// The log can't be read.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

/// Compares the workspace of `session` with how it was when its run began, or with the commit that its own worktree
/// began with. Starts git, and no program that the repository names.
///
/// # Errors
/// [`WorkspaceDiffError`]; nothing was changed then.
///
/// # Cancellation
/// Ends with [`WorkspaceDiffError::Git`] when `cancel` fires. Dropping the future is safe.
pub async fn workspace_diff(
    backend: &dyn Log,
    session: SessionId,
    query: &WorkspaceDiffQuery,
    redactor: &Arc<Redactor>,
    cancel: &CancellationToken,
) -> Result<WorkspaceDiff, WorkspaceDiffError> {
    let start = Start::read(backend, session).await?;
    let base = match (&start.commit, &start.run.baseline) {
        (Some(commit), _) => Base::Commit(commit),
        (None, Some(baseline)) => Base::Baseline(baseline),
        (None, None) => {
            return Err(WorkspaceDiffError::NoBaseline { run: session.run, workspace: start.workspace });
        }
    };
    let refused = |error: GitError| WorkspaceDiffError::Git {
        workspace: start.workspace.clone(),
        message: error.to_string(),
    };
    let own = (backend as &dyn crate::Blobs, redactor);
    let comparison =
        Comparison::with(base, &start.workspace, own, start.at, cancel).await.map_err(refused)?;
    let mut changes = comparison.changes.clone();
    changes.retain(|change| query.includes(change));
    if query.has_patches {
        let paths = changes.iter().filter(|change| change.is_compared).map(|change| change.path.as_str());
        let paths = paths.collect::<Vec<_>>();
        let patches = comparison.patches(&paths, PATCHES_BYTES_MAX).await.map_err(refused)?;
        for (path, patch) in patches {
            if let Some(change) = changes.iter_mut().find(|change| change.path == path) {
                change.patch = Some(patch);
            }
        }
    }
    changes.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(WorkspaceDiff {
        workspace: start.workspace.clone(),
        since: start.at,
        is_own_worktree: start.commit.is_some(),
        changes,
    })
}

/// The start of an agent's work.
struct Start {
    run: RunStarted,
    workspace: PathBuf,
    at: Timestamp,
    /// The commit of its own worktree.
    commit: Option<String>,
}

impl Start {
    async fn read(backend: &dyn Log, session: SessionId) -> Result<Self, WorkspaceDiffError> {
        let first = backend.read(session.run.into(), Seq::START, 1).await?;
        let Some((Entry::Lifecycle(LifecycleEntry::RunStarted(run)), at)) =
            first.first().map(|first| (&first.entry, first.at))
        else {
            return Err(WorkspaceDiffError::NoAgent(session));
        };
        let workspace = run.policy.agent.workspace.clone();
        let mut start = Self { run: run.clone(), workspace, at, commit: None };
        let records = backend.read(session.into(), Seq::START, BEGINNING_ENTRIES).await?;
        let opening = records.first().map(|first| (&first.entry, first.at));
        match opening {
            Some((Entry::Lifecycle(LifecycleEntry::SessionStarted(started)), at)) => {
                let SessionStarted { policy, worktree, .. } = started;
                start.workspace.clone_from(&policy.workspace);
                if worktree.is_some() {
                    start.at = at;
                    start.commit = records.iter().find_map(|record| match &record.entry {
                        Entry::Worktree(WorktreeEntry::Made(made)) => Some(made.commit.clone()),
                        _ => None,
                    });
                    match (&run.policy.remote, start.commit.clone()) {
                        (_, Some(_)) if start.workspace.is_dir() => {}
                        (Some(remote), Some(commit)) => {
                            return Err(WorkspaceDiffError::Remote {
                                path: start.workspace,
                                url: remote.url.clone(),
                                reference: reference(session),
                                commit,
                            });
                        }
                        (None, _) | (Some(_), None) => {
                            return Err(WorkspaceDiffError::NoWorktree(start.workspace));
                        }
                    }
                }
                Ok(start)
            }
            // The run of a workflow has no agent 0, but a workspace.
            _ if session == SessionId::root(session.run) => Ok(start),
            _ => Err(WorkspaceDiffError::NoAgent(session)),
        }
    }
}
