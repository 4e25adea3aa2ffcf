//! What a terminal is told besides what a program shows: sequences that paint nothing. While a program has the terminal
//! they are said between the program's own; else at once.

use std::io::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Bytes that may wait; more than a few reports never do.
const WAITING_BYTES_MAX: usize = 16 * 1024;

/// What is to be said as soon as it can be.
#[derive(Clone, Default)]
pub(crate) struct Asides(Arc<Inner>);

#[derive(Default)]
struct Inner {
    waiting: Mutex<Waiting>,
    more: Notify,
}

#[derive(Default)]
struct Waiting {
    text: String,
    is_held: bool,
}

/// While it lives somebody takes what is to be said.
pub(super) struct Held<'a>(&'a Asides);

impl Asides {
    /// Has it said.
    pub(crate) fn say(&self, text: &str) {
        let mut waiting = self.waiting();
        if !waiting.is_held {
            return write(text);
        }
        if waiting.text.len().saturating_add(text.len()) <= WAITING_BYTES_MAX {
            waiting.text.push_str(text);
        }
        drop(waiting);
        self.0.more.notify_one();
    }

    /// From now on what is said waits to be taken.
    pub(super) fn hold(&self) -> Held<'_> {
        self.waiting().is_held = true;
        Held(self)
    }

    /// All that waits.
    pub(super) fn take(&self) -> String {
        std::mem::take(&mut self.waiting().text)
    }

    /// Returns once there is something to say.
    ///
    /// # Cancellation
    /// Safe.
    pub(super) async fn wait(&self) {
        self.0.more.notified().await;
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut waiting = self.0.waiting();
        waiting.is_held = false;
        write(&std::mem::take(&mut waiting.text));
    }
}

/// Where nobody reads it any more the run is what matters.
fn write(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
