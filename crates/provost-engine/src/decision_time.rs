//! The time of a decision: by the wall clock, for display, and by the run's elapsed time, for measuring.

use provost_event::{Elapsed, Record, Timestamp};
use serde::{Deserialize, Serialize};

use crate::Effect;

/// The time of a decision.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DecisionTime {
    /// The wall-clock time: only shown.
    pub(crate) at: Timestamp,
    /// The time by the clock that can't be set: work, waits and limits are measured with it.
    pub(crate) elapsed: Elapsed,
}

impl DecisionTime {
    /// When `record` was decided.
    pub(crate) const fn of(record: &Record) -> Self {
        Self { at: record.at, elapsed: record.elapsed }
    }

    /// A wait of `wait_ms` that begins now.
    pub(crate) const fn timer(self, wait_ms: u64) -> Effect {
        Effect::Timer { due: self.at.plus_ms(wait_ms), remaining_ms: wait_ms }
    }

    /// The end of a wait that was due at `due` by the wall clock and at `ready` at the latest.
    ///
    /// After a time in which no process held the run, only the wall clock shows how much of the wait has passed.
    /// Setting that clock back doesn't lengthen the wait.
    pub(crate) fn remaining_wait(self, due: Timestamp, ready: Elapsed) -> Elapsed {
        self.elapsed.plus_ms(due.since_ms(self.at)).min(ready)
    }
}
