//! Hooks: who is asked when, and what they said.

use serde::{Deserialize, Serialize};

use crate::{CallId, NamedScript, Outcome, Seq, SessionId};

macro_rules! moments {
    ($($(#[$doc:meta])* $moment:ident = $name:literal,)*) => {
        /// A moment at which hooks are asked.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum HookMoment {
            $($(#[$doc])* $moment,)*
        }

        impl HookMoment {
            /// All moments, in the order in which a run comes to them.
            pub const ALL: &'static [Self] = &[$(Self::$moment),*];

            /// Its name, as settings and logs have it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$moment => $name,)* }
            }
        }
    };
}

moments! {
    /// A session begins or goes on.
    SessionStart = "session_start",
    /// A sub-agent begins.
    SubagentStart = "subagent_start",
    /// Somebody said something, before it is committed.
    PromptSubmit = "prompt_submit",
    /// Before each model call.
    PreLlmRequest = "pre_llm_request",
    /// Before each tool call.
    PreToolCall = "pre_tool_call",
    /// Before each call that has another agent work.
    Spawn = "spawn",
    /// A tool call needs somebody's consent.
    Approval = "approval",
    /// A person is waited for, or an agent has come to its end.
    Notification = "notification",
    /// The agent that was asked for is done, or was stopped.
    ChildEnd = "child_end",
    /// After each tool call that was run.
    PostToolCall = "post_tool_call",
    /// After each tool call that did what it was asked.
    PostToolSuccess = "post_tool_success",
    /// After each tool call that failed.
    PostToolFailure = "post_tool_failure",
    /// All calls of one answer have their results.
    PostToolBatch = "post_tool_batch",
    /// A turn ended with no tool calls.
    TurnEnd = "turn_end",
    /// The agent wishes to stop; one that nobody but a person asked for.
    Stop = "stop",
    /// A sub-agent wishes to stop.
    SubagentStop = "subagent_stop",
    /// Before the conversation is shortened.
    PreCompact = "pre_compact",
    /// After it was.
    PostCompact = "post_compact",
    /// The session is about to rest or end before its work is done.
    Abort = "abort",
    /// The session is about to end because of a failure.
    StopFailure = "stop_failure",
    /// The session is about to end.
    SessionEnd = "session_end",
}

impl HookMoment {
    /// The moment at which an agent with this parent wishes to stop.
    #[must_use]
    pub const fn stop(parent: Option<SessionId>) -> Self {
        match parent {
            None => Self::Stop,
            Some(_) => Self::SubagentStop,
        }
    }
}

/// A hook as the policy names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookPolicy {
    /// Who it is, unique among the policy's hooks.
    pub name: String,
    /// When it is asked.
    pub moment: HookMoment,
    /// Which tools (or sources, kinds) it wants to be asked about, as it was written; all if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matcher: Option<String>,
    /// A permission pattern that a call must meet besides.
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// What is run; absent for a hook that the embedding program brings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<HookProgram>,
    /// How its answers are read.
    #[serde(default)]
    pub contract: HookContract,
    /// How long it may take, in milliseconds.
    pub timeout_ms: u64,
    /// What it means when it gives no answer.
    pub on_failure: OnFailure,
    /// Whether it may have the model reminded of something.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_remind: bool,
}

impl HookPolicy {
    /// Whether it is asked about `about` when that happens to an agent with this parent.
    ///
    /// To scripts for Claude Code a session is what a person began: of a sub-agent's beginning and end they hear as of
    /// a sub-agent's. And no person is told of each end of an agent that another agent waits for.
    #[must_use]
    pub fn is_asked(&self, about: &HookSubject, parent: Option<SessionId>) -> bool {
        use HookMoment as M;
        if !about.moments().contains(&self.moment) {
            return false;
        }
        let of_session = matches!(self.moment, M::SessionStart | M::StopFailure | M::SessionEnd);
        let of_ends = self.moment == M::Notification && matches!(about, HookSubject::Closing { .. });
        let is_persons = of_ends || (of_session && self.contract == HookContract::Claude);
        parent.is_none() || !is_persons
    }
}

/// A program that is a hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// An address that the question is posted to.
    Http {
        /// The address.
        url: String,
        /// Headers, whose values may name variables as `$NAME` or `${NAME}`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        headers: Vec<(String, String)>,
        /// The variables that headers may name; others are empty.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        allowed_env: Vec<String>,
    },
}

/// How a hook program's answers are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookContract {
    /// Provost's own: 0 goes on, 2 says no with the reason on standard output, 3 ends the run; everything else is
    /// no answer.
    #[default]
    Provost,
    /// As scripts for Claude Code have it.
    Claude,
}

/// What it means when a hook gives no answer: it crashed, took too long, said nothing that makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// As if it had said no (fails closed).
    Deny,
    /// As if it had said nothing (fails open).
    Continue,
}

impl OnFailure {
    /// What it is at `moment` unless somebody chose: no tool call goes unchecked, everything else goes on.
    #[must_use]
    pub const fn default_at(moment: HookMoment) -> Self {
        match moment {
            HookMoment::PreToolCall => Self::Deny,
            _ => Self::Continue,
        }
    }
}

/// What hooks are asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookSubject {
    /// The session begins (`startup`) or goes on (`resume`).
    Session {
        /// Which of the two.
        source: SessionSource,
    },
    /// A sub-agent begins.
    Subagent,
    /// Somebody's words, which the log has only here until the hooks let them pass.
    Prompt {
        /// What was said.
        text: String,
        /// Who said it.
        by: String,
    },
    /// A model call.
    Request {
        /// The session's calls, this one included.
        call: u32,
    },
    /// A tool call that is to be made.
    Call {
        /// Which.
        call: CallId,
    },
    /// A call that is to have another agent work.
    Spawn {
        /// Which.
        call: CallId,
    },
    /// A tool call that needs consent.
    Approval {
        /// Which.
        call: CallId,
    },
    /// A tool call that was made.
    Result {
        /// Which.
        call: CallId,
        /// Whether it failed.
        is_error: bool,
    },
    /// A call that another agent worked for.
    ChildEnd {
        /// Which.
        call: CallId,
        /// Whether it failed.
        is_error: bool,
        /// The agent.
        child: SessionId,
        /// What it came to. One that isn't final: it was reported as it rests, and its log ends.
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
    /// The conversation, after it was.
    Compacted,
    /// The rest or end to come.
    Closing {
        /// How.
        outcome: Outcome,
    },
}

impl HookSubject {
    /// The moments whose hooks are asked about it.
    #[must_use]
    pub fn moments(&self) -> &'static [HookMoment] {
        use HookMoment as M;
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

/// Whether a session is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionSource {
    /// It is.
    Startup,
    /// It goes on after a rest or an interruption.
    Resume,
}

/// Hooks are about to be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HooksAsked {
    /// About what.
    pub about: HookSubject,
}

/// What the hooks said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HooksDecided {
    /// The entry that asked them.
    pub asked: Seq,
    /// What each that was asked said, in the order in which they were asked.
    pub reports: Vec<HookReport>,
    /// The scripts that a call names about which somebody is to be asked, as they are now: the answer is bound to them.
    /// Absent where the call names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scripts: Option<Vec<NamedScript>>,
}

/// One hook's decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookReport {
    /// Whose.
    pub hook: String,
    /// At which moment.
    pub moment: HookMoment,
    /// What it said.
    pub decision: HookDecision,
    /// What it wants the model to be reminded of; empty unless its policy lets it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reminders: Vec<String>,
    /// What a person should know of it: its own message, or what of its answer couldn't be taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// How long it took, in microseconds.
    pub duration_us: u64,
}

/// What a hook can say. Which of these an event's hooks can say at all, their types tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookDecision {
    /// Nothing against it.
    Continue,
    /// Nobody needs to be asked, as far as this hook is concerned.
    Allow,
    /// A person shall be asked, for this reason.
    Ask(String),
    /// Not this call, or this prompt, or this stop, for this reason.
    Deny(String),
    /// The session rests, for this reason.
    Pause(String),
    /// The run ends now, for this reason.
    Abort(String),
    /// No answer, for this reason; the hook's policy says what that means.
    Failed(String),
}

impl HookDecision {
    /// Its reason, to be changed; `None` for those that have none.
    pub const fn reason_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::Continue | Self::Allow => None,
            Self::Ask(reason)
            | Self::Deny(reason)
            | Self::Pause(reason)
            | Self::Abort(reason)
            | Self::Failed(reason) => Some(reason),
        }
    }
}
