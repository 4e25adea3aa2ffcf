//! What the kernel reports about a terminal and its processes.

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
}

/// Whether a process of this name is a shell. A shell doesn't poll to wait for its children; in line mode it polls
/// only for a read with a time limit (`read -t`).
#[must_use]
pub fn is_shell(name: &str) -> bool {
    ["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "busybox"].contains(&name.trim_start_matches('-'))
}

/// What a sample says about waiting for input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KernelReading {
    /// A secret is read: blocked in a read in line mode, with the echo off.
    Secret,
    /// A process is blocked in a read of the terminal.
    Blocked,
    /// The terminal delivers single keys, and a process sleeps in a call that may wait for one.
    Keys,
    /// No process reads.
    Nothing,
    /// Unknown.
    Unknown,
}

impl KernelSample {
    pub(crate) fn reading(&self) -> KernelReading {
        match (self.reads_terminal, self.canonical) {
            (Some(true), Some(true)) if self.echo == Some(false) => KernelReading::Secret,
            (Some(true), _) => KernelReading::Blocked,
            (Some(false), Some(false)) if self.polls == Some(true) => KernelReading::Keys,
            // With single keys, a process outside of the foreground group may read them (a pinentry), and a line
            // editor works briefly between two keys.
            (Some(false), Some(true)) if self.polls != Some(true) => KernelReading::Nothing,
            _ => KernelReading::Unknown,
        }
    }

    /// The sample in a few words.
    pub(crate) fn words(&self) -> &'static str {
        match self.reading() {
            KernelReading::Secret => "reads the terminal, echo off",
            KernelReading::Blocked => "reads the terminal",
            KernelReading::Keys => "takes keys, sleeps",
            KernelReading::Nothing => "nothing reads the terminal",
            KernelReading::Unknown => "can't tell who reads",
        }
    }
}
