//! How long something still waits, in words.

use provost_event::Timestamp;
use provost_view::{Wait, WaitLeft};

use super::question::clock_time;
use super::words::{duration, span};

/// How long `wait` has waited: `3m`, or `at least 3m` where the wall clock is unreliable; `None` if nothing is known.
pub(crate) fn waited_in_words(wait: Wait, now: Timestamp, is_held: bool) -> Option<String> {
    match wait.left(now, is_held) {
        WaitLeft::AtMost(_) if wait.passed_ms < 1_000 => None,
        WaitLeft::AtMost(_) => Some(format!("at least {}", span(wait.passed_ms))),
        WaitLeft::Of(_) | WaitLeft::Over => Some(span(now.since_ms(wait.since).max(wait.passed_ms))),
    }
}

/// How long there is, and until when: `59m58s, until 14:30:05`.
pub(crate) fn left_in_words(wait: Wait, now: Timestamp, is_held: bool) -> String {
    match wait.left(now, is_held) {
        WaitLeft::Of(ms) => format!("{}, until {}", whole_seconds(ms), clock_time(now.plus_ms(ms), now)),
        WaitLeft::AtMost(ms) => format!("at most {}", whole_seconds(ms)),
        WaitLeft::Over => "none".to_owned(),
    }
}

/// Without tenths, of what takes a while.
pub(crate) fn whole_seconds(ms: u64) -> String {
    if ms < 60_000 { format!("{}s", ms / 1_000) } else { duration(ms) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: u64 = 3_600_000;
    /// Asked at 10 h, for an hour; ten minutes have certainly passed.
    const WAIT: Wait =
        Wait { since: Timestamp(10 * HOUR_MS), due: Timestamp(11 * HOUR_MS), passed_ms: 600_000 };

    #[track_caller]
    fn check(now_ms: u64, is_held: bool, expected: &str) {
        let waited = waited_in_words(WAIT, Timestamp(now_ms), is_held).unwrap_or_default();
        assert_eq!(waited, expected, "{now_ms}");
    }

    #[test]
    fn what_has_passed_goes_by_the_more_reliable_clock() {
        check(10 * HOUR_MS + 1_200_000, true, "20m");
        // The log knows better than a clock that was set back a little.
        check(10 * HOUR_MS + 60_000, true, "10m");
        check(11 * HOUR_MS, true, "1h");
        check(9 * HOUR_MS, true, "at least 10m");
        check(9 * HOUR_MS, false, "at least 10m");
        check(15 * HOUR_MS, true, "at least 10m");
        check(15 * HOUR_MS, false, "5h");
    }

    #[test]
    fn a_clock_that_was_set_back_tells_nothing_of_a_question_that_was_just_asked() {
        let just_asked = Wait { passed_ms: 0, ..WAIT };
        assert_eq!(waited_in_words(just_asked, Timestamp(0), true), None);
        assert_eq!(left_in_words(just_asked, Timestamp(0), true), "at most 1h00m");
    }
}
