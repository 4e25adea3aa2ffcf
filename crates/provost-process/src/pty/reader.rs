//! What a terminal must know of its screen, and what reads the screen may know of the kernel: the interface to a
//! reader of screens, which is implemented elsewhere.

use std::time::Duration;

use provost_event::{Exit, TerminalNoted, WindowSize};

use super::view::TerminalView;

/// Reads the screen of one program. All times are since the program's start and never decrease. It is called on the
/// terminal's thread, so that a slow one slows the program.
pub trait ScreenReader: Send {
    /// Handles output of the program; returns the replies to its queries.
    fn output(&mut self, at: Duration, bytes: &[u8]) -> Vec<u8>;

    /// Handles typed input (never replies to queries); of a secret only the return at its end.
    fn input(&mut self, at: Duration, bytes: &[u8]);

    /// Handles a new window size.
    fn resize(&mut self, at: Duration, size: WindowSize);

    /// Handles a kernel sample.
    fn kernel(&mut self, at: Duration, sample: KernelSample);

    /// Handles the passing of time.
    fn tick(&mut self, at: Duration);

    /// Handles the program's end.
    fn exited(&mut self, at: Duration, exit: Exit);

    /// When the next [`tick`](Self::tick) is due if nothing else happens before; `None`: never.
    fn next_tick(&self) -> Option<Duration>;

    /// When another [`kernel`](Self::kernel) sample would help; `None`: it would add nothing.
    fn next_sample(&self) -> Option<Duration>;

    /// Whether the program asks for a secret while the terminal shows what is typed.
    fn exposes_secret(&self) -> bool;

    /// Whether samples should say if the program awaits an answer over the network, which is costly.
    fn wants_connections(&self) -> bool;

    /// Takes the events since the last call, in order.
    fn take(&mut self) -> Vec<Detected>;

    /// Whether a question for consent is open, which keys might answer.
    fn asks(&self) -> bool;

    /// The present screen, for a window of `size` and a program that last wrote at `at`.
    fn view(&self, size: WindowSize, at: Duration) -> TerminalView;

    /// The bytes that paint the screen, with its modes, on a reset terminal of its size.
    fn snapshot(&self) -> Vec<u8>;

    /// What has scrolled off the main screen, as far as it is kept: a row a line, the oldest first.
    fn scrollback(&self) -> Vec<u8>;
}

/// Makes the reader of a screen of this size, right after the program's start.
pub type NewScreenReader = Box<dyn FnOnce(WindowSize) -> Box<dyn ScreenReader> + Send>;

/// An event, and its time since the program's start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detected {
    /// The time.
    pub at: Duration,
    /// The event.
    pub noted: TerminalNoted,
}

/// A sample of a terminal and its processes. A field is `None` if the platform can't tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KernelSample {
    /// Whether the terminal echoes what is typed.
    pub echo: Option<bool>,
    /// Whether the terminal is in line mode.
    pub canonical: Option<bool>,
    /// Whether a process of the foreground group is blocked in a read of the terminal, or is a [shell](is_shell)
    /// that sleeps in poll or select in line mode: that is a read with a time limit.
    pub reads_terminal: Option<bool>,
    /// Whether a process of the foreground group waits for one of several events (poll, select, epoll, a futex),
    /// perhaps including the terminal. Line editors and full-screen programs wait this way.
    pub polls: Option<bool>,
    /// Whether a process below the terminal is running or runnable, or waits for a disk.
    pub is_busy: Option<bool>,
    /// The foreground process group.
    pub foreground: Option<u32>,
    /// When the youngest tool that the program runs was started, since the program's start: a descendant whose
    /// standard input is no pipe and no socket. `None` if there is none, or the platform can't tell.
    pub tool_started: Option<Duration>,
    /// Whether the program has sent a request over the network and has received nothing since. Only sampled while
    /// the reader asks for it.
    pub awaits_answer: Option<bool>,
    /// The requests to models that have begun so far. `None` where they aren't counted.
    pub model_calls: Option<u64>,
}

/// Whether a process of this name is a shell. A shell doesn't poll to wait for its children; in line mode it polls
/// only for a read with a time limit (`read -t`).
#[must_use]
pub fn is_shell(name: &str) -> bool {
    ["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "busybox"].contains(&name.trim_start_matches('-'))
}
