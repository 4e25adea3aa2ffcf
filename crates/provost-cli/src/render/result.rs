//! What is shown of the output of a call that has ended.

use provost_event::{ToolFinished, ToolSubject};
use provost_runtime::known_tool;

use super::safe;
use super::saying::ChangedLine;
use super::words::one_line;

/// Columns of a line of output.
const WIDTH_MAX: usize = 200;
/// Lines at the end of what a failed command has printed.
const TAIL_LINES: usize = 5;
/// Changed lines of one call.
const CHANGED_LINES: usize = 6;

/// What a failed call says: the last lines of a command's output, which end with how it ended; of other calls the first
/// line.
pub(super) fn complaint(entry: &ToolFinished) -> Vec<String> {
    let lines = entry.output.lines().filter(|line| !line.trim().is_empty());
    let shown = |line: &str| one_line(line, WIDTH_MAX);
    match known_tool(&entry.tool).map(|tool| &tool.subject) {
        Some(ToolSubject::Command { .. }) => {
            let lines = lines.collect::<Vec<_>>();
            let tail = lines.get(lines.len().saturating_sub(TAIL_LINES)..).unwrap_or_default();
            tail.iter().map(|line| indented(line)).collect()
        }
        Some(_) | None => lines.take(1).map(shown).collect(),
    }
}

/// Output keeps its indentation.
fn indented(line: &str) -> String {
    console::truncate_str(&safe(line.trim_end()), WIDTH_MAX, "…").into_owned()
}

/// The lines that a call has changed in a file, by the unified diff in its output.
pub(super) fn changed_lines(entry: &ToolFinished) -> Vec<ChangedLine> {
    let writes = known_tool(&entry.tool)
        .is_some_and(|tool| matches!(tool.subject, ToolSubject::Path { writes: true, .. }));
    if !writes {
        return Vec::new();
    }
    let mut changes = Vec::new();
    let (mut before, mut after) = (0, 0);
    let mut is_in_hunk = false;
    for line in entry.output.lines() {
        if let Some(numbers) = hunk(line) {
            (before, after) = numbers;
            is_in_hunk = true;
        } else if !is_in_hunk {
            continue;
        } else if let Some(text) = line.strip_prefix('+') {
            changes.push(ChangedLine::Added { number: after, text: safe(text) });
            after += 1;
        } else if let Some(text) = line.strip_prefix('-') {
            changes.push(ChangedLine::Removed { number: before, text: safe(text) });
            before += 1;
        } else {
            before += 1;
            after += 1;
        }
    }
    let more = changes.len().saturating_sub(CHANGED_LINES);
    // A note in place of a single line saves nothing.
    if more > 1 {
        changes.truncate(CHANGED_LINES);
        changes.push(ChangedLine::More(more));
    }
    changes
}

/// The first lines of a hunk, before and after: `@@ -42,7 +42,7 @@`.
fn hunk(line: &str) -> Option<(u64, u64)> {
    let (before, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (after, _) = rest.split_once(" @@")?;
    let first = |range: &str| range.split(',').next()?.parse().ok();
    Some((first(before)?, first(after)?))
}

#[cfg(test)]
mod tests {
    use provost_event::{CallFacts, CallId, ToolFinished, ToolStatus};

    use super::{ChangedLine, changed_lines, complaint};

    fn finished(tool: &str, output: &str) -> ToolFinished {
        ToolFinished {
            call: CallId::from("call"),
            tool: tool.to_owned(),
            status: ToolStatus::Ok,
            output: output.to_owned(),
            images: Vec::new(),
            whole: None,
            duration_ms: 1,
            memory: None,
            plan: None,
            facts: CallFacts::default(),
        }
    }

    #[test]
    fn an_edit_shows_its_changed_lines_with_their_numbers() {
        let output =
            "edited `a.rs`: 1 replacement at line 3\n@@ -2,3 +2,4 @@\n two\n-three\n+3\n+and more\n four\n";
        let added = |number, text: &str| ChangedLine::Added { number, text: text.to_owned() };
        let removed = ChangedLine::Removed { number: 3, text: "three".to_owned() };
        assert_eq!(
            changed_lines(&finished("edit_file", output)),
            [removed, added(3, "3"), added(4, "and more")]
        );
        assert!(changed_lines(&finished("shell", output)).is_empty(), "a command's output is no diff");
    }

    #[test]
    fn of_many_changed_lines_the_first_are_shown_and_the_others_counted() {
        let output = format!("@@ -0,0 +1,20 @@\n{}", "+\u{1b}[31mx\n".repeat(20));
        let changes = changed_lines(&finished("edit_file", &output));
        assert_eq!(changes.len(), 7);
        assert_eq!(changes[0], ChangedLine::Added { number: 1, text: "x".to_owned() });
        assert_eq!(changes[6], ChangedLine::More(14));
    }

    #[test]
    fn a_failed_command_shows_the_end_of_its_output_and_other_calls_their_first_line() {
        let output = "one\ntwo\n  three\n\nfour\nfive\nsix\nexit status 3";
        assert_eq!(
            complaint(&finished("shell", output)),
            ["  three", "four", "five", "six", "exit status 3"]
        );
        assert_eq!(complaint(&finished("read_file", "isn't there\nhint")), ["isn't there"]);
    }
}
