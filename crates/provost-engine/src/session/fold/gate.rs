//! How decisions of hooks, permissions and people change a session.

use provost_event::{HookTrigger, HooksDecided};

use super::super::{Phase, SessionState};

impl SessionState {
    pub(super) fn asked(&mut self, about: &HookTrigger) {
        let head = self.head;
        let is_goal = self.is_goal(about);
        match about {
            HookTrigger::Session { .. } | HookTrigger::Subagent => self.told.session = true,
            HookTrigger::Request { call } => self.told.request = *call,
            HookTrigger::Compacted => self.told.compaction_untold = false,
            HookTrigger::Prompt { .. } => self.told.goal = self.told.goal || is_goal,
            HookTrigger::Compaction => {
                let is_last = self.window().must_shorten();
                self.conversation.asked_hooks(is_last);
                self.phase = Phase::Compacting(head);
            }
            HookTrigger::TurnEnd { .. } => self.phase = Phase::CheckingStop(head),
            HookTrigger::Call { .. }
            | HookTrigger::Spawn { .. }
            | HookTrigger::Approval { .. }
            | HookTrigger::Result { .. }
            | HookTrigger::ChildEnd { .. } => self.calls.hooks_asked(about, head),
            HookTrigger::Batch { .. } | HookTrigger::Closing { .. } => {}
        }
        let prepares = match about {
            HookTrigger::Session { .. }
            | HookTrigger::Subagent
            | HookTrigger::Request { .. }
            | HookTrigger::Compacted => true,
            HookTrigger::Prompt { .. } => is_goal,
            _ => false,
        };
        if prepares {
            self.phase = Phase::Preparing(head);
        }
        self.questions.insert(head, about.clone());
    }

    pub(super) fn decided(&mut self, decided: &HooksDecided) {
        let Some(about) = self.questions.remove(&decided.asked) else { return };
        // A decision while the session stops may have been cut short: it is requested again when the session is
        // resumed.
        let counts = self.stopping.is_none();
        let prepared =
            matches!(self.phase, Phase::Preparing(seq) | Phase::Compacting(seq) if seq == decided.asked);
        match about {
            HookTrigger::Prompt { .. } if prepared => self.told.goal = counts,
            HookTrigger::Request { call } if !counts => self.told.request = call.saturating_sub(1),
            HookTrigger::TurnEnd { .. } => {
                self.told.turn_end = counts;
                self.phase = Phase::CheckingStop(self.head);
            }
            HookTrigger::Batch { .. } => self.told.batch = counts,
            HookTrigger::Call { .. }
            | HookTrigger::Spawn { .. }
            | HookTrigger::Approval { .. }
            | HookTrigger::Result { .. }
            | HookTrigger::ChildEnd { .. } => {
                let decision = counts.then(|| self.heard(&decided.reports));
                self.calls.hooks_decided(&about, decision, decided.scripts.as_deref());
            }
            HookTrigger::Compaction if counts => {
                let answer = self.heard(&decided.reports);
                self.conversation.hooks_answered(answer);
            }
            HookTrigger::Session { .. }
            | HookTrigger::Subagent
            | HookTrigger::Prompt { .. }
            | HookTrigger::Request { .. }
            | HookTrigger::Compaction
            | HookTrigger::Compacted
            | HookTrigger::Closing { .. } => {}
        }
        if prepared {
            self.phase = Phase::Ready;
        }
    }
}
