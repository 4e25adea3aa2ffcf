//! Numbers, times and money as a terminal shows them.

use provost_event::MicroDollars;

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;

/// A span of time: `12s`, `4m`, `1h12m`, `3h`, `2d`.
pub(crate) fn span(ms: u64) -> String {
    match ms {
        0..MINUTE_MS => format!("{}s", ms / 1_000),
        MINUTE_MS..HOUR_MS => format!("{}m", ms / MINUTE_MS),
        HOUR_MS..DAY_MS => match ms % HOUR_MS / MINUTE_MS {
            0 => format!("{}h", ms / HOUR_MS),
            minutes => format!("{}h{minutes:02}m", ms / HOUR_MS),
        },
        _ => format!("{}d", ms / DAY_MS),
    }
}

/// How long something took: `340ms`, `8.3s`, else as [`span`].
pub(crate) fn took(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..MINUTE_MS => format!("{}.{}s", ms / 1_000, ms % 1_000 / 100),
        _ => span(ms),
    }
}

/// Money: two decimals, and thousands without.
pub(crate) fn money(amount: MicroDollars) -> String {
    match amount.0 {
        1..10_000 => "<$0.01".to_owned(),
        cost if cost >= 1_000_000_000 => format!("${}", provost_event::grouped(cost / 1_000_000)),
        cost => format!("${}.{:02}", cost / 1_000_000, cost % 1_000_000 / 10_000),
    }
}

/// The same where the price may be unknown.
pub(crate) fn money_if_known(amount: Option<MicroDollars>) -> String {
    amount.map_or_else(|| "–".to_owned(), money)
}

pub(crate) fn tokens(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}.{}k", count / 1_000, count % 1_000 / 100),
        _ => format!("{}.{:02}M", count / 1_000_000, count % 1_000_000 / 10_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_are_short() {
        assert_eq!(
            [0, 59_999, 240_000, 4_320_000, 10_800_000, 3 * DAY_MS].map(span),
            ["0s", "59s", "4m", "1h12m", "3h", "3d"]
        );
        assert_eq!([4, 8_300, 90_000].map(took), ["4ms", "8.3s", "1m"]);
        let shown = [0, 9_999, 3_120_000, 1_204_000_000].map(|cost| money(MicroDollars(cost)));
        assert_eq!(shown, ["$0.00", "<$0.01", "$3.12", "$1,204"]);
        assert_eq!([940, 18_200, 1_410_000].map(tokens), ["940", "18.2k", "1.41M"]);
    }
}
