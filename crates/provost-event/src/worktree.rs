//! Git worktrees: an agent's own copy of the folder of whoever asked for it, and what the agent leaves there.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::Outcome;

/// A git worktree that an agent works in. Its folder is the agent's workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worktree {
    /// The folder whose last commit it begins with: the workspace of whoever asked for the agent.
    pub from: PathBuf,
    /// The branch that it is on; made with it.
    pub branch: String,
    /// The commit that it begins with; absent for the last one of `from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// An agent's worktree is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeMade {
    /// The repository that it belongs to: the folder that git keeps its data in.
    pub repository: PathBuf,
    /// The commit that it began with.
    pub commit: String,
    /// Files with changes in the folder that it was made from which weren't committed there, and so aren't in it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub uncommitted: u32,
    /// Files that are there as they are stored, though a filter would make something else out of them (large files,
    /// encrypted ones): filters are programs that the repository or the user names, and Provost's git starts none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unfiltered: u32,
}

/// The intent of looking at what an agent has done to its worktree, before it comes to a rest or an end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeAsked {
    /// What it is about to come to. At a final one a worktree that nothing was done to is removed.
    pub outcome: Outcome,
}

/// What an agent has done to its worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeFound {
    /// What.
    pub left: WorktreeLeft,
}

/// What there is in a worktree besides what it began with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum WorktreeLeft {
    /// Nothing.
    Untouched,
    /// Nothing, so it and its branch were removed.
    Removed,
    /// This; it stays.
    Changed {
        /// The branch that it is on now; absent where it is on none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<String>,
        /// Commits that it didn't begin with.
        commits: u32,
        /// In what its last commit differs from the one it began with, in git's words; empty where in nothing.
        summary: String,
        /// Files whose changes aren't committed.
        uncommitted: u32,
    },
    /// Nobody knows; it stays.
    Unknown {
        /// Why.
        why: String,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape serde asks for")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}
