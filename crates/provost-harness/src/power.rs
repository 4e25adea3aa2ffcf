//! Keeps the machine awake while agents work.

use std::time::Duration;

use provost_engine::{Event, SessionEvent};

/// The reason that the system shows for staying awake.
pub(crate) const REASON: &str = "Provost agent loop";

/// How long a provider may take that doesn't say when to retry: the engine's longest own wait between two
/// attempts, and a margin for the start of the attempt.
const RETRY_WAIT: Duration = Duration::from_secs(35);
/// Maximum time to stay awake for a provider that asks to retry later.
const RETRY_WAIT_MAX: Duration = Duration::from_secs(60 * 60);

/// Keeps the machine awake.
///
/// The harness holds a guard for as long as it performs an effect: a model call, a tool call, a hook. It holds
/// none while a run waits for an approval, which may take hours and may be late. A wait between two attempts at a
/// model call belongs to the turn: see [`PowerGuard::release_after`].
pub trait Power: Send + Sync {
    /// Keeps the machine awake until the guard is dropped. `reason` is for display. Guards may overlap; the
    /// machine may sleep once none is left.
    ///
    /// Called at each effect, from async code: it returns at once and never panics. If the machine can't be kept
    /// awake, the guard has no effect.
    fn hold(&self, reason: &str) -> Box<dyn PowerGuard>;
}

/// Keeps the machine awake until it is dropped, including by a panic or an abort. Dropping never blocks.
pub trait PowerGuard: Send {
    /// Releases after `wait` instead of now. Returns at once.
    fn release_after(self: Box<Self>, wait: Duration);
}

/// Never keeps the machine awake.
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

/// How much longer the machine stays awake after `event`, if the turn continues only later: no effect is open
/// while a session waits for its next attempt, and a machine that fell asleep then could be late by a night.
pub(crate) fn wait_after(event: &Event) -> Option<Duration> {
    match event {
        Event::Session(SessionEvent::ModelFailed { failure, .. }) if failure.class.may_retry() => {
            let asked = failure.retry_after_ms.map(Duration::from_millis);
            Some(asked.map_or(RETRY_WAIT, |asked| (asked + RETRY_WAIT).min(RETRY_WAIT_MAX)))
        }
        _ => None,
    }
}
