//! How long something that has an end still waits, as a process that doesn't measure it can know.
//!
//! Such a wait goes by the monotonic clock of the process that holds the run. Any other has the wall clock, which
//! may have been set since or have gone on while the machine was suspended, and what the logs say: how long the
//! whole wait is, and how much of it the holder's clock had gone on for when it last wrote something.

use provost_event::Timestamp;

/// A wall clock this far past the end of a wait was probably set: the holder itself needs only a moment.
const LATE_MS: u64 = 5_000;

/// A wait with an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// Since when.
    pub since: Timestamp,
    /// Until when.
    pub due: Timestamp,
    /// How much of it has certainly passed, by the logs.
    pub passed_ms: u64,
}

/// What is left of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitLeft {
    /// This many milliseconds.
    Of(u64),
    /// At most this many milliseconds: the wall clock is unreliable.
    AtMost(u64),
    /// Nothing.
    Over,
}

impl Wait {
    /// What is left at `now`; `is_held` where a process holds the run, which ends the wait in time.
    #[must_use]
    pub fn left(self, now: Timestamp, is_held: bool) -> WaitLeft {
        let most = self.due.since_ms(self.since).saturating_sub(self.passed_ms);
        let late_ms = now.since_ms(self.due);
        if now < self.since || (is_held && late_ms > LATE_MS) {
            return if most == 0 { WaitLeft::Over } else { WaitLeft::AtMost(most) };
        }
        match self.due.since_ms(now).min(most) {
            0 => WaitLeft::Over,
            ms => WaitLeft::Of(ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: u64 = 3_600_000;
    /// Asked at 10 h, for an hour; ten minutes have certainly passed.
    const WAIT: Wait =
        Wait { since: Timestamp(10 * HOUR_MS), due: Timestamp(11 * HOUR_MS), passed_ms: 600_000 };

    /// At `now_ms` of a wall clock, and whether a process holds the run.
    #[track_caller]
    fn check(now_ms: u64, is_held: bool, expected: WaitLeft) {
        assert_eq!(WAIT.left(Timestamp(now_ms), is_held), expected, "{now_ms}");
    }

    #[test]
    fn a_clock_that_is_not_set_tells_what_is_left() {
        check(10 * HOUR_MS + 1_200_000, true, WaitLeft::Of(2_400_000));
        // The log knows better than a clock that was set back a little.
        check(10 * HOUR_MS + 60_000, true, WaitLeft::Of(3_000_000));
        check(11 * HOUR_MS, true, WaitLeft::Over);
    }

    #[test]
    fn a_clock_that_was_set_back_adds_no_time() {
        check(9 * HOUR_MS, true, WaitLeft::AtMost(3_000_000));
        check(9 * HOUR_MS, false, WaitLeft::AtMost(3_000_000));
        let just_asked = Wait { passed_ms: 0, ..WAIT };
        assert_eq!(just_asked.left(Timestamp(0), true), WaitLeft::AtMost(HOUR_MS));
    }

    #[test]
    fn a_clock_that_was_set_forward_ends_no_wait_of_a_held_run() {
        check(15 * HOUR_MS, true, WaitLeft::AtMost(3_000_000));
        // No process measures it any more, and it is over once its time has come.
        check(15 * HOUR_MS, false, WaitLeft::Over);
        let over = Wait { passed_ms: HOUR_MS, ..WAIT };
        assert_eq!(over.left(Timestamp(15 * HOUR_MS), true), WaitLeft::Over);
    }
}
