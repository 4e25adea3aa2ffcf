//! Keeping the machine awake while agents work.

use std::time::Duration;

use provost_engine::{Event, SessionEvent};

/// What people read who ask their system why it doesn't sleep.
pub(crate) const REASON: &str = "Provost agent loop";

/// How long a provider may take that says nothing of when to come back: the engine's longest wait of its own
/// between two attempts, and some for the attempt to begin.
const RETRY_WAIT: Duration = Duration::from_secs(35);
/// The longest time that the machine is kept awake for a provider that asks to come back later.
const RETRY_WAIT_MAX: Duration = Duration::from_secs(60 * 60);

/// Keeps the machine awake.
///
/// The harness holds a guard for as long as it performs an effect: a model call, a tool call, a hook. It holds none
/// while a run waits for somebody's consent, which may take hours and costs nothing to be late for. A wait between
/// two attempts at a model call belongs to the turn: see [`PowerGuard::release_after`].
pub trait Power: Send + Sync {
    /// Keeps the machine awake until the guard is dropped. `reason` is for people. Guards may overlap; the machine
    /// may sleep once none is left.
    ///
    /// Called at each effect, from within async code: it returns at once and never panics. Where the machine can't
    /// be kept awake, the guard is one that does nothing.
    fn hold(&self, reason: &str) -> Box<dyn PowerGuard>;
}

/// Keeps the machine awake until it is dropped, also by a panic or an abort. Dropping never blocks.
pub trait PowerGuard: Send {
    /// Lets go once `wait` is over instead of now. Returns at once.
    fn release_after(self: Box<Self>, wait: Duration);
}

/// Lets the machine sleep when it likes.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoPower;

impl Power for NoPower {
    fn hold(&self, _reason: &str) -> Box<dyn PowerGuard> {
        Box::new(Self)
    }
}

impl PowerGuard for NoPower {
    fn release_after(self: Box<Self>, _wait: Duration) {}
}

/// How much longer the machine stays awake after `event`, if the turn may go on only later: no effect is open while a
/// session waits for its next attempt, and a machine that fell asleep then would be late by a night.
pub(crate) fn wait_after(event: &Event) -> Option<Duration> {
    match event {
        Event::Session(SessionEvent::ModelFailed { failure, .. }) if failure.class.may_retry() => {
            let asked = failure.retry_after_ms.map(Duration::from_millis);
            Some(asked.map_or(RETRY_WAIT, |asked| (asked + RETRY_WAIT).min(RETRY_WAIT_MAX)))
        }
        _ => None,
    }
}
