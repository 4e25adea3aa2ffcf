//! The content of a worktree as a commit, and back.

use std::ffi::OsStr;
use std::path::Path;

use provost_engine::WorktreeOrder;
use provost_event::{SessionId, WorktreeMade};
use tokio_util::sync::CancellationToken;

use crate::executor::worktree::list;
use crate::executor::worktree::make::clear;
use crate::git::{CHECKOUT_MAX, Git, GitError};

/// First line of a commit that has the content of a worktree, whose last commit is its parent.
const SUBJECT: &str = "Files of an agent's worktree";
/// Who such a commit is by.
const AUTHOR: [(&str, &str); 4] = [
    ("GIT_AUTHOR_NAME", "Provost"),
    ("GIT_AUTHOR_EMAIL", "provost@localhost"),
    ("GIT_COMMITTER_NAME", "Provost"),
    ("GIT_COMMITTER_EMAIL", "provost@localhost"),
];
/// The index of the files as they were last looked at, beside that of the worktree, which stays as the agent made it.
const INDEX: &str = "provost-index";

/// The content of a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Content {
    /// The tree of all files, except for those that git ignores.
    pub(super) tree: String,
    /// The last commit.
    pub(super) head: String,
    /// Whether that commit has the same files.
    pub(super) is_committed: bool,
}

impl Content {
    /// That of the worktree at `path`. Files that can't be read are left out.
    pub(super) async fn of(path: &Path, cancel: &CancellationToken) -> Result<Self, GitError> {
        let git = Git::at(path, cancel).await?;
        let head = git.ask(["rev-parse", "--verify", "HEAD^{commit}"]).await?;
        let committed = git.ask(["rev-parse", "--verify", "HEAD^{tree}"]).await?;
        let (index, own) = (git.own_data().join(INDEX), git.own_data().join("index"));
        let (known, first) = (index.clone(), own);
        // What git knows of the files spares it reading all of them.
        let copied = move || if known.exists() { Ok(0) } else { std::fs::copy(first, known) };
        if let Ok(Err(error)) = tokio::task::spawn_blocking(copied).await {
            tracing::debug!(%error, "an index is made anew");
        }
        let git = git.with_variables(vec![("GIT_INDEX_FILE".into(), index.into())]);
        let add = ["add", "--all", "--ignore-errors", "--", "."].map(OsStr::new);
        match git.run(CHECKOUT_MAX, add).await {
            Ok(_) => {}
            Err(GitError::Refused(why)) => tracing::debug!(why, "some files can't be pushed"),
            Err(error) => return Err(error),
        }
        let tree = git.run(CHECKOUT_MAX, ["write-tree"].map(OsStr::new)).await?;
        let is_committed = tree == committed;
        Ok(Self { tree, head, is_committed })
    }
}

/// A new commit with this content.
pub(super) async fn commit_of(
    copy: &Path,
    content: &Content,
    owner: SessionId,
    cancel: &CancellationToken,
) -> Result<String, GitError> {
    let author = AUTHOR.map(|(name, value)| (name.into(), value.into()));
    let git = Git::within(copy, cancel).await?.with_variables(author.to_vec());
    // The same content at the same time, committed by two processes, must be two commits.
    let text =
        format!("{SUBJECT}\n\nAgent {} of run {} ({:016x})", owner.agent, owner.run, fastrand::u64(..));
    git.ask(["commit-tree", &content.tree, "-p", &content.head, "-m", &text]).await
}

/// Makes a worktree again as it was in the commit `pushed`, without what was here; without that, as it was first made.
pub(super) async fn restore(
    copy: &Path,
    (order, made): (&WorktreeOrder, &WorktreeMade),
    pushed: Option<&str>,
    cancel: &CancellationToken,
) -> Result<(), GitError> {
    let git = Git::within(copy, cancel).await?;
    let content = pushed.unwrap_or(&made.commit);
    let subject = git.ask(["log", "-1", "--format=%s", content]).await?;
    let head = if subject == SUBJECT { format!("{content}^1") } else { content.to_owned() };
    let head = git.ask(["rev-parse", "--verify", &format!("{head}^{{commit}}")]).await?;
    clear(&order.path, &made.repository, cancel).await;
    if let Some(folder) = order.path.parent() {
        std::fs::create_dir_all(folder).map_err(GitError::Files)?;
    }
    list::enter(&git, &order.path, &order.branch, &head).await?;
    let worktree = Git::at(&order.path, cancel).await?;
    let checkout = ["reset", "--hard", "--quiet", "--no-recurse-submodules"].map(OsStr::new);
    worktree.run(CHECKOUT_MAX, checkout).await?;
    if content != head {
        worktree.run(CHECKOUT_MAX, ["read-tree", "--reset", "-u", content].map(OsStr::new)).await?;
        worktree.run(CHECKOUT_MAX, ["reset", "--quiet"].map(OsStr::new)).await?;
    }
    list::unlock(&git, &order.path).await
}
