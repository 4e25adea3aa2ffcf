//! Those who look on: a snapshot of the screen, then what is written to it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use provost_event::WindowSize;
use tokio::sync::Notify;

use super::locked;
use super::shared::{Ask, Shared};

/// Bytes that may wait for one watcher; with more it gets a new snapshot instead.
pub const WATCHER_BYTES_MAX: usize = 256 * 1024;

/// What a watcher is to paint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Painted {
    /// The whole screen with its modes, for a fresh terminal of this size: whatever was painted before is stale.
    Snapshot {
        /// The window's size.
        size: WindowSize,
        /// What to write to the terminal.
        bytes: Vec<u8>,
    },
    /// What the program wrote since, without its queries: they are answered already.
    Output(Vec<u8>),
}

/// Looks on at a terminal, from [`PtySupervisor::watch`](crate::PtySupervisor::watch). First comes a snapshot. It never
/// slows the program: one that is slow is given a new snapshot instead of what it has missed.
pub struct Watcher {
    pub(super) queue: Arc<WatcherQueue>,
    pub(super) shared: Arc<Shared>,
}

impl Watcher {
    /// Returns what to paint next; waits for it. `None` when nothing will come any more.
    ///
    /// # Cancellation
    /// Nothing is lost.
    pub async fn next(&mut self) -> Option<Painted> {
        loop {
            match self.queue.take() {
                Taken::Painted(painted) => return Some(painted),
                Taken::Stale => {
                    let repaint = Ask::Repaint(Arc::clone(&self.queue));
                    self.shared.ask(repaint).await.ok()?;
                }
                Taken::Closed => return None,
                Taken::Nothing => {}
            }
            self.queue.changed.notified().await;
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        locked(&self.queue.held).is_closed = true;
    }
}

/// What waits for one watcher.
#[derive(Default)]
pub(super) struct WatcherQueue {
    held: Mutex<Held>,
    changed: Notify,
}

#[derive(Default)]
struct Held {
    painted: VecDeque<Painted>,
    bytes: usize,
    is_stale: bool,
    is_closed: bool,
}

enum Taken {
    Painted(Painted),
    Stale,
    Closed,
    Nothing,
}

impl WatcherQueue {
    /// Begins anew with this, whatever waits.
    pub(super) fn repaint(&self, size: WindowSize, bytes: Vec<u8>) {
        let mut held = locked(&self.held);
        held.painted.clear();
        held.bytes = 0;
        held.is_stale = false;
        held.painted.push_back(Painted::Snapshot { size, bytes });
        drop(held);
        self.changed.notify_one();
    }

    pub(super) fn add(&self, bytes: &[u8]) {
        let mut held = locked(&self.held);
        if held.is_stale || bytes.is_empty() {
            return;
        }
        held.bytes += bytes.len();
        if held.bytes > WATCHER_BYTES_MAX {
            held.become_stale();
        } else if let Some(Painted::Output(last)) = held.painted.back_mut() {
            last.extend_from_slice(bytes);
        } else {
            held.painted.push_back(Painted::Output(bytes.to_vec()));
        }
        drop(held);
        self.changed.notify_one();
    }

    /// What waits is of no use any more; a new snapshot is made when it is asked for.
    pub(super) fn spoil(&self) {
        locked(&self.held).become_stale();
        self.changed.notify_one();
    }

    pub(super) fn close(&self) {
        locked(&self.held).is_closed = true;
        self.changed.notify_one();
    }

    pub(super) fn is_closed(&self) -> bool {
        locked(&self.held).is_closed
    }

    fn take(&self) -> Taken {
        let mut held = locked(&self.held);
        match held.painted.pop_front() {
            Some(painted) => {
                if let Painted::Output(bytes) = &painted {
                    held.bytes = held.bytes.saturating_sub(bytes.len());
                }
                Taken::Painted(painted)
            }
            None if held.is_stale => Taken::Stale,
            None if held.is_closed => Taken::Closed,
            None => Taken::Nothing,
        }
    }
}

impl Held {
    fn become_stale(&mut self) {
        self.painted.clear();
        self.bytes = 0;
        self.is_stale = true;
    }
}
