//! The time from which spending counts.

use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use provost_event::Timestamp;

use crate::exit::Refusal;

const HINT: &str = "write a time back such as 7d or 12h, `today`, or a day such as 2026-11-01, with a time of day if need \
be: 2026-11-01T12:00";

/// The moment that `when` means at the moment `now` in the time zone `zone`.
///
/// # Errors
/// [`Refusal`] when it means none.
pub(in crate::commands) fn moment_of(
    when: &str,
    now: Timestamp,
    zone: &TimeZone,
) -> Result<Timestamp, Refusal> {
    if let Ok(back) = humantime::parse_duration(when) {
        return Ok(before(now, back));
    }
    let moment = if when == "today" {
        at(now).to_zoned(zone.clone()).start_of_day().ok().map(|start| start.timestamp())
    } else if let Ok(moment) = when.parse::<jiff::Timestamp>() {
        Some(moment)
    } else {
        when.parse::<DateTime>().ok().and_then(|civil| zone.to_timestamp(civil).ok())
    };
    let moment = moment.ok_or_else(|| Refusal::new(format!("--since: `{when}` is no time"), HINT))?;
    Ok(Timestamp(u64::try_from(moment.as_millisecond()).unwrap_or_default()))
}

fn before(now: Timestamp, back: Duration) -> Timestamp {
    Timestamp(now.since_ms(Timestamp(u64::try_from(back.as_millis()).unwrap_or(u64::MAX))))
}

/// `moment` for calendars; the last there is for one that lies beyond.
pub(super) fn at(moment: Timestamp) -> jiff::Timestamp {
    let ms = i64::try_from(moment.0).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(ms).unwrap_or(jiff::Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-02 01:30 in a zone that is two hours ahead.
    const NOW: &str = "2026-11-01T23:30Z";

    fn ms(moment: &str) -> u64 {
        moment.parse::<jiff::Timestamp>().unwrap().as_millisecond().try_into().unwrap()
    }

    #[track_caller]
    fn check(when: &str, expected: &str) {
        let zone = TimeZone::posix("EET-2").unwrap();
        let moment = moment_of(when, Timestamp(ms(NOW)), &zone).ok();
        assert_eq!(moment, (!expected.is_empty()).then(|| Timestamp(ms(expected))), "{when}");
    }

    #[test]
    fn a_time_back_counts_from_now() {
        check("12h", "2026-11-01T11:30Z");
        check("7d", "2026-10-25T23:30Z");
        check("1h 30m", "2026-11-01T22:00Z");
        check("1000y", "1970-01-01T00:00Z");
    }

    #[test]
    fn days_begin_at_midnight_where_the_user_is() {
        check("today", "2026-11-01T22:00Z");
        check("2026-11-01", "2026-10-31T22:00Z");
        check("2026-11-01T12:00", "2026-11-01T10:00Z");
        check("2026-11-01 12:00", "2026-11-01T10:00Z");
        check("2026-11-01T12:00Z", "2026-11-01T12:00Z");
        check("1960-01-01", "1970-01-01T00:00Z");
    }

    #[test]
    fn what_means_no_moment_is_refused() {
        for when in ["", "yesterday", "7", "-7d", "2026-13-01", "2026-02-30", "01.11.2026", "2026-11"] {
            check(when, "");
        }
    }
}
