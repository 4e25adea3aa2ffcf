//! What an agent did, turn by turn.

use std::collections::HashMap;

use provost_event::{
    Block, CallId, ConversationEntry, Entry, GateEntry, GoalEntry, GoalFinding, HookDecision, LifecycleEntry,
    MicroDollars, Record, Seq, SessionId, Timestamp, ToolCall, ToolEntry, ToolFinished, ToolSpec, ToolStatus,
};
use provost_harness::{Backend, BackendError, RunStatus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::status::READ_MAX;
use crate::{StateMark, ViewVersion};

/// Bytes of a call's arguments, and of its output, that are kept: the log has all.
const TEXT_BYTES_MAX: usize = 16 * 1024;

/// What an agent did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentTimeline {
    /// The version of the view.
    pub v: ViewVersion,
    /// The agent.
    pub session: SessionId,
    /// Its last entry that is part of this.
    pub head: Seq,
    /// What stands before `items` and was left out.
    pub left_out: usize,
    /// What happened, in order.
    pub items: Vec<TimelineItem>,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineItem {
    /// The entry that it begins with.
    pub entry: Seq,
    /// When.
    pub at_ms: Timestamp,
    /// What.
    #[serde(flatten)]
    pub what: TimelineEvent,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TimelineEvent {
    /// The agent answered, and made calls.
    Turn(TimelineTurn),
    /// A message to the agent.
    Said {
        /// Who.
        by: String,
        /// What.
        text: String,
    },
    /// Stop hooks were asked whether the agent may stop.
    StopHooks {
        /// Whether all of them allowed it.
        allowed: bool,
        /// Their names.
        hooks: Vec<String>,
    },
    /// Judges said whether the goal is reached.
    Goal {
        /// Whether it is.
        achieved: bool,
        /// Why.
        reason: String,
    },
    /// The agent was suspended, or its work is over.
    Outcome {
        /// In words.
        text: String,
    },
    /// The agent goes on.
    Resumed,
}

/// A turn of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineTurn {
    /// Its number, from 1.
    pub turn: u32,
    /// What the agent said; may be empty.
    pub text: String,
    /// The model that answered.
    pub model: String,
    /// Tokens of the call.
    pub tokens: u64,
    /// Its cost; null if the price isn't known.
    pub cost_micro_usd: Option<MicroDollars>,
    /// Its tool calls, in order.
    pub calls: Vec<TimelineCall>,
}

/// How far a tool call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallProgress {
    /// It hasn't been started.
    NotStarted,
    /// It is started when it is approved.
    NeedsApproval,
    /// It runs.
    Running,
    /// Its agent stopped before it had a result.
    Interrupted,
    /// It has a result.
    Finished,
}

impl CallProgress {
    /// What it is called on screens.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::NotStarted => "not started",
            Self::NeedsApproval => "needs approval",
            Self::Running => "running",
            Self::Interrupted => "interrupted",
            Self::Finished => "finished",
        }
    }
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineCall {
    /// The tool.
    pub tool: String,
    /// What matters of its arguments in one line: a command, a path.
    pub summary: String,
    /// Its arguments as JSON; of long ones the beginning.
    pub input: String,
    /// How far it is.
    pub progress: CallProgress,
    /// How it ended; null while it has no result.
    pub status: Option<ToolStatus>,
    /// What it answered; of a long text the beginning and the end. Null while it has no result.
    pub output: Option<String>,
    /// How long it took.
    pub duration_ms: Option<u64>,
}

impl TimelineCall {
    /// The mark that stands for it.
    #[must_use]
    pub const fn mark(&self) -> StateMark {
        match (self.progress, self.status) {
            (_, Some(ToolStatus::Ok)) => StateMark::Finished,
            (_, Some(_)) => StateMark::Failed,
            (CallProgress::NeedsApproval, None) => StateMark::NeedsYou,
            (CallProgress::Running | CallProgress::Finished, None) => StateMark::Working,
            (CallProgress::Interrupted, None) => StateMark::Paused,
            (CallProgress::NotStarted, None) => StateMark::Waiting,
        }
    }
}

impl AgentTimeline {
    /// Reads the last `items_max` things that an agent did.
    ///
    /// # Errors
    /// When its log can't be read.
    pub async fn read(
        backend: &dyn Backend,
        session: SessionId,
        items_max: usize,
    ) -> Result<Self, BackendError> {
        let mut reader = Reader::default();
        let mut head = Seq::START;
        loop {
            let records = backend.read(session.into(), head, READ_MAX).await?;
            let Some(last) = records.last() else { break };
            head = last.seq;
            records.iter().for_each(|record| reader.take(record));
        }
        let summary = backend.get(session.run).await?;
        if summary.is_none_or(|summary| summary.status != RunStatus::Running) {
            reader.interrupt();
        }
        let left_out = reader.items.len().saturating_sub(items_max);
        reader.items.drain(..left_out);
        Ok(Self { v: ViewVersion, session, head, left_out, items: reader.items })
    }
}

#[derive(Default)]
struct Reader {
    items: Vec<TimelineItem>,
    /// Where the calls without a result are: the item, and the call in it.
    open: HashMap<CallId, (usize, usize)>,
    /// The calls that need approval, by the entry that asks for it.
    asked: HashMap<Seq, CallId>,
    /// The argument that stands for a call, by tool.
    summaries: HashMap<String, String>,
}

impl Reader {
    fn take(&mut self, record: &Record) {
        let what = match &record.entry {
            Entry::Conversation(ConversationEntry::AssistantMessage(message)) => {
                let calls = message.content.iter().filter_map(|block| match block {
                    Block::ToolCall(call) => Some(call),
                    _ => None,
                });
                let place = self.items.len();
                for (number, call) in calls.clone().enumerate() {
                    self.open.insert(call.id.clone(), (place, number));
                }
                TimelineEvent::Turn(TimelineTurn {
                    turn: message.turn,
                    text: text_of(&message.content),
                    model: message.model.clone(),
                    tokens: message.usage.total(),
                    cost_micro_usd: message.cost,
                    calls: calls.map(|call| self.call(call)).collect(),
                })
            }
            Entry::Conversation(ConversationEntry::UserMessage(message)) => {
                TimelineEvent::Said { by: message.by.clone(), text: text_of(&message.content) }
            }
            Entry::Tool(ToolEntry::Started(started)) => {
                return self.progress(&started.call, CallProgress::Running);
            }
            Entry::Gate(GateEntry::ApprovalRequested(request)) => {
                self.asked.insert(record.seq, request.call.clone());
                return self.progress(&request.call, CallProgress::NeedsApproval);
            }
            Entry::Gate(GateEntry::ApprovalResolved(resolved)) => {
                let call = self.asked.remove(&resolved.asked);
                return call.into_iter().for_each(|call| self.progress(&call, CallProgress::NotStarted));
            }
            Entry::Tool(ToolEntry::Finished(finished)) => return self.finish(finished),
            Entry::Gate(GateEntry::StopChecked(checked)) => TimelineEvent::StopHooks {
                allowed: !checked.reports.iter().any(|report| {
                    matches!(
                        report.decision,
                        HookDecision::Deny(_) | HookDecision::Abort(_) | HookDecision::Pause(_)
                    )
                }),
                hooks: checked.reports.iter().map(|report| report.hook.clone()).collect(),
            },
            Entry::Goal(GoalEntry::Verdict(verdict)) => goal(&verdict.finding),
            Entry::Lifecycle(LifecycleEntry::Paused(paused)) => {
                self.interrupt();
                TimelineEvent::Outcome { text: paused.outcome.to_string() }
            }
            Entry::Lifecycle(LifecycleEntry::Ended(ended)) => {
                self.interrupt();
                TimelineEvent::Outcome { text: ended.outcome.to_string() }
            }
            Entry::Lifecycle(LifecycleEntry::Resumed(_)) => TimelineEvent::Resumed,
            Entry::Lifecycle(LifecycleEntry::SessionStarted(started)) => {
                return self.know(&started.policy.tools);
            }
            Entry::Tool(ToolEntry::Changed(changed)) => return self.know(&changed.added),
            _ => return,
        };
        self.items.push(TimelineItem { entry: record.seq, at_ms: record.at, what });
    }
}

impl Reader {
    fn open_call(&mut self, id: &CallId) -> Option<&mut TimelineCall> {
        let (item, call) = *self.open.get(id)?;
        match &mut self.items.get_mut(item)?.what {
            TimelineEvent::Turn(turn) => turn.calls.get_mut(call),
            _ => None,
        }
    }

    fn progress(&mut self, id: &CallId, progress: CallProgress) {
        if let Some(call) = self.open_call(id) {
            call.progress = progress;
        }
    }

    fn finish(&mut self, finished: &ToolFinished) {
        if let Some(call) = self.open_call(&finished.call) {
            call.progress = CallProgress::Finished;
            call.status = Some(finished.status);
            call.output = Some(cut(&finished.output));
            call.duration_ms = Some(finished.duration_ms);
        }
        self.open.remove(&finished.call);
    }

    /// The agent has stopped: nothing runs any more.
    fn interrupt(&mut self) {
        for id in self.open.keys().cloned().collect::<Vec<_>>() {
            if let Some(call) = self.open_call(&id).filter(|call| call.progress == CallProgress::Running) {
                call.progress = CallProgress::Interrupted;
            }
        }
    }

    fn call(&self, call: &ToolCall) -> TimelineCall {
        let input = call.input.text();
        let field = self.summaries.get(&call.name);
        let fields = call.input.read::<serde_json::Value>().unwrap_or_default();
        let summary = field.and_then(|field| fields.get(field)?.as_str()).unwrap_or(input);
        TimelineCall {
            tool: call.name.clone(),
            summary: cut(summary),
            input: cut(input),
            progress: CallProgress::NotStarted,
            status: None,
            output: None,
            duration_ms: None,
        }
    }

    /// Takes in which argument stands for a call of each tool.
    fn know(&mut self, tools: &[ToolSpec]) {
        let known =
            tools.iter().filter_map(|tool| Some((tool.name.clone(), tool.summary_field()?.to_owned())));
        self.summaries.extend(known);
    }
}

fn goal(finding: &GoalFinding) -> TimelineEvent {
    let achieved = matches!(finding, GoalFinding::Achieved { .. });
    let (GoalFinding::Achieved { reasoning: reason, .. }
    | GoalFinding::NotAchieved { reasoning: reason, .. }
    | GoalFinding::Unverified { why: reason }) = finding;
    TimelineEvent::Goal { achieved, reason: cut(reason) }
}

fn text_of(content: &[Block]) -> String {
    let texts = content.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.trim()),
        _ => None,
    });
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// Of a long text the beginning and the end.
fn cut(text: &str) -> String {
    if text.len() <= TEXT_BYTES_MAX {
        return text.to_owned();
    }
    let begins = text.floor_char_boundary(TEXT_BYTES_MAX / 2);
    let ends = text.ceil_char_boundary(text.len() - TEXT_BYTES_MAX / 2);
    let left_out = ends - begins;
    let (begin, end) = (text.get(..begins).unwrap_or_default(), text.get(ends..).unwrap_or_default());
    format!("{begin}\n… {left_out} bytes …\n{end}")
}
