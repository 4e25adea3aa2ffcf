//! The content of a worktree as a commit, and back.

use std::ffi::OsStr;
use std::path::Path;

use provost_engine::{WorktreeOrder, worktree_branch};
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
/// Matches no file: for whether git can read an index.
const NO_FILE: &str = ":(top,literal).git";
/// Names that are told of what git doesn't take.
const NAMES_MAX: usize = 5;
/// Bytes kept of what git prints of a commit that it makes.
const KEEP_BYTES: usize = 1024;

/// The content of a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Content {
    /// The tree of all files, except for those that git ignores.
    pub(super) tree: String,
    /// The last commit; where the agent is on a branch without one, that of its own branch.
    pub(super) head: Option<String>,
    /// Whether that commit has the same files.
    pub(super) is_committed: bool,
    /// What git doesn't take into the tree, in words.
    pub(super) missing: Option<String>,
}

impl Content {
    /// That of the worktree of `owner` at `path`.
    pub(super) async fn of(
        path: &Path,
        owner: SessionId,
        cancel: &CancellationToken,
    ) -> Result<Self, GitError> {
        let git = Git::at(path, cancel).await?;
        let index = git.own_data().join(INDEX);
        let agents = git.own_data().join("index");
        let to = index.clone();
        // It says what git tracks though it would ignore it, and spares git reading what hasn't changed.
        let copied = tokio::task::spawn_blocking(move || std::fs::copy(agents, to)).await;
        let own = format!("refs/heads/{}^{{commit}}", worktree_branch(owner));
        let head = match git.find(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).await? {
            Some(head) => Some(head),
            None => git.find(["rev-parse", "--verify", "--quiet", &own]).await?,
        };
        let committed = git.find(["rev-parse", "--verify", "--quiet", "HEAD^{tree}"]).await?;
        let git = git.with_variables(vec![("GIT_INDEX_FILE".into(), index.clone().into())]);
        let is_readable =
            matches!(copied, Ok(Ok(_))) && git.find(["ls-files", "--", NO_FILE]).await?.is_some();
        if !is_readable {
            let gone = tokio::task::spawn_blocking(move || std::fs::remove_file(index)).await;
            tracing::debug!(?gone, "an index is made anew");
        }
        let add = ["add", "--all", "--ignore-errors", "--", "."].map(OsStr::new);
        match git.run(CHECKOUT_MAX, add).await {
            Ok(_) | Err(GitError::Refused(_)) => {}
            Err(error) => return Err(error),
        }
        let tree = git.run(CHECKOUT_MAX, ["write-tree"].map(OsStr::new)).await?;
        let is_committed = committed.as_ref() == Some(&tree);
        let missing = missing(&git).await?;
        Ok(Self { tree, head, is_committed, missing })
    }
}

/// What the index lacks after all files were added: nested repositories, and names that git refuses.
async fn missing(git: &Git<'_>) -> Result<Option<String>, GitError> {
    let mut names = git.nested_repositories().await?;
    let others = ["ls-files", "-z", "--others", "--exclude-standard", "--directory", "--no-empty-directory"];
    let others = git.list(others).await?;
    names.extend(others.split('\0').filter(|name| !name.is_empty()).map(str::to_owned));
    if names.is_empty() {
        return Ok(None);
    }
    let more = names.len().saturating_sub(NAMES_MAX);
    names.truncate(NAMES_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Ok(Some(format!("what git doesn't take (such as repositories in it): {}{more}", names.join(", "))))
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
    let arguments = ["commit-tree", &content.tree, "-m", &text].map(OsStr::new);
    let parent = content.head.iter().flat_map(|head| [OsStr::new("-p"), OsStr::new(head)]);
    git.kept(CHECKOUT_MAX, &arguments.into_iter().chain(parent).collect::<Vec<_>>(), KEEP_BYTES).await
}

/// Makes a worktree again as it was in the commit `pushed`; without that, as it was first made. What was here is gone then,
/// but for a folder that is no worktree any more: that stays beside it, for it may have what couldn't be pushed.
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
    let head = git.find(["rev-parse", "--verify", "--quiet", &format!("{head}^{{commit}}")]).await?;
    let head = head.unwrap_or_else(|| made.commit.clone());
    if order.path.exists() && Git::at(&order.path, cancel).await.is_err() {
        let aside = order.path.with_extension(format!("damaged-{:08x}", fastrand::u32(..)));
        std::fs::rename(&order.path, &aside).map_err(GitError::Files)?;
        tracing::warn!(path = %aside.display(), "a folder that is no git worktree any more is kept");
    }
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
