//! What was noted at the terminal of an external agent, and from which evidence.

use std::collections::VecDeque;

use provost_event::{
    AgentPolicy, Entry, EvidenceSource, Record, Seq, TerminalEntry, TerminalEvent, TerminalNoted, Timestamp,
};
use serde::Serialize;

use crate::render::{Cells, Table, amount, one_line, plural};

/// Events that are listed; of earlier ones only the count is shown.
const EVENTS_MAX: usize = 60;
const EVENT_WIDTH: usize = 60;
const EVIDENCE_WIDTH: usize = 70;
/// The confidence at which nothing else is possible.
const CERTAIN: u8 = 100;

/// The last events of a terminal, as the log has them.
pub(super) struct TerminalSums {
    noted: u64,
    events: VecDeque<Noted>,
}

/// Something that was noted.
#[derive(Debug, Serialize)]
pub(super) struct Noted {
    entry: Seq,
    at_ms: Timestamp,
    #[serde(flatten)]
    noted: TerminalNoted,
}

/// What was noted at a terminal.
#[derive(Serialize)]
pub(super) struct Terminal<'a> {
    /// How many events.
    noted: u64,
    /// The last of them.
    events: &'a VecDeque<Noted>,
}

impl TerminalSums {
    /// Nothing yet; `None` for an agent without a terminal.
    pub(super) fn new(policy: &AgentPolicy) -> Option<Self> {
        policy.external.as_ref()?;
        Some(Self { noted: 0, events: VecDeque::new() })
    }

    pub(super) fn add(&mut self, record: &Record) {
        let Entry::Terminal(TerminalEntry::Noted(noted)) = &record.entry else { return };
        self.noted += 1;
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(Noted { entry: record.seq, at_ms: record.at, noted: noted.clone() });
    }

    pub(super) const fn terminal(&self) -> Terminal<'_> {
        Terminal { noted: self.noted, events: &self.events }
    }
}

impl Terminal<'_> {
    /// As a table, for people.
    pub(super) fn text(&self, title: &str, width: Option<usize>) -> String {
        if self.events.is_empty() {
            return format!("\n{title}\n   nothing was noted\n");
        }
        let mut table = Table::new(&[
            ("ENTRY", Cells::Numbers),
            ("SURE", Cells::Numbers),
            ("BY", Cells::Text),
            ("NOTED", Cells::CutAtEnd),
            ("EVIDENCE", Cells::CutAtEnd),
        ]);
        for Noted { entry, noted, .. } in self.events {
            table.row(vec![
                entry.to_string(),
                format!("{}%", noted.confidence),
                deciding(noted).to_owned(),
                one_line(&noted.event.to_string(), EVENT_WIDTH),
                one_line(&evidence(noted), EVIDENCE_WIDTH),
            ]);
        }
        let before = self.noted.saturating_sub(self.events.len() as u64);
        let before = match before {
            0 => String::new(),
            before => format!("   {} before, {} in all\n", plural(before, "event"), amount(self.noted)),
        };
        format!("\n{title}\n{before}{}", table.lines(width))
    }
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
