//! One tool call of the last answer: how far it has come, and what was said of it.

use provost_event::{
    ApprovalRequested, CallId, Json, NamedScript, PermissionDecided, Seq, Timestamp, ToolCall,
};
use serde::{Deserialize, Serialize};

/// Where one tool call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Stage {
    Pending,
    /// Hooks are asked whether it may be made, or may be consented to.
    Asking(Seq),
    /// Somebody is asked for consent by the entry `asked`, until the timer that `timer` set.
    Approving {
        asked: Seq,
        timer: Seq,
    },
    Running(Seq),
    /// Another agent works for it, asked for by this entry; `rests` while that one rests.
    Delegated {
        started: Seq,
        rests: bool,
    },
    /// It has its result; hooks are asked about that.
    Reviewing(Seq),
    Done,
}

impl Stage {
    /// As it is when the session goes on: agents that rest are expected to go on too.
    pub(super) const fn resumed(self) -> Self {
        match self {
            Self::Delegated { started, .. } => Self::Delegated { started, rests: false },
            other => other,
        }
    }

    pub(super) const fn has_result(self) -> bool {
        matches!(self, Self::Reviewing(_) | Self::Done)
    }
}

/// What the hooks said of a call that is to be made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Word {
    #[default]
    Unasked,
    Free,
    Allow,
    Ask(String),
    Deny(String),
}

/// What somebody said of a call that needs consent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Consent {
    #[default]
    Unasked,
    /// The hooks that could have consented left it to somebody else.
    LeftOpen,
    Given,
    Refused(String),
}

/// A question that waits for somebody's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingApproval {
    /// The entry that asked; names the question.
    pub asked: Seq,
    /// The call.
    pub call: CallId,
    /// Its tool.
    pub tool: String,
    /// Its arguments.
    pub input: Json,
    /// Why it is asked.
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
    /// When it counts as not answered. While the session rests nobody is late.
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

    /// Whether no answer may count for more than this call, since the next one may run something else.
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
    /// What hooks said of the agent that it asks for.
    #[serde(default)]
    pub(super) spawn: Word,
    pub(super) ruling: Option<PermissionDecided>,
    pub(super) consent: Consent,
    /// The scripts that it names, as they were when somebody was to be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) scripts: Option<Vec<NamedScript>>,
    /// A hook paused the session at this call; it is asked again when the session goes on.
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
