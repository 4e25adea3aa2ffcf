//! What one agent of a run does now.

use std::time::{Duration, Instant};

use provost_event::{
    Block, CallId, ConversationEntry, Entry, GateEntry, GoalEntry, GoalJudged, GoalTrigger, GoalVerdict,
    LifecycleEntry, ModelEntry, Purpose, Record, Seq, TerminalEntry, TerminalEvent, TerminalState, ToolEntry,
};

use super::ms;
use crate::render::arguments;
use crate::render::gate::waits_for;
use crate::render::status::Mark;
use crate::render::wait::whole_seconds;
use crate::render::words::one_line;

/// Columns for what is being done.
const DOING_MAX: usize = 60;

/// What an agent does now.
#[derive(Default)]
pub(super) enum Doing {
    #[default]
    Starting,
    Thinking,
    Writing,
    SummingUp,
    FinalSummary,
    Judging,
    /// A judge is asked again then.
    WaitingForJudge(Instant),
    Tools(Vec<Running>),
    Waiting(Instant),
    AskingHooks(&'static str),
    AwaitingApproval,
    /// An external program does this.
    Program(TerminalState),
    Stopping,
}

pub(super) struct Running {
    /// The entry that began it.
    pub(super) started: Seq,
    pub(super) call: CallId,
    pub(super) words: String,
    pub(super) since: Instant,
    /// The end of what it has printed so far.
    pub(super) output: String,
}

impl Doing {
    pub(super) fn note(&mut self, record: &Record, has_hooks: bool) {
        match &record.entry {
            Entry::Terminal(TerminalEntry::Noted(noted)) => {
                if let TerminalEvent::State(state) = noted.event {
                    self.now(Self::Program(state));
                }
            }
            Entry::Model(ModelEntry::Called(entry)) => match entry.purpose {
                // A program's own calls are part of its exchange.
                Purpose::Turn | Purpose::External | Purpose::Hook => self.now(Self::Thinking),
                Purpose::Summary => self.now(Self::SummingUp),
                // These are what a stop waits for.
                Purpose::Judge => *self = Self::Judging,
                Purpose::FinalSummary => *self = Self::FinalSummary,
            },
            Entry::Conversation(ConversationEntry::AssistantMessage(entry)) => {
                let asks = entry.content.iter().any(|block| matches!(block, Block::ToolCall(_)));
                self.now(if asks || !has_hooks {
                    Self::Starting
                } else {
                    Self::AskingHooks("asking the stop hooks")
                });
            }
            Entry::Model(ModelEntry::Retried(entry)) => {
                self.now(Self::Waiting(Instant::now() + Duration::from_millis(entry.delay_ms)));
            }
            Entry::Tool(ToolEntry::Started(entry)) => {
                let words = arguments::call(&entry.tool, &entry.input);
                self.begins(Running {
                    started: record.seq,
                    call: entry.call.clone(),
                    words,
                    since: Instant::now(),
                    output: String::new(),
                });
            }
            Entry::Tool(ToolEntry::Finished(entry)) => self.ends(|running| running.call == entry.call),
            Entry::Lifecycle(LifecycleEntry::StopRequested(_))
            | Entry::Conversation(ConversationEntry::FinalSummary(_)) => *self = Self::Stopping,
            Entry::Lifecycle(LifecycleEntry::Resumed(_)) => *self = Self::Starting,
            Entry::Conversation(ConversationEntry::Compacted(_)) => self.gated(Self::Starting),
            Entry::Gate(GateEntry::StopChecked(_)) => self.now(Self::Starting),
            Entry::Goal(GoalEntry::CheckStarted(started)) if has_hooks => {
                let asking = Self::AskingHooks("asking the stop hooks");
                match started.trigger {
                    // This is what the stop waits for.
                    GoalTrigger::Limit => *self = asking,
                    GoalTrigger::Claim | GoalTrigger::Interval => self.now(asking),
                }
            }
            Entry::Goal(GoalEntry::Judged(GoalJudged { wait_ms: Some(ms), .. })) => {
                self.now(Self::WaitingForJudge(Instant::now() + Duration::from_millis(*ms)));
            }
            Entry::Goal(GoalEntry::Verdict(GoalVerdict { trigger: GoalTrigger::Limit, .. })) => {
                *self = Self::Stopping
            }
            Entry::Goal(GoalEntry::Verdict(_)) => self.now(Self::Starting),
            Entry::Gate(GateEntry::HooksAsked(entry)) => {
                self.gated(Self::AskingHooks(waits_for(&entry.about)))
            }
            Entry::Gate(GateEntry::ApprovalRequested(_)) => self.gated(Self::AwaitingApproval),
            Entry::Gate(GateEntry::HooksDecided(_) | GateEntry::ApprovalResolved(_)) => {
                self.gated(Self::Starting)
            }
            _ => {}
        }
    }

    /// A stop that was requested stays visible until it has come.
    pub(super) fn now(&mut self, doing: Self) {
        if !matches!(self, Self::Stopping) {
            *self = doing;
        }
    }

    /// Tools that run meanwhile are more informative.
    pub(super) fn gated(&mut self, doing: Self) {
        if !matches!(self, Self::Tools(_)) {
            self.now(doing);
        }
    }

    pub(super) fn begins(&mut self, running: Running) {
        match self {
            Self::Tools(all) => all.push(running),
            _ => self.now(Self::Tools(vec![running])),
        }
    }

    pub(super) fn ends(&mut self, is_it: impl Fn(&Running) -> bool) {
        if let Self::Tools(all) = self {
            all.retain(|running| !is_it(running));
            if all.is_empty() {
                *self = Self::Starting;
            }
        }
    }

    /// The kind of state that it is.
    pub(super) const fn mark(&self) -> Mark {
        match self {
            Self::Judging | Self::WaitingForJudge(_) => Mark::Verifying,
            Self::AwaitingApproval => Mark::NeedsYou,
            Self::Waiting(_) => Mark::Waiting,
            Self::Stopping => Mark::Paused,
            Self::Starting
            | Self::Thinking
            | Self::Writing
            | Self::SummingUp
            | Self::FinalSummary
            | Self::Tools(_)
            | Self::AskingHooks(_)
            | Self::Program(_) => Mark::Working,
        }
    }

    /// Takes in the end of what its call has printed. Commands of one agent run one after the other.
    pub(super) fn prints(&mut self, output: &str) {
        if let Self::Tools(all) = self
            && let Some(running) = all.last_mut()
        {
            output.clone_into(&mut running.output);
        }
    }

    pub(super) fn in_words(&self) -> String {
        match self {
            Self::Starting => "working".to_owned(),
            Self::Thinking => "thinking".to_owned(),
            Self::Writing => "writing".to_owned(),
            Self::SummingUp => "summing up".to_owned(),
            Self::FinalSummary => "saying how far it is".to_owned(),
            Self::Judging => "verifying the goal".to_owned(),
            Self::Tools(all) => running(&all.iter().collect::<Vec<_>>()),
            Self::Waiting(until) => format!("waiting {}", left(*until)),
            Self::WaitingForJudge(until) => format!("waiting {} for a judge", left(*until)),
            Self::AskingHooks(words) => (*words).to_owned(),
            Self::AwaitingApproval => "waiting for approval".to_owned(),
            Self::Program(state) => state.to_string(),
            Self::Stopping => "stopping".to_owned(),
        }
    }
}

fn running(all: &[&Running]) -> String {
    let Some(first) = all.first() else { return "working".to_owned() };
    let others = if all.len() > 1 { format!(" and {} more", all.len() - 1) } else { String::new() };
    let took = whole_seconds(ms(first.since.elapsed()));
    format!("running {}{others} ({took})", one_line(&first.words, DOING_MAX))
}

fn left(until: Instant) -> String {
    whole_seconds(ms(until.saturating_duration_since(Instant::now())))
}
