//! What was changed in a workspace since a run began.

use std::path::PathBuf;

use provost_event::{RunId, Timestamp};
use provost_harness::{FileChange, FileChangeKind, WorkspaceDiff};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ViewVersion;

/// The files that differ between a workspace now and at the start, changes by others included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunChanges {
    /// The version of the view.
    pub v: ViewVersion,
    /// The run.
    pub run: RunId,
    /// The agent whose workspace it is; 0 is the root, whose workspace is the run's.
    pub agent: u32,
    /// The workspace.
    pub workspace: PathBuf,
    /// Whether it is the agent's own git worktree.
    pub is_own_worktree: bool,
    /// The start that it is compared with: the run's, or the agent's if the worktree is its own.
    pub since_at_ms: Timestamp,
    /// Lines added in all files.
    pub added: u64,
    /// Lines removed in all files.
    pub removed: u64,
    /// The files, by path.
    pub files: Vec<ChangedFile>,
}

/// A file that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedFile {
    /// Its path, relative to the workspace.
    pub path: String,
    /// How it differs.
    pub change: ChangedFileState,
    /// Lines added; null for files that aren't text, and for those that weren't compared.
    pub added: Option<u64>,
    /// Lines removed; null likewise.
    pub removed: Option<u64>,
    /// Whether its content was compared: not that of files with keys that Provost knows, and of files that weren't in
    /// git and are over 1 MiB or have anything that looks like a secret.
    pub compared: bool,
    /// The change as a section of a patch that `git apply` takes; absent where it wasn't requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
}

/// How a file differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangedFileState {
    /// It wasn't there at the start.
    Added,
    /// Its content or its mode is another.
    Changed,
    /// It is gone.
    Deleted,
}

impl RunChanges {
    /// The view of what differs in the workspace of the agent.
    #[must_use]
    pub fn new(run: RunId, agent: u32, diff: WorkspaceDiff) -> Self {
        let sum = |count: fn((u64, u64)) -> u64| {
            diff.changes.iter().filter_map(|change| change.lines).map(count).fold(0, u64::saturating_add)
        };
        Self {
            v: ViewVersion,
            run,
            agent,
            added: sum(|(added, _)| added),
            removed: sum(|(_, removed)| removed),
            workspace: diff.workspace,
            is_own_worktree: diff.is_own_worktree,
            since_at_ms: diff.since,
            files: diff.changes.into_iter().map(ChangedFile::from).collect(),
        }
    }
}

impl From<FileChange> for ChangedFile {
    fn from(change: FileChange) -> Self {
        let FileChange { path, kind, lines, is_compared, patch } = change;
        let change = match kind {
            FileChangeKind::Added => ChangedFileState::Added,
            FileChangeKind::Changed => ChangedFileState::Changed,
            FileChangeKind::Deleted => ChangedFileState::Deleted,
        };
        let (added, removed) = lines.unzip();
        Self { path, change, added, removed, compared: is_compared, patch }
    }
}
