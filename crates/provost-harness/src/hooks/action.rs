//! The actions of hooks: for each event its own few actions, and their decisions in the log.

use provost_event::HookDecision;

/// An action of a hook. It can't be implemented outside of this crate.
pub trait HookAction: Send {
    /// Its decision in the log, which is all that the engine reads.
    fn decision(self) -> HookDecision;
}

/// No action: the hook is only informed.
impl HookAction for () {
    fn decision(self) -> HookDecision {
        HookDecision::Continue
    }
}

/// The actions of [`OnPromptSubmit`](super::OnPromptSubmit) hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OnPromptSubmitAction {
    /// No objection.
    Continue,
    /// The agent never gets the message, for this reason.
    Cancel(String),
}

impl HookAction for OnPromptSubmitAction {
    fn decision(self) -> HookDecision {
        match self {
            Self::Continue => HookDecision::Continue,
            Self::Cancel(reason) => HookDecision::Deny(reason),
        }
    }
}

/// The actions of [`PreLlmRequest`](super::PreLlmRequest) hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PreLlmRequestAction {
    /// No objection.
    Continue,
    /// The run ends now, for this reason.
    Cancel(String),
    /// The run is suspended before the call.
    Yield,
}

impl HookAction for PreLlmRequestAction {
    fn decision(self) -> HookDecision {
        match self {
            Self::Continue => HookDecision::Continue,
            Self::Cancel(reason) => HookDecision::Abort(reason),
            Self::Yield => HookDecision::Pause(String::new()),
        }
    }
}

/// The actions of [`PreToolCall`](super::PreToolCall) hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PreToolCallAction {
    /// No objection.
    Continue,
    /// The call isn't made; the model gets this reason as its result.
    Deny(String),
    /// The run ends now, for this reason.
    Abort(String),
    /// The run is suspended before the call.
    Pause,
}

impl HookAction for PreToolCallAction {
    fn decision(self) -> HookDecision {
        match self {
            Self::Continue => HookDecision::Continue,
            Self::Deny(reason) => HookDecision::Deny(reason),
            Self::Abort(reason) => HookDecision::Abort(reason),
            Self::Pause => HookDecision::Pause(String::new()),
        }
    }
}

/// The actions of [`OnSpawn`](super::OnSpawn) hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OnSpawnAction {
    /// No objection.
    Continue,
    /// The agent isn't spawned; the calling model gets this reason as the call's result.
    Deny(String),
}

impl HookAction for OnSpawnAction {
    fn decision(self) -> HookDecision {
        match self {
            Self::Continue => HookDecision::Continue,
            Self::Deny(reason) => HookDecision::Deny(reason),
        }
    }
}

/// The actions of [`OnChildEnd`](super::OnChildEnd) hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OnChildEndAction {
    /// No objection.
    Continue,
    /// The run ends now, for this reason.
    Abort(String),
}

impl HookAction for OnChildEndAction {
    fn decision(self) -> HookDecision {
        match self {
            Self::Continue => HookDecision::Continue,
            Self::Abort(reason) => HookDecision::Abort(reason),
        }
    }
}

/// The actions of [`PostToolCall`](super::PostToolCall) hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PostToolCallAction {
    /// No objection.
    Continue,
    /// The run ends now, for this reason.
    Abort(String),
}

impl HookAction for PostToolCallAction {
    fn decision(self) -> HookDecision {
        match self {
            Self::Continue => HookDecision::Continue,
            Self::Abort(reason) => HookDecision::Abort(reason),
        }
    }
}

/// The actions of [`OnTurnEnd`](super::OnTurnEnd) hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OnTurnEndAction {
    /// The turn may end.
    Finish,
    /// The run is suspended.
    Pause,
}

impl HookAction for OnTurnEndAction {
    fn decision(self) -> HookDecision {
        match self {
            Self::Finish => HookDecision::Continue,
            Self::Pause => HookDecision::Pause(String::new()),
        }
    }
}

/// The actions of [`PreCompact`](super::PreCompact) hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PreCompactAction {
    /// No objection.
    Continue,
    /// The conversation stays as it is, for this reason.
    Refuse(String),
}

impl HookAction for PreCompactAction {
    fn decision(self) -> HookDecision {
        match self {
            Self::Continue => HookDecision::Continue,
            Self::Refuse(reason) => HookDecision::Deny(reason),
        }
    }
}

/// The actions of [`OnApproval`](super::OnApproval) hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OnApprovalAction {
    /// Another hook or an approver decides.
    Undecided,
    /// The call may be made, this once.
    Allow,
    /// The call isn't made; the model gets this reason as its result.
    Deny(String),
}

impl HookAction for OnApprovalAction {
    fn decision(self) -> HookDecision {
        match self {
            Self::Undecided => HookDecision::Continue,
            Self::Allow => HookDecision::Allow,
            Self::Deny(reason) => HookDecision::Deny(reason),
        }
    }
}
