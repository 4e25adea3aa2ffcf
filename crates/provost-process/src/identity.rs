//! Processes that don't belong to this one: which they are, and how to end them.

use std::ffi::OsStr;
use std::fmt;
use std::str::FromStr;

/// A process, by its id and its start time: together unique until the next boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessIdentity {
    /// The process id.
    pub pid: u32,
    /// The start time, in the kernel's ticks since boot.
    pub started: u64,
}

impl ProcessIdentity {
    /// This process; `None` where processes have no start times (off Linux).
    #[must_use]
    pub fn own() -> Option<Self> {
        Self::of(std::process::id())
    }

    /// The living processes that were started with this argument, by any user whose arguments this process may read.
    /// None off Linux.
    #[must_use]
    pub fn with_argument(argument: &OsStr) -> Vec<Self> {
        #[cfg(target_os = "linux")]
        {
            crate::leftover::with_argument(argument).collect()
        }
        #[cfg(not(target_os = "linux"))]
        {
            let _ = argument;
            Vec::new()
        }
    }

    /// The living process with this id.
    #[cfg(target_os = "linux")]
    pub(crate) fn of(pid: u32) -> Option<Self> {
        crate::leftover::started_of(pid).map(|started| Self { pid, started })
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn of(_pid: u32) -> Option<Self> {
        None
    }

    /// Whether this process still exists. One that has ended and whose parent hasn't noticed doesn't.
    #[must_use]
    pub fn exists(self) -> bool {
        #[cfg(target_os = "linux")]
        {
            crate::leftover::living(self.pid).is_some_and(|process| process.started == self.started)
        }
        #[cfg(not(target_os = "linux"))]
        false
    }

    /// Asks the process to end (SIGTERM), also a stopped one. Returns whether it was asked: `false` too when there is no
    /// such process any more, and off Linux.
    #[must_use]
    pub fn ask_to_end(self) -> bool {
        #[cfg(target_os = "linux")]
        {
            self.asked_by(rustix::process::Signal::TERM)
        }
        #[cfg(not(target_os = "linux"))]
        false
    }

    /// The same with an interrupt (SIGINT), which a program may take for a person's Ctrl-C.
    #[must_use]
    pub fn interrupt(self) -> bool {
        #[cfg(target_os = "linux")]
        {
            self.asked_by(rustix::process::Signal::INT)
        }
        #[cfg(not(target_os = "linux"))]
        false
    }

    #[cfg(target_os = "linux")]
    fn asked_by(self, signal: rustix::process::Signal) -> bool {
        let process = crate::leftover::process(self.pid);
        let process = process.filter(|process| process.started == self.started);
        process.is_some_and(|process| {
            crate::leftover::signal(process, signal)
                && crate::leftover::signal(process, rustix::process::Signal::CONT)
        })
    }

    /// Ends the process, also a stopped one, and all its descendants, without asking them. Returns whether it did;
    /// `false` too when there is no such process any more, or it may not be ended.
    ///
    /// Blocks for up to two seconds: not to be called on an async worker.
    #[must_use]
    pub fn end_tree(self) -> bool {
        #[cfg(target_os = "linux")]
        {
            let process = crate::leftover::process(self.pid);
            let process = process.filter(|process| process.started == self.started);
            process.is_some_and(crate::leftover::end_tree)
        }
        #[cfg(not(target_os = "linux"))]
        false
    }
}

impl fmt::Display for ProcessIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.pid, self.started)
    }
}

impl FromStr for ProcessIdentity {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (pid, started) = text.split_once(' ').ok_or(())?;
        match (pid.parse(), started.parse()) {
            (Ok(pid), Ok(started)) => Ok(Self { pid, started }),
            _ => Err(()),
        }
    }
}
