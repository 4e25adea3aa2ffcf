//! Git worktrees: an agent's own copy of its parent's folder, and the changes in it.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::skip::is_default;
use crate::{BlobId, Outcome};

/// The files of a run's workspace, a git work tree, before the run changed anything: tracked files as they were,
/// committed or not, and untracked ones that git doesn't ignore. Left out are files with secrets known to Provost, and
/// untracked ones over 1 MiB or with anything that looks like a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkspaceBaseline {
    /// The id of git's tree object.
    pub tree: String,
    /// A git pack with the objects of the tree that the repository lacks; absent if it lacks none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pack: Option<BlobId>,
    /// The files that are left out, relative to the workspace; at most 1,000 names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

/// A git worktree that an agent works in. Its folder is the agent's workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Worktree {
    /// The folder whose last commit it is based on: the parent agent's workspace.
    pub from: PathBuf,
    /// Its branch, created with it.
    pub branch: String,
    /// The commit that it is based on; absent for the last commit of `from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// An agent's worktree was created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorktreeMade {
    /// The repository that it belongs to: git's data folder.
    pub repository: PathBuf,
    /// The commit that it is based on.
    pub commit: String,
    /// Files with uncommitted changes in the source folder; the worktree lacks these changes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub uncommitted: u32,
    /// Files checked out as stored, though a filter would transform them (large files, encrypted ones): filters
    /// are programs that the repository or the user names, and Provost's git starts none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unfiltered: u32,
}

/// The intent of inspecting an agent's worktree, before the agent is suspended or ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorktreeAsked {
    /// The coming outcome. At a final one an unchanged worktree is removed.
    pub outcome: Outcome,
}

/// The changes in an agent's worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorktreeFound {
    /// The result.
    pub left: WorktreeLeft,
}

/// The remote git repository of a run, and what was known of it at the run's start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RemoteRepository {
    /// Its address, without a password.
    pub url: String,
    /// The commit that the root agent's worktree is based on.
    pub commit: String,
    /// The folder that each machine keeps its copy of the repository in, absolute.
    pub copy: PathBuf,
    /// The folder that the run was started in, on the machine where that was.
    pub project: PathBuf,
}

/// A branch of a remote repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PushedBranch {
    /// The repository's address.
    pub url: String,
    /// The name of the branch.
    pub branch: String,
}

/// What a worktree contains besides its base commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum WorktreeLeft {
    /// Nothing.
    Clean,
    /// Nothing, so that the worktree and its branch were removed.
    Removed,
    /// Changes; the worktree stays.
    Changed {
        /// Its current branch; absent if it has none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<String>,
        /// Commits since the base commit.
        commits: u32,
        /// The difference between its last commit and the base commit, as printed by git; empty if there is none.
        summary: String,
        /// Files with uncommitted changes.
        uncommitted: u32,
        /// The remote branch that has it, uncommitted changes as a last commit; absent where there is no remote.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pushed: Option<PushedBranch>,
        /// What of it the remote lacks, or why it has nothing of it; absent if it has all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unpushed: Option<String>,
    },
    /// Unknown; the worktree stays.
    Unknown {
        /// Why.
        why: String,
    },
}
