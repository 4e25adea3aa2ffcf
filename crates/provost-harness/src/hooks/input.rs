//! The inputs of hooks: read-only views of one question.

use provost_engine::{CallDetails, HookCall, HookCallDetails, WantedAgent};
use provost_event::{
    CallId, Entry, HookTrigger, Json, Outcome, Priority, Seq, SessionId, SessionSource, ToolEntry,
    ToolFinished,
};

use super::reminders::HookInvocation;
use super::{PREVIEW_BYTES_MAX, SUMMARY_BYTES_MAX, TaskReminders};
use crate::HookQuestionTrigger;

/// A read-only view of one question.
pub trait HookInput<'a>: Sized {
    /// The view of `asked`; `None` if it is a question of another kind, or incomplete.
    fn of(asked: &'a HookInvocation) -> Option<Self>;

    /// The viewed question.
    fn asked(&self) -> &'a HookInvocation;
}

macro_rules! inputs {
    ($($(#[$doc:meta])* $input:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub struct $input<'a> {
            /// The agent.
            pub session: SessionId,
            $($(#[$field_doc])* pub $field: $type,)*
            pub(super) asked: &'a HookInvocation,
        }
    )*};
}

inputs! {
    /// The input of [`OnSessionStart`](super::OnSessionStart) hooks.
    OnSessionStartInput {
        /// Whether the session is new.
        source: SessionSource,
    }
    /// The input of [`OnPromptSubmit`](super::OnPromptSubmit) hooks.
    OnPromptSubmitInput {
        /// The message.
        text: &'a str,
        /// The turn, from 1.
        turn: u32,
        /// The sender.
        by: &'a str,
    }
    /// The input of [`PreLlmRequest`](super::PreLlmRequest) hooks.
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
        /// [`HookOptions::may_remind`](super::HookOptions::may_remind).
        reminders: Option<&'a TaskReminders>,
    }
    /// The input of [`PreToolCall`](super::PreToolCall) hooks.
    PreToolCallInput {
        /// The call.
        call: &'a CallId,
        /// Its tool.
        tool: &'a str,
        /// Its arguments.
        arguments: &'a Json,
    }
    /// The input of [`OnSpawn`](super::OnSpawn) hooks. The session is the calling agent's, which will be the new
    /// one's parent.
    OnSpawnInput {
        /// The call.
        call: &'a CallId,
        /// The configured sub-agent; absent for a copy of the parent.
        agent: Option<&'a str>,
        /// The new agent's name: the sub-agent's name, or a label; empty if there is none.
        name: &'a str,
        /// Its goal. Empty if the arguments are invalid: then no agent is spawned.
        goal: &'a str,
        /// Its priority; absent if not given: that of its parent, but normal at most.
        priority: Option<Priority>,
        /// Its nesting depth.
        depth: u32,
    }
    /// The input of [`OnChildEnd`](super::OnChildEnd) hooks. The session is the parent's.
    OnChildEndInput {
        /// The call that spawned the agent.
        call: &'a CallId,
        /// The configured sub-agent; absent for a copy of the parent.
        agent: Option<&'a str>,
        /// The spawned agent.
        child: SessionId,
        /// Its outcome. If that isn't final, it was reported to the parent all the same: the agent isn't resumed.
        outcome: &'a Outcome,
        /// The beginning of what the parent sees, at most [`SUMMARY_BYTES_MAX`](super::SUMMARY_BYTES_MAX) bytes,
        /// cut between characters.
        summary: &'a str,
        /// All that the parent sees.
        output: &'a str,
        /// The time since it was spawned, in milliseconds.
        duration_ms: u64,
    }
    /// The input of [`PostToolCall`](super::PostToolCall) hooks.
    PostToolCallInput {
        /// The call.
        call: &'a CallId,
        /// Its tool.
        tool: &'a str,
        /// Whether it failed.
        is_error: bool,
        /// The beginning of what the model sees of its output, at most
        /// [`SUMMARY_BYTES_MAX`](super::SUMMARY_BYTES_MAX) bytes, cut between characters.
        summary: &'a str,
        /// All that the model sees of its output.
        output: &'a str,
        /// How long it ran, in milliseconds.
        duration_ms: u64,
    }
    /// The input of [`OnTurnEnd`](super::OnTurnEnd) hooks.
    OnTurnEndInput {
        /// The turn, from 1.
        turn: u32,
        /// Tools called since the agent last ended a turn without a call, or since it began.
        tool_calls: u32,
        /// The beginning of the agent's last message, at most [`PREVIEW_BYTES_MAX`](super::PREVIEW_BYTES_MAX)
        /// bytes, cut between characters.
        preview: &'a str,
    }
    /// The input of [`PreCompact`](super::PreCompact) hooks.
    PreCompactInput {
        /// The turn, from 1.
        turn: u32,
    }
    /// The input of [`OnApproval`](super::OnApproval) hooks.
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
    /// The input of [`OnAbort`](super::OnAbort) hooks.
    OnAbortInput {
        /// The coming outcome.
        outcome: &'a Outcome,
    }
    /// The input of [`OnSessionEnd`](super::OnSessionEnd) hooks.
    OnSessionEndInput {
        /// The coming outcome.
        outcome: &'a Outcome,
    }
}

/// Implements [`HookInput`] for views; `read` creates their fields.
macro_rules! views {
    ($($input:ident: |$asked:ident, $hook_call:ident| $view:expr;)*) => {$(
        impl<'a> HookInput<'a> for $input<'a> {
            fn of($asked: &'a HookInvocation) -> Option<Self> {
                let $hook_call = hook_call($asked)?;
                $view
            }

            fn asked(&self) -> &'a HookInvocation {
                self.asked
            }
        }
    )*};
}

views! {
    OnSessionStartInput: |asked, hook_call| match hook_call.about {
        HookTrigger::Session { source } => Some(Self { session: hook_call.session, source, asked }),
        _ => None,
    };
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
    PreToolCallInput: |asked, hook_call| {
        let CallDetails { call, tool, input, .. } = call_of(hook_call)?;
        Some(Self { session: hook_call.session, call, tool, arguments: input, asked })
    };
    OnSpawnInput: |asked, hook_call| {
        let call = call_of(hook_call)?;
        let WantedAgent { agent, name, goal, priority, depth } = call.wanted.as_deref()?;
        Some(Self {
            session: hook_call.session,
            call: &call.call,
            agent: agent.as_deref(),
            name,
            goal,
            priority: *priority,
            depth: *depth,
            asked,
        })
    };
    OnChildEndInput: |asked, hook_call| match (&hook_call.about, &hook_call.details) {
        (HookTrigger::ChildEnd { child, outcome, .. }, HookCallDetails::Result { call, finished }) => {
            let result = result_at(asked, *finished)?;
            Some(Self {
                session: hook_call.session,
                call: &call.call,
                agent: call.wanted.as_ref().and_then(|wanted| wanted.agent.as_deref()),
                child: *child,
                outcome,
                summary: beginning(&result.output, SUMMARY_BYTES_MAX),
                output: &result.output,
                duration_ms: result.duration_ms,
                asked,
            })
        }
        _ => None,
    };
    PostToolCallInput: |asked, hook_call| match &hook_call.details {
        HookCallDetails::Result { call, finished } => {
            let result = result_at(asked, *finished)?;
            Some(Self {
                session: hook_call.session,
                call: &call.call,
                tool: &call.tool,
                is_error: result.status.is_error(),
                summary: beginning(&result.output, SUMMARY_BYTES_MAX),
                output: &result.output,
                duration_ms: result.duration_ms,
                asked,
            })
        }
        _ => None,
    };
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
    PreCompactInput: |asked, hook_call| Some(Self { session: hook_call.session, turn: hook_call.turn, asked });
    OnApprovalInput: |asked, hook_call| {
        let CallDetails { call, tool, input, why, .. } = call_of(hook_call)?;
        Some(Self { session: hook_call.session, call, tool, arguments: input, why, asked })
    };
    OnAbortInput: |asked, hook_call| {
        Some(Self { session: hook_call.session, outcome: outcome_of(hook_call)?, asked })
    };
    OnSessionEndInput: |asked, hook_call| {
        Some(Self { session: hook_call.session, outcome: outcome_of(hook_call)?, asked })
    };
}

fn hook_call(asked: &HookInvocation) -> Option<&HookCall> {
    match &asked.question.trigger {
        HookQuestionTrigger::HookCall(hook_call) => Some(hook_call),
        HookQuestionTrigger::Stop(_) => None,
    }
}

const fn call_of(hook_call: &HookCall) -> Option<&CallDetails> {
    match &hook_call.details {
        HookCallDetails::Call(call) => Some(call),
        _ => None,
    }
}

const fn outcome_of(hook_call: &HookCall) -> Option<&Outcome> {
    match &hook_call.about {
        HookTrigger::Closing { outcome } => Some(outcome),
        _ => None,
    }
}

fn result_at(asked: &HookInvocation, finished: Seq) -> Option<&ToolFinished> {
    let record = asked.question.records.iter().find(|record| record.seq == finished)?;
    match &record.entry {
        Entry::Tool(ToolEntry::Finished(result)) => Some(result),
        _ => None,
    }
}

fn beginning(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max)).unwrap_or(text)
}
