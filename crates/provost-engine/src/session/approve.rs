//! Approval: a person is asked whether a call may be made, and the first answer counts.

use std::collections::BTreeSet;

use provost_event::{
    ApprovalAnswer, ApprovalRequested, ApprovalResolved, ApprovalScope, CallId, Outcome, PauseReason,
    Permission, Seq, StopRequested, Unanswered,
};

use super::{Deciding, SessionState, Stage, Word};
use crate::permission::{narrowest_pattern, scripts_named};

impl Deciding<'_> {
    pub(super) fn request_approval(&mut self, id: &CallId) {
        let (Some(call), Some(policy)) = (self.state.call(id), self.state.assignment.policy()) else {
            return;
        };
        let now = self.step.now();
        let timeout_ms = policy.permissions.approval_timeout_ms;
        let request = ApprovalRequested {
            call: id.clone(),
            tool: call.tool.clone(),
            input: call.input.clone(),
            why: self.state.why_ask(call),
            pattern: narrowest_pattern(&call.tool, &call.input, &policy.workspace),
            due: now.at.plus_ms(timeout_ms),
            scripts: call.scripts.clone().unwrap_or_default(),
            unnamed: scripts_named(&call.tool, &call.input).is_some_and(|names| names.unnamed),
        };
        self.commit(request);
        self.open(now.timer(timeout_ms));
    }

    /// The answer to the question of entry `asked`; only the first counts.
    pub(super) fn resolve(&mut self, asked: Seq, answer: ApprovalAnswer, by: String) {
        let Some(open) = self.state.approvals.get(&asked) else { return };
        let answer = if open.is_for_one_call() { bound_to_one_call(answer) } else { answer };
        let lasts = matches!(&answer, ApprovalAnswer::Allow { scope, .. } if *scope != ApprovalScope::Once);
        let others = format!("{by} (with #{asked})");
        self.settle_approval(asked, answer, by);
        if lasts {
            self.settle_covered(&others);
        }
        if self.state.outcome.is_none() {
            self.advance_calls();
        }
    }

    fn settle_approval(&mut self, asked: Seq, answer: ApprovalAnswer, by: String) {
        let before = self.state.approval_timers();
        self.commit(ApprovalResolved { asked, answer, by });
        if self.state.outcome.is_none() {
            let after = self.state.approval_timers();
            before.difference(&after).for_each(|timer| self.step.close(*timer));
        }
    }

    /// An approval with a longer scope also answers other open questions.
    fn settle_covered(&mut self, by: &str) {
        let covered = |state: &SessionState| {
            let allows = |tool: &str, input| {
                let permissions = state.permissions.as_ref();
                permissions.is_some_and(|all| all.judge(tool, input).permission == Permission::Allow)
            };
            let found = state.approvals.values().filter(|open| state.is_asked_by_rules(&open.call));
            found.filter(|open| allows(&open.tool, &open.input)).map(|open| open.asked).collect::<Vec<_>>()
        };
        for asked in covered(self.state) {
            let answer = ApprovalAnswer::Allow { scope: ApprovalScope::Once, pattern: None };
            self.settle_approval(asked, answer, by.to_owned());
        }
    }

    /// Sets the deadline of the open questions; the entry just committed gave them the full time again.
    pub(super) fn time_approvals(&mut self) {
        if !self.state.approvals.is_empty() {
            self.open(self.step.now().timer(self.state.assignment.approval_timeout_ms()));
        }
    }

    pub(super) fn approvals_timed_out(&mut self, timer: Seq) {
        if self.state.stopping.is_some() || self.state.outcome.is_some() {
            return;
        }
        let late = self.state.approving_until(timer);
        let Some((_, tool)) = late.first() else { return };
        match self.state.assignment.when_unanswered() {
            Unanswered::Pause => {
                let why = PauseReason::Approval { tool: tool.clone() };
                self.commit(StopRequested {
                    agent: None,
                    outcome: Outcome::Paused { why },
                    for_child: false,
                });
            }
            Unanswered::Deny => {
                for (asked, _) in late {
                    let reason = "no answer in time".to_owned();
                    self.settle_approval(
                        asked,
                        ApprovalAnswer::Deny { reason },
                        ApprovalResolved::BY_NOBODY.to_owned(),
                    );
                }
            }
        }
        self.advance_calls();
    }

    /// The session ends: open questions no longer need an answer.
    pub(super) fn withdraw_approvals(&mut self) {
        let open = self.state.approvals.keys().copied().collect::<Vec<_>>();
        for asked in open {
            let reason = "the agent was stopped before an answer came".to_owned();
            self.settle_approval(
                asked,
                ApprovalAnswer::Deny { reason },
                ApprovalResolved::BY_PROVOST.to_owned(),
            );
        }
    }
}

impl SessionState {
    /// The timers of the open questions.
    pub(super) fn approval_timers(&self) -> BTreeSet<Seq> {
        let timer = |stage: Stage| match stage {
            Stage::Approving { timer, .. } => Some(timer),
            _ => None,
        };
        self.calls.iter().filter_map(|call| timer(call.stage)).collect()
    }

    /// The questions that expire with `timer`, each with its tool.
    fn approving_until(&self, timer: Seq) -> Vec<(Seq, String)> {
        let late = self.calls.iter().filter_map(|call| match call.stage {
            Stage::Approving { asked, timer: found } if found == timer => Some((asked, call.tool.clone())),
            _ => None,
        });
        late.collect()
    }

    /// Whether only the permissions require approval of a call, and no hook.
    fn is_asked_by_rules(&self, id: &CallId) -> bool {
        let Some(call) = self.call(id).filter(|call| !matches!(call.word, Word::Ask(_))) else {
            return false;
        };
        call.ruling.as_ref().is_some_and(|ruling| ruling.permission == Permission::Ask)
    }
}

/// A script may have changed by the next call: its approval is for this call only, whatever scope was chosen.
fn bound_to_one_call(answer: ApprovalAnswer) -> ApprovalAnswer {
    match answer {
        ApprovalAnswer::Allow { .. } => ApprovalAnswer::Allow { scope: ApprovalScope::Once, pattern: None },
        ApprovalAnswer::Deny { .. } => answer,
    }
}
