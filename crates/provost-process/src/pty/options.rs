//! What to start at a terminal, with what, and what can be asked of it.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use provost_event::{TerminalNoted, WindowSize};
use provost_terminal::Profile;

/// Says which program to start at a terminal.
#[derive(Clone)]
pub struct PtyCommand {
    /// The program: a path, or a name looked up in the `PATH` of `env`. A relative path starts at `cwd`.
    pub program: OsString,
    /// Its arguments, without the program's name.
    pub args: Vec<OsString>,
    /// Its whole environment: nothing is inherited. Only `TERM=xterm-256color` is added where it names no `TERM`.
    pub env: Vec<(OsString, OsString)>,
    /// The folder it starts in.
    pub cwd: PathBuf,
    /// The window that it finds at its start.
    pub size: WindowSize,
}

impl PtyCommand {
    pub(super) fn whole_env(&self) -> Vec<(OsString, OsString)> {
        let mut env = self.env.clone();
        if env.iter().all(|(name, _)| name != "TERM") {
            env.push(("TERM".into(), "xterm-256color".into()));
        }
        env
    }
}

/// Leaves out the values of the environment: they may hold secrets.
impl fmt::Debug for PtyCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("PtyCommand")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("env_names", &names)
            .field("cwd", &self.cwd)
            .field("size", &self.size)
            .finish()
    }
}

/// Says how a program at a terminal is looked after.
pub struct PtyOptions {
    /// What is known of its screens.
    pub profile: Arc<Profile>,
    /// Where the session is recorded, if it is. Called on the terminal's thread, so that a slow one slows the program.
    pub recorder: Option<Box<dyn Recorder>>,
    /// Whether somebody calls [`PtySupervisor::read_output`](crate::PtySupervisor::read_output).
    pub hears_output: OutputWish,
    /// Whether somebody takes what is noticed.
    pub hears_events: EventWish,
    /// How long that which the program leaves behind at its own end has from being asked to end until it is killed.
    pub grace: Duration,
    /// A folder in which it is written down for [`end_leftovers`](crate::end_leftovers) what runs; made if absent. What
    /// has left the program's session is added when the kernel is looked at.
    pub ledger: Option<PathBuf>,
}

impl PtyOptions {
    /// No recording, no ledger, nobody reads the output, events are taken, five seconds of grace.
    #[must_use]
    pub fn new(profile: Arc<Profile>) -> Self {
        Self {
            profile,
            recorder: None,
            hears_output: OutputWish::Unwanted,
            hears_events: EventWish::Wanted,
            grace: Duration::from_secs(5),
            ledger: None,
        }
    }
}

/// Whether the program's output is wanted as text, besides the screen, the recording and the watchers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputWish {
    /// It is kept until it is read, up to [`OUTPUT_BYTES_MAX`](crate::OUTPUT_BYTES_MAX); then the program waits.
    Wanted,
    /// It isn't kept.
    Unwanted,
}

/// Whether what is noticed is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventWish {
    /// It is kept until it is taken, up to [`EVENTS_MAX`](crate::EVENTS_MAX); then the program waits.
    Wanted,
    /// It goes to the recording only.
    Unwanted,
}

/// Where a session is recorded. All times are since the program's start and never go back.
pub trait Recorder: Send {
    /// The program wrote this; characters may be cut anywhere.
    ///
    /// # Errors
    /// When it couldn't be kept; nothing more is recorded then.
    fn output(&mut self, at: Duration, bytes: &[u8]) -> io::Result<()>;

    /// Somebody typed: `input`, `keys` of an attached person, or a `secret`. What it was is never told.
    ///
    /// # Errors
    /// As for [`output`](Self::output).
    fn input_marker(&mut self, at: Duration, label: &str) -> io::Result<()>;

    /// The window has another size.
    ///
    /// # Errors
    /// As for [`output`](Self::output).
    fn resize(&mut self, at: Duration, size: WindowSize) -> io::Result<()>;

    /// Something was noticed.
    ///
    /// # Errors
    /// As for [`output`](Self::output).
    fn event(&mut self, at: Duration, noted: &TerminalNoted) -> io::Result<()>;

    /// By when [`tick`](Self::tick) is to be called; `None`: nothing is kept back.
    fn tick_due(&self) -> Option<Duration> {
        None
    }

    /// Time has passed: what is kept back goes out.
    ///
    /// # Errors
    /// As for [`output`](Self::output).
    fn tick(&mut self, at: Duration) -> io::Result<()> {
        let _ = at;
        Ok(())
    }

    /// Nothing more will come.
    ///
    /// # Errors
    /// As for [`output`](Self::output).
    fn finish(&mut self, at: Duration) -> io::Result<()>;
}

/// A signal for what runs at a terminal. It goes to the terminal's foreground group; those that end or continue a
/// program go to the program's own group too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PtySignal {
    /// As the interrupt key (SIGINT).
    Interrupt,
    /// The request to end (SIGTERM).
    Terminate,
    /// The terminal is gone (SIGHUP).
    Hangup,
    /// The end by force (SIGKILL).
    Kill,
    /// It is stopped (SIGSTOP).
    Stop,
    /// It goes on (SIGCONT).
    Continue,
    /// The window has changed (SIGWINCH).
    Winch,
}

/// Says how a program is made to end: its own way first, then by request, then by force.
///
/// The steps' keys are typed one after another. A program without steps that reads by the line is shown the end of its
/// input instead. While the program asks for consent nothing is typed: keys might give it. What still runs gets SIGHUP and SIGTERM, and after the grace it and all below it is killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuitPlan {
    /// The program's own way to quit.
    pub steps: Vec<QuitStep>,
    /// From the request to the end by force. Zero: by force at once after the steps.
    pub grace: Duration,
}

impl Default for QuitPlan {
    /// No steps, five seconds.
    fn default() -> Self {
        Self { steps: Vec::new(), grace: Duration::from_secs(5) }
    }
}

/// Keys that have a program quit, and how long it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuitStep {
    /// As they are typed.
    pub keys: String,
    /// How long the program has before the next step.
    pub wait: Duration,
}

/// Why something couldn't be done at a terminal.
#[derive(Debug, thiserror::Error)]
pub enum PtyError {
    /// The program has ended, or its supervisor is gone.
    #[error("the program at the terminal has ended")]
    Ended,
    /// A secret isn't sent while the terminal shows what is typed, or where that can't be told.
    #[error("the terminal shows what is typed: the secret was not sent")]
    EchoNotOff,
    /// A secret is longer than what a terminal takes as a line.
    #[error("the secret has more than {bytes_max} bytes and was not sent")]
    TooLong {
        /// How many it may have.
        bytes_max: usize,
    },
    /// A line is longer than what the terminal takes, and it has no key to hand it on in parts.
    #[error("a line has more than {bytes_max} bytes, and the terminal would drop the rest")]
    LineTooLong {
        /// How many it may have.
        bytes_max: usize,
    },
    /// This platform has no such signal.
    #[error("{signal:?} can't be sent on this platform")]
    NoSuchSignal {
        /// Which.
        signal: PtySignal,
    },
    /// The system refused.
    #[error("the terminal refused to {attempt}")]
    Refused {
        /// What was attempted.
        attempt: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}
