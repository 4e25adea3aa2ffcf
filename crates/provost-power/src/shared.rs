//! The state that guards, the keeper and the locks' threads share.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::lock::Lock;

#[derive(Debug, Default)]
pub(crate) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    guards: usize,
    /// How long to keep the machine awake without a guard.
    until: Option<Instant>,
    reason: String,
    /// The machine never has to stay awake again.
    over: bool,
    /// Whether the keeper waits for the last guard to be dropped. Otherwise it checks again at `until`, and
    /// needn't be woken at each of an agent's steps.
    awaits_release: bool,
    /// The result of the last request of each lock.
    locks: Vec<(Lock, LockState)>,
}

/// The state of a lock's request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LockState {
    /// Not answered since this time.
    Asked(Instant),
    /// Granted.
    Given,
    /// Refused, for this reason.
    Refused(String),
}

impl State {
    /// How long the machine has to stay awake from now on, as far as is known; `None`: it doesn't.
    fn wanted(&self) -> Option<Wanted> {
        if self.over {
            return None;
        }
        if self.guards > 0 {
            return Some(Wanted::Unbounded);
        }
        let left = self.until?.checked_duration_since(Instant::now())?;
        (!left.is_zero()).then_some(Wanted::For(left))
    }

    fn stand(&mut self, lock: Lock, standing: LockState) {
        self.locks.retain(|(known, _)| *known != lock);
        self.locks.push((lock, standing));
    }
}

#[derive(Clone, Copy)]
enum Wanted {
    Unbounded,
    For(Duration),
}

impl Shared {
    /// Short and without I/O, so async code may wait for it.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn hold(&self, reason: &str) {
        let mut state = self.state();
        // Until the last guard's linger time is over, the keeper checks again by itself.
        let is_first = state.wanted().is_none();
        state.guards = state.guards.saturating_add(1);
        if is_first {
            reason.clone_into(&mut state.reason);
            self.changed.notify_all();
        }
    }

    pub(crate) fn release(&self, wait: Duration) {
        let mut state = self.state();
        let until = Instant::now().checked_add(wait);
        state.guards = state.guards.saturating_sub(1);
        state.until = state.until.max(until);
        if state.guards == 0 && state.awaits_release {
            self.changed.notify_all();
        }
    }

    pub(crate) fn end(&self) {
        self.state().over = true;
        self.changed.notify_all();
    }

    /// Waits until the machine has to stay awake, and returns the reason; `None` once that is no longer possible.
    pub(crate) fn wait_until_wanted(&self) -> Option<String> {
        let mut state = self.state();
        while !state.over {
            if state.wanted().is_some() {
                return Some(state.reason.clone());
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    /// Waits until the machine may sleep.
    pub(crate) fn wait_until_unwanted(&self) {
        drop(self.wait_while_wanted(None, |_| false));
    }

    /// Waits until the system has answered about all locks, `due` has come, or the machine may sleep; returns the
    /// locks' states then.
    pub(crate) fn wait_for_answers(&self, due: Option<Instant>) -> Vec<(Lock, LockState)> {
        let is_answered =
            |state: &State| !state.locks.iter().any(|(_, standing)| matches!(standing, LockState::Asked(_)));
        self.wait_while_wanted(due, is_answered).locks.clone()
    }

    fn wait_while_wanted(&self, due: Option<Instant>, enough: fn(&State) -> bool) -> MutexGuard<'_, State> {
        let mut state = self.state();
        while !enough(&state)
            && let Some(wanted) = state.wanted()
        {
            let until_due = due.map(|due| due.saturating_duration_since(Instant::now()));
            if until_due.is_some_and(|left| left.is_zero()) {
                break;
            }
            let left = match wanted {
                Wanted::Unbounded => until_due,
                Wanted::For(left) => Some(until_due.map_or(left, |due| due.min(left))),
            };
            state.awaits_release = matches!(wanted, Wanted::Unbounded);
            state = match left {
                Some(left) => {
                    self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
            state.awaits_release = false;
        }
        state
    }

    /// Records a request for `lock`; false if the last one isn't answered yet.
    pub(crate) fn ask(&self, lock: Lock) -> bool {
        let mut state = self.state();
        let is_open =
            |(asked, standing): &(Lock, _)| *asked == lock && matches!(standing, LockState::Asked(_));
        if state.locks.iter().any(is_open) {
            return false;
        }
        state.stand(lock, LockState::Asked(Instant::now()));
        true
    }

    pub(crate) fn answer(&self, lock: Lock, standing: LockState) {
        self.state().stand(lock, standing);
        self.changed.notify_all();
    }
}
