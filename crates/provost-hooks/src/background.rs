//! Hooks that run beside the turn, and what others leave behind: bounded in number, ended with their session.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use provost_event::SessionId;
use tokio::task::JoinSet;

/// Hooks that run in the background at a time, of all sessions of a process.
pub(crate) const RUNNING_MAX: usize = 16;

/// The hooks in the background, by session.
#[derive(Default)]
pub(crate) struct Background {
    sessions: Mutex<HashMap<SessionId, SessionHooks>>,
}

/// Dropping it ends what runs: a command's guard kills its processes.
#[derive(Default)]
struct SessionHooks {
    tasks: JoinSet<()>,
    /// What hooks have left behind.
    left: JoinSet<()>,
}

impl Background {
    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, SessionHooks>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `ask` beside the turn; false if too many run already.
    pub(crate) fn start(&self, session: SessionId, ask: impl Future<Output = ()> + Send + 'static) -> bool {
        let mut sessions = self.sessions();
        let running = sessions.values_mut().map(|hooks| {
            while hooks.tasks.try_join_next().is_some() {}
            hooks.tasks.len()
        });
        let is_free = running.sum::<usize>() < RUNNING_MAX;
        if is_free {
            sessions.entry(session).or_default().tasks.spawn(ask);
        }
        is_free
    }

    /// Keeps processes that a hook has left behind, until `rest` is done or the session is over; none if too many run
    /// already.
    pub(crate) fn keep<T: Send + 'static>(
        &self,
        session: SessionId,
        rest: impl Future<Output = T> + Send + 'static,
    ) {
        let mut sessions = self.sessions();
        let left = sessions.values_mut().map(|hooks| {
            while hooks.left.try_join_next().is_some() {}
            hooks.left.len()
        });
        if left.sum::<usize>() < RUNNING_MAX {
            sessions.entry(session).or_default().left.spawn(async move {
                rest.await;
            });
        }
    }

    /// Ends what runs for the session.
    pub(crate) fn session_over(&self, session: SessionId) {
        self.sessions().remove(&session);
    }
}
