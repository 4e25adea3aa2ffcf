//! Hooks that run beside the turn: bounded in number, ended with their session, heard at a later question.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use provost_event::SessionId;
use provost_harness::HookAnswer;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Hooks that run in the background at a time, of all sessions of a process.
pub(crate) const RUNNING_MAX: usize = 16;
/// Texts kept for the model until the next question to a hook of the session.
const TEXTS_MAX: usize = 32;

/// The hooks in the background, by session.
#[derive(Default)]
pub(crate) struct Background {
    sessions: Mutex<HashMap<SessionId, SessionHooks>>,
}

/// Dropping it ends what runs: a command's guard kills its processes.
#[derive(Default)]
struct SessionHooks {
    running: usize,
    texts: Vec<String>,
    tasks: JoinSet<()>,
}

impl Background {
    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, SessionHooks>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `ask` beside the turn; false if too many run already.
    pub(crate) fn start<F>(
        self: &Arc<Self>,
        session: SessionId,
        ask: impl FnOnce(CancellationToken) -> F,
    ) -> bool
    where
        F: Future<Output = HookAnswer> + Send + 'static,
    {
        let mut sessions = self.sessions();
        if sessions.values().map(|hooks| hooks.running).sum::<usize>() >= RUNNING_MAX {
            return false;
        }
        let hooks = sessions.entry(session).or_default();
        hooks.running += 1;
        while hooks.tasks.try_join_next().is_some() {}
        let asked = ask(CancellationToken::new());
        let all = Arc::downgrade(self);
        hooks.tasks.spawn(async move {
            let answer = asked.await;
            if let Some(all) = all.upgrade() {
                all.ended(session, answer);
            }
        });
        true
    }

    fn ended(&self, session: SessionId, answer: HookAnswer) {
        let mut sessions = self.sessions();
        // A session that is over has forgotten it.
        let Some(hooks) = sessions.get_mut(&session) else { return };
        hooks.running = hooks.running.saturating_sub(1);
        let room = TEXTS_MAX.saturating_sub(hooks.texts.len());
        hooks.texts.extend(answer.reminders.into_iter().chain(answer.note).take(room));
    }

    /// What hooks of the session have said since this was asked last.
    pub(crate) fn heard(&self, session: SessionId) -> Vec<String> {
        let mut sessions = self.sessions();
        sessions.get_mut(&session).map(|hooks| std::mem::take(&mut hooks.texts)).unwrap_or_default()
    }

    /// Ends what runs for the session.
    pub(crate) fn session_over(&self, session: SessionId) {
        self.sessions().remove(&session);
    }
}
