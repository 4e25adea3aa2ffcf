//! Reports to a terminal besides a program's output: sequences that paint nothing. While a program has the
//! terminal they are written between the program's own sequences; else at once.

use std::io::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Bytes of pending reports; a few reports never need more.
const WAITING_BYTES_MAX: usize = 16 * 1024;

/// Reports that are written as soon as possible.
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

/// While it lives, reports wait for [`Asides::take`]; dropping it writes the rest.
pub(super) struct Held<'a>(&'a Asides);

impl Asides {
    /// Writes a report, or queues it while reports are held.
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

    /// Queues reports from now on.
    pub(super) fn hold(&self) -> Held<'_> {
        self.waiting().is_held = true;
        Held(self)
    }

    /// Takes all pending reports.
    pub(super) fn take(&self) -> String {
        std::mem::take(&mut self.waiting().text)
    }

    /// Returns once a report is pending.
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

/// Write errors are ignored: a lost terminal doesn't stop the run.
fn write(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
