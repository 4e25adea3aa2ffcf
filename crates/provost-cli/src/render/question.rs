//! A question for approval, in full: the user approves what is shown.

use console::measure_text_width;
use provost_event::{
    ApprovalAnswer, ApprovalScope, Json, NamedScript, OutsideSandbox, Timestamp, ToolSubject,
};
use serde_json::Value;

use super::safe::visible;
use super::words::plural;
use provost_view::{AnswerField, ApprovalQuestion, ToolQuestion};

use super::wait::left_in_words;
use crate::questions::why_once;
use provost_runtime::known_tool;

/// Marks a line of a call, and the rest of one that is wider than the terminal.
const LINE: &str = "│ ";
const REST: &str = "┊ ";
/// Columns that a call gets, however narrow the terminal is.
const WIDTH_MIN: usize = 20;
/// Digits of a script's hash that are shown; the log has all.
const HASH_DIGITS: usize = 12;
/// Beyond a day the time alone is ambiguous.
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// How much of a question is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// What the terminal has room for.
    Fitting,
    /// All of it.
    Whole,
}

/// What there is room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    /// Columns.
    pub(crate) width: usize,
    /// Lines of the call; how many are left out is shown.
    pub(crate) lines_max: usize,
}

impl Room {
    /// All of it.
    pub(crate) const fn all(width: usize) -> Self {
        Self { width, lines_max: usize::MAX }
    }
}

/// The whole call: its tool, then a marked line for each of its own and each that a long one goes on in. Nothing
/// is left out but what `room` has no lines for, and `more` says where that is to be seen.
pub(crate) fn call_in_full(question: &ApprovalQuestion, room: Room, more: &str) -> Vec<String> {
    let width = room.width.saturating_sub(LINE.chars().count()).max(WIDTH_MIN);
    let lines = arguments(&question.tool, &question.input);
    let mut shown = lines.iter().flat_map(|line| marked(&visible(line), width)).collect::<Vec<_>>();
    let left_out = shown.len().saturating_sub(room.lines_max);
    // A note instead of a single line saves nothing.
    if left_out > 1 {
        shown.truncate(room.lines_max);
        shown.push(format!("… {}: {more}", plural(left_out as u64, "more line")));
    }
    shown
}

fn marked(line: &str, width: usize) -> Vec<String> {
    let pieces = wrapped(line, width);
    pieces
        .iter()
        .enumerate()
        .map(|(place, piece)| format!("{}{piece}", if place == 0 { LINE } else { REST }))
        .collect()
}

/// Cut by columns alone: where words are kept together, blanks between them would go.
fn wrapped(line: &str, width: usize) -> Vec<String> {
    let (mut all, mut piece, mut columns) = (Vec::new(), String::new(), 0);
    for c in line.chars() {
        let needs = measure_text_width(c.encode_utf8(&mut [0; 4]));
        if columns + needs > width {
            all.push(std::mem::take(&mut piece));
            columns = 0;
        }
        piece.push(c);
        columns += needs;
    }
    all.push(piece);
    all
}

/// The arguments, a command line first and as it is.
fn arguments(tool: &str, input: &Json) -> Vec<String> {
    let mut fields = match input.read::<Value>() {
        Ok(Value::Object(fields)) => fields,
        Ok(other) => return vec![other.to_string()],
        Err(_) => return vec![input.text().to_owned()],
    };
    let mut lines = Vec::new();
    if let Some(ToolSubject::Command { field, .. }) = known_tool(tool).map(|tool| &tool.subject)
        && let Some(Value::String(command)) = fields.remove(field)
    {
        lines.extend(command.split('\n').map(str::to_owned));
    }
    let is_long = |value: &Value| value.as_str().is_some_and(|text| text.contains('\n'));
    // A path stands before the text that is written there.
    let (long, short): (Vec<_>, Vec<_>) = fields.iter().partition(|(_, value)| is_long(value));
    for (name, value) in short.into_iter().chain(long) {
        match value {
            Value::String(text) if is_long(value) => {
                lines.push(format!("{name}:"));
                lines.extend(text.split('\n').map(|line| format!("    {line}")));
            }
            Value::String(text) => lines.push(format!("{name}: {text}")),
            other => lines.push(format!("{name}: {other}")),
        }
    }
    if lines.is_empty() {
        lines.push("(no arguments)".to_owned());
    }
    lines
}

/// What there is to know besides the call, a name and a text each: why, what a consent for longer would cover,
/// until when, how to answer from elsewhere.
pub(crate) fn facts(question: &ApprovalQuestion, now: Timestamp) -> Vec<(&'static str, String)> {
    let name = question.short_id();
    let longer = match why_once(question) {
        None => ("r, A", format!("allow {} from now on", visible(&question.pattern))),
        Some(_) if question.outside.is_some() => {
            ("counts", "once: nothing that leaves the sandbox is agreed to for longer".to_owned())
        }
        Some(_) if question.question.is_some() => {
            ("counts", "once: a tool asks something else each time".to_owned())
        }
        Some(_) => ("counts", "once: its scripts may hold something else next time".to_owned()),
    };
    let mut facts = vec![("why", visible(&question.why))];
    facts.extend(question.scripts.iter().map(|script| ("script", script_in_words(script))));
    facts.extend(question.unnamed.then(|| ("script", UNNAMED.to_owned())));
    facts.extend(question.outside.iter().map(|outside| ("leaves", outside_in_words(outside))));
    facts.extend(question.question.iter().map(|asked| ("fields", fields_in_words(asked))));
    facts.extend([
        longer,
        ("left", left_in_words(question.wait(), now, true)),
        ("or", format!("provost approve {name}, from any terminal")),
    ]);
    facts
}

/// The fields of an answer that a tool wants.
pub(crate) fn fields_in_words(question: &ToolQuestion) -> String {
    let field = |field: AnswerField| {
        let must = if field.is_required && field.default.is_none() { "" } else { ", or nothing" };
        format!("{}: {}{must}", field.label, field.expected())
    };
    let fields = question.fields().into_iter().map(field).collect::<Vec<_>>();
    if fields.is_empty() { "none: to allow it is to agree".to_owned() } else { fields.join("; ") }
}

/// What a call that is to run outside of the sandbox leaves, and what was denied inside.
pub(crate) fn outside_in_words(outside: &OutsideSandbox) -> String {
    match outside.denied.as_slice() {
        [] => "the sandbox, which has denied nothing yet".to_owned(),
        denied => format!("the sandbox, which denied: {}", visible(&denied.join("; "))),
    }
}

/// The note on a call that may run files which its text doesn't name.
pub(crate) const UNNAMED: &str = "it may run files that its text doesn't name: what they hold isn't checked";

/// A script that the answer is bound to: `build.sh, as it is now (BLAKE3 1f2e3d4c5b6a)`.
pub(crate) fn script_in_words(script: &NamedScript) -> String {
    let leads = script.leads_to.as_ref().map(|to| format!(", a link to {to}")).unwrap_or_default();
    let hash = script.blake3.as_deref().and_then(|hash| hash.get(..HASH_DIGITS));
    let held = match hash {
        Some(hash) => format!("as it is now (BLAKE3 {hash})"),
        None => "which can't be read: what it holds isn't checked".to_owned(),
    };
    visible(&format!("{}{leads}, {held}", script.path))
}

/// The time of the user's own clock, with the day where it isn't near.
pub(super) fn clock_time(at: Timestamp, now: Timestamp) -> String {
    let format = if at.0.abs_diff(now.0) < DAY_MS { "%H:%M:%S" } else { "%F %H:%M" };
    let moment = i64::try_from(at.0).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    let zoned = moment.map(|moment| moment.to_zoned(jiff::tz::TimeZone::system()));
    zoned.map(|zoned| zoned.strftime(format).to_string()).unwrap_or_default()
}

/// An answer, in words that go before the approver's name: `allowed once by ann`.
pub(crate) fn answer_in_words(answer: &ApprovalAnswer) -> String {
    match answer {
        ApprovalAnswer::Allow { scope: ApprovalScope::Once, .. } => "allowed once".to_owned(),
        ApprovalAnswer::Allow { scope, pattern } => {
            let what = pattern.as_deref().map(|pattern| format!(" {}", visible(pattern))).unwrap_or_default();
            match scope {
                ApprovalScope::Always => format!("allowed{what} for all runs"),
                ApprovalScope::Once | ApprovalScope::Run => format!("allowed{what} for this run"),
            }
        }
        ApprovalAnswer::Answered { .. } => "answered".to_owned(),
        ApprovalAnswer::Deny { reason } if reason.is_empty() => "denied".to_owned(),
        ApprovalAnswer::Deny { reason } => format!("denied ({})", visible(reason)),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use provost_event::{ApprovalRequested, CallId, Elapsed, Json, Record, RunId, Seq, SessionId, Timestamp};

    use super::{Room, call_in_full};
    use provost_view::ApprovalQuestion;

    #[track_caller]
    fn check(tool: &str, input: &str, lines_max: usize, expected: Expect) {
        let asked = ApprovalRequested {
            call: CallId::from("call"),
            tool: tool.to_owned(),
            input: Json::parse(input.to_owned()).unwrap(),
            why: String::new(),
            pattern: String::new(),
            due: Timestamp(0),
            scripts: Vec::new(),
            unnamed: false,
            outside: None,
            question: None,
        };
        let actor = SessionId::root(RunId::from_entropy(1)).into();
        let entry = asked.into();
        let record = Record { actor, seq: Seq(7), at: Timestamp(0), elapsed: Elapsed(0), entry };
        let question = ApprovalQuestion::of(&record).unwrap();
        let room = Room { width: 26, lines_max };
        expected.assert_eq(&call_in_full(&question, room, "press v").join("\n"));
    }

    #[test]
    fn a_call_is_shown_to_its_end() {
        check(
            "shell",
            r#"{"command":"rm  -rf target \\\n  && cargo build --release --all-features","timeout_secs":60}"#,
            99,
            expect![[r#"
                │ rm  -rf target \
                │   && cargo build --relea
                ┊ se --all-features
                │ timeout_secs: 60"#]],
        );
        check(
            "write_file",
            r#"{"path":"src/漢字漢字漢字漢字漢字.rs","content":"a\n\nb\n"}"#,
            99,
            expect![[r#"
                │ path: src/漢字漢字漢字漢
                ┊ 字漢字.rs
                │ content:
                │     a
                │     
                │     b
                │     "#]],
        );
        check("list_dir", "{}", 99, expect!["│ (no arguments)"]);
        check("odd", "[1, 2]", 99, expect!["│ [1,2]"]);
    }

    #[test]
    fn what_is_left_out_is_told() {
        let call = r#"{"command":"1\n2\n3\n4"}"#;
        check(
            "shell",
            call,
            2,
            expect![[r#"
                │ 1
                │ 2
                … 2 more lines: press v"#]],
        );
        check(
            "shell",
            call,
            3,
            expect![[r#"
            │ 1
            │ 2
            │ 3
            │ 4"#]],
        );
    }
}
