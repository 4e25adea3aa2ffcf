//! Which hooks are called when, and with what input.

use provost_event::{CallId, HookTrigger, Outcome, Seq};

use crate::HookCallDetails;
use crate::session::{Deciding, Phase, SessionState};

pub(in crate::session) fn stop_asking(deciding: &mut Deciding<'_>) {
    deciding.state.hooks.entries().into_iter().for_each(|seq| deciding.step.abort(seq));
}

impl SessionState {
    /// The open question before the session stops: to hooks, to the terminal, or about the worktree.
    pub(in crate::session) fn closing(&self) -> Option<Seq> {
        let asked = self.hooks.closing();
        asked.or_else(|| self.terminal.question()).or_else(|| self.worktree.question())
    }
}

/// The question to hooks before the next model call.
pub(in crate::session) fn preparation(state: &SessionState) -> Option<HookTrigger> {
    state.hooks.before_request(state.turns.model_calls().saturating_add(1), &state.assignment)
}

pub(in crate::session) fn details(state: &SessionState, about: &HookTrigger) -> HookCallDetails {
    match about {
        HookTrigger::Request { .. } => HookCallDetails::Request {
            items: state.conversation.items(),
            input_tokens: state.conversation.last_input_tokens(),
            tool_calls: state.calls.made_since_stop(),
        },
        HookTrigger::Call { call, .. } | HookTrigger::Spawn { call } | HookTrigger::Approval { call, .. } => {
            let details = state.calls.details(call, &state.assignment);
            details.map_or(HookCallDetails::None, HookCallDetails::Call)
        }
        HookTrigger::Result { call, .. } | HookTrigger::ChildEnd { call, .. } => {
            result_details(state, call).unwrap_or(HookCallDetails::None)
        }
        HookTrigger::Batch { .. } => {
            HookCallDetails::Batch { calls: state.calls.finished_details(&state.assignment) }
        }
        HookTrigger::TurnEnd { .. } => HookCallDetails::Text {
            tool_calls: state.calls.made_since_stop(),
            last_text: state.last_text().to_owned(),
        },
        HookTrigger::Closing { .. } => {
            HookCallDetails::Text { tool_calls: state.calls.made(), last_text: state.last_text().to_owned() }
        }
        HookTrigger::Compacted => {
            HookCallDetails::Compacted { summary: state.conversation.summary().to_owned() }
        }
        _ => HookCallDetails::None,
    }
}

fn result_details(state: &SessionState, id: &CallId) -> Option<HookCallDetails> {
    let call = state.calls.details(id, &state.assignment)?;
    Some(HookCallDetails::Result { call, finished: state.calls.result_of(id)? })
}

/// The trigger for hooks on an outcome like this, if any is configured.
pub(in crate::session) fn closing_trigger(state: &SessionState, outcome: &Outcome) -> Option<HookTrigger> {
    let about = HookTrigger::Closing { outcome: outcome.clone() };
    // Hooks run in the session's folder.
    let has_begun = state.lifecycle.phase() != Phase::New && !state.worktree.is_missing();
    (has_begun && state.assignment.has_hooks_for(&about)).then_some(about)
}
