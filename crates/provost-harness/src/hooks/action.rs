//! What hooks can say: for each event its own few actions, and the word of the log for each.

use provost_event::HookDecision;

/// Something that a hook can say. Nobody else can make one.
pub trait HookAction: Send {
    /// Its word in the log, which is all that the engine reads.
    fn decision(self) -> HookDecision;
}

/// Nothing to say: the hook was only told.
impl HookAction for () {
    fn decision(self) -> HookDecision {
        HookDecision::Continue
    }
}

/// What [`OnPromptSubmit`](super::OnPromptSubmit) hooks can say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OnPromptSubmitAction {
    /// Nothing against it.
    Continue,
    /// The agent never hears of it, for this reason.
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

/// What [`PreLlmRequest`](super::PreLlmRequest) hooks can say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PreLlmRequestAction {
    /// Nothing against it.
    Continue,
    /// The run ends now, for this reason.
    Cancel(String),
    /// The run rests before the call.
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

/// What [`PreToolCall`](super::PreToolCall) hooks can say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PreToolCallAction {
    /// Nothing against it.
    Continue,
    /// The call isn't made; the model is given this reason as its result.
    Deny(String),
    /// The run ends now, for this reason.
    Abort(String),
    /// The run rests before the call.
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

/// What [`OnSpawn`](super::OnSpawn) hooks can say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OnSpawnAction {
    /// Nothing against it.
    Continue,
    /// There will be no such agent; the model that asks is given this reason as the call's result.
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

/// What [`OnChildEnd`](super::OnChildEnd) hooks can say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OnChildEndAction {
    /// Nothing against it.
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

/// What [`PostToolCall`](super::PostToolCall) hooks can say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PostToolCallAction {
    /// Nothing against it.
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

/// What [`OnTurnEnd`](super::OnTurnEnd) hooks can say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OnTurnEndAction {
    /// It may end.
    Finish,
    /// The run rests.
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

/// What [`PreCompact`](super::PreCompact) hooks can say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PreCompactAction {
    /// Nothing against it.
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

/// What [`OnApproval`](super::OnApproval) hooks can say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OnApprovalAction {
    /// Somebody else shall answer.
    Undecided,
    /// The call may be made, this once.
    Allow,
    /// The call isn't made; the model is given this reason as its result.
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
