//! Terminal events without secrets.

use provost_event::{AskOption, TerminalAsk, TerminalEvent, TerminalNoted};
use provost_harness::Redactor;

/// Bytes of screen text that an event keeps: more than a usual screen has, since a consent applies to what it
/// shows.
const LINE_BYTES_MAX: usize = 16 * 1024;

/// `noted` with the secrets removed from the screen text, which is cut to [`LINE_BYTES_MAX`]. Keys of options
/// stay: they are what is typed.
pub(super) fn masked(noted: &TerminalNoted, redactor: &Redactor) -> TerminalNoted {
    let clean = |text: &str| line(text, redactor);
    let event = match &noted.event {
        TerminalEvent::ApprovalRequest(ask) => TerminalEvent::ApprovalRequest(ask_of(ask, redactor)),
        TerminalEvent::WaitingForInput { prompt } => TerminalEvent::WaitingForInput { prompt: clean(prompt) },
        TerminalEvent::PasswordPrompt { prompt } => TerminalEvent::PasswordPrompt { prompt: clean(prompt) },
        TerminalEvent::Error { line } => TerminalEvent::Error { line: clean(line) },
        TerminalEvent::Notification { text } => TerminalEvent::Notification { text: clean(text) },
        other => other.clone(),
    };
    TerminalNoted { event, confidence: noted.confidence, evidence: noted.evidence.clone() }
}

/// The question without secrets.
pub(super) fn ask_of(ask: &TerminalAsk, redactor: &Redactor) -> TerminalAsk {
    let clean = |text: &str| line(text, redactor);
    let options =
        ask.options.iter().map(|option| AskOption { label: clean(&option.label), ..option.clone() });
    TerminalAsk {
        question: clean(&ask.question),
        subject: ask.subject.as_deref().map(clean),
        options: options.collect(),
        ..ask.clone()
    }
}

fn line(text: &str, redactor: &Redactor) -> String {
    let text = redactor.redact_rows(text);
    let clean = redactor.redact(&text);
    let end = clean.floor_char_boundary(LINE_BYTES_MAX);
    clean.get(..end).unwrap_or_default().to_owned()
}
