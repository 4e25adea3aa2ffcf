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
        WorktreeLeft::Changed { branch, commits, summary, uncommitted, pushed, unpushed } => {
            let differs = if summary.is_empty() { String::new() } else { format!(" ({summary})") };
            let count = format!("commits: {commits}{differs}; files not committed: {uncommitted}");
            let stays = format!("its git worktree stays, on {}", branch.as_deref().unwrap_or("no branch"));
            match (pushed, unpushed) {
                (Some(PushedBranch { url, branch }), None) => {
                    let fetch = format!("git fetch {} {}", visible(url), visible(branch));
                    Saying::kept(Tag::Run, format!("its work is pushed, {count}: {fetch}"))
                }
                (Some(PushedBranch { url, branch }), Some(lacks)) => {
                    let fetch = format!("git fetch {} {}", visible(url), visible(branch));
                    let lacks = visible(lacks);
                    let line = format!(
                        "its work is pushed, {count}: {fetch}; {stays} at its worker, for it lacks {lacks}"
                    );
                    Saying::kept(Tag::Failed, line)
                }
                (None, Some(why)) => {
                    let why = visible(why);
                    Saying::kept(
                        Tag::Failed,
                        format!("{stays} at its worker; {count}; it isn't pushed: {why}"),
                    )
                }
                (None, None) => Saying::kept(Tag::Run, format!("{stays}; {count}")),
            }
        }
        WorktreeLeft::Unknown { why } => {
            Saying::kept(Tag::Failed, format!("its git worktree stays, and what is in it isn't known: {why}"))
        }
    }
}
