//! A hook's reminders to the model, and the question that they belong to.

use std::sync::{Arc, Mutex, PoisonError};

use super::REMINDERS_MAX;
use crate::HookQuestion;

/// One hook's question, with the means to answer it.
#[derive(Debug, Clone)]
pub struct HookInvocation {
    /// The question, shared by all called hooks.
    pub(crate) question: Arc<HookQuestion>,
    /// The handle for reminders, if the hook may use them.
    pub(crate) reminders: Option<TaskReminders>,
}

/// Sends reminders to the model, for hooks that may.
///
/// Reminders are queued until the hook has answered. Then they are committed to the log, and from there the model
/// sees them, between `<system-reminder>` tags, which are added automatically. The reminders of a hook that gives
/// no answer (a panic, a timeout) are dropped.
#[derive(Debug, Clone, Default)]
pub struct TaskReminders(Arc<Mutex<Queue>>);

#[derive(Debug, Default)]
struct Queue {
    bodies: Vec<String>,
    dropped: usize,
}

impl TaskReminders {
    /// Queues `body`, unless it is empty. A text longer than [`WORDS_BYTES_MAX`](super::WORDS_BYTES_MAX) is cut,
    /// and after [`REMINDERS_MAX`] of them further ones are dropped; the hook's note in the log says so.
    pub fn append_task_reminder(&self, body: impl Into<String>) {
        let body = body.into();
        let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.bodies.len() < REMINDERS_MAX {
            queue.bodies.push(body);
        } else {
            queue.dropped = queue.dropped.saturating_add(1);
        }
    }

    /// The queued reminders, and the number of dropped ones.
    pub(super) fn take(&self) -> (Vec<String>, usize) {
        let queue = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        (queue.bodies, queue.dropped)
    }
}
