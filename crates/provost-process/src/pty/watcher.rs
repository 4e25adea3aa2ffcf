//! Watchers of a terminal: a snapshot of the screen, then the output after it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use provost_event::WindowSize;
use tokio::sync::Notify;

use super::locked;
use super::options::PtyError;
use super::shared::{Ask, Shared};

/// Maximum bytes queued for one watcher, beyond which a copy gets a new snapshot instead, and the program waits for a
/// terminal.
pub const WATCHER_BYTES_MAX: usize = 256 * 1024;

/// What watches a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatcherKind {
    /// A copy of the screen. It never slows the program, gets none of its queries, and a new snapshot with each new
    /// size of the window and when it is behind.
    Copy,
    /// A person's terminal. Its first snapshot has the scrollback, it misses no output (the program waits for one that
    /// is behind, for 10 s at most), and a new size brings no snapshot. The newest of all gets the program's queries,
    /// and its replies go to [`PtySupervisor::reply`](crate::PtySupervisor::reply).
    Terminal,
}

/// What a watcher has to paint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Painted {
    /// The whole screen with its modes, for a reset terminal of this size: earlier output is stale.
    Snapshot {
        /// The window's size.
        size: WindowSize,
        /// What has scrolled off the main screen, a row a line. Empty except in a terminal's first snapshot.
        scrollback: Vec<u8>,
        /// The bytes to write to the terminal.
        bytes: Vec<u8>,
    },
    /// Output since then; without its queries, unless this terminal is to answer them.
    Output(Vec<u8>),
}

/// Watches a terminal, from [`PtySupervisor::watch`](crate::PtySupervisor::watch). The first item is a snapshot.
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
                Taken::Painted(painted) => {
                    if self.queue.has_made_room() {
                        self.shared.wake();
                    }
                    return Some(painted);
                }
                Taken::Stale => self.repaint().await.ok()?,
                Taken::Closed => return None,
                Taken::Nothing => {}
            }
            self.queue.changed.notified().await;
        }
    }

    /// Replaces what is queued with a new snapshot.
    ///
    /// # Errors
    /// When the program and its descendants have ended.
    pub async fn repaint(&self) -> Result<(), PtyError> {
        self.shared.ask(Ask::Repaint(Arc::clone(&self.queue))).await
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        locked(&self.queue.held).is_closed = true;
        // The program may wait for it, or for its replies.
        if self.queue.kind == WatcherKind::Terminal {
            self.shared.wake();
        }
    }
}

/// The queue of one watcher.
pub(super) struct WatcherQueue {
    kind: WatcherKind,
    held: Mutex<Held>,
    changed: Notify,
}

#[derive(Default)]
struct Held {
    painted: VecDeque<Painted>,
    bytes: usize,
    /// The program waits for room.
    is_awaited: bool,
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
    pub(super) fn new(kind: WatcherKind) -> Self {
        Self { kind, held: Mutex::default(), changed: Notify::new() }
    }

    pub(super) fn kind(&self) -> WatcherKind {
        self.kind
    }

    /// Whether the program has to wait for it.
    pub(super) fn is_full(&self) -> bool {
        let mut held = locked(&self.held);
        let is_full = self.kind == WatcherKind::Terminal
            && !(held.is_closed || held.is_stale)
            && held.bytes > WATCHER_BYTES_MAX;
        held.is_awaited |= is_full;
        is_full
    }

    /// Whether the program has waited for room that is there now.
    fn has_made_room(&self) -> bool {
        let mut held = locked(&self.held);
        held.bytes <= WATCHER_BYTES_MAX && std::mem::take(&mut held.is_awaited)
    }

    /// Replaces the queue with this snapshot.
    pub(super) fn repaint(&self, size: WindowSize, scrollback: Vec<u8>, bytes: Vec<u8>) {
        let mut held = locked(&self.held);
        held.painted.clear();
        held.bytes = 0;
        held.is_stale = false;
        held.painted.push_back(Painted::Snapshot { size, scrollback, bytes });
        drop(held);
        self.changed.notify_one();
    }

    pub(super) fn add(&self, bytes: &[u8]) {
        let mut held = locked(&self.held);
        if held.is_stale || bytes.is_empty() {
            return;
        }
        held.bytes += bytes.len();
        if held.bytes > WATCHER_BYTES_MAX && self.kind == WatcherKind::Copy {
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
