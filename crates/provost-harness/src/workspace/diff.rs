//! What was changed in a workspace since a run began.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use provost_event::{Timestamp, WorkspaceBaseline};
use tokio_util::sync::CancellationToken;

use super::tree::FileTree;
use crate::git::{Git, GitError};
use crate::{Blobs, Redactor};

/// Time limit of comparing two trees.
const COMPARING_MAX: Duration = Duration::from_secs(20);
/// Maximum bytes kept of a list of changed files.
const LIST_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Maximum names of left-out files in a baseline.
const LEFT_OUT_NAMES_MAX: usize = 1_000;

/// How a file differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileChangeKind {
    /// It wasn't there.
    Added,
    /// Its content or its mode is another.
    Changed,
    /// It is gone.
    Deleted,
}

/// A file that differs between the start and now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Its path, relative to the workspace.
    pub path: String,
    /// How it differs.
    pub kind: FileChangeKind,
    /// Added and removed lines; `None` for files that aren't text, and for those whose content wasn't compared.
    pub lines: Option<(u64, u64)>,
    /// Whether its content was compared: not that of files with secrets and of untracked ones over 1 MiB.
    pub is_compared: bool,
    /// The change as a section of a patch in git's form, if it was requested and is text.
    pub patch: Option<String>,
}

/// The state that a workspace is compared with.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Base<'a> {
    /// The files before the run began.
    Baseline(&'a WorkspaceBaseline),
    /// A commit.
    Commit(&'a str),
    /// The last commit before this time.
    LastCommitBefore(Timestamp),
}

/// The files of `workspace` as they are now, for a run that begins.
///
/// # Errors
/// [`GitError::Refused`] outside of a git work tree; when git can't read the files, or their new content can't be stored.
///
/// # Cancellation
/// Ends with [`GitError::Cancelled`]. Dropping the future is safe.
pub(crate) async fn baseline(
    workspace: &Path,
    blobs: &(dyn Blobs + '_),
    redactor: &Arc<Redactor>,
    cancel: &CancellationToken,
) -> Result<WorkspaceBaseline, GitError> {
    let tree = FileTree::read(workspace, redactor, cancel).await?;
    let pack = match tree.pack().await? {
        Some(pack) => {
            let stored = blobs.put_blob(pack).await;
            Some(stored.map_err(|error| GitError::Files(std::io::Error::other(error)))?)
        }
        None => None,
    };
    let left_out = tree.left_out().iter().take(LEFT_OUT_NAMES_MAX).cloned().collect();
    Ok(WorkspaceBaseline { tree: tree.id().to_owned(), pack, left_out })
}

/// A workspace compared with an earlier state of it.
#[derive(Debug)]
pub(crate) struct Comparison<'a> {
    now: FileTree<'a>,
    /// The object that it is compared with.
    base: String,
    /// What differs, in git's order of paths.
    pub(crate) changes: Vec<FileChange>,
}

impl<'a> Comparison<'a> {
    /// Compares the files below `workspace` with `base`. Of files that are left out of both states, those changed at
    /// `began` or later are reported.
    ///
    /// # Errors
    /// [`GitError::Refused`] outside of a work tree; when git can't read a state, or a blob is gone.
    pub(crate) async fn with(
        base: Base<'_>,
        workspace: &Path,
        (blobs, redactor): (&(dyn Blobs + '_), &Arc<Redactor>),
        began: Timestamp,
        cancel: &'a CancellationToken,
    ) -> Result<Self, GitError> {
        let now = FileTree::read(workspace, redactor, cancel).await?;
        let mut left_out_before = [].as_slice();
        let base = match base {
            Base::Baseline(baseline) => {
                left_out_before = &baseline.left_out;
                if let Some(id) = &baseline.pack {
                    let gone = || GitError::Files(std::io::Error::other("the files at the start are gone"));
                    now.add_pack(blobs.get_blob(id).await.ok().flatten().ok_or_else(gone)?).await?;
                }
                baseline.tree.clone()
            }
            Base::Commit(commit) => commit.to_owned(),
            Base::LastCommitBefore(at) => commit_before(now.git(), at).await?,
        };
        let mut comparison = Self { now, base, changes: Vec::new() };
        let listed = comparison.diff(&["-z", "--raw", "--numstat"], &[], LIST_BYTES_MAX).await?;
        comparison.changes = parsed(&listed);
        comparison.consider_left_out(left_out_before, workspace, began);
        Ok(comparison)
    }

    /// Files that were left out of the older tree aren't new, and those left out of the newer one aren't deleted; they
    /// may have changed.
    fn consider_left_out(&mut self, before: &[String], workspace: &Path, began: Timestamp) {
        let left_out = self.now.left_out();
        self.changes.retain(|change| {
            let is_old =
                before.contains(&change.path) && !is_changed_since(&workspace.join(&change.path), began);
            !left_out.contains(&change.path) && !is_old
        });
        let changed = left_out.iter().filter(|path| is_changed_since(&workspace.join(path), began));
        self.changes.extend(changed.map(|path| FileChange {
            path: path.clone(),
            kind: FileChangeKind::Changed,
            lines: None,
            is_compared: false,
            patch: None,
        }));
    }

    /// The sections of a patch for these files, relative to the workspace, each with its path.
    ///
    /// # Errors
    /// When git can't compare them, or they are together `bytes_max` or more.
    pub(crate) async fn patches(
        &self,
        paths: &[&str],
        bytes_max: usize,
    ) -> Result<Vec<(String, String)>, GitError> {
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let patch = self.diff(&["-p", "--binary", "--no-color"], paths, bytes_max).await?;
        if patch.len() >= bytes_max {
            return Err(GitError::Refused(format!("the patch is over {bytes_max} bytes")));
        }
        let ordered = self.changes.iter().filter(|change| paths.contains(&change.path.as_str()));
        let sections = sections(&patch).map(|section| {
            // Git's output lost its last line ends, and the data of a file that isn't text ends with an empty line.
            let end = if section.contains("\nGIT binary patch\n") { "\n\n" } else { "\n" };
            format!("{}{end}", section.trim_end_matches('\n'))
        });
        Ok(ordered.map(|change| change.path.clone()).zip(sections).collect())
    }

    async fn diff(&self, form: &[&str], paths: &[&str], bytes_max: usize) -> Result<String, GitError> {
        let fixed =
            ["--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all", "--relative"];
        let trees = [self.base.as_str(), self.now.id(), "--"];
        let arguments = ["--literal-pathspecs", "diff-tree", "-r"].iter().chain(form).chain(&fixed);
        let arguments = arguments.chain(&trees).chain(paths).map(OsStr::new).collect::<Vec<_>>();
        self.now.git().kept(COMPARING_MAX, &arguments, bytes_max).await
    }
}

/// The last commit of the branch before `began`; the empty tree if there is none.
async fn commit_before(git: &Git<'_>, began: Timestamp) -> Result<String, GitError> {
    let age = format!("--min-age={}", began.0 / 1_000);
    let before = git.find(["rev-list", "-1", &age, "HEAD"]).await?;
    match before.filter(|commit| !commit.is_empty()) {
        Some(commit) => Ok(commit),
        None => git.ask(["hash-object", "-t", "tree", "-w", "--stdin"]).await,
    }
}

/// Git's list of changes: entries `:MODES IDS KIND` followed by a path, then counts of lines with their paths.
fn parsed(listed: &str) -> Vec<FileChange> {
    let mut changes = Vec::<FileChange>::new();
    let mut counted = 0;
    let mut fields = listed.split('\0');
    while let Some(field) = fields.next() {
        if field.starts_with(':') {
            let Some(path) = fields.next() else { break };
            let kind = match field.chars().next_back() {
                Some('A') => FileChangeKind::Added,
                Some('D') => FileChangeKind::Deleted,
                _ => FileChangeKind::Changed,
            };
            changes.push(FileChange {
                path: path.to_owned(),
                kind,
                lines: None,
                is_compared: true,
                patch: None,
            });
        } else if let Some(change) = changes.get_mut(counted) {
            change.lines = counts(field);
            counted += 1;
        }
    }
    changes
}

/// Added and removed lines; both are `-` for files that aren't text.
fn counts(field: &str) -> Option<(u64, u64)> {
    let mut parts = field.splitn(3, '\t');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// The parts of a patch, one a file. A line of a file's content never begins with this word.
fn sections(patch: &str) -> impl Iterator<Item = &str> {
    let starts = std::iter::once(0).chain(patch.match_indices("\ndiff --git ").map(|(at, _)| at + 1));
    let ends = starts.clone().skip(1).chain([patch.len()]);
    starts.zip(ends.collect::<Vec<_>>()).filter_map(|(from, to)| patch.get(from..to))
}

/// A section without its head and the last line end.
pub(crate) fn hunks_of(section: &str) -> &str {
    let hunks = section.find("\n@@ ").and_then(|at| section.get(at + 1..));
    hunks.unwrap_or_default().trim_end_matches('\n')
}

#[cfg(unix)]
fn is_changed_since(path: &Path, began: Timestamp) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    // The time of the last change of its content or its data: no program can set it back.
    let Ok(found) = path.symlink_metadata() else { return false };
    let at = found.ctime().saturating_mul(1_000).saturating_add(found.ctime_nsec() / 1_000_000);
    u64::try_from(at).is_ok_and(|at| at >= began.0)
}

#[cfg(not(unix))]
fn is_changed_since(path: &Path, began: Timestamp) -> bool {
    let changed = path.metadata().and_then(|found| found.modified());
    let changed = changed.ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    changed.is_some_and(|at| at.as_millis() >= u128::from(began.0))
}
