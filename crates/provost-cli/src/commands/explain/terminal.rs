//! What was noted at the terminal of an external agent, for people.

use provost_event::{EvidenceSource, TerminalEvent, TerminalNoted};
use provost_view::explain::{NotedEvent, TerminalExplanation};

use crate::render::{Cells, Table, amount, one_line, plural};

const EVENT_WIDTH: usize = 60;
const EVIDENCE_WIDTH: usize = 70;
/// The confidence at which nothing else is possible.
const CERTAIN: u8 = 100;

/// What was noted at a terminal, as a table.
pub(super) fn noted_events(terminal: &TerminalExplanation, title: &str, width: Option<usize>) -> String {
    if terminal.events.is_empty() {
        return format!("\n{title}\n   nothing was noted\n");
    }
    let mut table = Table::new(&[
        ("ENTRY", Cells::Numbers),
        ("SURE", Cells::Numbers),
        ("BY", Cells::Text),
        ("NOTED", Cells::CutAtEnd),
        ("EVIDENCE", Cells::CutAtEnd),
    ]);
    for NotedEvent { entry, noted, .. } in &terminal.events {
        table.row(vec![
            entry.to_string(),
            format!("{}%", noted.confidence),
            deciding(noted).to_owned(),
            one_line(&noted.event.to_string(), EVENT_WIDTH),
            one_line(&evidence(noted), EVIDENCE_WIDTH),
        ]);
    }
    let before = terminal.noted.saturating_sub(terminal.events.len() as u64);
    let before = match before {
        0 => String::new(),
        before => format!("   {} before, {} in all\n", plural(before, "event"), amount(terminal.noted)),
    };
    format!("\n{title}\n{before}{}", table.lines(width))
}

/// What decided.
fn deciding(noted: &TerminalNoted) -> &'static str {
    match noted.evidence.first().map(|evidence| evidence.source) {
        Some(source) => word(source),
        None if noted.confidence == CERTAIN => match noted.event {
            TerminalEvent::Exited { .. } => word(EvidenceSource::Exit),
            _ => "Provost",
        },
        None => "",
    }
}

fn evidence(noted: &TerminalNoted) -> String {
    let each = noted.evidence.iter().map(|evidence| format!("{}: {}", word(evidence.source), evidence.what));
    each.collect::<Vec<_>>().join("; ")
}

const fn word(source: EvidenceSource) -> &'static str {
    match source {
        EvidenceSource::Exit => "exit",
        EvidenceSource::Input => "input",
        EvidenceSource::Kernel => "kernel",
        EvidenceSource::Signal => "signal",
        EvidenceSource::Screen => "screen",
        EvidenceSource::Quiet => "quiet",
    }
}
