//! Messages, model calls, and the end of a turn.

use provost_engine::HookCallDetails;
use provost_event::{HookDecision, HookPoint, HookTrigger, SessionId};

use super::{HookAction, HookEvent, HookInput, beginning, hook_call, sealed};
use crate::hooks::reminders::HookInvocation;
use crate::hooks::{PREVIEW_BYTES_MAX, TaskReminders};

events! {
    /// A message was sent, before it is committed.
    OnPromptSubmit: PromptSubmit, OnPromptSubmitInput => OnPromptSubmitAction;
    may "OnPromptSubmitAction::Cancel(String::new())", must_not "OnPromptSubmitAction::Abort(String::new())";

    /// A model is about to be called.
    PreLlmRequest: PreLlmRequest, PreLlmRequestInput => PreLlmRequestAction;
    may "PreLlmRequestAction::Yield", must_not "PreLlmRequestAction::Deny(String::new())";

    /// The conversation is about to be shortened.
    PreCompact: PreCompact, PreCompactInput => PreCompactAction;
    may "PreCompactAction::Refuse(String::new())", must_not "PreCompactAction::Abort(String::new())";

    /// A turn ended without tool calls.
    OnTurnEnd: TurnEnd, OnTurnEndInput => OnTurnEndAction;
    may "OnTurnEndAction::Pause", must_not "OnTurnEndAction::Continue";
}

inputs! {
    /// The input of [`OnPromptSubmit`](crate::hooks::OnPromptSubmit) hooks.
    OnPromptSubmitInput {
        /// The message.
        text: &'a str,
        /// The turn, from 1.
        turn: u32,
        /// The sender.
        by: &'a str,
    }
    /// The input of [`PreLlmRequest`](crate::hooks::PreLlmRequest) hooks.
    PreLlmRequestInput {
        /// Messages and results that the request will send.
        items: u32,
        /// The provider's token count of the last request, if known.
        last_input_tokens: Option<u64>,
        /// The turn, from 1.
        turn: u32,
        /// Tools called since the agent last ended a turn without a call, or since it began.
        tool_calls: u32,
        /// Sends reminders to the model; only present if the hook was registered with
        /// [`HookOptions::may_remind`](crate::hooks::HookOptions::may_remind).
        reminders: Option<&'a TaskReminders>,
    }
    /// The input of [`PreCompact`](crate::hooks::PreCompact) hooks.
    PreCompactInput {
        /// The turn, from 1.
        turn: u32,
    }
    /// The input of [`OnTurnEnd`](crate::hooks::OnTurnEnd) hooks.
    OnTurnEndInput {
        /// The turn, from 1.
        turn: u32,
        /// Tools called since the agent last ended a turn without a call, or since it began.
        tool_calls: u32,
        /// The beginning of the agent's last message, at most [`PREVIEW_BYTES_MAX`](crate::hooks::PREVIEW_BYTES_MAX)
        /// bytes, cut between characters.
        preview: &'a str,
    }
}

views! {
    OnPromptSubmitInput: |asked, hook_call| match &hook_call.about {
        HookTrigger::Prompt { text, by } => {
            Some(Self { session: hook_call.session, text, turn: hook_call.turn, by, asked })
        }
        _ => None,
    };
    PreLlmRequestInput: |asked, hook_call| match hook_call.details {
        HookCallDetails::Request { items, input_tokens, tool_calls } => Some(Self {
            session: hook_call.session,
            items,
            last_input_tokens: input_tokens,
            turn: hook_call.turn,
            tool_calls,
            reminders: asked.reminders.as_ref(),
            asked,
        }),
        _ => None,
    };
    PreCompactInput: |asked, hook_call| Some(Self { session: hook_call.session, turn: hook_call.turn, asked });
    OnTurnEndInput: |asked, hook_call| match (&hook_call.about, &hook_call.details) {
        (HookTrigger::TurnEnd { turn }, HookCallDetails::Text { tool_calls, last_text }) => Some(Self {
            session: hook_call.session,
            turn: *turn,
            tool_calls: *tool_calls,
            preview: beginning(last_text, PREVIEW_BYTES_MAX),
            asked,
        }),
        _ => None,
    };
}

/// The actions of [`OnPromptSubmit`](crate::hooks::OnPromptSubmit) hooks.
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

/// The actions of [`PreLlmRequest`](crate::hooks::PreLlmRequest) hooks.
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

/// The actions of [`PreCompact`](crate::hooks::PreCompact) hooks.
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

/// The actions of [`OnTurnEnd`](crate::hooks::OnTurnEnd) hooks.
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
