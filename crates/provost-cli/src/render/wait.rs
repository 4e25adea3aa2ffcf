//! How long something that has an end still waits, as a process that doesn't measure it can know.
//!
//! Such a wait goes by the monotonic clock of the process that holds the run. Any other has the wall clock, which
//! may have been set since or have gone on while the machine was suspended, and what the logs say: how long the
//! whole wait is, and how much of it the holder's clock had gone on for when it last wrote something.

use provost_event::Timestamp;

use super::question::clock_time;
use super::words::duration;

/// A wall clock this far past the end of a wait was probably set: the holder itself needs only a moment.
const LATE_MS: u64 = 5_000;

/// A wait with an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wait {
    /// Since when.
    pub(crate) since: Timestamp,
    /// Until when.
    pub(crate) due: Timestamp,
    /// How much of it has certainly passed, by the logs.
    pub(crate) passed_ms: u64,
}

/// What is left of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// This many milliseconds.
    Of(u64),
    /// At most this many milliseconds: the wall clock is unreliable.
    AtMost(u64),
    /// Nothing.
    Over,
}

impl Wait {
    /// What is left at `now`; `is_held` where a process holds the run, which ends the wait in time.
    pub(crate) fn left(self, now: Timestamp, is_held: bool) -> Left {
        let most = self.due.since_ms(self.since).saturating_sub(self.passed_ms);
        let late_ms = now.since_ms(self.due);
        if now < self.since || (is_held && late_ms > LATE_MS) {
            return if most == 0 { Left::Over } else { Left::AtMost(most) };
        }
        match self.due.since_ms(now).min(most) {
            0 => Left::Over,
            ms => Left::Of(ms),
        }
    }

    /// How long it has waited: `3m`, or `at least 3m` where the wall clock is unreliable; `None` if nothing is
    /// known.
    pub(crate) fn waited(self, now: Timestamp, is_held: bool) -> Option<String> {
        match self.left(now, is_held) {
            Left::AtMost(_) if self.passed_ms < 1_000 => None,
            Left::AtMost(_) => Some(format!("at least {}", super::words::span(self.passed_ms))),
            Left::Of(_) | Left::Over => {
                Some(super::words::span(now.since_ms(self.since).max(self.passed_ms)))
            }
        }
    }

    /// How long there is, and until when: `59m58s, until 14:30:05`.
    pub(crate) fn left_in_words(self, now: Timestamp, is_held: bool) -> String {
        match self.left(now, is_held) {
            Left::Of(ms) => format!("{}, until {}", whole_seconds(ms), clock_time(now.plus_ms(ms), now)),
            Left::AtMost(ms) => format!("at most {}", whole_seconds(ms)),
            Left::Over => "none".to_owned(),
        }
    }
}

/// Without tenths, of what takes a while.
pub(crate) fn whole_seconds(ms: u64) -> String {
    if ms < 60_000 { format!("{}s", ms / 1_000) } else { duration(ms) }
}

#[cfg(test)]
mod tests {
    use provost_event::Timestamp;

    use super::{Left, Wait};

    const HOUR_MS: u64 = 3_600_000;
    /// Asked at 10 h, for an hour; ten minutes have certainly passed.
    const WAIT: Wait =
        Wait { since: Timestamp(10 * HOUR_MS), due: Timestamp(11 * HOUR_MS), passed_ms: 600_000 };

    /// At `now_ms` of a wall clock, and whether a process holds the run.
    #[track_caller]
    fn check(now_ms: u64, is_held: bool, expected: (Left, &str)) {
        let now = Timestamp(now_ms);
        let waited = WAIT.waited(now, is_held).unwrap_or_default();
        assert_eq!((WAIT.left(now, is_held), waited.as_str()), expected, "{now_ms}");
    }

    #[test]
    fn an_untouched_clock_tells_what_is_left() {
        check(10 * HOUR_MS + 1_200_000, true, (Left::Of(2_400_000), "20m"));
        // The log knows better than a clock that was set back a little.
        check(10 * HOUR_MS + 60_000, true, (Left::Of(3_000_000), "10m"));
        check(11 * HOUR_MS, true, (Left::Over, "1h"));
    }

    #[test]
    fn a_clock_that_was_set_back_shows_no_hours_that_werent() {
        check(9 * HOUR_MS, true, (Left::AtMost(3_000_000), "at least 10m"));
        check(9 * HOUR_MS, false, (Left::AtMost(3_000_000), "at least 10m"));
        let just_asked = Wait { passed_ms: 0, ..WAIT };
        assert_eq!(just_asked.left(Timestamp(0), true), Left::AtMost(HOUR_MS));
        assert_eq!(just_asked.waited(Timestamp(0), true), None);
        assert_eq!(just_asked.left_in_words(Timestamp(0), true), "at most 1h00m");
    }

    #[test]
    fn a_clock_that_was_set_forward_ends_no_wait_that_is_held() {
        check(15 * HOUR_MS, true, (Left::AtMost(3_000_000), "at least 10m"));
        // No process measures it any more, and it is over once its time has come.
        check(15 * HOUR_MS, false, (Left::Over, "5h"));
        let over = Wait { passed_ms: HOUR_MS, ..WAIT };
        assert_eq!(over.left(Timestamp(15 * HOUR_MS), true), Left::Over);
    }
}
