//! One tool call of the last answer: its stage, and the decisions about it.

use provost_event::{
    ApprovalRequested, CallId, Json, NamedScript, PermissionDecided, Seq, Timestamp, ToolCall,
};
use serde::{Deserialize, Serialize};

/// The stage of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Stage {
    Pending,
    /// Hooks are called on whether it may be made, or may be approved.
    Asking(Seq),
    /// It needs approval, requested by the entry `asked`, until the timer that `timer` set.
    Approving {
        asked: Seq,
        timer: Seq,
    },
    Running(Seq),
    /// A sub-agent works for it, requested by this entry; `suspended` while that agent is suspended.
    Delegated {
        started: Seq,
        suspended: bool,
    },
    /// It has its result; hooks are called about that.
    Reviewing(Seq),
    Done,
}

impl Stage {
    /// The stage when the session is resumed: suspended sub-agents are expected to be resumed too.
    pub(super) const fn resumed(self) -> Self {
        match self {
            Self::Delegated { started, .. } => Self::Delegated { started, suspended: false },
            other => other,
        }
    }

    pub(super) const fn has_result(self) -> bool {
        matches!(self, Self::Reviewing(_) | Self::Done)
    }
}

/// The hooks' decision on a call that is to be made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Word {
    #[default]
    Unasked,
    Free,
    Allow,
    Ask(String),
    Deny(String),
}

/// The decision on a call that needs approval.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Consent {
    #[default]
    Unasked,
    /// The hooks that could have approved it left it to a person.
    LeftOpen,
    Given,
    Refused(String),
}

/// An open approval question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingApproval {
    /// The entry that asked; identifies the question.
    pub asked: Seq,
    /// The call.
    pub call: CallId,
    /// Its tool.
    pub tool: String,
    /// Its arguments.
    pub input: Json,
    /// Why approval is needed.
    pub why: String,
    /// The narrowest pattern that covers it.
    pub pattern: String,
    /// The scripts that the answer is bound to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scripts: Vec<NamedScript>,
    /// Whether it may run files that its text doesn't name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unnamed: bool,
    /// When it was asked.
    pub since: Timestamp,
    /// When it expires. While the session is suspended no question does.
    pub due: Timestamp,
}

impl PendingApproval {
    pub(super) fn new(asked: Seq, request: &ApprovalRequested, since: Timestamp) -> Self {
        Self {
            asked,
            call: request.call.clone(),
            tool: request.tool.clone(),
            input: request.input.clone(),
            why: request.why.clone(),
            pattern: request.pattern.clone(),
            scripts: request.scripts.clone(),
            unnamed: request.unnamed,
            since,
            due: request.due,
        }
    }

    /// Whether an answer may only count for this call, because the next one may run something else.
    pub(super) const fn is_for_one_call(&self) -> bool {
        self.unnamed || !self.scripts.is_empty()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Call {
    pub(super) id: CallId,
    pub(super) tool: String,
    pub(super) input: Json,
    pub(super) malformed: Option<String>,
    pub(super) stage: Stage,
    pub(super) word: Word,
    /// The hooks' decision on the agent that it requests.
    #[serde(default)]
    pub(super) spawn: Word,
    pub(super) ruling: Option<PermissionDecided>,
    pub(super) consent: Consent,
    /// The scripts that it names, as they were when approval was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) scripts: Option<Vec<NamedScript>>,
    /// A hook paused the session at this call; the hook is called again when the session is resumed.
    pub(super) paused: bool,
    /// The entry with its result.
    pub(super) finished: Option<Seq>,
}

impl Call {
    pub(super) fn new(call: &ToolCall) -> Self {
        Self {
            id: call.id.clone(),
            tool: call.name.clone(),
            input: call.input.clone(),
            malformed: call.malformed.clone(),
            stage: Stage::Pending,
            word: Word::default(),
            spawn: Word::default(),
            ruling: None,
            consent: Consent::default(),
            scripts: None,
            paused: false,
            finished: None,
        }
    }
}
