//! How a program at a terminal is supervised, and the requests to it.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use provost_event::{TerminalNoted, WindowSize};

use super::connections::{KernelConnections, ModelConnections};
use super::reader::NewScreenReader;

/// How a program at a terminal is supervised.
pub struct PtyOptions {
    /// Makes the reader of its screen.
    pub reader: NewScreenReader,
    /// The recorder, if the session is recorded. It runs on the terminal's thread, so a slow one slows the
    /// program.
    pub recorder: Option<Box<dyn Recorder>>,
    /// Whether output is kept for [`PtySupervisor::read_output`](crate::PtySupervisor::read_output).
    pub hears_output: OutputSubscription,
    /// Whether events are kept for [`PtySupervisor::next_event`](crate::PtySupervisor::next_event).
    pub hears_events: EventSubscription,
    /// The time between SIGTERM and SIGKILL for processes that are left when the program has ended by itself.
    pub grace: Duration,
    /// The folder that lists running processes for [`end_leftovers`](crate::end_leftovers); made if absent.
    /// Processes that have left the program's session are added when the kernel is sampled.
    pub ledger: Option<PathBuf>,
    /// Called with each line that was typed where a secret was asked for while the terminal showed it, so that it can
    /// be removed from what is stored.
    pub exposed: Option<ExposedSecret>,
    /// How long the program's first queries wait for a person's terminal to answer them; without one they get the
    /// reader's replies then. Zero: at once.
    pub awaits_terminal: Duration,
    /// Tells whether the program awaits an answer of its model.
    pub connections: Box<dyn ModelConnections>,
}

impl PtyOptions {
    /// No recording, no ledger, output isn't kept, events are kept, five seconds of grace, the kernel's view of
    /// connections.
    #[must_use]
    pub fn new(reader: NewScreenReader) -> Self {
        Self {
            reader,
            recorder: None,
            hears_output: OutputSubscription::Unwanted,
            hears_events: EventSubscription::Wanted,
            grace: Duration::from_secs(5),
            ledger: None,
            exposed: None,
            awaits_terminal: Duration::ZERO,
            connections: Box::new(KernelConnections::default()),
        }
    }
}

/// Receives a secret that the terminal has shown.
pub type ExposedSecret = Box<dyn Fn(&str) + Send>;

/// Whether the program's output is kept as text, besides the screen, the recording and the watchers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputSubscription {
    /// It is kept until it is read, up to [`OUTPUT_BYTES_MAX`](crate::OUTPUT_BYTES_MAX); then the program waits.
    Wanted,
    /// It isn't kept.
    Unwanted,
}

/// Whether events are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventSubscription {
    /// They are kept until they are taken, up to [`EVENTS_MAX`](crate::EVENTS_MAX); then the program waits.
    Wanted,
    /// They only go to the recording.
    Unwanted,
}

/// Records a session. All times are since the program's start and never decrease.
pub trait Recorder: Send {
    /// The program wrote these bytes; characters may be cut anywhere.
    ///
    /// # Errors
    /// When they couldn't be stored; the recording then ends.
    fn output(&mut self, at: Duration, bytes: &[u8]) -> io::Result<()>;

    /// Input was typed: `input` by Provost, `keys` by an attached person, or a `secret`. The content is never
    /// passed.
    ///
    /// # Errors
    /// As for [`output`](Self::output).
    fn input_marker(&mut self, at: Duration, label: &str) -> io::Result<()>;

    /// The window has a new size.
    ///
    /// # Errors
    /// As for [`output`](Self::output).
    fn resize(&mut self, at: Duration, size: WindowSize) -> io::Result<()>;

    /// An event was detected.
    ///
    /// # Errors
    /// As for [`output`](Self::output).
    fn event(&mut self, at: Duration, noted: &TerminalNoted) -> io::Result<()>;

    /// When [`tick`](Self::tick) is due; `None`: no data is buffered.
    fn tick_due(&self) -> Option<Duration> {
        None
    }

    /// Time has passed: buffered data is written out.
    ///
    /// # Errors
    /// As for [`output`](Self::output).
    fn tick(&mut self, at: Duration) -> io::Result<()> {
        let _ = at;
        Ok(())
    }

    /// The session has ended.
    ///
    /// # Errors
    /// As for [`output`](Self::output).
    fn finish(&mut self, at: Duration) -> io::Result<()>;
}

/// A signal for the processes at a terminal. It goes to the terminal's foreground group; a signal that ends or
/// continues a program goes to the program's own group too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PtySignal {
    /// Like the interrupt key (SIGINT).
    Interrupt,
    /// The request to end (SIGTERM).
    Terminate,
    /// The terminal is gone (SIGHUP).
    Hangup,
    /// The kill (SIGKILL).
    Kill,
    /// Stops (SIGSTOP).
    Stop,
    /// Continues (SIGCONT).
    Continue,
    /// The window has changed (SIGWINCH).
    Winch,
    /// Like the quit key (SIGQUIT).
    Quit,
    /// SIGUSR1.
    User1,
    /// SIGUSR2.
    User2,
}

/// How to end a program: first in its own way, then by request, then by a kill.
///
/// The keys of the steps are typed one after another. A program without steps that reads line by line gets the end
/// of its input instead. While the program asks for consent nothing is typed: keys might give it. Processes that
/// still run get SIGHUP and SIGTERM, and after the grace they and their descendants are killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuitPlan {
    /// The program's own way to quit.
    pub steps: Vec<QuitStep>,
    /// The time between the request to end and the kill. Zero: kill at once after the steps.
    pub grace: Duration,
}

impl Default for QuitPlan {
    /// No steps, five seconds.
    fn default() -> Self {
        Self { steps: Vec::new(), grace: Duration::from_secs(5) }
    }
}

/// Keys that end a program, and how long that takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuitStep {
    /// The keys.
    pub keys: String,
    /// How long the program has before the next step.
    pub wait: Duration,
}

/// Why an operation on a terminal failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PtyError {
    /// The program has ended, or its supervisor is gone.
    #[error("the program at the terminal has ended")]
    Ended,
    /// A secret isn't sent while the terminal's echo is on or unknown.
    #[error("the terminal shows what is typed: the secret was not sent")]
    EchoNotOff,
    /// A secret is longer than a line of the terminal.
    #[error("the secret has more than {bytes_max} bytes and was not sent")]
    TooLong {
        /// The limit.
        bytes_max: usize,
    },
    /// A line is longer than the terminal accepts, and it has no key to deliver it in parts.
    #[error("a line has more than {bytes_max} bytes, and the terminal would drop the rest")]
    LineTooLong {
        /// The limit.
        bytes_max: usize,
    },
    /// This platform has no such signal.
    #[error("{signal:?} can't be sent on this platform")]
    NoSuchSignal {
        /// The signal.
        signal: PtySignal,
    },
    /// The system refused.
    #[error("the terminal refused to {attempt}")]
    Refused {
        /// What was attempted.
        attempt: &'static str,
        /// The system's error.
        source: io::Error,
    },
}
