//! What an agent still sees of its log after its compactions.

use provost_engine::ResultText;
use provost_event::{Compacted, ConversationEntry, Entry, LifecycleEntry, Record, Seq, ToolEntry};

/// How an agent sees an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As it was made; also an entry that no agent sees.
    Whole,
    /// The beginning and the end of it.
    Cut,
    /// A line.
    Line,
    /// Not at all: this entry omits it or sums it up.
    Gone(Seq),
}

impl Form {
    /// Whether more than a line of it is seen.
    pub(super) const fn is_seen(self) -> bool {
        matches!(self, Self::Whole | Self::Cut)
    }

    /// A note on `entry`, which has this form, if there is one.
    pub(super) fn in_words(self, entry: &Entry) -> Option<String> {
        match self {
            _ if !is_for_the_agent(entry) => None,
            Self::Whole => None,
            Self::Cut => Some("the agent now sees its beginning and its end".to_owned()),
            Self::Line => Some("the agent now sees a line that stands for it".to_owned()),
            Self::Gone(at) => Some(format!("the agent no longer sees it: entry {at} stands for it")),
        }
    }
}

const fn is_for_the_agent(entry: &Entry) -> bool {
    matches!(
        entry,
        Entry::Conversation(
            ConversationEntry::UserMessage(_)
                | ConversationEntry::SystemItem(_)
                | ConversationEntry::AssistantMessage(_)
                | ConversationEntry::Compacted(_)
        ) | Entry::Tool(ToolEntry::Finished(_))
    )
}

/// What the compactions of a log have left.
#[derive(Debug, Default)]
pub(super) struct CompactionView {
    through: Seq,
    summed_up_at: Seq,
    lines_through: Seq,
    superseded: Vec<Seq>,
    cut_through: Seq,
}

impl CompactionView {
    /// Takes in the next entry of the log.
    pub(super) fn note(&mut self, record: &Record) {
        let Entry::Conversation(ConversationEntry::Compacted(Compacted {
            through,
            lines_through,
            superseded,
            cut_through,
            ..
        })) = &record.entry
        else {
            return;
        };
        if !through.is_start() {
            (self.through, self.summed_up_at) = (*through, record.seq);
            self.superseded.retain(|seq| seq > through);
        }
        self.lines_through = self.lines_through.max(*lines_through);
        self.cut_through = self.cut_through.max(*cut_through);
        self.superseded.extend(superseded);
    }

    /// How the agent sees an entry of the log. What was between entries that it saw is gone with them.
    pub(super) fn form(&self, record: &Record) -> Form {
        // Its prompt, its tools and its goal stay.
        if matches!(record.entry, Entry::Lifecycle(LifecycleEntry::SessionStarted(_))) {
            return Form::Whole;
        }
        if record.seq <= self.through {
            return Form::Gone(self.summed_up_at);
        }
        let is_line = record.seq <= self.lines_through || self.superseded.contains(&record.seq);
        match &record.entry {
            Entry::Tool(ToolEntry::Finished(finished)) => {
                let images = finished.images.len();
                let text = ResultText { entry: record.seq, output: &finished.output, images };
                if is_line && text.line().is_some() {
                    Form::Line
                } else if record.seq <= self.cut_through && text.cut().is_some() {
                    Form::Cut
                } else {
                    Form::Whole
                }
            }
            _ => Form::Whole,
        }
    }
}

#[cfg(test)]
mod tests {
    use provost_event::{ActorKey, CompactionKind, RunId, Timestamp, ToolFinished, ToolStatus, TurnEnded};

    use super::*;

    fn record(seq: u64, entry: impl Into<Entry>) -> Record {
        let actor = ActorKey::Run(RunId::from_entropy(1));
        Record {
            actor,
            seq: Seq(seq),
            at: Timestamp(0),
            elapsed: provost_event::Elapsed::default(),
            entry: entry.into(),
        }
    }

    fn result(bytes: usize) -> ToolFinished {
        ToolFinished {
            plan: None,
            facts: provost_event::CallFacts::default(),
            call: "a".into(),
            tool: "shell".to_owned(),
            status: ToolStatus::Ok,
            output: "x".repeat(bytes),
            images: Vec::new(),
            whole: None,
            duration_ms: 1,
            memory: None,
        }
    }

    #[test]
    fn long_results_become_lines_and_whatever_was_summed_up_is_gone() {
        let mut seen = CompactionView::default();
        let rule = Compacted::new(CompactionKind::Emergency);
        seen.note(&record(9, Compacted { lines_through: Seq(4), superseded: vec![Seq(6)], ..rule.clone() }));
        seen.note(&record(10, Compacted { cut_through: Seq(7), ..rule.clone() }));
        let form = |seen: &CompactionView, seq, bytes| seen.form(&record(seq, result(bytes)));
        assert_eq!([4, 5, 6, 7, 8].map(|seq| form(&seen, seq, 5_000)), {
            use Form::{Cut, Line, Whole};
            [Line, Cut, Line, Cut, Whole]
        });
        assert_eq!([4, 7].map(|seq| form(&seen, seq, 100)), [Form::Whole, Form::Whole]);
        seen.note(&record(12, Compacted { through: Seq(5), ..rule }));
        assert_eq!([5, 6].map(|seq| form(&seen, seq, 5_000)), [Form::Gone(Seq(12)), Form::Line]);
        assert_eq!(seen.form(&record(3, TurnEnded { turn: 1, tool_calls: 0 })), Form::Gone(Seq(12)));
    }
}
