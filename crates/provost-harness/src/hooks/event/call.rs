//! Tool calls.

use provost_engine::{CallDetails, HookCallDetails};
use provost_event::{CallId, HookDecision, HookPoint, Json, SessionId};

use super::{HookAction, HookEvent, HookInput, beginning, call_of, hook_call, result_at, sealed};
use crate::hooks::SUMMARY_BYTES_MAX;
use crate::hooks::reminders::HookInvocation;

events! {
    /// A tool is about to be called. Unless its registration says otherwise, a hook that gives no answer counts as
    /// one that denies.
    PreToolCall: PreToolCall, PreToolCallInput => PreToolCallAction;
    may "PreToolCallAction::Deny(String::new())", must_not "PreToolCallAction::Allow";

    /// A tool call needs approval, and no approver has been asked yet.
    OnApproval: Approval, OnApprovalInput => OnApprovalAction;
    may "OnApprovalAction::Undecided", must_not "OnApprovalAction::Pause";

    /// A tool was called.
    PostToolCall: PostToolCall, PostToolCallInput => PostToolCallAction;
    may "PostToolCallAction::Abort(String::new())", must_not "PostToolCallAction::Deny(String::new())";
}

inputs! {
    /// The input of [`PreToolCall`](crate::hooks::PreToolCall) hooks.
    PreToolCallInput {
        /// The call.
        call: &'a CallId,
        /// Its tool.
        tool: &'a str,
        /// Its arguments.
        arguments: &'a Json,
    }
    /// The input of [`OnApproval`](crate::hooks::OnApproval) hooks.
    OnApprovalInput {
        /// The call.
        call: &'a CallId,
        /// Its tool.
        tool: &'a str,
        /// Its arguments.
        arguments: &'a Json,
        /// Why approval is needed.
        why: &'a str,
    }
    /// The input of [`PostToolCall`](crate::hooks::PostToolCall) hooks.
    PostToolCallInput {
        /// The call.
        call: &'a CallId,
        /// Its tool.
        tool: &'a str,
        /// Whether it failed.
        is_error: bool,
        /// The beginning of what the model sees of its output, at most
        /// [`SUMMARY_BYTES_MAX`](crate::hooks::SUMMARY_BYTES_MAX) bytes, cut between characters.
        summary: &'a str,
        /// All that the model sees of its output.
        output: &'a str,
        /// How long it ran, in milliseconds.
        duration_ms: u64,
    }
}

views! {
    PreToolCallInput: |asked, hook_call| {
        let CallDetails { call, tool, input, .. } = call_of(hook_call)?;
        Some(Self { session: hook_call.session, call, tool: &tool.name, arguments: input, asked })
    };
    OnApprovalInput: |asked, hook_call| {
        let CallDetails { call, tool, input, why, .. } = call_of(hook_call)?;
        Some(Self { session: hook_call.session, call, tool: &tool.name, arguments: input, why, asked })
    };
    PostToolCallInput: |asked, hook_call| match &hook_call.details {
        HookCallDetails::Result { call, finished } => {
            let result = result_at(asked, *finished)?;
            Some(Self {
                session: hook_call.session,
                call: &call.call,
                tool: &call.tool.name,
                is_error: result.status.is_error(),
                summary: beginning(&result.output, SUMMARY_BYTES_MAX),
                output: &result.output,
                duration_ms: result.duration_ms,
                asked,
            })
        }
        _ => None,
    };
}

/// The actions of [`PreToolCall`](crate::hooks::PreToolCall) hooks.
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

/// The actions of [`OnApproval`](crate::hooks::OnApproval) hooks.
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

/// The actions of [`PostToolCall`](crate::hooks::PostToolCall) hooks.
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
