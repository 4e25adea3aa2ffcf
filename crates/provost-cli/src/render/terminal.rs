//! What happened at an external agent's terminal, in words.

use provost_event::{TerminalEntry, TerminalEvent, TerminalNoted};

use super::saying::{Saying, Tag};
use super::words::one_line;

/// Columns of a text that was typed or shown there: a prompt may be pages long.
const WIDTH: usize = 160;

/// The entry in words.
pub(super) fn in_words(entry: &TerminalEntry) -> Saying {
    match entry {
        TerminalEntry::Noted(entry) => noted(entry),
        TerminalEntry::Ending(_) => ending(),
    }
}

pub(super) fn noted(entry: &TerminalNoted) -> Saying {
    let words = one_line(&entry.event.to_string(), WIDTH);
    match entry.event {
        TerminalEvent::Started { .. }
        | TerminalEvent::Submitted { .. }
        | TerminalEvent::Answered { .. }
        | TerminalEvent::PasswordPrompt { .. }
        | TerminalEvent::WaitingForInput { .. }
        | TerminalEvent::Attached { .. }
        | TerminalEvent::Detached { .. }
        | TerminalEvent::Error { .. }
        | TerminalEvent::Notification { .. }
        | TerminalEvent::Activity(_)
        | TerminalEvent::Exited { .. } => Saying::kept(Tag::Provost, words),
        TerminalEvent::State(_)
        | TerminalEvent::ApprovalRequest(_)
        | TerminalEvent::Completion { .. }
        | TerminalEvent::Idle => Saying::detail(words),
    }
}

pub(super) fn ending() -> Saying {
    Saying::detail("the program is ended")
}
