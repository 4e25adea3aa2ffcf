//! Watchers of a terminal: a snapshot of the screen, then the output after it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use provost_event::WindowSize;
use tokio::sync::Notify;

use super::locked;
use super::shared::{Ask, Shared};

/// Maximum bytes queued for one watcher; beyond that it gets a new snapshot instead.
pub const WATCHER_BYTES_MAX: usize = 256 * 1024;

/// What a watcher has to paint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Painted {
    /// The whole screen with its modes, for a reset terminal of this size: earlier output is stale.
    Snapshot {
        /// The window's size.
        size: WindowSize,
        /// The bytes to write to the terminal.
        bytes: Vec<u8>,
    },
    /// Output since then, without its queries: they are answered already.
    Output(Vec<u8>),
}

/// Watches a terminal, from [`PtySupervisor::watch`](crate::PtySupervisor::watch). The first item is a snapshot. A
/// watcher never slows the program: a slow one gets a new snapshot instead of what it has missed.
pub struct Watcher {
    pub(super) queue: Arc<WatcherQueue>,
    pub(super) shared: Arc<Shared>,
}

impl Watcher {
    /// Waits for the next item to paint. `None` when no more will come.
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

/// The queue of one watcher.
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
    /// Replaces the queue with this snapshot.
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

    /// Drops the queue; a new snapshot is made on the next request.
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
