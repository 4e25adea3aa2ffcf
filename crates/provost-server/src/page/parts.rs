//! What all documents are made of: states, bars, numbers, times, texts of others.

use maud::{Markup, html};
use provost_event::{MicroDollars, RunId, Timestamp};
use provost_view::{RunAgent, StateMark, safe};

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;
/// From this percentage on a bar warns.
const WARNS_AT: u64 = 80;
/// Characters of one line; a longer one is cut, and its length told.
const LINE_CHARS_MAX: usize = 2_000;
/// Agents in the small drawing of a tree.
const DOTS_MAX: usize = 24;

/// The shape of a state, and its class.
pub(super) const fn shape(mark: StateMark) -> (&'static str, &'static str) {
    match mark {
        StateMark::NeedsYou => ("needs", "needs"),
        StateMark::Working => ("work", "work"),
        StateMark::Stuck => ("stuck", "stuck"),
        StateMark::Blocked => ("block", "stuck"),
        StateMark::Finished => ("done", "done"),
        StateMark::Failed => ("fail", "fail"),
        StateMark::Waiting => ("wait", "wait"),
        StateMark::Paused => ("pause", "wait"),
        StateMark::Idle => ("idle", "idle"),
    }
}

/// A state beside which its word stands.
pub(super) fn mark(state: StateMark) -> Markup {
    let (shape, class) = shape(state);
    html! { svg class={ "i " (class) } aria-hidden="true" { use href={ "#" (shape) } {} } }
}

/// A state that stands alone.
pub(super) fn named_mark(state: StateMark) -> Markup {
    let (shape, class) = shape(state);
    html! { svg class={ "i " (class) } role="img" aria-label=(state.word()) { use href={ "#" (shape) } {} } }
}

/// A text of a model, a program or a user: inert, and read in its own direction.
pub(super) fn foreign(text: &str) -> Markup {
    html! { bdi dir="auto" { (cut_lines(&safe(text))) } }
}

/// The first line of such a text.
pub(super) fn foreign_line(text: &str) -> Markup {
    let text = safe(text);
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or_default().to_owned();
    let more = if lines.next().is_some() { " …" } else { "" };
    html! { bdi dir="auto" { (cut_lines(&first)) (more) } }
}

/// The text with overlong lines cut.
pub(super) fn cut_lines(text: &str) -> String {
    let cut = |line: &str| match line.char_indices().nth(LINE_CHARS_MAX) {
        Some((at, _)) => {
            let length = line.chars().count();
            format!("{}… ({length} characters)", line.get(..at).unwrap_or_default())
        }
        None => line.to_owned(),
    };
    text.lines().map(cut).collect::<Vec<_>>().join("\n")
}

/// How much is used of a limit, with what is set aside for calls that are under way.
pub(super) struct Used<'a> {
    pub(super) used: u64,
    pub(super) held: u64,
    pub(super) max: u64,
    /// What a reader hears.
    pub(super) says: &'a str,
}

pub(super) fn bar(Used { used, held, max, says }: Used<'_>) -> Markup {
    let percent = |part: u64| part.saturating_mul(100).checked_div(max).unwrap_or_default();
    let (filled, kept) = (percent(used), percent(held));
    let class = match filled {
        0..WARNS_AT => "",
        WARNS_AT..=100 => "warn",
        _ => "over",
    };
    let filled = filled.min(100);
    html! {
        svg.bar role="img" aria-label=(says) {
            rect class=(class) width={ (filled) "%" } height="100%" {}
            @if kept > 0 { rect.held x={ (filled) "%" } width={ (kept.min(100 - filled)) "%" } height="100%" {} }
        }
    }
}

/// Which of the last turns moved something, as a strip; nothing before a turn has ended.
pub(super) fn pulse(moved: &[bool]) -> Markup {
    let says = moved_in_words(moved);
    html! {
        @if !moved.is_empty() {
            svg.pulse viewBox="0 0 94 14" role="img" aria-label=(says) {
                @for (turn, moved) in moved.iter().enumerate() {
                    @if *moved { rect x=(turn * 8) y="1" width="5" height="12" rx="1" {} }
                    @else { rect.b x={ (turn * 8) ".5" } y="9.5" width="4" height="3" rx="1" {} }
                }
            }
        }
    }
}

/// The same in words.
pub(super) fn moved_in_words(moved: &[bool]) -> String {
    match (moved.len(), moved.iter().filter(|moved| **moved).count()) {
        (0, _) => String::new(),
        (all, 0) => format!("busy only, {all}"),
        (all, some) => format!("{some} of {all} moved"),
    }
}

/// Money: two decimals, and thousands without.
pub(super) fn money(amount: MicroDollars) -> String {
    match amount.0 {
        1..10_000 => "<$0.01".to_owned(),
        cost if cost >= 1_000_000_000 => format!("${}", provost_event::grouped(cost / 1_000_000)),
        cost => format!("${}.{:02}", cost / 1_000_000, cost % 1_000_000 / 10_000),
    }
}

pub(super) fn tokens(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}.{}k", count / 1_000, count % 1_000 / 100),
        _ => format!("{}.{:02}M", count / 1_000_000, count % 1_000_000 / 10_000),
    }
}

/// A span of time: `12 s`, `4 min`, `1 h 12 min`, `3 d`.
pub(super) fn span(ms: u64) -> String {
    match ms {
        0..MINUTE_MS => format!("{} s", ms / 1_000),
        MINUTE_MS..HOUR_MS => format!("{} min", ms / MINUTE_MS),
        HOUR_MS..DAY_MS => match ms % HOUR_MS / MINUTE_MS {
            0 => format!("{} h", ms / HOUR_MS),
            minutes => format!("{} h {minutes} min", ms / HOUR_MS),
        },
        _ => format!("{} d", ms / DAY_MS),
    }
}

/// A moment as its age, and after a day as the day that it was, with the time itself for a pointer and for scripts.
pub(super) fn ago(at: Timestamp, now: Timestamp) -> Markup {
    let (iso, shown) = absolute(at);
    let age = now.since_ms(at);
    html! {
        @if age < DAY_MS { time.ago datetime=(iso) title=(shown) { (span(age)) " ago" } }
        @else { time datetime=(iso) title=(shown) { (day(at, now)) } }
    }
}

/// The day of a moment: `yesterday 23:14`, `12 Nov`, `12 Nov 2024`.
fn day(at: Timestamp, now: Timestamp) -> String {
    let format = match (now.0 / DAY_MS).saturating_sub(at.0 / DAY_MS) {
        0 | 1 => "yesterday %H:%M",
        2..330 => "%-d %b",
        _ => "%-d %b %Y",
    };
    moment(at).strftime(format).to_string()
}

fn moment(at: Timestamp) -> jiff::Timestamp {
    let moment = i64::try_from(at.0).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    moment.unwrap_or_default()
}

/// A moment to come: the time of its day, and how long that is.
pub(super) fn in_time(at: Timestamp, now: Timestamp) -> Markup {
    let (iso, shown) = absolute(at);
    let clock = shown.get(11..16).unwrap_or_default();
    html! { time datetime=(iso) title=(shown) { (clock) " UTC, in " (span(at.since_ms(now))) } }
}

/// A length of time that grows.
pub(super) fn lasting(ms: u64) -> Markup {
    html! { time datetime={ "PT" (ms / 1_000) "S" } { (span(ms)) } }
}

/// A moment as the time of its day.
pub(super) fn clock(at: Timestamp) -> Markup {
    let (iso, shown) = absolute(at);
    html! { time datetime=(iso) title=(shown) { (shown.get(11..16).unwrap_or_default()) } }
}

/// A moment in UTC: for machines, and for people.
pub(super) fn absolute(at: Timestamp) -> (String, String) {
    let moment = moment(at);
    (moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(), moment.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
}

/// The tree of agents as dots, a row for each level.
pub(super) fn dots(agents: &[RunAgent]) -> Markup {
    let shown = agents.get(..agents.len().min(DOTS_MAX)).unwrap_or_default();
    let place = |number: u32| shown.iter().position(|agent| agent.agent == number);
    let x = |index: usize| format!("{:.1}", index as f64 * 8.2 + 4.0);
    let y = |depth: u32| 4 + 9 * depth.min(2);
    let says = provost_event::counted(agents.len() as u64, "agent");
    html! {
        svg.dots width=(shown.len() * 9 + 4) height="26" role="img" aria-label=(says) {
            @for (index, agent) in shown.iter().enumerate() {
                @if let Some(above) = agent.parent.and_then(place) {
                    path d={ "M" (x(above)) " " (y(agent.depth.saturating_sub(1))) "V" (y(agent.depth)) "H" (x(index)) } {}
                }
            }
            @for (index, agent) in shown.iter().enumerate() {
                circle class={ "d-" (dot(StateMark::of_agent(agent))) } cx=(x(index)) cy=(y(agent.depth)) r="2.8" {}
            }
        }
    }
}

const fn dot(state: StateMark) -> &'static str {
    match state {
        StateMark::NeedsYou => "needs",
        StateMark::Working => "work",
        StateMark::Stuck | StateMark::Blocked => "stuck",
        StateMark::Failed => "fail",
        StateMark::Finished | StateMark::Idle => "done",
        StateMark::Waiting | StateMark::Paused => "wait",
    }
}

/// The page of a run.
pub(super) fn run_path(run: RunId) -> String {
    format!("/runs/{run}")
}

/// A unified diff as a table, so that numbers of lines aren't copied with the text; `None` if it is none.
pub(super) fn diff(text: &str, name: &str) -> Option<Markup> {
    let (mut before, mut after) = (0_u64, 0_u64);
    let mut rows = Vec::new();
    for line in text.lines() {
        if let Some((first, second)) = hunk(line) {
            (before, after) = (first, second);
            rows.push(html! { tr.h { td colspan="4" { (safe(line)) } } });
            continue;
        }
        if rows.is_empty() {
            continue;
        }
        let (sign, rest) =
            (line.chars().next().unwrap_or(' '), cut_lines(&safe(line.get(1..).unwrap_or_default())));
        rows.push(match sign {
            '+' => html! { tr.p { td.n {} td.n { (after) } td.s { "+" } td { (rest) } } },
            '-' => html! { tr.m { td.n { (before) } td.n {} td.s { "−" } td { (rest) } } },
            ' ' => html! { tr { td.n { (before) } td.n { (after) } td.s { " " } td { (rest) } } },
            _ => continue,
        });
        before += u64::from(sign != '+');
        after += u64::from(sign != '-');
    }
    (!rows.is_empty()).then(|| {
        html! {
            div.diff tabindex="0" role="region" aria-label=(name) {
                table { caption.vh { (name) } tbody { @for row in rows { (row) } } }
            }
        }
    })
}

fn hunk(line: &str) -> Option<(u64, u64)> {
    let (before, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (after, _) = rest.split_once(" @@")?;
    let first = |range: &str| range.split(',').next()?.parse().ok();
    Some((first(before)?, first(after)?))
}

#[cfg(test)]
mod tests {
    use provost_event::{MicroDollars, Timestamp};

    use super::{ago, cut_lines, diff, foreign, money, span, tokens};

    #[test]
    fn numbers_and_times_are_short() {
        assert_eq!(
            [0, 59_999, 240_000, 4_320_000, 10_800_000].map(span),
            ["0 s", "59 s", "4 min", "1 h 12 min", "3 h"]
        );
        let shown = [0, 9_999, 3_120_000, 1_204_000_000].map(|cost| money(MicroDollars(cost)));
        assert_eq!(shown, ["$0.00", "<$0.01", "$3.12", "$1,204"]);
        assert_eq!([940, 18_200, 1_410_000].map(tokens), ["940", "18.2k", "1.41M"]);
    }

    #[test]
    fn what_was_long_ago_is_a_day() {
        let now = Timestamp(1_790_000_000_000);
        let shown = [60_000, 30 * 3_600_000, 14 * 86_400_000, 400 * 86_400_000]
            .map(|ms| ago(Timestamp(now.0 - ms), now).into_string())
            .map(|html| html.split(['<', '>']).nth(2).unwrap_or_default().to_owned());
        assert_eq!(shown, ["1 min ago", "yesterday 08:13", "7 Sep", "17 Aug 2025"]);
    }

    #[test]
    fn what_others_wrote_is_inert() {
        let shown = foreign("<script>alert(1)</script>\u{202e}x\u{1b}[31m").into_string();
        assert_eq!(shown, "<bdi dir=\"auto\">&lt;script&gt;alert(1)&lt;/script&gt;\\u{202e}x</bdi>");
        assert!(cut_lines(&"x".repeat(10_000_000)).len() < 3_000);
    }

    #[test]
    fn a_diff_numbers_its_lines() {
        let shown =
            diff("--- a\n+++ b\n@@ -41,2 +41,2 @@\n same\n-old<\n+new\n", "a.rs").unwrap().into_string();
        assert!(
            shown.contains(
                "<td class=\"n\">42</td><td class=\"n\"></td><td class=\"s\">−</td><td>old&lt;</td>"
            ),
            "{shown}"
        );
        assert!(diff("no diff\n+x", "a").is_none());
    }
}
