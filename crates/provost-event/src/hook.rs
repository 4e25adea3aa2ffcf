//! Hooks: when they are called, and their decisions.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::skip::is_default;
use crate::{CallId, HookModel, Outcome, SessionId};

macro_rules! points {
    ($($(#[$doc:meta])* $point:ident = $name:literal,)*) => {
        /// A hook point.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum HookPoint {
            $($(#[$doc])* $point,)*
        }

        impl HookPoint {
            /// All hook points, in the order of a run.
            pub const ALL: &'static [Self] = &[$(Self::$point),*];

            /// Its name in settings and logs.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$point => $name,)* }
            }
        }
    };
}

points! {
    /// A session starts or continues.
    SessionStart = "session_start",
    /// A sub-agent starts.
    SubagentStart = "subagent_start",
    /// A message was sent, before it is committed.
    PromptSubmit = "prompt_submit",
    /// Before each model call.
    PreLlmRequest = "pre_llm_request",
    /// Before each tool call.
    PreToolCall = "pre_tool_call",
    /// Before each call that has another agent work.
    Spawn = "spawn",
    /// A tool call needs approval.
    Approval = "approval",
    /// A person is waited for, or an agent has ended.
    Notification = "notification",
    /// A spawned agent is done, or was stopped.
    ChildEnd = "child_end",
    /// After each tool call that was run.
    PostToolCall = "post_tool_call",
    /// After each tool call that succeeded.
    PostToolSuccess = "post_tool_success",
    /// After each tool call that failed.
    PostToolFailure = "post_tool_failure",
    /// All calls of one answer have results.
    PostToolBatch = "post_tool_batch",
    /// A turn ended with no tool calls.
    TurnEnd = "turn_end",
    /// A root agent is about to stop.
    Stop = "stop",
    /// A sub-agent is about to stop.
    SubagentStop = "subagent_stop",
    /// Before the conversation is shortened.
    PreCompact = "pre_compact",
    /// After the conversation was shortened.
    PostCompact = "post_compact",
    /// The session is about to be suspended or to end before its work is done.
    Abort = "abort",
    /// The session is about to end because of a failure.
    StopFailure = "stop_failure",
    /// The session is about to end.
    SessionEnd = "session_end",
}

impl HookPoint {
    /// The hook point at which an agent with this parent stops.
    #[must_use]
    pub const fn stop(parent: Option<SessionId>) -> Self {
        match parent {
            None => Self::Stop,
            Some(_) => Self::SubagentStop,
        }
    }

    /// What a refusal at this point leads to.
    #[must_use]
    pub const fn refusal(self) -> PointRefusal {
        match self {
            Self::PreToolCall
            | Self::Spawn
            | Self::Approval
            | Self::PromptSubmit
            | Self::PreCompact
            | Self::Stop
            | Self::SubagentStop => PointRefusal::Deny,
            Self::TurnEnd | Self::PostToolBatch => PointRefusal::Pause,
            Self::SessionStart
            | Self::SubagentStart
            | Self::PreLlmRequest
            | Self::ChildEnd
            | Self::PostToolCall
            | Self::PostToolSuccess
            | Self::PostToolFailure => PointRefusal::Abort,
            Self::Notification | Self::PostCompact | Self::Abort | Self::StopFailure | Self::SessionEnd => {
                PointRefusal::None
            }
        }
    }
}

/// What a hook's refusal leads to, by its hook point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointRefusal {
    /// Nothing waits for the decision.
    None,
    /// The call, prompt, compaction or stop is denied.
    Deny,
    /// The session is suspended.
    Pause,
    /// The run ends.
    Abort,
}

/// A hook, as part of the policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HookPolicy {
    /// Its name, unique among the policy's hooks.
    pub name: String,
    /// Its hook point.
    pub point: HookPoint,
    /// The tools (or sources, kinds) that it is called for, as written; all if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matcher: Option<String>,
    /// A permission pattern that a call must also match.
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// The program to run; absent for a hook of the embedding program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<HookProgram>,
    /// How its answers are interpreted.
    #[serde(default)]
    pub contract: HookContract,
    /// Its time limit, in milliseconds.
    pub timeout_ms: u64,
    /// What happens when it gives no answer.
    pub on_failure: OnFailure,
    /// Whether it may send reminders to the model.
    #[serde(default, skip_serializing_if = "is_default")]
    pub may_remind: bool,
    /// What else its program runs with, if the file that it was imported from says so.
    #[serde(default, skip_serializing_if = "is_default")]
    pub setup: HookSetup,
}

/// What the program of a hook runs with besides its command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HookSetup {
    /// The project's folder, in which relative paths of its command begin; absent: the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<PathBuf>,
    /// Variables with their values. None of them is a secret.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<(String, String)>,
    /// Whether the turn waits for it.
    #[serde(skip_serializing_if = "is_default")]
    pub waiting: HookWaiting,
    /// How often it is asked in a session.
    #[serde(skip_serializing_if = "is_default")]
    pub times: HookTimes,
}

/// Whether a turn waits for a hook.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookWaiting {
    /// It does, and the hook's answer counts.
    #[default]
    Waits,
    /// The hook runs beside the turn and decides nothing; what it tells the model comes as soon as it has said it.
    Background,
    /// The same, and a refusal by its contract wakes the agent: it gets the reason before it may end.
    Wakes,
}

/// How often a hook is asked in a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookTimes {
    /// Each time.
    #[default]
    Always,
    /// Until it has given its first answer.
    Once,
}

impl HookPolicy {
    /// A hook of the embedding program for everything at `point`, in Provost's own contract and without reminders. It
    /// has ten minutes, and its failure counts as [`OnFailure::default_at`] says.
    #[must_use]
    pub fn new(name: impl Into<String>, point: HookPoint) -> Self {
        Self {
            name: name.into(),
            point,
            matcher: None,
            condition: None,
            program: None,
            contract: HookContract::default(),
            timeout_ms: 600_000,
            on_failure: OnFailure::default_at(point),
            may_remind: false,
            setup: HookSetup::default(),
        }
    }

    /// Whether it is called for `about` in an agent with this parent.
    ///
    /// To scripts for Claude Code, a session is one that a person started: they get a sub-agent's start and end as
    /// sub-agent events. The end of an agent that another agent waits for sends no notification to a person.
    #[must_use]
    pub fn is_asked(&self, about: &HookTrigger, parent: Option<SessionId>) -> bool {
        use HookPoint as M;
        if !about.points().contains(&self.point) || about.proposer() == Some(&*self.name) {
            return false;
        }
        let of_session = matches!(self.point, M::SessionStart | M::StopFailure | M::SessionEnd);
        let of_ends = self.point == M::Notification && matches!(about, HookTrigger::Closing { .. });
        let is_persons = of_ends || (of_session && self.contract.is_foreign());
        parent.is_none() || !is_persons
    }
}

/// The program of a hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookProgram {
    /// A command for `sh -c`.
    Shell {
        /// The command.
        command: String,
    },
    /// A program without a shell.
    Exec {
        /// The program.
        program: String,
        /// Its arguments.
        args: Vec<String>,
    },
    /// An address that the hook's input is posted to.
    Http {
        /// The address.
        url: String,
        /// Headers; their values may name variables as `$NAME` or `${NAME}`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        headers: Vec<(String, String)>,
        /// The variables that headers may name; others are empty.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        allowed_env: Vec<String>,
    },
    /// A model that is asked.
    Model(Box<HookModel>),
}

/// How a hook program's answers are interpreted.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum HookContract {
    /// Provost's own: 0 continues, 2 denies with the reason on standard output, 3 ends the run; everything else is
    /// no answer.
    #[default]
    Provost,
    /// The contract of Claude Code's hooks.
    Claude,
    /// The contract of Codex's hooks: Claude Code's, with differences.
    Codex,
}

impl HookContract {
    /// Whether it is another program's contract.
    #[must_use]
    pub const fn is_foreign(self) -> bool {
        !matches!(self, Self::Provost)
    }
}

/// What happens when a hook gives no answer: it crashed, timed out, or its output is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// As if it had denied (fails closed).
    Deny,
    /// As if it had continued (fails open).
    Continue,
    /// As if it had continued, but as if it had denied where its program couldn't be run at all: nothing has been judged
    /// then. The default of other programs' contracts.
    ContinueIfRun,
}

impl OnFailure {
    /// The default at `point`: tool calls need an answer, everything else continues.
    #[must_use]
    pub const fn default_at(point: HookPoint) -> Self {
        match point {
            HookPoint::PreToolCall => Self::Deny,
            _ => Self::Continue,
        }
    }
}

/// What triggers a hook call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookTrigger {
    /// The session starts (`startup`) or continues (`resume`).
    Session {
        /// Which of the two.
        source: SessionSource,
    },
    /// A sub-agent starts.
    Subagent,
    /// A message, which the log has only here until the hooks accept it.
    Prompt {
        /// The message.
        text: String,
        /// The sender.
        by: String,
    },
    /// A model call.
    Request {
        /// The session's calls, this one included.
        call: u32,
    },
    /// A tool call, before it is made.
    Call {
        /// The call.
        call: CallId,
        /// The hook that has replaced the call's arguments, which is the only one that isn't called again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        proposer: Option<String>,
    },
    /// A call that has another agent work.
    Spawn {
        /// The call.
        call: CallId,
    },
    /// A tool call that needs approval.
    Approval {
        /// The call.
        call: CallId,
        /// As [`HookTrigger::Call`] has it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        proposer: Option<String>,
    },
    /// A tool call that was made.
    Result {
        /// The call.
        call: CallId,
        /// Whether it failed.
        is_error: bool,
    },
    /// A call that another agent worked for.
    ChildEnd {
        /// The call.
        call: CallId,
        /// Whether it failed.
        is_error: bool,
        /// The agent.
        child: SessionId,
        /// Its outcome. If that isn't final, the agent was reported while suspended, and its log ends.
        outcome: Outcome,
    },
    /// All results of one answer.
    Batch {
        /// The turn.
        turn: u32,
    },
    /// A turn without tool calls.
    TurnEnd {
        /// The turn.
        turn: u32,
    },
    /// The conversation, before it is shortened.
    Compaction,
    /// The conversation, after it was shortened.
    Compacted,
    /// The coming suspension or end.
    Closing {
        /// Its outcome.
        outcome: Outcome,
    },
}

impl HookTrigger {
    /// A tool call with the arguments that the model gave it.
    #[must_use]
    pub const fn call(call: CallId) -> Self {
        Self::Call { call, proposer: None }
    }

    /// A tool call with those arguments, which needs approval.
    #[must_use]
    pub const fn approval(call: CallId) -> Self {
        Self::Approval { call, proposer: None }
    }

    /// The hook that has replaced the arguments of the call, and isn't called for it again.
    #[must_use]
    pub fn proposer(&self) -> Option<&str> {
        match self {
            Self::Call { proposer, .. } | Self::Approval { proposer, .. } => proposer.as_deref(),
            _ => None,
        }
    }

    /// The hook points whose hooks are called for it.
    #[must_use]
    pub fn points(&self) -> &'static [HookPoint] {
        use HookPoint as M;
        match self {
            Self::Session { .. } => &[M::SessionStart],
            Self::Subagent => &[M::SubagentStart, M::SessionStart],
            Self::Prompt { .. } => &[M::PromptSubmit],
            Self::Request { .. } => &[M::PreLlmRequest],
            Self::Call { .. } => &[M::PreToolCall],
            Self::Spawn { .. } => &[M::Spawn],
            Self::Approval { .. } => &[M::Approval, M::Notification],
            Self::Result { is_error: false, .. } => &[M::PostToolCall, M::PostToolSuccess],
            Self::Result { is_error: true, .. } => &[M::PostToolCall, M::PostToolFailure],
            Self::ChildEnd { is_error: false, .. } => &[M::ChildEnd, M::PostToolCall, M::PostToolSuccess],
            Self::ChildEnd { is_error: true, .. } => &[M::ChildEnd, M::PostToolCall, M::PostToolFailure],
            Self::Batch { .. } => &[M::PostToolBatch],
            Self::TurnEnd { .. } => &[M::TurnEnd],
            Self::Compaction => &[M::PreCompact],
            Self::Compacted => &[M::PostCompact],
            Self::Closing { outcome } => match outcome {
                Outcome::Completed { .. } => &[M::Notification, M::SessionEnd],
                Outcome::Failed { .. } => &[M::Notification, M::StopFailure, M::Abort, M::SessionEnd],
                Outcome::Aborted { .. } | Outcome::Cancelled { .. } => {
                    &[M::Notification, M::Abort, M::SessionEnd]
                }
                Outcome::BudgetExhausted(_) | Outcome::Blocked { .. } | Outcome::Paused { .. } => {
                    &[M::Notification, M::Abort]
                }
            },
        }
    }
}

/// What goes on after the hooks of a trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookStage {
    /// The next model call.
    NextCall,
    /// The tool calls of an answer.
    ToolCalls,
    /// The end of a turn without tool calls.
    TurnEnd,
    /// The suspension or the end of the session.
    Closing,
}

impl HookTrigger {
    /// What goes on after its hooks.
    #[must_use]
    pub const fn stage(&self) -> HookStage {
        match self {
            Self::Session { .. }
            | Self::Subagent
            | Self::Prompt { .. }
            | Self::Request { .. }
            | Self::Compaction
            | Self::Compacted => HookStage::NextCall,
            Self::Call { .. }
            | Self::Spawn { .. }
            | Self::Approval { .. }
            | Self::Result { .. }
            | Self::ChildEnd { .. }
            | Self::Batch { .. } => HookStage::ToolCalls,
            Self::TurnEnd { .. } => HookStage::TurnEnd,
            Self::Closing { .. } => HookStage::Closing,
        }
    }
}

/// Whether a session is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionSource {
    /// It starts.
    Startup,
    /// It continues after a suspension or an interruption.
    Resume,
}
