//! The states of an agent's git worktree, in words.

use provost_event::{PushedBranch, WorktreeEntry, WorktreeFound, WorktreeLeft, WorktreeMade};

use super::saying::{Saying, Tag};
use super::visible;

/// Characters of a commit's name that tell it from others.
const COMMIT_CHARS: usize = 12;

/// The entry in words.
pub(super) fn in_words(entry: &WorktreeEntry) -> Saying {
    match entry {
        WorktreeEntry::Made(entry) => made(entry),
        WorktreeEntry::Asked(_) => asked(),
        WorktreeEntry::Found(entry) => found(entry),
    }
}

pub(super) fn made(entry: &WorktreeMade) -> Saying {
    let commit = entry.commit.chars().take(COMMIT_CHARS).collect::<String>();
    let missing = match entry.uncommitted {
        0 => String::new(),
        files => {
            format!("; not in it: uncommitted changes to files of the agent that asked for it ({files})")
        }
    };
    let unfiltered = match entry.unfiltered {
        0 => String::new(),
        files => format!("; as git stores them, without their filters (large files): {files}"),
    };
    Saying::detail(format!("works in a git worktree of its own, from commit {commit}{missing}{unfiltered}"))
}

pub(super) fn asked() -> Saying {
    Saying::detail("its git worktree is looked at")
}

pub(super) fn found(entry: &WorktreeFound) -> Saying {
    match &entry.left {
        WorktreeLeft::Clean => Saying::detail("its git worktree is as it was made"),
        WorktreeLeft::Removed => Saying::detail("its git worktree is as it was made, and removed"),
        WorktreeLeft::Changed { pushed: Some(PushedBranch { url, branch }), summary, .. } => {
            let differs = if summary.is_empty() { String::new() } else { format!(" ({summary})") };
            let (url, branch) = (visible(url), visible(branch));
            Saying::kept(Tag::Run, format!("its work is pushed{differs}: git fetch {url} {branch}"))
        }
        WorktreeLeft::Changed { branch, commits, summary, uncommitted, pushed: None } => {
            let branch = branch.as_deref().unwrap_or("no branch");
            let differs = if summary.is_empty() { String::new() } else { format!(" ({summary})") };
            let line = format!(
                "its git worktree stays, on {branch}; commits: {commits}{differs}; files not committed: {uncommitted}"
            );
            Saying::kept(Tag::Run, line)
        }
        WorktreeLeft::Unknown { why } => {
            Saying::kept(Tag::Failed, format!("its git worktree stays, and what is in it isn't known: {why}"))
        }
    }
}
