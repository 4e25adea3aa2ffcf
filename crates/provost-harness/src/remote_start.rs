//! Runs whose files are in a remote repository, before they are worked on: the start, and whether this machine can.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use provost_event::{RemoteRepository, RunId, SessionId};
use tokio_util::sync::CancellationToken;

use crate::executor::changed_files;
use crate::git::remote::{Remote, reference};
use crate::git::{Git, GitError};

/// Characters of a repository's hash in the name of its copy.
const HASH_CHARS: usize = 12;
/// Maximum characters of its own name there.
const NAME_CHARS_MAX: usize = 40;
/// How an address may begin. Anything else before `://`, and `PROGRAM::`, has git start programs.
const SCHEMES: [&str; 5] = ["https", "http", "ssh", "git", "file"];

/// A run that can begin: its first commit is in the remote repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteStart {
    /// For [`RunPolicy::remote`](provost_event::RunPolicy::remote).
    pub repository: RemoteRepository,
    /// Files of the project with uncommitted changes, which the run doesn't get.
    pub uncommitted: u32,
}

/// Why a run can't have its files in a remote repository.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteStartError {
    /// The folder isn't the top folder of a git work tree.
    #[error("{} is not the top folder of a git work tree", .0.display())]
    NoWorkTree(PathBuf),
    /// The repository has no commit.
    #[error("the git repository in {} has no commit yet", .0.display())]
    NoCommit(PathBuf),
    /// The repository has no remote of this name.
    #[error("the git repository in {} has no remote `{name}`", folder.display())]
    NoRemote {
        /// The folder.
        folder: PathBuf,
        /// The name.
        name: String,
    },
    /// An address that other machines can't or mustn't use.
    #[error("the address of the remote repository {why}")]
    Address {
        /// Why.
        why: String,
    },
    /// The project can't be read, or the repository not be reached.
    #[error("{what}: {why}")]
    Git {
        /// What failed.
        what: String,
        /// What git said of it.
        why: String,
    },
}

/// Pushes the last commit of the project in `folder` for `run` to `remote`, which is the name of one of its remotes or
/// an address. Worktrees and copies of the repository will be in the folder `worktrees` of each machine.
///
/// # Errors
/// Why the run can't begin so.
pub async fn start_remote(
    folder: &Path,
    remote: &str,
    run: RunId,
    worktrees: &Path,
) -> Result<RemoteStart, RemoteStartError> {
    let cancel = CancellationToken::new();
    let git = Git::at(folder, &cancel).await.map_err(|_| RemoteStartError::NoWorkTree(folder.to_owned()))?;
    let asked = |error: GitError| RemoteStartError::Git {
        what: format!("the git repository in {} can't be read", folder.display()),
        why: in_a_line(&error),
    };
    let commit = git.find(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).await.map_err(asked)?;
    let commit = commit.ok_or_else(|| RemoteStartError::NoCommit(folder.to_owned()))?;
    let uncommitted = changed_files(&git).await.map_err(asked)?;
    let url = address(&git, folder, remote).await?;
    let here = git.repository().to_path_buf();
    let git = Git::of(&here, &cancel).await.map_err(asked)?.reaching();
    let copy = worktrees.join(copy_name(&url));
    let to = Remote { url: &url, copy: &copy, commit: &commit };
    let pushed = to.push(&git, (&reference(SessionId::root(run)), &commit), None).await;
    pushed.map_err(|error| RemoteStartError::Git {
        what: format!("the last commit can't be pushed to {url}"),
        why: in_a_line(&error),
    })?;
    let project = folder.to_owned();
    Ok(RemoteStart { repository: RemoteRepository { url, commit, copy, project }, uncommitted })
}

/// What git said, on one line.
fn in_a_line(error: &GitError) -> String {
    let said = error.to_string();
    said.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Fetches what the remote `repository` has of `run`, so that the run can be worked on here.
///
/// # Errors
/// Why that isn't possible.
pub async fn fetch_remote(repository: &RemoteRepository, run: RunId) -> Result<(), RemoteStartError> {
    let cancel = CancellationToken::new();
    let from = Remote { url: &repository.url, copy: &repository.copy, commit: &repository.commit };
    let fetched = async {
        let git = from.open(&cancel).await?;
        from.fetch(&git, &reference(SessionId::root(run))).await
    };
    fetched.await.map(drop).map_err(|error| RemoteStartError::Git {
        what: format!("{} can't be fetched", repository.url),
        why: in_a_line(&error),
    })
}

/// The address of a remote, as other machines can use it.
async fn address(git: &Git<'_>, folder: &Path, remote: &str) -> Result<String, RemoteStartError> {
    let is_address = remote.contains(':') || remote.starts_with('/');
    let url = if is_address {
        remote.to_owned()
    } else {
        let config = git.repository().join("config").display().to_string();
        let key = format!("remote.{remote}.url");
        let found = git.find(["config", "--file", &config, "--no-includes", "--get", &key]).await;
        let none = || RemoteStartError::NoRemote { folder: folder.to_owned(), name: remote.to_owned() };
        found.ok().flatten().filter(|url| !url.is_empty()).ok_or_else(none)?
    };
    match checked(&url) {
        Ok(()) if url.starts_with('.') => {
            let path = folder.join(&url).canonicalize().ok();
            let path = path.and_then(|path| path.to_str().map(str::to_owned));
            let why = || RemoteStartError::Address { why: format!("is the folder {url}, which isn't there") };
            path.ok_or_else(why)
        }
        Ok(()) => Ok(url),
        Err(why) => Err(RemoteStartError::Address { why: why.to_owned() }),
    }
}

/// # Errors
/// What is wrong with an address.
fn checked(url: &str) -> Result<(), &'static str> {
    if url.starts_with('-') || url.contains(char::is_control) || url.contains("::") && !url.contains("://") {
        return Err("is none that git may be given");
    }
    let Some((scheme, rest)) = url.split_once("://") else { return Ok(()) };
    if !SCHEMES.contains(&scheme) {
        return Err(
            "must begin with https://, http://, ssh://, git:// or file://, or be HOST:PATH or a folder",
        );
    }
    let login =
        rest.split('/').next().and_then(|authority| authority.rsplit_once('@')).map(|(login, _)| login);
    if login.is_some_and(|login| login.contains(':') || scheme.starts_with("http")) {
        return Err(
            "has a login in it, which would be kept in logs: use a credential helper of git, or a key of ssh",
        );
    }
    Ok(())
}

/// The folder of the copy of a repository.
fn copy_name(url: &str) -> String {
    let name = url.trim_end_matches('/').trim_end_matches(".git");
    let name = name.rsplit(['/', ':']).next().unwrap_or_default();
    let fits = |c: &char| c.is_ascii_alphanumeric() || "-_.".contains(*c);
    let name = name.chars().filter(fits).take(NAME_CHARS_MAX).collect::<String>();
    let hash = blake3::hash(url.as_bytes()).to_hex();
    format!("repository-{}-{}", name.trim_start_matches('.'), hash.get(..HASH_CHARS).unwrap_or_default())
}
