//! What to run to its end, and its result.

use std::time::Duration;

use crate::{Captured, Launch};

/// A program to run to its end, and its limits.
#[derive(Debug, Clone)]
pub struct ChildSpec {
    /// The program.
    pub launch: Launch,
    /// Bytes kept of each stream: half from its beginning, half from its end. The rest is read and dropped.
    pub keep_bytes_max: usize,
    /// Maximum time from the start on; `None`: unlimited. Zero: it is stopped as soon as it runs.
    pub timeout: Option<Duration>,
    /// The time between SIGTERM and SIGKILL. Zero: SIGKILL at once.
    pub grace: Duration,
    /// The total time from the start on, including the kill: the grace is shortened to fit. `None`: unlimited.
    pub ends_within: Option<Duration>,
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
