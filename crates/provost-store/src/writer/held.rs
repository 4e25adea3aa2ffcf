//! A run's elapsed time while a process holds the run.

use provost_event::Elapsed;

/// Goes on with the process's monotonic clock, from what the run's logs say: the time of those that held it before, without
/// the time between them.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeldTime {
    /// What the run's elapsed time was...
    base: Elapsed,
    /// ... when the process's clock read this.
    since: Elapsed,
}

impl HeldTime {
    /// Begins at a reading of the process's clock. What the logs say is learnt with what is decided: the first thing is who
    /// recovers it, which asks every actor that works.
    pub(super) const fn begin(monotonic: Elapsed) -> Self {
        Self { base: Elapsed(0), since: monotonic }
    }

    pub(super) const fn at(self, monotonic: Elapsed) -> Elapsed {
        self.base.plus_ms(monotonic.since_ms(self.since))
    }

    /// Some log says that at this reading of the process's clock it was `known` already.
    pub(super) fn is_at_least(&mut self, known: Elapsed, monotonic: Elapsed) {
        if known > self.at(monotonic) {
            *self = Self { base: known, since: monotonic };
        }
    }
}
