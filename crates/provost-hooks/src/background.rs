//! Hooks that run beside the turn, and what others leave behind: bounded in number, ended with their session.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use provost_event::{HookWaiting, SessionId};
use tokio::sync::oneshot::{self, error::TryRecvError};
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
    /// Each is closed when a hook that may wake the agent is over.
    waking: Vec<oneshot::Receiver<()>>,
    /// What hooks have left behind.
    left: JoinSet<()>,
}

impl Background {
    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, SessionHooks>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `ask` beside the turn; false if too many run already.
    pub(crate) fn start(
        &self,
        session: SessionId,
        waiting: HookWaiting,
        ask: impl Future<Output = ()> + Send + 'static,
    ) -> bool {
        let mut sessions = self.sessions();
        let running = sessions.values_mut().map(|hooks| {
            while hooks.tasks.try_join_next().is_some() {}
            hooks.tasks.len()
        });
        let is_free = running.sum::<usize>() < RUNNING_MAX;
        if is_free {
            let hooks = sessions.entry(session).or_default();
            let (over, is_over) = oneshot::channel::<()>();
            if waiting == HookWaiting::Wakes {
                hooks.waking.retain_mut(|waking| waking.try_recv() == Err(TryRecvError::Empty));
                hooks.waking.push(is_over);
            }
            hooks.tasks.spawn(async move {
                ask.await;
                drop(over);
            });
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

    /// Waits for the hooks of the session that may wake the agent, each for its own time at most.
    pub(crate) async fn waking_over(&self, session: SessionId) {
        let waking = self.sessions().get_mut(&session).map(|hooks| std::mem::take(&mut hooks.waking));
        for hook in waking.unwrap_or_default() {
            let _ = hook.await;
        }
    }

    /// Ends what runs for the session.
    pub(crate) fn session_over(&self, session: SessionId) {
        self.sessions().remove(&session);
    }
}
