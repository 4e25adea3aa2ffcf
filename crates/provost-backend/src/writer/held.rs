//! A run's elapsed time while a process holds the run.

use provost_event::Elapsed;

/// Advances with the process's monotonic clock from the time in the run's logs: the time of earlier holders,
/// without the time between them.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeldTime {
    /// The run's elapsed time...
    base: Elapsed,
    /// ... at this reading of the process's clock.
    since: Elapsed,
}

impl HeldTime {
    /// Starts at a reading of the process's clock, with what the last holder has `noted`. The time in the logs is
    /// learnt from decisions: the first one is the recovery, which asks every active actor.
    pub(super) const fn begin(noted: Elapsed, monotonic: Elapsed) -> Self {
        Self { base: noted, since: monotonic }
    }

    pub(super) const fn at(self, monotonic: Elapsed) -> Elapsed {
        self.base.plus_ms(monotonic.since_ms(self.since))
    }

    /// A log says that the elapsed time was at least `known` at this reading of the process's clock.
    pub(super) fn is_at_least(&mut self, known: Elapsed, monotonic: Elapsed) {
        if known > self.at(monotonic) {
            *self = Self { base: known, since: monotonic };
        }
    }
}
