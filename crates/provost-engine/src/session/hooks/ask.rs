//! Which hooks are called when, and with what input.

use provost_event::{CallId, HookTrigger, Outcome, Seq};

use crate::HookCallDetails;
use crate::session::{Deciding, Phase, SessionState};

pub(in crate::session) fn stop_asking(deciding: &mut Deciding<'_>) {
    deciding.state.hooks.entries().into_iter().for_each(|seq| deciding.step.abort(seq));
}

impl SessionState {
    /// The question to hooks before the next model call.
    pub(in crate::session) fn preparation(&self) -> Option<HookTrigger> {
        self.hooks.before_request(self.turns.model_calls().saturating_add(1), &self.assignment)
    }

    /// The open question before the session stops: to hooks, to the terminal, or about the worktree.
    pub(in crate::session) fn closing(&self) -> Option<Seq> {
        let asked = self.hooks.closing();
        asked.or_else(|| self.terminal.question()).or_else(|| self.worktree.question())
    }

    pub(in crate::session) fn details(&self, about: &HookTrigger) -> HookCallDetails {
        match about {
            HookTrigger::Session { .. }
            | HookTrigger::Subagent
            | HookTrigger::Prompt { .. }
            | HookTrigger::Compaction => HookCallDetails::None,
            HookTrigger::Request { .. } => HookCallDetails::Request {
                items: self.conversation.items(),
                input_tokens: self.conversation.last_input_tokens(),
                tool_calls: self.calls.made_since_stop(),
            },
            HookTrigger::Call { call } | HookTrigger::Spawn { call } | HookTrigger::Approval { call } => {
                let details = self.calls.details(call, &self.assignment);
                details.map_or(HookCallDetails::None, HookCallDetails::Call)
            }
            HookTrigger::Result { call, .. } | HookTrigger::ChildEnd { call, .. } => {
                self.result_details(call).unwrap_or(HookCallDetails::None)
            }
            HookTrigger::Batch { .. } => {
                HookCallDetails::Batch { calls: self.calls.finished_details(&self.assignment) }
            }
            HookTrigger::TurnEnd { .. } => HookCallDetails::Text {
                tool_calls: self.calls.made_since_stop(),
                last_text: self.last_text().to_owned(),
            },
            HookTrigger::Closing { .. } => HookCallDetails::Text {
                tool_calls: self.calls.made(),
                last_text: self.last_text().to_owned(),
            },
            HookTrigger::Compacted => {
                HookCallDetails::Compacted { summary: self.conversation.summary().to_owned() }
            }
        }
    }

    fn result_details(&self, id: &CallId) -> Option<HookCallDetails> {
        let call = self.calls.details(id, &self.assignment)?;
        Some(HookCallDetails::Result { call, finished: self.calls.result_of(id)? })
    }

    /// The trigger for hooks on an outcome like this, if any is configured.
    pub(in crate::session) fn closing_trigger(&self, outcome: &Outcome) -> Option<HookTrigger> {
        let about = HookTrigger::Closing { outcome: outcome.clone() };
        // Hooks run in the session's folder.
        let has_begun = self.lifecycle.phase() != Phase::New && !self.worktree.is_missing();
        (has_begun && self.assignment.has_hooks_for(&about)).then_some(about)
    }
}
