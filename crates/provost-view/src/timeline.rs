//! What an agent did, turn by turn.

use std::collections::HashMap;

use provost_event::{
    Block, CallId, ConversationEntry, Entry, GateEntry, GoalEntry, GoalFinding, HookDecision, LifecycleEntry,
    MicroDollars, Record, Seq, SessionId, Timestamp, ToolCall, ToolEntry, ToolSpec, ToolStatus,
};
use provost_harness::{Backend, BackendError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ViewVersion;
use crate::status::READ_MAX;

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

/// A tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineCall {
    /// The tool.
    pub tool: String,
    /// What matters of its arguments in one line: a command, a path.
    pub summary: String,
    /// Its arguments as JSON; of long ones the beginning.
    pub input: String,
    /// How it ended; null while it has no result.
    pub status: Option<ToolStatus>,
    /// What it answered; of a long text the beginning and the end. Null while it has no result.
    pub output: Option<String>,
    /// How long it took.
    pub duration_ms: Option<u64>,
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
            Entry::Tool(ToolEntry::Finished(finished)) => {
                let place = self.open.remove(&finished.call);
                let call = place.and_then(|(item, call)| match &mut self.items.get_mut(item)?.what {
                    TimelineEvent::Turn(turn) => turn.calls.get_mut(call),
                    _ => None,
                });
                if let Some(call) = call {
                    call.status = Some(finished.status);
                    call.output = Some(cut(&finished.output));
                    call.duration_ms = Some(finished.duration_ms);
                }
                return;
            }
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
                TimelineEvent::Outcome { text: paused.outcome.to_string() }
            }
            Entry::Lifecycle(LifecycleEntry::Ended(ended)) => {
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
    fn call(&self, call: &ToolCall) -> TimelineCall {
        let input = call.input.text();
        let field = self.summaries.get(&call.name);
        let fields = call.input.read::<serde_json::Value>().unwrap_or_default();
        let summary = field.and_then(|field| fields.get(field)?.as_str()).unwrap_or(input);
        TimelineCall {
            tool: call.name.clone(),
            summary: cut(summary),
            input: cut(input),
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
