//! A terminal as the model sees it.

use std::fmt::Write as _;

use provost_event::{Exit, TerminalState};
use provost_process::TerminalView;

/// Maximum characters of the command line in the output.
const LINE_CHARS_MAX: usize = 80;

/// A running program: its state, its question, and its screen.
pub(super) fn shown(line: &str, view: &TerminalView) -> String {
    let mut text = format!("[`{}`: {}", short(line), does(view.state));
    // Writing to a string can't fail.
    if let Some(ask) = &view.ask {
        let _ = write!(text, "; it asks: {}", ask.question);
        if let Some(subject) = &ask.subject {
            let _ = write!(text, " ({subject})");
        }
    }
    let _ = write!(
        text,
        "; cursor at row {}, column {}",
        view.cursor.row.saturating_add(1),
        view.cursor.col.saturating_add(1)
    );
    text.push_str("]\n");
    text.push_str(&screen(view));
    text
}

/// A program that has ended, and its last screen.
pub(super) fn ended(line: &str, exit: Exit, view: &TerminalView) -> String {
    format!("[`{}` has ended: {exit}]\n{}", short(line), screen(view))
}

fn does(state: TerminalState) -> String {
    match state {
        TerminalState::Password => {
            "asks for a password, which this tool doesn't type: press Ctrl-C or stop it".to_owned()
        }
        TerminalState::Unknown => "nothing tells whether it works or waits".to_owned(),
        other => other.to_string(),
    }
}

/// The rows down to the last that isn't blank.
fn screen(view: &TerminalView) -> String {
    let rows = view.rows.iter().map(|row| row.trim_end());
    let text = rows.collect::<Vec<_>>().join("\n");
    let text = text.trim_end_matches('\n');
    if text.is_empty() { "(the screen is blank)".to_owned() } else { text.to_owned() }
}

fn short(line: &str) -> String {
    let line = line.lines().next().unwrap_or_default();
    match line.char_indices().nth(LINE_CHARS_MAX) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
        None => line.to_owned(),
    }
}
