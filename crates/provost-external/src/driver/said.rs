//! A program's last message, read from its screen.

use provost_harness::Redactor;
use provost_process::TerminalView;
use provost_terminal::{Profile, ProgramKind};

/// Bytes of the message that are kept, from its end.
const SAID_BYTES_MAX: usize = 16 * 1024;
/// Maximum rows of the last screen that are quoted when a program has ended.
const LAST_ROWS_MAX: usize = 12;
/// Letters at a prompt's end by which it is found while it is typed; fewer where a column beside the composer cuts
/// wrapped words.
const TAILS: [usize; 2] = [12, 5];
/// Characters by which a prompt is found on the screen.
const HEAD_CHARS: usize = 24;

/// The text between the last prompt and where the program reads the next, without frames, secrets, and blank rows
/// at both ends. Text that has scrolled off the screen is lost. Empty if there is none.
pub(super) fn last_message(
    view: &TerminalView,
    (prompt, profile): (&str, &Profile),
    redactor: &Redactor,
) -> String {
    let rows: Vec<&str> = view.rows.iter().map(|row| bare(row)).collect();
    let composer = composer(view);
    let above = rows.get(..composer).unwrap_or_default();
    let head = head_of(prompt);
    let is_prompt = |row: &&str| match profile.kind {
        ProgramKind::Agent => echoed(row).starts_with(&head),
        // The program's own prompt stands before what was typed.
        ProgramKind::Plain => row.ends_with(&head),
    };
    let begin = if head.is_empty() { None } else { above.iter().rposition(is_prompt) };
    let said = above.get(begin.map_or(0, |row| row + 1)..).unwrap_or_default();
    clean(&message_in(said, profile), redactor)
}

/// The agent's last message in these rows, without marks, hints and the state of its work; all that is left of them if
/// its messages have no mark.
fn message_in<'a>(rows: &[&'a str], profile: &Profile) -> Vec<&'a str> {
    let begins = |row: &&str| profile.message_of(row).is_some() && !profile.is_no_message(row);
    let begin = rows.iter().rposition(begins);
    let rows = rows.get(begin.unwrap_or(0)..).unwrap_or_default();
    let mut said: Vec<&str> = Vec::new();
    for row in rows.iter().filter(|row| !profile.is_no_message(row)) {
        let row = profile.message_of(row).filter(|_| said.is_empty()).unwrap_or(row);
        let is_gap = row.is_empty() && said.last().is_none_or(|last| last.is_empty());
        if !is_gap {
            said.push(row);
        }
    }
    said
}

/// Whether the rows at the cursor show the end of `prompt`.
pub(super) fn composer_holds(view: &TerminalView, prompt: &str) -> bool {
    let head = head_of(prompt);
    let cursor = usize::from(view.cursor.row);
    let rows = view.rows.get(cursor.saturating_sub(1)..=cursor).unwrap_or_default();
    !head.is_empty() && rows.iter().any(|row| echoed(bare(row)).starts_with(&head))
}

/// Whether the screen shows more of the end of `text` than it did before, wherever its composer is: by its letters and
/// digits, since it may be wrapped, or by the note that some programs show in place of pasted text.
pub(super) fn shows_typed(view: &TerminalView, before: &TerminalView, text: &str) -> bool {
    let letters: Vec<char> = text.chars().filter(|c| c.is_alphanumeric()).collect();
    if letters.is_empty() {
        return view.fingerprint != before.fingerprint;
    }
    let (now, then) = (squashed(&view.rows), squashed(&before.rows));
    let shows = |count: usize| {
        let tail: String = letters.iter().skip(letters.len().saturating_sub(count)).collect();
        now.matches(&tail).count() > then.matches(&tail).count()
    };
    let notes = |rows: &[String]| rows.iter().filter(|row| row.to_lowercase().contains("[pasted")).count();
    TAILS.into_iter().any(shows) || notes(&view.rows) > notes(&before.rows)
}

fn squashed(rows: &[String]) -> String {
    rows.iter().flat_map(|row| row.chars()).filter(|c| c.is_alphanumeric()).collect()
}

/// The beginning of a prompt's last line, by which it is found on the screen.
fn head_of(prompt: &str) -> String {
    let last = prompt.lines().rev().map(echoed).find(|line| !line.trim().is_empty()).unwrap_or_default();
    last.trim().chars().take(HEAD_CHARS).collect()
}

/// A row without the mark that an agent puts before a user's prompt.
fn echoed(row: &str) -> &str {
    row.trim_start_matches(|c: char| !c.is_alphanumeric())
}

/// The last rows that aren't blank, without secrets.
pub(super) fn last_rows(view: &TerminalView, redactor: &Redactor) -> String {
    let full: Vec<&str> = view.rows.iter().map(String::as_str).filter(|row| !row.trim().is_empty()).collect();
    clean(full.get(full.len().saturating_sub(LAST_ROWS_MAX)..).unwrap_or_default(), redactor)
}

/// The first row of the box, or of the rows without a gap, that contains the cursor.
fn composer(view: &TerminalView) -> usize {
    let cursor = usize::from(view.cursor.row);
    let mut row = cursor;
    while row > 0 && view.rows.get(row - 1).is_some_and(|above| is_of_a_box(above)) {
        row -= 1;
    }
    row
}

fn is_of_a_box(row: &str) -> bool {
    row.trim().chars().next().is_some_and(is_frame)
}

/// Box drawing and block elements.
fn is_frame(character: char) -> bool {
    matches!(character, '\u{2500}'..='\u{259f}')
}

fn bare(row: &str) -> &str {
    row.trim_matches(|c: char| c.is_whitespace() || is_frame(c))
}

fn clean(rows: &[&str], redactor: &Redactor) -> String {
    let text = rows.join("\n");
    let text = redactor.redact_rows(text.trim());
    let text = redactor.redact(&text);
    let begin = text.ceil_char_boundary(text.len().saturating_sub(SAID_BYTES_MAX));
    text.get(begin..).unwrap_or_default().trim().to_owned()
}
