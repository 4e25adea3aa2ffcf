//! What to start, and its result.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::Captured;

/// The program to start, how, and within which limits.
#[derive(Clone)]
pub struct ChildSpec {
    /// The program: a path, or a name looked up in the `PATH` of `env`. A relative path starts at `cwd`.
    pub program: OsString,
    /// Its arguments, without the program's name.
    pub args: Vec<OsString>,
    /// The folder it starts in.
    pub cwd: PathBuf,
    /// Its whole environment: nothing is inherited. See [`allowed_env`](crate::allowed_env).
    pub env: Vec<(OsString, OsString)>,
    /// Bytes for its standard input, which is then closed. Empty: the null device. It needn't read them.
    pub stdin: Vec<u8>,
    /// Whether standard output and error are one stream.
    pub streams: Streams,
    /// Bytes kept of each stream: half from its beginning, half from its end. The rest is read and dropped.
    pub keep_bytes_max: usize,
    /// Maximum time from the start on; `None`: unlimited. Zero: it is stopped as soon as it runs.
    pub timeout: Option<Duration>,
    /// The time between SIGTERM and SIGKILL. Zero: SIGKILL at once.
    pub grace: Duration,
    /// The total time from the start on, including the kill: the grace is shortened to fit. `None`: unlimited.
    pub ends_within: Option<Duration>,
}

/// Leaves out the values of the environment and standard input: both may hold secrets.
impl fmt::Debug for ChildSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("ChildSpec")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("cwd", &self.cwd)
            .field("env_names", &names)
            .field("stdin_bytes", &self.stdin.len())
            .field("streams", &self.streams)
            .field("keep_bytes_max", &self.keep_bytes_max)
            .field("timeout", &self.timeout)
            .field("grace", &self.grace)
            .field("ends_within", &self.ends_within)
            .finish()
    }
}

/// Whether standard output and standard error are one stream or two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// Both in [`Finished::stdout`], in the order of writing; [`Finished::stderr`] stays empty.
    Merged,
    /// One field each.
    Apart,
}

/// The message when not all processes of a child were observed to end.
pub const MAYBE_LEFT: &str = "some of what it started could not be ended and may still run";

/// How a child ended, and its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// How it ended.
    pub ending: Ending,
    /// Whether all its processes were observed to end. It is `false` when the system doesn't release a process,
    /// when its guard was killed and this process doesn't adopt orphans ([`adopt_orphans`](crate::adopt_orphans)),
    /// and where there are no guards.
    pub is_all_ended: bool,
    /// The standard output of the child and its descendants.
    pub stdout: Captured,
    /// Their standard error; empty if the streams were merged.
    pub stderr: Captured,
    /// The time from the call to the return, including the ending of leftovers.
    pub duration: Duration,
}

impl Finished {
    /// The result of a call that was cancelled before the start.
    pub(crate) fn cancelled_before_start() -> Self {
        Self {
            ending: Ending::Cancelled,
            is_all_ended: true,
            stdout: Captured::default(),
            stderr: Captured::default(),
            duration: Duration::ZERO,
        }
    }
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this exit code.
    Exited(i32),
    /// By this signal, which Provost didn't send; 9 also when its guard was killed.
    Signalled(i32),
    /// Stopped because [`ChildSpec::timeout`] was over.
    TimedOut,
    /// Stopped, or never started, because the call was cancelled.
    Cancelled,
}
