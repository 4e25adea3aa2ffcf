//! Asking the `git` program: without prompts, without the repository's hooks, and never for longer than it may take.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use provost_process::{ChildSpec, Ending, SpawnError, Streams, allowed_env, run};
use tokio_util::sync::CancellationToken;

/// How long a question about a repository may take.
pub(super) const ASKING_MAX: Duration = Duration::from_secs(30);
/// How long it may take to write or read all files of a work tree.
pub(super) const CHECKOUT_MAX: Duration = Duration::from_secs(300);
/// Bytes kept of what it says.
const KEEP_BYTES_MAX: usize = 256 * 1024;
/// Time between the request to end and the end by force; it takes back what is half done in it.
const GRACE: Duration = Duration::from_secs(5);
/// Characters of its words that are passed on.
const WORDS_CHARS_MAX: usize = 1_000;

/// Hooks and file watchers are programs that a repository names. What agents leave in it doesn't run by itself.
const SETTINGS: [&str; 5] = ["--no-pager", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"];

/// Why git didn't do what it was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GitError {
    #[error("git can't be started: {0}")]
    Start(#[from] SpawnError),
    #[error("git says: {0}")]
    Refused(String),
    #[error("git took longer than {} s", .0.as_secs())]
    TimedOut(Duration),
    #[error("the folder of worktrees can't be locked: {0}")]
    Lock(#[source] std::io::Error),
    #[error("it was told to stop")]
    Cancelled,
}

/// The git program in a folder.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Git<'a> {
    folder: &'a Path,
    repository: Option<&'a Path>,
    ceiling: Option<&'a Path>,
    cancel: &'a CancellationToken,
}

impl<'a> Git<'a> {
    /// In `folder`, wherever above it the repository is.
    pub(crate) const fn within(folder: &'a Path, cancel: &'a CancellationToken) -> Self {
        Self { folder, repository: None, ceiling: None, cancel }
    }

    /// In the work tree `folder`, and in none that it may lie in.
    pub(super) fn at(folder: &'a Path, cancel: &'a CancellationToken) -> Self {
        Self { ceiling: folder.parent(), ..Self::within(folder, cancel) }
    }

    /// On the data of a repository, in no work tree.
    pub(super) const fn of(repository: &'a Path, cancel: &'a CancellationToken) -> Self {
        Self { repository: Some(repository), ..Self::within(repository, cancel) }
    }

    /// What stops it.
    pub(super) const fn cancel(&self) -> &'a CancellationToken {
        self.cancel
    }

    /// What it prints, without the newline at the end.
    pub(crate) async fn ask<const N: usize>(&self, arguments: [&str; N]) -> Result<String, GitError> {
        self.run(ASKING_MAX, arguments.map(OsStr::new)).await
    }

    /// What it prints, or `None` where it answers that there is nothing like that.
    pub(crate) async fn find<const N: usize>(
        &self,
        arguments: [&str; N],
    ) -> Result<Option<String>, GitError> {
        match self.ask(arguments).await {
            Ok(found) => Ok(Some(found)),
            Err(GitError::Refused(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Has it do something within `time`; what it prints.
    pub(crate) async fn run<const N: usize>(
        &self,
        time: Duration,
        arguments: [&OsStr; N],
    ) -> Result<String, GitError> {
        let finished = run(self.spec(time, &arguments), self.cancel).await?;
        let said = finished.stderr.to_text_lossy();
        match finished.ending {
            Ending::Exited(0) => Ok(finished.stdout.to_text_lossy().trim_end_matches('\n').to_owned()),
            Ending::Exited(status) if said.trim().is_empty() => {
                Err(GitError::Refused(format!("nothing, with exit status {status}")))
            }
            Ending::Exited(_) => Err(GitError::Refused(words(&said))),
            Ending::Signalled(signal) => Err(GitError::Refused(format!("ended by signal {signal}"))),
            Ending::TimedOut => Err(GitError::TimedOut(time)),
            Ending::Cancelled => Err(GitError::Cancelled),
        }
    }

    fn spec(&self, time: Duration, arguments: &[&OsStr]) -> ChildSpec {
        let mut args = SETTINGS.map(OsString::from).to_vec();
        if let Some(repository) = self.repository {
            args.extend([OsString::from("--git-dir"), repository.into()]);
        }
        args.extend(arguments.iter().map(OsString::from));
        let mut env = allowed_env(&[]);
        env.retain(|(name, _)| name != "LC_ALL");
        let own = [("LC_ALL", "C"), ("GIT_TERMINAL_PROMPT", "0"), ("GIT_OPTIONAL_LOCKS", "0")];
        env.extend(own.map(|(name, value)| (name.into(), value.into())));
        if let Some(ceiling) = self.ceiling {
            env.push(("GIT_CEILING_DIRECTORIES".into(), ceiling.into()));
        }
        ChildSpec {
            program: "git".into(),
            args,
            cwd: self.folder.to_path_buf(),
            env,
            stdin: Vec::new(),
            streams: Streams::Apart,
            keep_bytes_max: KEEP_BYTES_MAX,
            timeout: Some(time),
            grace: GRACE,
        }
    }
}

/// The end of what it said, where it says what went wrong.
fn words(said: &str) -> String {
    let said = said.trim();
    let skipped = said.chars().count().saturating_sub(WORDS_CHARS_MAX);
    said.chars().skip(skipped).collect()
}
