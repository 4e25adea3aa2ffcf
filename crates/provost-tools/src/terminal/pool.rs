//! The running programs of each session.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use provost_event::SessionId;
use provost_harness::ToolOutput;
use provost_process::PtySupervisor;

/// Maximum terminals of one session.
pub(super) const TERMINALS_MAX: usize = 4;

/// Maximum characters of a terminal's name.
const NAME_CHARS_MAX: usize = 40;

/// A program at its terminal.
pub(super) struct Held {
    /// Its command line.
    pub(super) line: String,
    pub(super) pty: PtySupervisor,
    /// Whether its end was reported.
    pub(super) is_told: AtomicBool,
}

/// The terminals of all sessions, by name. The entry of a program that is being started is empty.
#[derive(Default)]
pub(super) struct TerminalPool(Mutex<HashMap<SessionId, Terminals>>);

type Terminals = BTreeMap<String, Option<Arc<Held>>>;

/// An entry reserved for a program that is being started; dropping this releases it.
pub(super) struct Reserved<'s> {
    pool: &'s TerminalPool,
    session: SessionId,
    name: Option<String>,
}

impl TerminalPool {
    /// Reserves an entry with this name, replacing one whose program has ended.
    pub(super) fn reserve(&self, session: SessionId, name: &str) -> Result<Reserved<'_>, ToolOutput> {
        if name.is_empty() || name.chars().count() > NAME_CHARS_MAX {
            let text = format!("`id` is a name of at most {NAME_CHARS_MAX} characters");
            return Err(ToolOutput::rejected(text));
        }
        let mut pool = self.lock();
        let terminals = pool.entry(session).or_default();
        terminals.retain(|_, held| held.as_ref().is_none_or(|held| held.pty.is_running()));
        if terminals.contains_key(name) {
            let text = format!("terminal `{name}` is in use: stop it, or start this one with another `id`");
            return Err(ToolOutput::rejected(text));
        }
        if terminals.len() >= TERMINALS_MAX {
            let names = terminals.keys().cloned().collect::<Vec<_>>().join(", ");
            let text = format!("at most {TERMINALS_MAX} terminals at once: stop one of {names}");
            return Err(ToolOutput::error(text));
        }
        terminals.insert(name.to_owned(), None);
        Ok(Reserved { pool: self, session, name: Some(name.to_owned()) })
    }

    pub(super) fn get(&self, session: SessionId, name: &str) -> Option<Arc<Held>> {
        self.lock().get(&session)?.get(name)?.clone()
    }

    pub(super) fn names(&self, session: SessionId) -> Vec<String> {
        self.lock().get(&session).map(|terminals| terminals.keys().cloned().collect()).unwrap_or_default()
    }

    /// Removes an entry; its program is killed once no call uses it any more.
    pub(super) fn take(&self, session: SessionId, name: &str) {
        let taken = self.lock().get_mut(&session).and_then(|terminals| terminals.remove(name));
        drop(taken);
    }

    /// Removes all entries of a session.
    pub(super) fn clear(&self, session: SessionId) {
        let taken = self.lock().remove(&session);
        drop(taken);
    }

    /// Only held briefly.
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Terminals>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reserved<'_> {
    /// Stores the program. If the session has ended meanwhile it isn't kept.
    pub(super) fn put(mut self, held: Held) -> Arc<Held> {
        let held = Arc::new(held);
        if let Some(name) = self.name.take()
            && let Some(place) = self.pool.lock().get_mut(&self.session).and_then(|all| all.get_mut(&name))
        {
            *place = Some(held.clone());
        }
        held
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        if let Some(name) = self.name.take() {
            self.pool.take(self.session, &name);
        }
    }
}
