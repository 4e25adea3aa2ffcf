//! What a model no longer sees of its conversation, and its final summary at a limit, in words.

use provost_event::{
    Compacted, CompactionKind, Dimension, Exhausted, FinalSummaryFinished, Outcome, RunId, Snapshot,
};

use super::saying::{Saying, Tag};
use super::words::{excerpt, one_line, plural, size, tokens, tokens_in_short};

/// Columns of a short text in a line.
const WIDTH_MAX: usize = 100;

pub(super) fn compacted(entry: &Compacted) -> Saying {
    let text = format!("{}, {}", compaction_in_words(entry), freed(entry));
    match entry.how {
        CompactionKind::Trim => Saying::passing(Tag::Provost, text),
        CompactionKind::Summary | CompactionKind::Emergency => Saying::kept(Tag::Provost, text),
    }
}

/// What was done to the conversation.
pub(crate) fn compaction_in_words(entry: &Compacted) -> String {
    let range = || match entry.through.0 {
        1 => "entry 1".to_owned(),
        last => format!("entries 1 to {last}"),
    };
    let mut parts = Vec::new();
    if !entry.through.is_start() && entry.how != CompactionKind::Summary {
        parts.push(format!("{} left out", range()));
    }
    if !entry.lines_through.is_start() {
        parts.push(format!("results up to entry {} are a line each", entry.lines_through));
    }
    match entry.superseded.len() {
        0 => {}
        1 => parts.push("a result that was asked for again is a line".to_owned()),
        count => parts.push(format!("{count} results that were asked for again are a line each")),
    }
    if !entry.cut_through.is_start() {
        parts.push("long results are cut to beginning and end".to_owned());
    }
    match entry.how {
        CompactionKind::Trim => format!("shortened: {}", parts.join(", ")),
        CompactionKind::Summary => format!("summed up by the agent: {}", range()),
        CompactionKind::Emergency => format!("shortened by rule: {}", parts.join(", ")),
    }
}

/// What that did to the conversation's size, by estimate.
pub(crate) fn freed(entry: &Compacted) -> String {
    format!("{} → {}", tokens(entry.tokens_before), tokens_in_short(entry.tokens_after))
}

/// The agent's final summary at a limit, or why there is none, which is repeated when the run is suspended.
pub(super) fn final_summary_finished(entry: &FinalSummaryFinished) -> Saying {
    let Some(problem) = &entry.problem else { return Saying::kept(Tag::Agent, entry.text.trim()) };
    Saying::detail(format!("no final summary: {}", one_line(problem, WIDTH_MAX)))
}

pub(super) fn snapshot(entry: &Snapshot) -> Saying {
    let bytes = u64::try_from(entry.state.text().len()).unwrap_or(u64::MAX);
    Saying::detail(format!("where it stands, to be read back from here ({})", size(bytes)))
}

/// A limit that was reached. Time ends before its limit, which leaves some for the final summary; why spending
/// does, the limit itself says.
pub(crate) fn exhausted_in_words(exhausted: &Exhausted) -> String {
    let Exhausted { dimension, used, limit, .. } = *exhausted;
    let is_early = dimension == Dimension::WallTime && used > 0 && used < limit;
    let why = if is_early { " (the rest is kept to end what runs, and for a final summary)" } else { "" };
    format!("{exhausted}{why}")
}

/// An outcome, with what its numbers alone don't show, and without what is too long to be read.
pub(crate) fn outcome_in_words(run: RunId, outcome: &Outcome) -> String {
    match outcome {
        Outcome::BudgetExhausted(exhausted) => exhausted_in_words(exhausted),
        // The output of a check is kept only in part.
        _ => excerpt(
            &outcome.to_string(),
            &format!("`provost show {run} --json` has as much of it as is kept"),
        ),
    }
}

/// Compactions by what they were, each kind that there was any of.
pub(crate) fn compactions_in_words(trims: u32, summaries: u32, emergencies: u32) -> Option<String> {
    let counted = [(trims, "trimmed"), (summaries, "summed up"), (emergencies, "by rule")];
    let kinds = counted.iter().filter(|(count, _)| *count > 0);
    let kinds = kinds.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>();
    let all = trims.saturating_add(summaries).saturating_add(emergencies);
    (all > 0).then(|| format!("{} ({})", plural(all.into(), "compaction"), kinds.join(", ")))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use provost_event::Seq;

    use super::*;

    #[track_caller]
    fn check(entry: Compacted, expected: Expect) {
        let entry = Compacted { tokens_before: 27_300, tokens_after: 9_100, ..entry };
        expected.assert_eq(compacted(&entry).text());
    }

    #[test]
    fn a_compaction_tells_what_was_left_out_and_what_that_freed() {
        let trim = Compacted::new(CompactionKind::Trim);
        check(
            Compacted { lines_through: Seq(57), ..trim.clone() },
            expect!["shortened: results up to entry 57 are a line each, 27.3k → 9.1k tokens"],
        );
        check(
            Compacted { superseded: vec![Seq(3)], ..trim.clone() },
            expect!["shortened: a result that was asked for again is a line, 27.3k → 9.1k tokens"],
        );
        check(
            Compacted { lines_through: Seq(57), superseded: vec![Seq(60), Seq(63)], ..trim },
            expect![
                "shortened: results up to entry 57 are a line each, 2 results that were asked for again are a line each, 27.3k → 9.1k tokens"
            ],
        );
        check(
            Compacted { through: Seq(431), ..Compacted::new(CompactionKind::Summary) },
            expect!["summed up by the agent: entries 1 to 431, 27.3k → 9.1k tokens"],
        );
        let rule = Compacted::new(CompactionKind::Emergency);
        check(
            Compacted { through: Seq(431), ..rule.clone() },
            expect!["shortened by rule: entries 1 to 431 left out, 27.3k → 9.1k tokens"],
        );
        check(
            Compacted { cut_through: Seq(8), ..rule },
            expect!["shortened by rule: long results are cut to beginning and end, 27.3k → 9.1k tokens"],
        );
    }

    #[test]
    fn what_is_left_at_a_limit_is_explained() {
        let time = |used| Exhausted::new(Dimension::WallTime, used, 10_000);
        assert_eq!(
            exhausted_in_words(&time(9_000)),
            "Time budget used up: 9.0 s of 10.0 s (the rest is kept to end what runs, and for a final summary)"
        );
        assert_eq!(exhausted_in_words(&time(10_000)), "Time budget used up: 10.0 s of 10.0 s");
        let tokens = |used| Exhausted::new(Dimension::Tokens, used, 900);
        assert_eq!(exhausted_in_words(&tokens(700)), "Token budget used up: 700 of 900");
        assert_eq!(exhausted_in_words(&tokens(0)), "Token budget used up: 0 of 900");
        let turns = Exhausted::new(Dimension::Turns, 3, 4);
        assert_eq!(exhausted_in_words(&turns), "Turn budget of the run used up: 3 of 4");
    }

    #[test]
    fn compactions_are_counted_by_kind() {
        assert_eq!(compactions_in_words(0, 0, 0), None);
        assert_eq!(compactions_in_words(0, 1, 0).as_deref(), Some("1 compaction (1 summed up)"));
        assert_eq!(
            compactions_in_words(4, 2, 1).as_deref(),
            Some("7 compactions (4 trimmed, 2 summed up, 1 by rule)")
        );
    }
}
