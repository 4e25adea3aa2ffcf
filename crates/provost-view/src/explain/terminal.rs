//! What was noted at the terminal of an external agent, and from which evidence.

use std::collections::VecDeque;

use provost_event::{AgentPolicy, Entry, Record, Seq, TerminalEntry, TerminalNoted, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Events that are listed; of earlier ones only the count is shown.
const EVENTS_MAX: usize = 60;

/// The last events of a terminal, as the log has them.
pub(super) struct TerminalSums {
    noted: u64,
    events: VecDeque<NotedEvent>,
}

/// Something that was noted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotedEvent {
    /// Its entry.
    pub entry: Seq,
    /// When.
    pub at_ms: Timestamp,
    /// What it is, with the evidence.
    #[serde(flatten)]
    pub noted: TerminalNoted,
}

/// What was noted at a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TerminalExplanation {
    /// How many events.
    pub noted: u64,
    /// The last of them, at most 60.
    pub events: Vec<NotedEvent>,
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
        self.events.push_back(NotedEvent { entry: record.seq, at_ms: record.at, noted: noted.clone() });
    }

    pub(super) fn terminal(&self) -> TerminalExplanation {
        TerminalExplanation { noted: self.noted, events: self.events.iter().cloned().collect() }
    }
}
