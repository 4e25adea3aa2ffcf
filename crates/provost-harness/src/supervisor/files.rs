//! The changed files: from git if it knows the workspace, and else from the agent's own calls.

use std::ffi::OsStr;
use std::fs::{Metadata, symlink_metadata};
use std::path::Path;
use std::time::{Duration, SystemTime};

use provost_event::Timestamp;
use tokio_util::sync::CancellationToken;

use super::{ChangedFiles, Since};
use crate::git::{Git, GitError};

/// Time limit of one git query.
const ASKING_MAX: Duration = Duration::from_secs(20);
/// Maximum reported files.
const FILES_MAX: usize = 200;
/// Maximum files inspected to find the latest changes.
const LOOKED_AT_MAX: usize = 5_000;

/// The workspace when the agent started.
#[derive(Debug, Clone, Default)]
pub(super) struct Began {
    /// The time of the start.
    pub(super) at: Timestamp,
    /// The commit that its worktree is based on, if it has one.
    pub(super) commit: Option<String>,
}

/// The files in `workspace` that differ from the start; if git finds none, those that were `written`.
pub(super) async fn changed(
    workspace: &Path,
    began: Began,
    written: &[String],
    cancel: &CancellationToken,
) -> ChangedFiles {
    let (since, changes) = match compare(workspace, &began, cancel).await {
        Ok(Some((since, changes))) if !changes.is_empty() || written.is_empty() => (since, changes),
        Err(error) if written.is_empty() => {
            tracing::debug!(%error, "git can't tell what was changed");
            return ChangedFiles::default();
        }
        Ok(None) if written.is_empty() => return ChangedFiles::default(),
        Ok(_) | Err(_) => {
            let written = written.iter().map(|path| Change { path: path.clone(), lines: None });
            (Since::Written, written.collect())
        }
    };
    let folder = workspace.to_path_buf();
    let told = tokio::task::spawn_blocking(move || told(&folder, since, changes)).await;
    told.unwrap_or_default()
}

/// A changed file.
struct Change {
    path: String,
    /// Added and removed lines, as git counts them; `None` for an untracked file.
    lines: Option<String>,
}

/// The changes, and their base; `None` if there is no repository.
async fn compare(
    workspace: &Path,
    began: &Began,
    cancel: &CancellationToken,
) -> Result<Option<(Since, Vec<Change>)>, GitError> {
    let git = match Git::within(workspace, cancel).await {
        Ok(git) => git,
        Err(GitError::Refused(_) | GitError::NoFolder(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let (since, commit) = match &began.commit {
        Some(commit) => (Since::WorktreeMade, commit.clone()),
        None => (Since::AgentBegan, commit_before(&git, began.at).await?),
    };
    let numbers = [
        "diff",
        "--numstat",
        "-z",
        "--no-renames",
        "--no-ext-diff",
        "--no-textconv",
        "--ignore-submodules=dirty",
        "--relative",
        &commit,
        "--",
    ];
    let known = git.run(ASKING_MAX, numbers.map(OsStr::new)).await?;
    let others = ["ls-files", "--others", "--exclude-standard", "-z"];
    let unknown = git.run(ASKING_MAX, others.map(OsStr::new)).await?;
    let known = known.split('\0').filter_map(numbered);
    let unknown = unknown.split('\0').filter(|path| !path.is_empty());
    let unknown = unknown.map(|path| Change { path: path.to_owned(), lines: None });
    Ok(Some((since, known.chain(unknown).collect())))
}

/// The last commit of the branch before `began`; the empty tree if there is none.
async fn commit_before(git: &Git<'_>, began: Timestamp) -> Result<String, GitError> {
    let age = format!("--min-age={}", began.0 / 1_000);
    let before = git.find(["rev-list", "-1", &age, "HEAD"]).await?;
    match before.filter(|commit| !commit.is_empty()) {
        Some(commit) => Ok(commit),
        None => git.ask(["hash-object", "-t", "tree", "--stdin"]).await,
    }
}

/// A line of git's output: added lines, removed lines, path. Both numbers are `-` for binary files.
fn numbered(line: &str) -> Option<Change> {
    let mut parts = line.splitn(3, '\t');
    let (more, less, path) = (parts.next()?, parts.next()?, parts.next()?);
    let lines = match (more.parse::<u64>(), less.parse::<u64>()) {
        (Ok(more), Ok(less)) => format!("+{more} -{less}"),
        _ => "not text".to_owned(),
    };
    Some(Change { path: path.to_owned(), lines: Some(lines) })
}

/// The diffstat: deleted files first, then the latest changes. Blocking.
fn told(workspace: &Path, since: Since, changes: Vec<Change>) -> ChangedFiles {
    let all = changes.len();
    let lines = changes.iter().take(LOOKED_AT_MAX).map(|change| line(workspace, since, change));
    let mut lines = lines.collect::<Vec<_>>();
    lines.sort_by(|one, other| one.0.cmp(&other.0).then_with(|| one.1.cmp(&other.1)));
    lines.truncate(FILES_MAX);
    let more = u32::try_from(all.saturating_sub(lines.len())).unwrap_or(u32::MAX);
    ChangedFiles { since, diffstat: lines.into_iter().map(|(_, line)| line).collect(), more }
}

/// A line of the diffstat, with the age of the change; a deletion counts as just now.
fn line(workspace: &Path, since: Since, change: &Change) -> (Duration, String) {
    let Change { path, lines } = change;
    let found = symlink_metadata(workspace.join(path)).ok();
    let age = found.as_ref().map_or(Duration::ZERO, age);
    let size = found.as_ref().map_or_else(|| "gone".to_owned(), size);
    match (lines, since) {
        (Some(lines), _) => (age, format!("{lines}, {size}: {path}")),
        (None, Since::Written) => (age, format!("{size}: {path}")),
        // git has just reported it, so its name isn't valid text, or was truncated.
        (None, _) if found.is_none() => (Duration::MAX, format!("new: {path}")),
        (None, _) => (age, format!("new, {size}: {path}")),
    }
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
