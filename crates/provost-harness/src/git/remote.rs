//! A remote repository, and the copy that this machine keeps of it.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use provost_engine::worktree_name;
use provost_event::SessionId;
use tokio_util::sync::CancellationToken;

use super::{CHECKOUT_MAX, Git, GitError};

/// References here say what was last fetched from the remote.
const FETCHED: &str = "refs/provost-worktrees/fetched";

/// Characters of a commit's name in a repository of SHA-256 hashes.
const SHA256_CHARS: usize = 64;
const CONFIG: &str = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n";
const SHA256_CONFIG: &str =
    "[core]\n\trepositoryformatversion = 1\n\tbare = false\n[extensions]\n\tobjectformat = sha256\n";

/// Objects in files of their own from which on they are packed.
const LOOSE_MAX: u64 = 5_000;

/// The reference of the remote that has the worktree of a session.
pub(crate) fn reference(owner: SessionId) -> String {
    format!("refs/provost-worktrees/{}", worktree_name(owner))
}

/// A remote repository.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Remote<'a> {
    /// Its address.
    pub(crate) url: &'a str,
    /// A work tree without files, whose repository has what was fetched.
    pub(crate) copy: &'a Path,
    /// A commit in it, by whose length the copy has the same kind of hashes.
    pub(crate) commit: &'a str,
}

impl Remote<'_> {
    /// Opens the copy; an empty one is made where there is none.
    pub(crate) async fn open<'a>(&self, cancel: &'a CancellationToken) -> Result<Git<'a>, GitError> {
        let (copy, is_sha256) = (self.copy.to_path_buf(), self.commit.len() == SHA256_CHARS);
        let made = tokio::task::spawn_blocking(move || make_repository(&copy, is_sha256)).await;
        made.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(GitError::StandIn)?;
        Ok(Git::of(&self.copy.join(".git"), cancel).await?.reaching())
    }

    /// Packs the objects of the copy, if there are many: each push adds some. (`git gc` would also rewrite the list of
    /// references, which is only linked here.)
    pub(crate) async fn pack(&self, git: &Git<'_>) -> Result<(), GitError> {
        let counted = git.ask(["count-objects"]).await?;
        let loose = counted.split(' ').next().and_then(|count| count.parse::<u64>().ok());
        if loose.is_some_and(|loose| loose > LOOSE_MAX) {
            git.run(CHECKOUT_MAX, ["repack", "-d", "-l", "--quiet"].map(OsStr::new)).await?;
        }
        Ok(())
    }

    /// The commit that `reference` of the remote names, which is fetched; none if it has no such reference.
    pub(crate) async fn fetch(&self, git: &Git<'_>, reference: &str) -> Result<Option<String>, GitError> {
        let listed = git.run(CHECKOUT_MAX, ["ls-remote", "--", self.url, reference].map(OsStr::new)).await?;
        // The pattern also matches the ends of longer names.
        if !listed.lines().any(|line| line.split_once('\t').is_some_and(|(_, name)| name == reference)) {
            return Ok(None);
        }
        let fetched = format!("{FETCHED}/{}", reference.rsplit('/').next().unwrap_or(reference));
        let here = format!("+{reference}:{fetched}");
        let plain = ["--quiet", "--no-tags", "--no-prune", "--no-write-fetch-head"];
        let [quiet, tags, prune, head] = plain.map(OsStr::new);
        let arguments = [
            OsStr::new("fetch"),
            quiet,
            tags,
            prune,
            head,
            OsStr::new("--"),
            self.url.as_ref(),
            here.as_ref(),
        ];
        git.run(CHECKOUT_MAX, arguments).await?;
        git.ask(["rev-parse", "--verify", &format!("{fetched}^{{commit}}")]).await.map(Some)
    }

    /// Has `reference` of the remote name `commit`, if it names `before`; with `None`, if there is none yet.
    pub(crate) async fn push(
        &self,
        git: &Git<'_>,
        (reference, commit): (&str, &str),
        before: Option<&str>,
    ) -> Result<(), GitError> {
        let lease = format!("--force-with-lease={reference}:{}", before.unwrap_or_default());
        self.pushed(git, &lease, &format!("{commit}:{reference}")).await
    }

    /// Has `reference` of the remote name `commit`, whatever it named before.
    pub(crate) async fn overwrite(
        &self,
        git: &Git<'_>,
        reference: &str,
        commit: &str,
    ) -> Result<(), GitError> {
        self.pushed(git, "--force", &format!("{commit}:{reference}")).await
    }

    /// Deletes `reference` of the remote, if it names `before`.
    pub(crate) async fn delete(&self, git: &Git<'_>, reference: &str, before: &str) -> Result<(), GitError> {
        let lease = format!("--force-with-lease={reference}:{before}");
        self.pushed(git, &lease, &format!(":{reference}")).await
    }

    async fn pushed(&self, git: &Git<'_>, how: &str, what: &str) -> Result<(), GitError> {
        let plain = ["--quiet", "--no-verify", "--no-follow-tags", "--no-signed", "--recurse-submodules=no"];
        let [quiet, verify, tags, signed, submodules] = plain;
        let arguments = ["push", quiet, verify, tags, signed, submodules, how, "--", self.url, what];
        git.run(CHECKOUT_MAX, arguments.map(OsStr::new)).await.map(drop)
    }
}

/// Makes an empty repository with an empty work tree, unless there is one. Blocking.
fn make_repository(copy: &Path, is_sha256: bool) -> io::Result<()> {
    let data = copy.join(".git");
    if data.join("HEAD").exists() {
        return Ok(());
    }
    std::fs::create_dir_all(copy)?;
    let new = tempfile::Builder::new().prefix(".git-new").tempdir_in(copy)?;
    for folder in ["objects", "refs"] {
        std::fs::create_dir(new.path().join(folder))?;
    }
    std::fs::write(new.path().join("config"), if is_sha256 { SHA256_CONFIG } else { CONFIG })?;
    std::fs::write(new.path().join("HEAD"), "ref: refs/heads/main\n")?;
    match std::fs::rename(new.path(), &data) {
        // Another process was first.
        Err(_) if data.join("HEAD").exists() => Ok(()),
        renamed => renamed,
    }
}
