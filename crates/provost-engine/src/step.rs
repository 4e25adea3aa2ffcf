//! What a decision comes to: entries to append and effects to perform.

use std::path::PathBuf;

use provost_event::{
    ActorKey, CallId, Effort, Entry, GoalTrigger, HookSubject, Json, NamedScript, Priority, Purpose, Seq,
    SessionId, Timestamp,
};
use serde::{Deserialize, Serialize};

use crate::moment::Moment;
use crate::{Event, Now};

/// The result of one decision. A home keeps `entries`, `effects` and `closed` in one atomic act, together with
/// the steps that `messages` lead to or durably on their way; only then are effects performed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Step {
    /// Entries to append, in order; the state already includes them.
    pub entries: Vec<Entry>,
    /// Effects to perform, each named by the entry that opened it.
    pub effects: Vec<EffectRequest>,
    /// Effects that are over: their rows go, and nobody performs them again.
    pub closed: Vec<Seq>,
    /// Effects in flight that shall stop; their results are still awaited.
    pub aborts: Vec<Seq>,
    /// Events for other actors.
    pub messages: Vec<Message>,
}

impl Step {
    /// Whether the event changed nothing: it was doubled, late or not meant for this state.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self == &Self::default()
    }
}

/// An event for another actor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Whom it is for.
    pub to: ActorKey,
    /// What it says.
    pub event: Event,
}

/// An effect with its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffectRequest {
    /// The entry that opened it; with the actor it is the effect's id and idempotency key.
    pub seq: Seq,
    /// What to do.
    pub effect: Effect,
}

/// Something to be done outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Ask the model. Answered by `Answered` or `ModelFailed`.
    Think(Think),
    /// Run a tool. Answered by `ToolDone`.
    RunTool(ToolRun),
    /// Ask the stop hooks. Answered by `StopChecked`.
    CheckStop(StopCheck),
    /// Ask a judge whether the goal is reached. Answered by `Judged`.
    Judge(JudgeCall),
    /// Ask hooks. Answered by `HooksAnswered`.
    AskHooks(Consult),
    /// Make a session's worktree, or find the one that is there already. Answered by `WorktreeReady`.
    MakeWorktree(WorktreeOrder),
    /// Look at what a session has done to its worktree. Answered by `WorktreeChecked`.
    CheckWorktree(WorktreeCheck),
    /// End the program at a session's terminal, with all that it started. Answered by `TerminalClosed`.
    CloseTerminal {
        /// Whose.
        session: SessionId,
        /// What is left of the time limit that binds the session, in milliseconds; absent without one. The end of the
        /// program is part of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit_ms: Option<u64>,
    },
    /// Wait. Answered by `TimerFired`; the home itself does this, also across restarts.
    Timer {
        /// Until when by the wall clock. Only counts where the process that set it is gone, and then only shortens.
        due: Timestamp,
        /// How long, by a clock that can't be set.
        remaining_ms: u64,
    },
}

/// A model call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Think {
    /// Who thinks.
    pub session: SessionId,
    /// In which turn.
    pub turn: u32,
    /// The last entry of the conversation that the model gets to see: the call's own `model_called`.
    pub through: Seq,
    /// From where on it sees the log.
    #[serde(default)]
    pub view: View,
    /// What for.
    #[serde(default)]
    pub purpose: Purpose,
    /// What it is asked besides, at the end of the conversation and no part of it.
    #[serde(default)]
    pub question: Option<String>,
    /// Answers the session committed before this call; compaction doesn't change it.
    pub answers_before: u32,
    /// Summaries of the conversation before this call.
    #[serde(default)]
    pub summaries_before: u32,
    /// The cap on the answer.
    pub output_tokens_max: u32,
    /// The model that is asked, by the policy's name.
    #[serde(default)]
    pub model: String,
    /// How much it shall think first.
    #[serde(default)]
    pub effort: Option<Effort>,
    /// Times as long as usual that it may say nothing.
    #[serde(default = "Think::once")]
    pub patience: u32,
}

impl Think {
    const fn once() -> u32 {
        1
    }
}

/// From where on a model sees a log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// The last entry that it doesn't see any more; 0 where it sees all.
    pub from: Seq,
    /// The entry with the summary that stands for those; 0 where there is none.
    pub summed_up_at: Seq,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolRun {
    /// Whose.
    pub session: SessionId,
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// The arguments.
    pub input: Json,
    /// How long it may take, in milliseconds.
    pub timeout_ms: u64,
    /// What is left of the time limit that binds it, in milliseconds; absent without one. What it takes to end the tool is
    /// part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_ms: Option<u64>,
    /// Bytes of output the model gets to see.
    pub output_bytes_max: usize,
    /// What the tool asked to be told at its last call.
    pub memory: Option<Json>,
    /// The scripts that the call names, as they were when somebody was asked about it: with any others it isn't run.
    /// Absent where nobody was asked, or it names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scripts: Option<Vec<NamedScript>>,
    /// Whether it is looked afterwards which files of the workspace have changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub looks_at_workspace: bool,
}

/// A question to the stop hooks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopCheck {
    /// Who wants to stop.
    pub session: SessionId,
    /// The turn that does.
    pub turn: u32,
    /// Tools called so far.
    pub tool_calls: u32,
    /// The agent's last words.
    pub final_text: String,
    /// True if stop hooks have already made the agent go on.
    pub blocked_before: bool,
    /// Why they are asked. Amid the work, and at a limit, only an agent with a goal is looked at.
    #[serde(default = "StopCheck::claim")]
    pub trigger: GoalTrigger,
    /// What is left of the time limit that binds it, in milliseconds; absent without one. What it takes to end the hooks is
    /// part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_ms: Option<u64>,
}

impl StopCheck {
    const fn claim() -> GoalTrigger {
        GoalTrigger::Claim
    }

    /// Why they are asked, in the word that hooks get.
    #[must_use]
    pub const fn stop_reason(&self) -> &'static str {
        match self.trigger {
            GoalTrigger::Claim => "end_turn",
            GoalTrigger::Interval => "interval",
            GoalTrigger::Limit => "limit",
        }
    }
}

/// A git worktree that a session needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeOrder {
    /// Who needs it.
    pub session: SessionId,
    /// The folder whose last commit it begins with.
    pub from: PathBuf,
    /// Where it shall be.
    pub path: PathBuf,
    /// The branch that it shall be on.
    pub branch: String,
    /// The commit that it shall begin with; absent for the last one of `from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// A question about a session's worktree, before it comes to a rest or an end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeCheck {
    /// Whose.
    pub session: SessionId,
    /// Where it is.
    pub path: PathBuf,
    /// The branch that was made with it.
    pub branch: String,
    /// The folder that git keeps its repository's data in.
    pub repository: PathBuf,
    /// The commit that it began with.
    pub commit: String,
    /// What becomes of it if nothing was done to it.
    pub untouched: Untouched,
}

/// What becomes of a worktree that nothing was done to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Untouched {
    /// It stays: its session may go on.
    Stays,
    /// It and its branch go.
    Goes,
}

/// A question to the hooks of a moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consult {
    /// Whose hooks.
    pub session: SessionId,
    /// In which turn, from 1.
    pub turn: u32,
    /// About what, as the log has it.
    pub about: HookSubject,
    /// What the hooks are told besides.
    pub details: ConsultDetails,
    /// What is left of the time limit that binds the session, in milliseconds; absent without one. What it takes to end the
    /// hooks is part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_ms: Option<u64>,
}

/// What hooks are told besides what the log's question says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConsultDetails {
    /// Nothing.
    None,
    /// Of a model call.
    Request {
        /// Messages and results that it will send.
        items: u32,
        /// What the provider counted of the last request, if it has.
        input_tokens: Option<u64>,
        /// Tools called since the agent last ended a turn without a call, or since it began.
        tool_calls: u32,
    },
    /// Of a tool call.
    Call(CallDetails),
    /// Of a tool call that was made.
    Result {
        /// The call.
        call: CallDetails,
        /// The entry that has its result.
        finished: Seq,
    },
    /// Of all calls of an answer.
    Batch {
        /// The calls with the entries that have their results, in order.
        calls: Vec<(CallDetails, Seq)>,
    },
    /// Of the end of a turn, or of a session.
    Text {
        /// Tools called since the agent last ended a turn without a call, or since it began; of the end of a session all.
        tool_calls: u32,
        /// The agent's last words.
        last_text: String,
    },
    /// Of a compaction that was made.
    Compacted {
        /// What stands for what was left out.
        summary: String,
    },
}

/// A tool call as hooks see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallDetails {
    /// Its name.
    pub call: CallId,
    /// Its tool.
    pub tool: String,
    /// Its arguments.
    pub input: Json,
    /// What the tool asked to be told at its last call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Json>,
    /// Why consent is needed, where it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The agent that it asks for; absent of a call of any other tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<Box<WantedAgent>>,
}

/// An agent that a call asks for, as hooks see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantedAgent {
    /// The configured sub-agent; absent for one like the agent that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// What it will be called; empty if nobody said.
    pub name: String,
    /// What it is to reach; empty if the call's arguments make no sense.
    pub goal: String,
    /// How urgent its work is, if the call says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// How many agents will stand above it.
    pub depth: u32,
}

/// One question to a judge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgeCall {
    /// Whose goal; the session's policy says which, and who judges.
    pub session: SessionId,
    /// The turn that it is about.
    pub turn: u32,
    /// The goal's generation.
    pub generation: u32,
    /// Why it is verified.
    pub trigger: GoalTrigger,
    /// The last entry that counts as evidence: the call's own `model_called`.
    pub through: Seq,
    /// Which of the policy's judges, from 0.
    pub judge: u32,
    /// Whether its last answer was no verdict.
    pub again: bool,
    /// Answers that this model has given as a judge in this session before.
    pub asked_before: u32,
    /// The cap on the answer.
    pub output_tokens_max: u32,
}

/// Collects a step while it is being decided.
#[derive(Debug)]
pub(crate) struct StepBuilder {
    now: Moment,
    step: Step,
}

impl StepBuilder {
    pub(crate) fn at(now: Now) -> Self {
        Self { now: Moment { at: now.at, elapsed: now.elapsed }, step: Step::default() }
    }

    pub(crate) const fn now(&self) -> Moment {
        self.now
    }

    pub(crate) fn entry(&mut self, entry: Entry) {
        self.step.entries.push(entry);
    }

    pub(crate) fn effect(&mut self, seq: Seq, effect: Effect) {
        self.step.effects.push(EffectRequest { seq, effect });
    }

    /// What this very step has opened under that name before is closed with it.
    pub(crate) fn close(&mut self, seq: Seq) {
        self.step.effects.retain(|request| request.seq != seq);
        self.step.closed.push(seq);
    }

    pub(crate) fn abort(&mut self, seq: Seq) {
        self.step.aborts.push(seq);
    }

    pub(crate) fn message(&mut self, message: Message) {
        self.step.messages.push(message);
    }

    pub(crate) fn finish(self) -> Step {
        self.step
    }
}
