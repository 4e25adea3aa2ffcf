//! What to start, and what came of it.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::Captured;

/// Says which program to start, with what, and within which limits.
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
    /// Whether standard output and error are kept in one piece.
    pub streams: Streams,
    /// Bytes kept of each stream: its beginning and its end, half each. What exceeds it is read and dropped.
    pub keep_bytes_max: usize,
    /// Longest time from the start on; `None`: for ever. Zero: it is stopped as soon as it runs.
    pub timeout: Option<Duration>,
    /// Time between the request to end (SIGTERM) and the end by force (SIGKILL). Zero: force at once.
    pub grace: Duration,
    /// All of its time from the start on, its end by force included: the grace is shortened to what fits. `None`: no bound.
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

/// Says whether standard output and standard error are one stream or two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// Both in [`Finished::stdout`], in the order of writing; [`Finished::stderr`] stays empty.
    Merged,
    /// Each in its own.
    Apart,
}

/// What is said of a child when it wasn't seen that all it started has ended.
pub const MAYBE_LEFT: &str = "some of what it started could not be ended and may still run";

/// Tells how a child ended and what it wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// How it ended.
    pub ending: Ending,
    /// Whether it was seen that nothing it started is left. It is `false` when the system doesn't let a process go, when its
    /// guard was killed while nobody adopts orphans ([`adopt_orphans`](crate::adopt_orphans)), and where there are no guards.
    pub is_all_ended: bool,
    /// What was written to standard output, by the child and by everything it started.
    pub stdout: Captured,
    /// The same of standard error; empty when the streams were merged.
    pub stderr: Captured,
    /// From the call to the return, with the time it took to end leftovers.
    pub duration: Duration,
}

impl Finished {
    /// The outcome of a call that was cancelled before anything was started.
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
