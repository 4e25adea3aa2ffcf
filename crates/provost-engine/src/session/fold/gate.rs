//! How decisions of hooks, permissions and people change a session.

use provost_event::{
    ApprovalAnswer, ApprovalRequested, ApprovalResolved, CallId, HookSubject, HooksDecided,
    PermissionDecided, Timestamp,
};

use super::super::compact::Leave;
use super::super::hear::Heard;
use super::super::{Call, Consent, PendingApproval, Phase, SessionState, Stage, Word};

impl SessionState {
    pub(super) fn asked(&mut self, about: &HookSubject) {
        let head = self.head;
        let is_goal = self.is_goal(about);
        match about {
            HookSubject::Session { .. } | HookSubject::Subagent => self.told.session = true,
            HookSubject::Request { call } => self.told.request = *call,
            HookSubject::Compacted => self.told.compaction_untold = false,
            HookSubject::Prompt { .. } => self.told.goal = self.told.goal || is_goal,
            HookSubject::Compaction => {
                self.compactions.is_last_question = self.must_shorten();
                self.phase = Phase::Compacting(head);
            }
            HookSubject::TurnEnd { .. } => self.phase = Phase::Wishing(head),
            HookSubject::Call { call } | HookSubject::Spawn { call } | HookSubject::Approval { call } => {
                self.stage(call, Stage::Asking(head));
            }
            HookSubject::Result { call, .. } | HookSubject::ChildEnd { call, .. } => {
                self.stage(call, Stage::Reviewing(head));
            }
            HookSubject::Batch { .. } | HookSubject::Closing { .. } => {}
        }
        let prepares = match about {
            HookSubject::Session { .. }
            | HookSubject::Subagent
            | HookSubject::Request { .. }
            | HookSubject::Compacted => true,
            HookSubject::Prompt { .. } => is_goal,
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
            HookSubject::Prompt { .. } if prepared => self.told.goal = counts,
            HookSubject::Request { call } if !counts => self.told.request = call.saturating_sub(1),
            HookSubject::TurnEnd { .. } => {
                self.told.turn_end = counts;
                self.phase = Phase::Wishing(self.head);
            }
            HookSubject::Batch { .. } => self.told.batch = counts,
            HookSubject::Call { call } => self.word(&call, decided, |call| &mut call.word),
            HookSubject::Spawn { call } => self.word(&call, decided, |call| &mut call.spawn),
            HookSubject::Approval { call } => self.hooks_consented(&call, decided),
            HookSubject::Result { call, .. } | HookSubject::ChildEnd { call, .. } => {
                self.stage(&call, Stage::Done);
            }
            HookSubject::Compaction if counts => {
                self.compactions.leave = match self.heard(&decided.reports) {
                    Heard::Deny { hook, reason } => {
                        Leave::Refused { hook, reason, is_last: self.compactions.is_last_question }
                    }
                    Heard::Pause { .. } | Heard::Abort { .. } => Leave::Unasked,
                    Heard::Free | Heard::Allow | Heard::Ask(_) => Leave::Given,
                };
            }
            HookSubject::Session { .. }
            | HookSubject::Subagent
            | HookSubject::Prompt { .. }
            | HookSubject::Request { .. }
            | HookSubject::Compaction
            | HookSubject::Compacted
            | HookSubject::Closing { .. } => {}
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
            Heard::Free => *of(call) = Word::Free,
            Heard::Allow => *of(call) = Word::Allow,
            Heard::Ask(reason) => *of(call) = Word::Ask(reason),
            Heard::Deny { hook, reason } => *of(call) = Word::Deny(denied_by_hook(&hook, &reason)),
            Heard::Pause { .. } => call.paused = true,
            Heard::Abort { .. } => {}
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
            Heard::Allow => call.consent = Consent::Given,
            Heard::Deny { hook, reason } => call.consent = Consent::Refused(denied_by_hook(&hook, &reason)),
            Heard::Pause { .. } => call.paused = true,
            Heard::Free | Heard::Ask(_) => call.consent = Consent::LeftOpen,
            Heard::Abort { .. } => {}
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
