//! Runs the `git` program. All of Provost's own git calls go through here, and they are isolated: no program that
//! a repository, its files or the user's git settings name is ever started, whether or not the project is trusted.
//!
//! Git starts programs for settings (`filter.*`, `diff.*`, `core.fsmonitor`, `core.sshCommand`, … and those of
//! later versions). So it doesn't see the repository's settings at all: it works with a [stand-in](stand_in) for
//! the folder that holds them. Attributes that name a filter then have no effect; files are compared and checked
//! out as they are stored.
//!
//! The one exception is a call that [reaches](Git::reaching) a remote repository: it reads the user's own git settings, which
//! say how the user logs in there. The repository's settings count for it no more than for others.

mod confined;
mod found;
mod program;
pub(crate) mod remote;
mod settings;
mod stand_in;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use provost_process::{ChildSpec, Ending, Launch, SpawnError, Stdio, Streams, allowed_env, helper_env, run};
use tokio_util::sync::CancellationToken;

use confined::GitBox;
pub use confined::confine_own_git;
use found::Found;
use stand_in::StandIn;

/// Time limit of a query.
pub(crate) const ASKING_MAX: Duration = Duration::from_secs(30);
/// Time limit of writing or reading all files of a work tree.
pub(crate) const CHECKOUT_MAX: Duration = Duration::from_secs(300);
/// Maximum bytes kept of its output.
const KEEP_BYTES_MAX: usize = 256 * 1024;
/// Time between the request to end and the forced end, in which it undoes incomplete changes.
const GRACE: Duration = Duration::from_secs(5);
/// Maximum characters of its error output that are passed on.
const WORDS_CHARS_MAX: usize = 1_000;

/// Maximum bytes kept of a list of all files of a repository.
const LIST_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The stand-in has none of these settings. Set explicitly, they also override those built into a git.
const SETTINGS: [&str; 10] = [
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.alternateRefsCommand=true",
    "diff.external=",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
];

/// Git fetches no missing object from elsewhere, asks nobody, and starts no editor and pager.
const ENVIRONMENT: [(&str, &str); 9] = [
    ("LC_ALL", "C"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_EDITOR", "false"),
    ("GIT_SEQUENCE_EDITOR", "false"),
    ("GIT_PAGER", "cat"),
];

/// Settings of calls that stay on this machine.
const LOCAL_SETTINGS: [&str; 2] = ["credential.helper=", "protocol.allow=never"];

/// The same: git reads nothing of the system's and the user's settings, and starts no program.
const LOCAL_ENVIRONMENT: [(&str, &str); 6] = [
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_SSH_COMMAND", "false"),
    ("GIT_ASKPASS", "false"),
];

/// How a call that reaches a remote repository may do so: never by a program that the address names (`ext::`).
const REMOTE_PROTOCOLS: (&str, &str) = ("GIT_ALLOW_PROTOCOL", "file:git:http:https:ssh");

/// Variables by which the user says how git logs in elsewhere.
const LOGIN_VARIABLES: [&str; 7] = [
    "SSH_AUTH_SOCK",
    "SSH_ASKPASS",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_ASKPASS",
    "GIT_CONFIG_GLOBAL",
    "XDG_CONFIG_HOME",
];

/// Why git failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GitError {
    #[error("git can't be started: {0}")]
    Start(#[from] SpawnError),
    #[error("git says: {0}")]
    Refused(String),
    #[error("git took longer than {} s", .0.as_secs())]
    TimedOut(Duration),
    #[error("the folder {} isn't there", .0.display())]
    NoFolder(PathBuf),
    #[error("a folder in which git sees no settings can't be made: {0}")]
    StandIn(#[source] std::io::Error),
    #[error("the changed files can't be read: {0}")]
    Files(#[source] std::io::Error),
    #[error("the folder of worktrees can't be locked: {0}")]
    Lock(#[source] std::io::Error),
    #[error("it was told to stop")]
    Cancelled,
}

/// The git program in a folder.
#[derive(Debug, Clone)]
pub(crate) struct Git<'a> {
    folder: PathBuf,
    found: Found,
    stand_in: Arc<StandIn>,
    /// Variables of its environment besides those that isolate it.
    variables: Vec<(OsString, OsString)>,
    confined: GitBox,
    is_remote: bool,
    cancel: &'a CancellationToken,
}

impl<'a> Git<'a> {
    /// In `folder`, with the repository in it or in a folder above.
    ///
    /// # Errors
    /// [`GitError::Refused`] if there is none.
    pub(crate) async fn within(folder: &Path, cancel: &'a CancellationToken) -> Result<Self, GitError> {
        Self::open(folder, cancel, found::above).await
    }

    /// In the work tree `folder`, and in no enclosing one.
    ///
    /// # Errors
    /// [`GitError::Refused`] if it is none.
    pub(crate) async fn at(folder: &Path, cancel: &'a CancellationToken) -> Result<Self, GitError> {
        Self::open(folder, cancel, found::at).await
    }

    /// On the data of a repository, without a work tree.
    ///
    /// # Errors
    /// [`GitError::Refused`] if it is none.
    pub(crate) async fn of(repository: &Path, cancel: &'a CancellationToken) -> Result<Self, GitError> {
        Self::open(repository, cancel, found::data).await
    }

    async fn open(
        folder: &Path,
        cancel: &'a CancellationToken,
        find: fn(&Path) -> Result<Found, String>,
    ) -> Result<Self, GitError> {
        let (place, user) = (folder.to_path_buf(), settings::user_files(&allowed_env(&[])));
        let opening = move || {
            if !place.is_dir() {
                return Err(GitError::NoFolder(place));
            }
            let found = find(&place).map_err(GitError::Refused)?;
            let stand_in = StandIn::of(&found.common, &user)?;
            Ok((found, Arc::new(stand_in)))
        };
        let opened = tokio::task::spawn_blocking(opening).await;
        let (found, stand_in) =
            opened.unwrap_or_else(|error| Err(GitError::StandIn(std::io::Error::other(error))))?;
        Ok(Self {
            folder: folder.to_path_buf(),
            found,
            stand_in,
            variables: Vec::new(),
            confined: GitBox::default(),
            is_remote: false,
            cancel,
        })
    }

    /// The same for calls that reach a remote repository, as the user's own git does.
    pub(crate) fn reaching(self) -> Self {
        Self { is_remote: true, ..self }
    }

    /// The same with these variables in its environment.
    pub(crate) fn with_variables(self, variables: Vec<(OsString, OsString)>) -> Self {
        Self { variables, ..self }
    }

    /// The same for looking only: in a box, if this process has one for its own git, in which it writes nothing but
    /// `write`.
    pub(crate) async fn inspecting(self, write: Vec<PathBuf>) -> Self {
        let (folder, found, stand_in) = (self.folder.clone(), self.found.clone(), Arc::clone(&self.stand_in));
        let making = move || {
            let read = [Some(stand_in.path()), Some(&*found.common), Some(&*found.own), found.top.as_deref()];
            let read = read.into_iter().flatten().collect::<Vec<_>>();
            GitBox::of(&folder, &read, &write)
        };
        let confined = tokio::task::spawn_blocking(making).await.unwrap_or_default();
        Self { confined, ..self }
    }

    /// Its cancellation token.
    pub(crate) const fn cancel(&self) -> &'a CancellationToken {
        self.cancel
    }

    /// The top folder of the work tree, without symlinks; none if it works on a repository's data only.
    pub(crate) fn top(&self) -> Option<&Path> {
        self.found.top.as_deref()
    }

    /// The repository's folder shared by all its work trees.
    pub(crate) fn repository(&self) -> &Path {
        &self.found.common
    }

    /// The folder with this work tree's own data.
    pub(crate) fn own_data(&self) -> &Path {
        &self.found.own
    }

    /// How many nested repositories (submodules) are checked out in the work tree. Git would read them by their own settings.
    pub(crate) async fn repositories_within(&self) -> Result<u32, GitError> {
        Ok(u32::try_from(self.nested_repositories().await?.len()).unwrap_or(u32::MAX))
    }

    /// The paths of those, relative to the top folder.
    pub(crate) async fn nested_repositories(&self) -> Result<Vec<String>, GitError> {
        let Some(top) = self.top() else { return Ok(Vec::new()) };
        let arguments = ["ls-files", "--stage", "-z", "--full-name"].map(OsStr::new);
        let listed = self.kept(CHECKOUT_MAX, &arguments, LIST_BYTES_MAX).await?;
        let links = listed.split('\0').filter_map(|line| line.strip_prefix("160000 "));
        let paths = links.filter_map(|line| line.split_once('\t').map(|(_, path)| path));
        Ok(paths.filter(|path| top.join(path).join(".git").exists()).map(str::to_owned).collect())
    }

    /// How many files of the work tree a filter would transform (large files, encrypted ones): they are checked
    /// out as stored.
    pub(crate) async fn unfiltered(&self) -> Result<u32, GitError> {
        let arguments = ["ls-files", "-z", "--", ".", ":(exclude,attr:!filter)", ":(exclude,attr:-filter)"];
        let listed = self.kept(CHECKOUT_MAX, &arguments.map(OsStr::new), LIST_BYTES_MAX).await?;
        let count = listed.split('\0').filter(|path| !path.is_empty()).count();
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// Its output, without the trailing newline.
    pub(crate) async fn ask<const N: usize>(&self, arguments: [&str; N]) -> Result<String, GitError> {
        self.run(ASKING_MAX, arguments.map(OsStr::new)).await
    }

    /// Its output, or `None` if it answers that there is no match.
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

    /// Runs a command within `time`; its output.
    pub(crate) async fn run<const N: usize>(
        &self,
        time: Duration,
        arguments: [&OsStr; N],
    ) -> Result<String, GitError> {
        self.kept(time, &arguments, KEEP_BYTES_MAX).await
    }

    /// The same, for a command whose output lists files.
    pub(crate) async fn list<const N: usize>(&self, arguments: [&str; N]) -> Result<String, GitError> {
        self.kept(CHECKOUT_MAX, &arguments.map(OsStr::new), LIST_BYTES_MAX).await
    }

    /// Runs a command that reads `input`; its output.
    pub(crate) async fn feed(&self, arguments: &[&OsStr], input: Vec<u8>) -> Result<String, GitError> {
        let mut spec = self.spec(CHECKOUT_MAX, arguments);
        spec.launch.stdio.input = input;
        self.finish(CHECKOUT_MAX, spec).await
    }

    /// Runs a command within `time`, with a maximum of kept output bytes; its output.
    pub(crate) async fn kept(
        &self,
        time: Duration,
        arguments: &[&OsStr],
        keep_bytes_max: usize,
    ) -> Result<String, GitError> {
        let mut spec = self.spec(time, arguments);
        spec.keep_bytes_max = keep_bytes_max;
        self.finish(time, spec).await
    }

    async fn finish(&self, time: Duration, spec: ChildSpec) -> Result<String, GitError> {
        let finished = run(spec, self.cancel).await?;
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
        let mut args = vec![OsString::from("--no-pager")];
        let local = LOCAL_SETTINGS.iter().filter(|_| !self.is_remote);
        for setting in SETTINGS.iter().chain(local) {
            args.extend([OsString::from("-c"), setting.into()]);
        }
        args.extend(arguments.iter().map(OsString::from));
        ChildSpec {
            launch: Launch {
                program: "git".into(),
                args,
                env: self.env(),
                cwd: self.folder.clone(),
                stdio: Stdio { input: Vec::new(), streams: Streams::Apart },
                confinement: self.confined.confinement(),
            },
            keep_bytes_max: KEEP_BYTES_MAX,
            timeout: Some(time),
            grace: GRACE,
            ends_within: None,
        }
    }

    /// The folders that agents may write: this one, the work tree, and that of the repository.
    fn where_agents_work(&self) -> Vec<PathBuf> {
        let common = Some(self.found.common.as_path()).filter(|common| common.ends_with(".git"));
        let found = [Some(self.folder.as_path()), self.found.top.as_deref(), common.and_then(Path::parent)];
        program::by_both_names(found.into_iter().flatten())
    }

    fn env(&self) -> Vec<(OsString, OsString)> {
        let mut env = if self.is_remote { helper_env(&LOGIN_VARIABLES) } else { allowed_env(&[]) };
        env.retain(|(name, _)| name != "LC_ALL");
        for (name, value) in &mut env {
            if name == "PATH" {
                *value = program::search_path(value, &self.where_agents_work());
            }
        }
        let reach = if self.is_remote { &[REMOTE_PROTOCOLS] } else { LOCAL_ENVIRONMENT.as_slice() };
        env.extend(ENVIRONMENT.iter().chain(reach).map(|(name, value)| (name.into(), value.into())));
        env.push(("GIT_DIR".into(), self.found.own.clone().into()));
        env.push(("GIT_COMMON_DIR".into(), self.stand_in.path().into()));
        if let Some(top) = &self.found.top {
            env.push(("GIT_WORK_TREE".into(), top.into()));
        }
        env.extend(self.variables.iter().cloned());
        env
    }
}

/// The end of its error output, which has the cause.
fn words(said: &str) -> String {
    let said = said.trim();
    let skipped = said.chars().count().saturating_sub(WORDS_CHARS_MAX);
    said.chars().skip(skipped).collect()
}
