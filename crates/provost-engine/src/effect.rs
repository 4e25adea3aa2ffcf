//! Effects: what an executor performs.

use std::path::PathBuf;

use provost_event::{
    CallId, Effort, GoalTrigger, HookTrigger, Json, NamedScript, Priority, Purpose, QuestionAnswer, Seq,
    SessionId, Timestamp, ToolIdentity,
};
use serde::{Deserialize, Serialize};

/// A request to the world outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Call the model. Answered by `Answered` or `ModelFailed`.
    CallModel(CallModel),
    /// Run a tool. Answered by `ToolDone`.
    RunTool(ToolRun),
    /// Call the stop hooks. Answered by `StopChecked`.
    CheckStop(StopCheck),
    /// Call a judge on whether the goal is reached. Answered by `Judged`.
    Judge(JudgeCall),
    /// Call hooks. Answered by `HooksAnswered`.
    AskHooks(HookCall),
    /// Make a session's worktree, or find the existing one. Answered by `WorktreeReady`.
    MakeWorktree(WorktreeOrder),
    /// Inspect a session's changes to its worktree. Answered by `WorktreeChecked`.
    CheckWorktree(WorktreeCheck),
    /// End the program at a session's terminal, with all its processes. Answered by `TerminalClosed`.
    CloseTerminal {
        /// The session.
        session: SessionId,
        /// The remaining time of the session's limit, in milliseconds; absent without one. It includes the time to
        /// end the program.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit_ms: Option<u64>,
    },
    /// Wait. Answered by `TimerFired`; the backend itself does this, also across restarts.
    Timer {
        /// The end by the wall clock. Only counts if the process that set it is gone, and then only shortens the
        /// wait.
        due: Timestamp,
        /// The duration, by a clock that can't be set.
        remaining_ms: u64,
    },
}

impl Effect {
    /// The session that it is performed for; none for a timer.
    #[must_use]
    pub const fn session(&self) -> Option<SessionId> {
        match self {
            Self::CallModel(call) => Some(call.session),
            Self::RunTool(run) => Some(run.session),
            Self::CheckStop(check) => Some(check.session),
            Self::Judge(call) => Some(call.session),
            Self::AskHooks(call) => Some(call.session),
            Self::MakeWorktree(order) => Some(order.session),
            Self::CheckWorktree(check) => Some(check.session),
            Self::CloseTerminal { session, .. } => Some(*session),
            Self::Timer { .. } => None,
        }
    }
}

/// A model call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallModel {
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: u32,
    /// The last entry of the conversation that the model sees: the call's own `model_called`.
    pub through: Seq,
    /// The part of the log that it sees.
    #[serde(default)]
    pub view: View,
    /// The entry since which the agent's policy applies; 0 if it is the first entry's. The model is offered the tools
    /// as of that entry or a later one.
    #[serde(default)]
    pub policy_since: Seq,
    /// The purpose.
    #[serde(default)]
    pub purpose: Purpose,
    /// An extra question at the end of the request, which is no part of the conversation.
    #[serde(default)]
    pub question: Option<String>,
    /// Answers that the session committed before this call; compaction doesn't change it.
    pub answers_before: u32,
    /// Summaries of the conversation before this call.
    #[serde(default)]
    pub summaries_before: u32,
    /// The cap on the answer.
    pub output_tokens_max: u32,
    /// The model that is asked, by the policy's name.
    #[serde(default)]
    pub model: String,
    /// The thinking effort.
    #[serde(default)]
    pub effort: Option<Effort>,
    /// The factor on the usual time that it may be silent.
    #[serde(default = "CallModel::once")]
    pub patience: u32,
}

impl CallModel {
    const fn once() -> u32 {
        1
    }
}

/// The part of a log that a model sees.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// The last entry that it doesn't see; 0 if it sees all.
    pub from: Seq,
    /// The entry with the summary that replaces those; 0 if there is none.
    pub summed_up_at: Seq,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolRun {
    /// The session.
    pub session: SessionId,
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// The arguments.
    pub input: Json,
    /// The timeout, in milliseconds.
    pub timeout_ms: u64,
    /// The remaining time of the limit that applies, in milliseconds; absent without one. It includes the time to
    /// end the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_ms: Option<u64>,
    /// Maximum bytes of output for the model.
    pub output_bytes_max: usize,
    /// The state from the tool's last call.
    pub memory: Option<Json>,
    /// The scripts that the call names, as they were when it was approved: with any others it isn't run. Absent if
    /// no approval was requested, or it names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scripts: Option<Vec<NamedScript>>,
    /// The folders besides the workspace that the file tools reach.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<PathBuf>,
    /// The file or folder elsewhere that this call may read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted: Option<PathBuf>,
    /// Whether it runs outside of the agent's sandbox, which a person approved.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outside: bool,
    /// Which rules of the folders that it works in to look for; absent where none are to be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<RulesSought>,
    /// Whether to look before which files the workspace has, if that hasn't been done since it was last looked at
    /// afterwards: only what changes during the agent's own calls counts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub looks_before: bool,
    /// Whether to look afterwards which files of the workspace have changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub looks_at_workspace: bool,
    /// The user's answer to what the tool asked when this call was made before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Box<QuestionAnswer>>,
}

/// The rules for agents that a session can still be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RulesSought {
    /// The files that it knows, relative to the workspace.
    pub known: Vec<String>,
    /// Maximum bytes of further files.
    pub bytes_max: u64,
}

/// A call of the stop hooks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopCheck {
    /// The session that asks to stop.
    pub session: SessionId,
    /// Its turn.
    pub turn: u32,
    /// Tools called so far.
    pub tool_calls: u32,
    /// The agent's final answer.
    pub final_text: String,
    /// Whether stop hooks have already made the agent continue.
    pub blocked_before: bool,
    /// Why they are called. During the work, and at a limit, only an agent with a goal is checked.
    #[serde(default = "StopCheck::claim")]
    pub trigger: GoalTrigger,
    /// The remaining time of the limit that applies, in milliseconds; absent without one. It includes the time to
    /// end the hooks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_ms: Option<u64>,
    /// The tool that runs the agent's commands, and its state: they determine the agent's current folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<ToolMemory>,
    /// The hooks that are asked once and have answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spent: Vec<String>,
}

/// A tool, and its state from its last call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolMemory {
    /// The tool.
    pub tool: String,
    /// Its state.
    pub memory: Json,
}

impl StopCheck {
    const fn claim() -> GoalTrigger {
        GoalTrigger::Claim
    }

    /// Why they are called, as hooks get it.
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
    /// The session.
    pub session: SessionId,
    /// The folder whose last commit it begins with.
    pub from: PathBuf,
    /// Its path.
    pub path: PathBuf,
    /// Its branch.
    pub branch: String,
    /// Its first commit; absent for the last one of `from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// A request to inspect a session's worktree before the session stops.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeCheck {
    /// The session.
    pub session: SessionId,
    /// Its path.
    pub path: PathBuf,
    /// The branch that was made with it.
    pub branch: String,
    /// The folder in which git keeps its repository's data.
    pub repository: PathBuf,
    /// The commit that it began with.
    pub commit: String,
    /// What happens to it if it is unchanged.
    pub when_clean: CleanWorktree,
}

/// What happens to an unchanged worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CleanWorktree {
    /// It stays: its session may be resumed.
    Stays,
    /// It is removed with its branch.
    Goes,
}

/// A call of the hooks of a hook point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookCall {
    /// The session.
    pub session: SessionId,
    /// The turn, from 1.
    pub turn: u32,
    /// The trigger, as logged.
    pub about: HookTrigger,
    /// Additional input for the hooks.
    pub details: HookCallDetails,
    /// The remaining time of the session's limit, in milliseconds; absent without one. It includes the time to end
    /// the hooks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_ms: Option<u64>,
    /// As [`StopCheck::shell`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<ToolMemory>,
    /// As [`StopCheck::spent`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spent: Vec<String>,
}

/// Input for hooks in addition to the logged trigger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookCallDetails {
    /// None.
    None,
    /// Of a model call.
    Request {
        /// The number of messages and results that it will send.
        items: u32,
        /// The provider's count of the last request, if known.
        input_tokens: Option<u64>,
        /// Tools called since the agent last ended a turn without a call, or since it began.
        tool_calls: u32,
    },
    /// Of a tool call.
    Call(CallDetails),
    /// Of a tool call that was run.
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
        /// Tools called since the agent last ended a turn without a call, or since it began; all of them at the
        /// end of a session.
        tool_calls: u32,
        /// The agent's final answer.
        last_text: String,
    },
    /// Of a compaction that was made.
    Compacted {
        /// The replacement for what was left out.
        summary: String,
    },
}

/// A tool call as hooks see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallDetails {
    /// Its id.
    pub call: CallId,
    /// Its tool.
    pub tool: Box<ToolIdentity>,
    /// Its arguments.
    pub input: Json,
    /// The state from the tool's last call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Json>,
    /// Why approval is needed, if it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The agent that it requests; absent for a call of any other tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<Box<WantedAgent>>,
}

/// An agent that a call requests, as hooks see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantedAgent {
    /// The configured sub-agent; absent for one like the requesting agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Its name; empty if the call gives none.
    pub name: String,
    /// Its goal; empty if the call's arguments are invalid.
    pub goal: String,
    /// Its priority, if the call gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// How many agents will be above it.
    pub depth: u32,
}

/// A call of a judge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgeCall {
    /// The session; its policy has the goal and the judges.
    pub session: SessionId,
    /// The turn that is judged.
    pub turn: u32,
    /// The goal's generation.
    pub generation: u32,
    /// Why the goal is verified.
    pub trigger: GoalTrigger,
    /// The last entry that counts as evidence: the call's own `model_called`.
    pub through: Seq,
    /// The index of the judge in the policy, from 0.
    pub judge: u32,
    /// Whether its last answer was no verdict.
    pub again: bool,
    /// Answers that this model has given before as a judge in this session.
    pub asked_before: u32,
    /// The cap on the answer.
    pub output_tokens_max: u32,
}
