//! The changed files: from git if it knows the workspace, and else from the agent's own calls.

use std::fs::{Metadata, symlink_metadata};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use provost_event::{Timestamp, WorkspaceBaseline};
use tokio_util::sync::CancellationToken;

use super::{ChangedFiles, FileHunks, Since};
use crate::git::GitError;
use crate::workspace::{Base, Comparison, FileChange, FileChangeKind, hunks_of};
use crate::{Blobs, Redactor};

/// Maximum reported files.
const FILES_MAX: usize = 200;
/// Maximum files inspected to find the latest changes.
const LOOKED_AT_MAX: usize = 5_000;
/// Maximum files of which changed lines are reported.
const HUNK_FILES_MAX: usize = 40;
/// Maximum bytes read of their changed lines.
const HUNKS_BYTES_MAX: usize = 1024 * 1024;
/// Maximum changed lines of all of them.
const HUNK_LINES_MAX: u64 = 2_000;

/// The workspace when the agent started.
#[derive(Debug, Clone, Default)]
pub(super) struct Began {
    /// The time of the start.
    pub(super) at: Timestamp,
    /// The commit that its worktree is based on, if it has one.
    pub(super) commit: Option<String>,
    /// The files of the run's workspace when the run started.
    pub(super) baseline: Option<WorkspaceBaseline>,
}

impl Began {
    fn base(&self) -> (Since, Base<'_>) {
        match (&self.commit, &self.baseline) {
            (Some(commit), _) => (Since::WorktreeMade, Base::Commit(commit)),
            (None, Some(baseline)) => (Since::RunBegan, Base::Baseline(baseline)),
            (None, None) => (Since::AgentBegan, Base::LastCommitBefore(self.at)),
        }
    }
}

/// The files in `workspace` that differ from the start; if git finds none, those that were `written`.
pub(super) async fn changed(
    workspace: &Path,
    began: Began,
    written: &[String],
    own: (&(dyn Blobs + '_), &Arc<Redactor>),
    cancel: &CancellationToken,
) -> ChangedFiles {
    match compared(workspace, &began, own, cancel).await {
        Ok(files) if !files.diffstat.is_empty() || written.is_empty() => files,
        Err(error) if written.is_empty() => {
            tracing::debug!(%error, "git can't tell what was changed");
            ChangedFiles::default()
        }
        Ok(_) | Err(_) => {
            let latest = latest(workspace, written.iter().map(|path| (path.clone(), None)).collect()).await;
            told(Since::Written, &latest, written.len())
        }
    }
}

async fn compared(
    workspace: &Path,
    began: &Began,
    own: (&(dyn Blobs + '_), &Arc<Redactor>),
    cancel: &CancellationToken,
) -> Result<ChangedFiles, GitError> {
    let (since, base) = began.base();
    let comparison = Comparison::with(base, workspace, own, began.at, cancel).await?;
    let changes = comparison.changes.iter().map(|change| (change.path.clone(), Some(change.clone())));
    let latest = latest(workspace, changes.collect()).await;
    let files = told(since, &latest, comparison.changes.len());
    let paths = latest.iter().filter_map(|(_, change)| change.as_ref());
    let paths = with_hunks(paths);
    // Without them the list of files is still true.
    let mut patches = comparison.patches(&paths, HUNKS_BYTES_MAX).await.unwrap_or_default();
    patches.sort_by_key(|(path, _)| paths.iter().position(|known| known == path));
    let hunks =
        patches.into_iter().map(|(path, patch)| FileHunks { path, hunks: hunks_of(&patch).to_owned() });
    let hunks = hunks.collect();
    Ok(ChangedFiles { hunks, ..files })
}

/// The first files whose changed lines are together no more than the maximum.
fn with_hunks<'a>(changes: impl Iterator<Item = &'a FileChange>) -> Vec<&'a str> {
    let mut lines_left = HUNK_LINES_MAX;
    let fitting = changes.filter(|change| {
        let lines = change.lines.map_or(0, |(added, removed)| added.saturating_add(removed));
        let fits = (1..=lines_left).contains(&lines);
        lines_left -= if fits { lines } else { 0 };
        fits
    });
    fitting.take(HUNK_FILES_MAX).map(|change| change.path.as_str()).collect()
}

/// A changed file by its line of the diffstat.
type Told = (String, Option<FileChange>);

/// Deleted files first, then the latest changes.
async fn latest(workspace: &Path, changes: Vec<(String, Option<FileChange>)>) -> Vec<Told> {
    let folder = workspace.to_path_buf();
    let look = move || {
        let looked_at = changes.into_iter().take(LOOKED_AT_MAX).map(|(path, change)| {
            let found = symlink_metadata(folder.join(&path)).ok();
            let line = line(&path, change.as_ref(), found.as_ref());
            (found.as_ref().map_or(Duration::ZERO, age), line, change)
        });
        let mut looked_at = looked_at.collect::<Vec<_>>();
        looked_at.sort_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
        looked_at.truncate(FILES_MAX);
        looked_at.into_iter().map(|(_, line, change)| (line, change)).collect()
    };
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}

fn told(since: Since, latest: &[Told], all: usize) -> ChangedFiles {
    let more = u32::try_from(all.saturating_sub(latest.len())).unwrap_or(u32::MAX);
    let diffstat = latest.iter().map(|(line, _)| line.clone()).collect();
    ChangedFiles { since, diffstat, more, hunks: Vec::new() }
}

/// A line of the diffstat.
fn line(path: &str, change: Option<&FileChange>, found: Option<&Metadata>) -> String {
    let size = found.map_or_else(|| "gone".to_owned(), size);
    let Some(change) = change else { return format!("{size}: {path}") };
    let new = if change.kind == FileChangeKind::Added { "new, " } else { "" };
    let lines = match change.lines {
        Some((added, removed)) => format!("+{added} -{removed}"),
        None if change.is_compared => "not text".to_owned(),
        None => "new or changed, not compared".to_owned(),
    };
    format!("{new}{lines}, {size}: {path}")
}

/// Shorter for later changes; only for comparison.
fn age(file: &Metadata) -> Duration {
    let changed = file.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    Duration::MAX.saturating_sub(changed.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

fn size(file: &Metadata) -> String {
    match file.len() {
        _ if file.is_symlink() => "a symbolic link".to_owned(),
        _ if file.is_dir() => "a folder".to_owned(),
        1 => "1 byte".to_owned(),
        bytes => format!("{bytes} bytes"),
    }
}
