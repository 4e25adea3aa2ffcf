//! Which hooks are called when, and with what input.

use provost_event::{CallId, HookTrigger, HooksAsked, Outcome, Seq};

use crate::session::{Deciding, Phase, SessionState};
use crate::{Effect, HookCall, HookCallDetails};

impl Deciding<'_> {
    /// Calls the hooks for `about`. While the session is suspended the question is only recorded, and asked when
    /// the session is resumed.
    pub(in crate::session) fn ask(&mut self, about: HookTrigger) {
        self.commit(HooksAsked { about });
        if self.state.lifecycle.is_live() {
            self.open_question(self.state.head);
        }
    }

    /// Calls the hooks for the question of entry `seq`.
    pub(in crate::session) fn open_question(&mut self, seq: Seq) {
        let Some(about) = self.state.hooks.get(seq).cloned() else { return };
        let details = self.state.details(&about);
        self.step.effect(
            seq,
            Effect::AskHooks(HookCall {
                session: self.state.session,
                turn: self.state.turns.next(),
                about,
                details,
                limit_ms: self.limit_left_ms(),
            }),
        );
    }

    pub(in crate::session) fn stop_asking(&mut self) {
        self.state.hooks.entries().into_iter().for_each(|seq| self.step.abort(seq));
    }
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

    fn details(&self, about: &HookTrigger) -> HookCallDetails {
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
