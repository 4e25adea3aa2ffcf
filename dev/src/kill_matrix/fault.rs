//! The points at which a process kills itself.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result, bail};

/// A point at which a process is killed with -9.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) side: Side,
    pub(super) of: Of,
    /// Which of them within the process, from 1.
    pub(super) number: usize,
}

/// Before or after the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Before,
    After,
}

/// The kinds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// A transaction of the store.
    Commit,
    /// A transaction with a snapshot.
    Snapshot,
    /// A tool's effect.
    Effect,
    /// An answer to a question; this process's parent kills it there.
    Answer,
}

impl Of {
    const ALL: [(Self, &str); 4] = [
        (Self::Commit, "commit"),
        (Self::Snapshot, "snapshot"),
        (Self::Effect, "effect"),
        (Self::Answer, "answer"),
    ];
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = if self.side == Side::Before { "before" } else { "after" };
        let of = Of::ALL.iter().find(|(of, _)| *of == self.of).map_or("", |(_, name)| name);
        write!(f, "{side}-{of}-{}", self.number)
    }
}

impl FromStr for Point {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || format!("`{text}` is no place such as before-commit-3");
        let (side, rest) = text.split_once('-').with_context(wrong)?;
        let (of, number) = rest.split_once('-').with_context(wrong)?;
        let side = match side {
            "before" => Side::Before,
            "after" => Side::After,
            _ => bail!(wrong()),
        };
        let (of, _) = Of::ALL.iter().find(|(_, name)| *name == of).with_context(wrong)?;
        Ok(Self { side, of: *of, number: number.parse().with_context(wrong)? })
    }
}

/// Counts the events in this process, and kills it at its point.
pub(super) struct Fault {
    point: Option<Point>,
    commits: AtomicUsize,
    snapshots: AtomicUsize,
    effects: AtomicUsize,
}

impl Fault {
    pub(super) const fn at(point: Option<Point>) -> Self {
        Self {
            point,
            commits: AtomicUsize::new(0),
            snapshots: AtomicUsize::new(0),
            effects: AtomicUsize::new(0),
        }
    }

    /// Effects so far.
    pub(super) fn effects(&self) -> usize {
        self.effects.load(Ordering::SeqCst)
    }

    /// Runs a transaction, unless the process is killed before.
    pub(super) fn commit<T>(&self, act: impl FnOnce() -> T) -> T {
        self.around(Of::Commit, &self.commits, act)
    }

    /// Runs a transaction with a snapshot, unless the process is killed before.
    pub(super) fn snapshot<T>(&self, act: impl FnOnce() -> T) -> T {
        self.around(Of::Snapshot, &self.snapshots, act)
    }

    /// Runs a tool's effect, unless the process is killed before.
    pub(super) fn effect<T>(&self, act: impl FnOnce() -> T) -> T {
        self.around(Of::Effect, &self.effects, act)
    }

    /// The same on an engine, of what leads to a decision there.
    pub(super) async fn around_commit<T>(&self, act: impl Future<Output = T>) -> T {
        let number = self.commits.fetch_add(1, Ordering::SeqCst) + 1;
        self.die_at(Side::Before, Of::Commit, number);
        let done = act.await;
        self.die_at(Side::After, Of::Commit, number);
        done
    }

    fn around<T>(&self, of: Of, counter: &AtomicUsize, act: impl FnOnce() -> T) -> T {
        let number = counter.fetch_add(1, Ordering::SeqCst) + 1;
        self.die_at(Side::Before, of, number);
        let done = act();
        self.die_at(Side::After, of, number);
        done
    }

    fn die_at(&self, side: Side, of: Of, number: usize) {
        if self.point == Some(Point { side, of, number }) {
            die();
        }
    }
}

/// Ends this process as `kill -9` does.
fn die() -> ! {
    #[cfg(unix)]
    {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        // The signal may go to another thread: this one does nothing more.
        loop {
            std::thread::park();
        }
    }
    #[cfg(not(unix))]
    std::process::abort()
}
