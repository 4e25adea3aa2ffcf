//! What a sample of the kernel says about waiting for input.

use provost_process::KernelSample;

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

impl KernelReading {
    pub(crate) fn of(sample: KernelSample) -> Self {
        match (sample.reads_terminal, sample.canonical) {
            (Some(true), Some(true)) if sample.echo == Some(false) => Self::Secret,
            (Some(true), _) => Self::Blocked,
            (Some(false), Some(false)) if sample.polls == Some(true) => Self::Keys,
            // With single keys, a process outside of the foreground group may read them (a pinentry), and a line
            // editor works briefly between two keys.
            (Some(false), Some(true)) if sample.polls != Some(true) => Self::Nothing,
            _ => Self::Unknown,
        }
    }

    /// The reading in a few words.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Secret => "reads the terminal, echo off",
            Self::Blocked => "reads the terminal",
            Self::Keys => "takes keys, sleeps",
            Self::Nothing => "nothing reads the terminal",
            Self::Unknown => "can't tell who reads",
        }
    }
}
