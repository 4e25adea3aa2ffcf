//! How decisions of hooks, permissions and people change a session.

use provost_event::{
    ApprovalAnswer, ApprovalRequested, ApprovalResolved, CallId, HookTrigger, HooksDecided,
    PermissionDecided, Timestamp,
};

use super::super::hook_decisions::CombinedDecision;
use super::super::{Call, Consent, PendingApproval, Phase, SessionState, Stage, Word};

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
            HookTrigger::Call { call } | HookTrigger::Spawn { call } | HookTrigger::Approval { call } => {
                self.stage(call, Stage::Asking(head));
            }
            HookTrigger::Result { call, .. } | HookTrigger::ChildEnd { call, .. } => {
                self.stage(call, Stage::Reviewing(head));
            }
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

    fn stage(&mut self, id: &CallId, stage: Stage) {
        if let Some(call) = self.calls.iter_mut().find(|call| call.id == *id) {
            call.stage = stage;
        }
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
            HookTrigger::Call { call } => self.word(&call, decided, |call| &mut call.word),
            HookTrigger::Spawn { call } => self.word(&call, decided, |call| &mut call.spawn),
            HookTrigger::Approval { call } => self.hooks_consented(&call, decided),
            HookTrigger::Result { call, .. } | HookTrigger::ChildEnd { call, .. } => {
                self.stage(&call, Stage::Done);
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

    /// The hooks' decision on a call that is to be made, or on the agent that it requests.
    fn word(&mut self, id: &CallId, decided: &HooksDecided, of: fn(&mut Call) -> &mut Word) {
        let heard = self.heard(&decided.reports);
        let counts = self.stopping.is_none();
        let Some(call) = self.calls.iter_mut().find(|call| call.id == *id) else { return };
        call.stage = Stage::Pending;
        if !counts {
            return;
        }
        match heard {
            CombinedDecision::Free => *of(call) = Word::Free,
            CombinedDecision::Allow => *of(call) = Word::Allow,
            CombinedDecision::Ask(reason) => *of(call) = Word::Ask(reason),
            CombinedDecision::Deny { hook, reason } => *of(call) = Word::Deny(denied_by_hook(&hook, &reason)),
            CombinedDecision::Pause { .. } => call.paused = true,
            CombinedDecision::Abort { .. } => {}
        }
    }

    /// The decision of the hooks that may approve in place of a person.
    fn hooks_consented(&mut self, id: &CallId, decided: &HooksDecided) {
        let heard = self.heard(&decided.reports);
        let counts = self.stopping.is_none();
        let Some(call) = self.calls.iter_mut().find(|call| call.id == *id) else { return };
        call.stage = Stage::Pending;
        if !counts {
            return;
        }
        call.scripts.clone_from(&decided.scripts);
        match heard {
            CombinedDecision::Allow => call.consent = Consent::Given,
            CombinedDecision::Deny { hook, reason } => {
                call.consent = Consent::Refused(denied_by_hook(&hook, &reason))
            }
            CombinedDecision::Pause { .. } => call.paused = true,
            CombinedDecision::Free | CombinedDecision::Ask(_) => call.consent = Consent::LeftOpen,
            CombinedDecision::Abort { .. } => {}
        }
    }

    pub(super) fn ruled(&mut self, decided: &PermissionDecided) {
        if let Some(call) = self.calls.iter_mut().find(|call| call.id == decided.call) {
            call.ruling = Some(decided.clone());
        }
    }

    pub(super) fn approval_requested(&mut self, request: &ApprovalRequested, at: Timestamp) {
        let head = self.head;
        self.stage(&request.call, Stage::Approving { asked: head, timer: head });
        self.approvals.insert(head, PendingApproval::new(head, request, at));
    }

    pub(super) fn approval_resolved(&mut self, resolved: &ApprovalResolved) {
        let Some(approval) = self.approvals.remove(&resolved.asked) else { return };
        let consent = match &resolved.answer {
            ApprovalAnswer::Allow { .. } => Consent::Given,
            ApprovalAnswer::Deny { reason } if resolved.by == ApprovalResolved::BY_NOBODY => {
                Consent::Refused(format!("Denied: {reason}."))
            }
            ApprovalAnswer::Deny { reason } if reason.is_empty() => {
                Consent::Refused(format!("Denied by {}.", resolved.by))
            }
            ApprovalAnswer::Deny { reason } => {
                Consent::Refused(format!("Denied by {}: {reason}", resolved.by))
            }
        };
        if let (ApprovalAnswer::Allow { pattern: Some(pattern), .. }, Some(permissions)) =
            (&resolved.answer, &mut self.permissions)
        {
            permissions.approve(pattern);
            self.approved.push(pattern.clone());
        }
        if let Some(call) = self.calls.iter_mut().find(|call| call.id == approval.call) {
            call.stage = Stage::Pending;
            call.consent = consent;
        }
    }
}

fn denied_by_hook(hook: &str, reason: &str) -> String {
    format!("Denied by hook `{hook}`: {reason}")
}
