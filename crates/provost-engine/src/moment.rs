//! When something is decided: by the wall clock, which people read, and by the run's elapsed time, which is counted.

use provost_event::{Elapsed, Record, Timestamp};
use serde::{Deserialize, Serialize};

use crate::Effect;

/// The time of a decision.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Moment {
    /// By the wall clock: only shown.
    pub(crate) at: Timestamp,
    /// By the clock that can't be set: what is worked, waited for and limited is measured with it.
    pub(crate) elapsed: Elapsed,
}

impl Moment {
    /// When `record` was decided.
    pub(crate) const fn of(record: &Record) -> Self {
        Self { at: record.at, elapsed: record.elapsed }
    }

    /// A wait of `wait_ms` that begins now.
    pub(crate) const fn timer(self, wait_ms: u64) -> Effect {
        Effect::Timer { due: self.at.plus_ms(wait_ms), remaining_ms: wait_ms }
    }

    /// When a wait is over that was to be over at `due` by the wall clock and at `ready` at the latest.
    ///
    /// After a time in which no process held the run only the wall clock tells what has passed of the wait. Set back, it
    /// doesn't make the wait longer.
    pub(crate) fn rest_of_wait(self, due: Timestamp, ready: Elapsed) -> Elapsed {
        self.elapsed.plus_ms(due.since_ms(self.at)).min(ready)
    }
}
