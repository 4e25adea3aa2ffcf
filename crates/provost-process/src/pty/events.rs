//! Events of a terminal, queued until they are taken.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use super::locked;
use super::reader::Detected;
use super::shared::Shared;

/// Maximum queued events. None is dropped: when the limit is reached the terminal isn't read, so that the program
/// waits until some are taken. The events of one read, and those without output (time, the program's end), may
/// exceed it.
pub const EVENTS_MAX: usize = 1024;

/// Receives the events of a terminal, from [`PtySupervisor::events`](crate::PtySupervisor::events). It doesn't
/// keep the program alive.
pub struct Events {
    pub(super) shared: Arc<Shared>,
}

impl Events {
    /// Waits for the next event, in order. `None` when no more events will come. No event is lost: while
    /// [`EVENTS_MAX`] are queued, the program waits too.
    ///
    /// # Cancellation
    /// Nothing is lost.
    pub async fn next(&mut self) -> Option<Detected> {
        let (event, was_full) = self.shared.events.take().await?;
        if was_full {
            self.shared.wake();
        }
        Some(event)
    }
}

#[derive(Default)]
pub(super) struct EventQueue {
    held: Mutex<Held>,
    changed: Notify,
}

#[derive(Default)]
struct Held {
    events: VecDeque<Detected>,
    is_closed: bool,
}

impl EventQueue {
    pub(super) fn add(&self, event: Detected) {
        locked(&self.held).events.push_back(event);
        self.changed.notify_one();
    }

    pub(super) fn is_full(&self) -> bool {
        locked(&self.held).events.len() >= EVENTS_MAX
    }

    pub(super) fn close(&self) {
        locked(&self.held).is_closed = true;
        self.changed.notify_one();
    }

    /// The next event, and whether the queue was full; `None` after the end.
    pub(super) async fn take(&self) -> Option<(Detected, bool)> {
        loop {
            {
                let mut held = locked(&self.held);
                let was_full = held.events.len() == EVENTS_MAX;
                if let Some(event) = held.events.pop_front() {
                    if !held.events.is_empty() {
                        self.changed.notify_one();
                    }
                    return Some((event, was_full));
                }
                if held.is_closed {
                    self.changed.notify_one();
                    return None;
                }
            }
            self.changed.notified().await;
        }
    }
}
