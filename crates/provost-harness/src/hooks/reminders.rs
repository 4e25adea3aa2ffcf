//! What a hook may have the model reminded of, and the question that it is lent with.

use std::sync::{Arc, Mutex, PoisonError};

use super::REMINDERS_MAX;
use crate::HookQuestion;

/// One hook's question, with what it is lent to answer it.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The question, shared by all hooks that are asked it.
    pub(crate) question: Arc<HookQuestion>,
    /// The handle, where the hook is granted one.
    pub(crate) reminders: Option<TaskReminders>,
}

/// The way for a hook to have the model told something, where it is granted.
///
/// What is appended waits until the hook has answered. Then it is committed to the log, and only from there the
/// model sees it, between `<system-reminder>` tags; they needn't be written here. A hook that gives no answer
/// (it panics, takes too long) reminds of nothing.
#[derive(Debug, Clone, Default)]
pub struct TaskReminders(Arc<Mutex<Queue>>);

#[derive(Debug, Default)]
struct Queue {
    bodies: Vec<String>,
    dropped: usize,
}

impl TaskReminders {
    /// Queues `body`. An empty one is nothing. What is longer than
    /// [`WORDS_BYTES_MAX`](super::WORDS_BYTES_MAX) is cut, and beyond [`REMINDERS_MAX`] of them the last are
    /// dropped; the hook's note in the log says so.
    pub fn append_task_reminder(&self, body: impl Into<String>) {
        let body = body.into();
        let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.bodies.len() < REMINDERS_MAX {
            queue.bodies.push(body);
        } else {
            queue.dropped = queue.dropped.saturating_add(1);
        }
    }

    /// What was queued, and how many were dropped.
    pub(super) fn take(&self) -> (Vec<String>, usize) {
        let queue = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        (queue.bodies, queue.dropped)
    }
}
