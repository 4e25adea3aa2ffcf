//! What the kernel says of a terminal and the processes at it.

/// One look at a terminal and its processes. Where a platform can't tell, a field is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KernelSample {
    /// Whether the terminal echoes what is typed.
    pub echo: Option<bool>,
    /// Whether input is handed on by the line.
    pub canonical: Option<bool>,
    /// Whether a process of the foreground group is blocked in a read of the terminal, or is a [shell](is_shell) that
    /// sleeps in poll or select while input is handed on by the line: that is a read with a time limit.
    pub reads_terminal: Option<bool>,
    /// Whether a process of the foreground group sleeps until one of several things happens (poll, select, epoll, a
    /// futex), so that the terminal may be what it waits for. Line editors and full-screen programs wait like this.
    pub polls: Option<bool>,
    /// Whether a process below the terminal is running or about to, or waits for a disk.
    pub is_busy: Option<bool>,
    /// The foreground process group.
    pub foreground: Option<u32>,
}

/// Whether a process of this name is a shell. Waiting for its children a shell doesn't poll; reading by the line it does so
/// only when it is to give up after a while (`read -t`).
#[must_use]
pub fn is_shell(name: &str) -> bool {
    ["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "busybox"].contains(&name.trim_start_matches('-'))
}

/// What a sample says of whether somebody has to type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// A secret is read: blocked in a read by the line, and nothing is echoed.
    Secret,
    /// A process is blocked in a read of the terminal.
    Blocked,
    /// The terminal hands on each key, and a process sleeps in a call by which it may wait for one.
    Keys,
    /// Nothing reads.
    Nothing,
    /// It can't be told.
    Unknown,
}

impl KernelSample {
    pub(crate) fn reading(&self) -> Reading {
        match (self.reads_terminal, self.canonical) {
            (Some(true), Some(true)) if self.echo == Some(false) => Reading::Secret,
            (Some(true), _) => Reading::Blocked,
            (Some(false), Some(false)) if self.polls == Some(true) => Reading::Keys,
            // Where each key is handed on by itself, somebody outside of the foreground group may take it (a pinentry), and
            // between two keys a line editor works for a moment.
            (Some(false), Some(true)) if self.polls != Some(true) => Reading::Nothing,
            _ => Reading::Unknown,
        }
    }

    /// What it was made from, in a few words.
    pub(crate) fn words(&self) -> &'static str {
        match self.reading() {
            Reading::Secret => "reads the terminal, echo off",
            Reading::Blocked => "reads the terminal",
            Reading::Keys => "takes keys, sleeps",
            Reading::Nothing => "nothing reads the terminal",
            Reading::Unknown => "can't tell who reads",
        }
    }
}
