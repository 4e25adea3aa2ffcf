//! Which hooks are called when, and with what input.

use provost_event::{CallId, HookPoint, HookTrigger, HooksAsked, Outcome, Seq, SessionSource};

use super::{Deciding, Phase, SessionState};
use crate::{Effect, HookCall, HookCallDetails};

/// The author of the goal text in the prompt hooks.
const GOAL: &str = "goal";

impl Deciding<'_> {
    /// Calls the hooks for `about`. While the session is suspended the question is only recorded, and asked when
    /// the session is resumed.
    pub(super) fn ask(&mut self, about: HookTrigger) {
        self.commit(HooksAsked { about });
        if self.state.outcome.is_none() {
            self.open_question(self.state.head);
        }
    }

    /// Calls the hooks for the question of entry `seq`.
    pub(super) fn open_question(&mut self, seq: Seq) {
        let Some(about) = self.state.questions.get(&seq).cloned() else { return };
        let details = self.state.details(&about);
        self.step.effect(
            seq,
            Effect::AskHooks(HookCall {
                session: self.state.session,
                turn: self.state.next_turn(),
                about,
                details,
                limit_ms: self.limit_left_ms(),
            }),
        );
    }

    pub(super) fn stop_asking(&mut self) {
        let open = self.state.questions.keys().copied().collect::<Vec<_>>();
        open.into_iter().for_each(|seq| self.step.abort(seq));
    }
}

impl SessionState {
    /// The question to hooks before the next model call.
    pub(super) fn preparation(&self) -> Option<HookTrigger> {
        let call = self.counters.calls.saturating_add(1);
        let beginning = match (self.assignment.parent(), self.source) {
            (Some(_), SessionSource::Startup) => HookTrigger::Subagent,
            (_, source) => HookTrigger::Session { source },
        };
        // A goal from another agent is no prompt of a person: hooks have seen it in that agent's call.
        let is_somebodys = self.assignment.parent().is_none();
        if !self.told.session && self.assignment.has_hooks_for(&beginning) {
            Some(beginning)
        } else if is_somebodys && !self.told.goal && self.assignment.has_hook(HookPoint::PromptSubmit) {
            Some(HookTrigger::Prompt { text: self.assignment.goal().to_owned(), by: GOAL.to_owned() })
        } else if self.told.compaction_untold && self.assignment.has_hook(HookPoint::PostCompact) {
            Some(HookTrigger::Compacted)
        } else if self.told.request < call && self.assignment.has_hook(HookPoint::PreLlmRequest) {
            Some(HookTrigger::Request { call })
        } else {
            None
        }
    }

    pub(super) fn is_goal(&self, about: &HookTrigger) -> bool {
        matches!(about, HookTrigger::Prompt { text, by } if by == GOAL && text == self.assignment.goal() && !self.told.goal)
    }

    /// The open question before the session stops: to hooks, to the terminal, or about the worktree.
    pub(super) fn closing(&self) -> Option<Seq> {
        let is_closing = |about: &HookTrigger| matches!(about, HookTrigger::Closing { .. });
        let asked = self.questions.iter().find(|(_, about)| is_closing(about)).map(|(seq, _)| *seq);
        asked.or_else(|| self.terminal.question()).or_else(|| self.worktree.question())
    }

    /// Whether a message waits for hooks to accept it.
    pub(super) fn has_open_prompts(&self) -> bool {
        self.questions.values().any(|about| matches!(about, HookTrigger::Prompt { .. }))
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
    pub(super) fn closing_trigger(&self, outcome: &Outcome) -> Option<HookTrigger> {
        let about = HookTrigger::Closing { outcome: outcome.clone() };
        // Hooks run in the session's folder.
        let has_begun = self.phase != Phase::New && !self.worktree.is_missing();
        (has_begun && self.assignment.has_hooks_for(&about)).then_some(about)
    }
}
