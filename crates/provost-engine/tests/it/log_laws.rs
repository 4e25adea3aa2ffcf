//! The laws of a session's log, checked entry by entry.

use std::collections::{HashMap, HashSet};

use provost_event::{
    AgentEntry, AgentPolicy, AsideCall, Block, CallId, Compacted, CompactionKind, ConversationEntry, Entry,
    GateEntry, LifecycleEntry, ModelCalled, ModelEntry, Purpose, Record, TerminalEntry, TerminalEvent,
    ToolEntry,
};

use crate::goal_laws::GoalLaws;

/// Each segment of a log has one outcome.
#[derive(Debug, Default)]
pub(crate) struct SegmentLaw {
    is_over: bool,
}

impl SegmentLaw {
    pub(crate) fn see(&mut self, record: &Record) {
        match record.entry {
            Entry::Lifecycle(LifecycleEntry::Paused(_) | LifecycleEntry::Ended(_)) => {
                let before = std::mem::replace(&mut self.is_over, true);
                assert!(!before, "a second outcome of a segment of {}: {:?}", record.actor, record.entry);
            }
            Entry::Lifecycle(LifecycleEntry::Resumed(_)) => self.is_over = false,
            _ => {}
        }
    }
}

/// The facts from the entries so far that the laws use.
#[derive(Debug, Default)]
pub(crate) struct LogLaws {
    asked: Vec<CallId>,
    finished: Vec<CallId>,
    started: HashSet<CallId>,
    turns_max: u32,
    /// An answer of a person or a hook may have changed the order of results, and suspended the session amid its
    /// calls.
    amid_calls: bool,
    has_ended: bool,
    segments: SegmentLaw,
    /// Maximum tokens of a request, if the model's window is known.
    room: Option<u64>,
    purposes: HashMap<u32, Purpose>,
    /// There was no message and no model call since the last emergency compaction.
    is_just_shortened: bool,
    /// A program was started and its end isn't recorded.
    program_runs: bool,
    /// The laws of its goal.
    pub(crate) goal: GoalLaws,
}

impl LogLaws {
    /// Reads the next entry; `request_tokens` is the session's estimate of its last request.
    pub(crate) fn see(&mut self, record: &Record, request_tokens: u64) {
        // Another policy or other tools may apply from here on.
        if !matches!(
            record.entry,
            Entry::Lifecycle(LifecycleEntry::AgentPolicyChanged(_))
                | Entry::Tool(ToolEntry::Changed(_) | ToolEntry::ServiceNoted(_))
        ) && std::mem::take(&mut self.has_ended)
        {
            assert!(
                matches!(record.entry, Entry::Lifecycle(LifecycleEntry::Resumed(_))),
                "an end is followed by {:?}",
                record.entry
            );
        }
        let is_over =
            matches!(record.entry, Entry::Lifecycle(LifecycleEntry::Paused(_) | LifecycleEntry::Ended(_)));
        self.segments.see(record);
        assert!(!is_over || !self.program_runs, "it is suspended while its program runs");
        match &record.entry {
            Entry::Lifecycle(LifecycleEntry::SessionStarted(started)) => {
                self.turns_max = started.policy.limits.turns_max;
                self.room = room(&started.policy);
            }
            Entry::Lifecycle(LifecycleEntry::AgentPolicyChanged(changed)) => {
                self.turns_max = changed.policy.limits.turns_max;
                self.room = room(&changed.policy);
            }
            Entry::Lifecycle(LifecycleEntry::Resumed(resumed)) => {
                self.turns_max = self.turns_max.max(resumed.turns_max.unwrap_or(0));
            }
            Entry::Conversation(ConversationEntry::AssistantMessage(answer)) => {
                self.results_are_complete("an answer");
                assert_eq!(
                    self.purposes.get(&answer.call),
                    Some(&Purpose::Turn),
                    "an aside in the conversation"
                );
                self.asked.extend(answer.content.iter().filter_map(|block| match block {
                    Block::ToolCall(call) => Some(call.id.clone()),
                    _ => None,
                }));
            }
            Entry::Tool(ToolEntry::Started(start)) => {
                assert!(self.started.insert(start.call.clone()) || start.again, "started twice unsaid");
            }
            Entry::Terminal(TerminalEntry::Noted(noted)) => match noted.event {
                TerminalEvent::Started { .. } => self.program_runs = true,
                TerminalEvent::Exited { .. } => self.program_runs = false,
                _ => {}
            },
            Entry::Tool(ToolEntry::Finished(end)) => self.finished(&end.call),
            Entry::Model(ModelEntry::Called(called)) => self.called(called, request_tokens),
            Entry::Conversation(ConversationEntry::Compacted(compacted)) => self.compacted(compacted),
            Entry::Conversation(ConversationEntry::FinalSummary(wrapped)) => {
                self.is_aside(wrapped.call.as_ref(), Purpose::FinalSummary)
            }
            Entry::Conversation(ConversationEntry::UserMessage(_) | ConversationEntry::SystemItem(_)) => {
                self.is_just_shortened = false
            }
            Entry::Gate(GateEntry::ApprovalRequested(_) | GateEntry::HooksDecided(_)) => {
                self.amid_calls = true
            }
            Entry::Lifecycle(LifecycleEntry::Ended(_)) => {
                self.results_are_complete("an end");
                self.has_ended = true;
            }
            // A session that yields starts no more calls, and results may come in another order than without it.
            Entry::Agent(AgentEntry::MustYield(_)) => self.amid_calls = true,
            Entry::Lifecycle(LifecycleEntry::Paused(_)) if self.asked.len() != self.finished.len() => {
                assert!(self.amid_calls, "a suspension before all calls have a result");
            }
            _ => {}
        }
    }

    fn results_are_complete(&self, before: &str) {
        assert_eq!(self.asked.len(), self.finished.len(), "{before} before all calls have a result");
    }

    fn finished(&mut self, call: &CallId) {
        assert!(!self.finished.contains(call), "one result each");
        assert!(self.asked.contains(call), "a result of no call");
        if !self.amid_calls {
            assert_eq!(self.asked.get(self.finished.len()), Some(call), "results in the order of the calls");
        }
        self.finished.push(call.clone());
    }

    fn called(&mut self, called: &ModelCalled, request_tokens: u64) {
        if !matches!(called.purpose, Purpose::FinalSummary | Purpose::Judge) {
            self.results_are_complete("a model call");
        }
        // The final summary opens no turn.
        assert!(called.turn <= self.turns_max, "turn {} of {}", called.turn, self.turns_max);
        // A judge has a window of its own.
        if let Some(room) = self.room.filter(|_| called.purpose != Purpose::Judge) {
            // An extra question comes in addition.
            let most = if called.purpose == Purpose::Turn { room * 95 / 100 } else { room };
            assert!(
                request_tokens <= most,
                "{request_tokens} tokens for {:?}, room for {most}",
                called.purpose
            );
        }
        assert!(self.purposes.insert(called.call, called.purpose).is_none(), "two calls of one number");
        self.is_just_shortened = false;
    }

    fn compacted(&mut self, compacted: &Compacted) {
        let (before, after) = (compacted.tokens_before, compacted.tokens_after);
        assert!(after < before, "{before} → {after} tokens by {:?}", compacted.how);
        match compacted.how {
            CompactionKind::Trim => {}
            CompactionKind::Summary => {
                self.is_aside(compacted.call.as_ref(), Purpose::Summary);
                assert!(after * 100 <= before * 95, "a summary frees something");
            }
            CompactionKind::Emergency => {
                assert!(!self.is_just_shortened, "two by rule with nothing new in between");
                self.is_just_shortened = true;
                assert!(
                    self.room.is_none_or(|room| after * 100 <= room * 95),
                    "{after} tokens of {:?}",
                    self.room
                );
            }
        }
    }

    fn is_aside(&self, call: Option<&AsideCall>, purpose: Purpose) {
        let found = call.map(|call| self.purposes.get(&call.call));
        assert!(found.is_none_or(|found| found == Some(&purpose)), "an aside call of another purpose");
    }
}

/// Maximum tokens of a request: the window less the answer's cap, which is at most half of it.
pub(crate) fn room(policy: &AgentPolicy) -> Option<u64> {
    let model = &policy.model;
    let window = model.window_tokens?;
    Some(window - u64::from(model.output_tokens_max).min(window / 2))
}
