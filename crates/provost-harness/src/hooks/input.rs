//! What hooks are told: read-only views of one question.

use provost_engine::{CallDetails, Consult, ConsultDetails, WantedAgent};
use provost_event::{
    CallId, Entry, HookSubject, Json, Outcome, Priority, Seq, SessionId, SessionSource, ToolFinished,
};

use super::reminders::Asked;
use super::{PREVIEW_BYTES_MAX, SUMMARY_BYTES_MAX, TaskReminders};
use crate::HookQuestionSubject;

/// A read-only view of one question.
pub trait HookInput<'a>: Sized {
    /// The view of `asked`; `None` if it is a question of another kind, or not all of it is known.
    fn of(asked: &'a Asked) -> Option<Self>;

    /// What it is a view of.
    fn asked(&self) -> &'a Asked;
}

macro_rules! inputs {
    ($($(#[$doc:meta])* $input:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub struct $input<'a> {
            /// The agent.
            pub session: SessionId,
            $($(#[$field_doc])* pub $field: $type,)*
            pub(super) asked: &'a Asked,
        }
    )*};
}

inputs! {
    /// What [`OnSessionStart`](super::OnSessionStart) hooks are told.
    OnSessionStartInput {
        /// Whether it is new.
        source: SessionSource,
    }
    /// What [`OnPromptSubmit`](super::OnPromptSubmit) hooks are told.
    OnPromptSubmitInput {
        /// What was said.
        text: &'a str,
        /// In which turn, from 1.
        turn: u32,
        /// Who said it.
        by: &'a str,
    }
    /// What [`PreLlmRequest`](super::PreLlmRequest) hooks are told.
    PreLlmRequestInput {
        /// Messages and results that the request will send.
        items: u32,
        /// What the provider counted of the last request, if it has.
        last_input_tokens: Option<u64>,
        /// The turn, from 1.
        turn: u32,
        /// Tools called since the agent last ended a turn without a call, or since it began.
        tool_calls: u32,
        /// The way to say something to the model; only there if the hook was registered with
        /// [`HookOptions::may_remind`](super::HookOptions::may_remind).
        reminders: Option<&'a TaskReminders>,
    }
    /// What [`PreToolCall`](super::PreToolCall) hooks are told.
    PreToolCallInput {
        /// The call.
        call: &'a CallId,
        /// Its tool.
        tool: &'a str,
        /// Its arguments.
        arguments: &'a Json,
    }
    /// What [`OnSpawn`](super::OnSpawn) hooks are told. The session is that of the agent that asks, which will be the
    /// new one's parent.
    OnSpawnInput {
        /// The call.
        call: &'a CallId,
        /// The configured sub-agent that is asked for; absent for one like the agent that asks.
        agent: Option<&'a str>,
        /// What it will be called: the sub-agent's name, or a label; empty if nobody said.
        name: &'a str,
        /// What it is to reach. Empty if the arguments make no sense: then there will be no agent.
        goal: &'a str,
        /// How urgent its work is; absent where nobody said: as urgent as the agent that asks, but normal at most.
        priority: Option<Priority>,
        /// How many agents will stand above it.
        depth: u32,
    }
    /// What [`OnChildEnd`](super::OnChildEnd) hooks are told. The session is that of the agent that asked.
    OnChildEndInput {
        /// The call that asked for the agent.
        call: &'a CallId,
        /// The configured sub-agent that it was; absent for one like the agent that asked.
        agent: Option<&'a str>,
        /// Whose work it was.
        child: SessionId,
        /// What it came to. One that isn't final was reported to the agent that asked all the same: nobody goes on
        /// with it.
        outcome: &'a Outcome,
        /// The beginning of what the agent that asked gets to see, at most
        /// [`SUMMARY_BYTES_MAX`](super::SUMMARY_BYTES_MAX) bytes, cut between characters.
        summary: &'a str,
        /// All that it gets to see.
        output: &'a str,
        /// How long it took since it was asked for, in milliseconds.
        duration_ms: u64,
    }
    /// What [`PostToolCall`](super::PostToolCall) hooks are told.
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
    /// What [`OnTurnEnd`](super::OnTurnEnd) hooks are told.
    OnTurnEndInput {
        /// The turn, from 1.
        turn: u32,
        /// Tools called since the agent last ended a turn without a call, or since it began.
        tool_calls: u32,
        /// The beginning of the agent's last words, at most [`PREVIEW_BYTES_MAX`](super::PREVIEW_BYTES_MAX) bytes,
        /// cut between characters.
        preview: &'a str,
    }
    /// What [`PreCompact`](super::PreCompact) hooks are told.
    PreCompactInput {
        /// The turn, from 1.
        turn: u32,
    }
    /// What [`OnApproval`](super::OnApproval) hooks are told.
    OnApprovalInput {
        /// The call.
        call: &'a CallId,
        /// Its tool.
        tool: &'a str,
        /// Its arguments.
        arguments: &'a Json,
        /// Why consent is needed.
        why: &'a str,
    }
    /// What [`OnAbort`](super::OnAbort) hooks are told.
    OnAbortInput {
        /// How the session will rest or end.
        outcome: &'a Outcome,
    }
    /// What [`OnSessionEnd`](super::OnSessionEnd) hooks are told.
    OnSessionEndInput {
        /// How the session will end.
        outcome: &'a Outcome,
    }
}

/// Writes [`HookInput`] for views of which `read` makes the fields.
macro_rules! views {
    ($($input:ident: |$asked:ident, $consult:ident| $view:expr;)*) => {$(
        impl<'a> HookInput<'a> for $input<'a> {
            fn of($asked: &'a Asked) -> Option<Self> {
                let $consult = consult($asked)?;
                $view
            }

            fn asked(&self) -> &'a Asked {
                self.asked
            }
        }
    )*};
}

views! {
    OnSessionStartInput: |asked, consult| match consult.about {
        HookSubject::Session { source } => Some(Self { session: consult.session, source, asked }),
        _ => None,
    };
    OnPromptSubmitInput: |asked, consult| match &consult.about {
        HookSubject::Prompt { text, by } => {
            Some(Self { session: consult.session, text, turn: consult.turn, by, asked })
        }
        _ => None,
    };
    PreLlmRequestInput: |asked, consult| match consult.details {
        ConsultDetails::Request { items, input_tokens, tool_calls } => Some(Self {
            session: consult.session,
            items,
            last_input_tokens: input_tokens,
            turn: consult.turn,
            tool_calls,
            reminders: asked.reminders.as_ref(),
            asked,
        }),
        _ => None,
    };
    PreToolCallInput: |asked, consult| {
        let CallDetails { call, tool, input, .. } = call_of(consult)?;
        Some(Self { session: consult.session, call, tool, arguments: input, asked })
    };
    OnSpawnInput: |asked, consult| {
        let call = call_of(consult)?;
        let WantedAgent { agent, name, goal, priority, depth } = call.wanted.as_deref()?;
        Some(Self {
            session: consult.session,
            call: &call.call,
            agent: agent.as_deref(),
            name,
            goal,
            priority: *priority,
            depth: *depth,
            asked,
        })
    };
    OnChildEndInput: |asked, consult| match (&consult.about, &consult.details) {
        (HookSubject::ChildEnd { child, outcome, .. }, ConsultDetails::Result { call, finished }) => {
            let result = result_at(asked, *finished)?;
            Some(Self {
                session: consult.session,
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
    PostToolCallInput: |asked, consult| match &consult.details {
        ConsultDetails::Result { call, finished } => {
            let result = result_at(asked, *finished)?;
            Some(Self {
                session: consult.session,
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
    OnTurnEndInput: |asked, consult| match (&consult.about, &consult.details) {
        (HookSubject::TurnEnd { turn }, ConsultDetails::Text { tool_calls, last_text }) => Some(Self {
            session: consult.session,
            turn: *turn,
            tool_calls: *tool_calls,
            preview: beginning(last_text, PREVIEW_BYTES_MAX),
            asked,
        }),
        _ => None,
    };
    PreCompactInput: |asked, consult| Some(Self { session: consult.session, turn: consult.turn, asked });
    OnApprovalInput: |asked, consult| {
        let CallDetails { call, tool, input, why, .. } = call_of(consult)?;
        Some(Self { session: consult.session, call, tool, arguments: input, why, asked })
    };
    OnAbortInput: |asked, consult| {
        Some(Self { session: consult.session, outcome: outcome_of(consult)?, asked })
    };
    OnSessionEndInput: |asked, consult| {
        Some(Self { session: consult.session, outcome: outcome_of(consult)?, asked })
    };
}

fn consult(asked: &Asked) -> Option<&Consult> {
    match &asked.question.subject {
        HookQuestionSubject::Consult(consult) => Some(consult),
        HookQuestionSubject::Stop(_) => None,
    }
}

const fn call_of(consult: &Consult) -> Option<&CallDetails> {
    match &consult.details {
        ConsultDetails::Call(call) => Some(call),
        _ => None,
    }
}

const fn outcome_of(consult: &Consult) -> Option<&Outcome> {
    match &consult.about {
        HookSubject::Closing { outcome } => Some(outcome),
        _ => None,
    }
}

fn result_at(asked: &Asked, finished: Seq) -> Option<&ToolFinished> {
    let record = asked.question.records.iter().find(|record| record.seq == finished)?;
    match &record.entry {
        Entry::ToolFinished(result) => Some(result),
        _ => None,
    }
}

fn beginning(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max)).unwrap_or(text)
}
