//! Approval: a person is asked whether a call may be made, and the first answer counts.

use provost_event::{
    ApprovalAnswer, ApprovalRequested, ApprovalResolved, ApprovalScope, CallId, Outcome, PauseReason, Seq,
    StopRequested, Unanswered,
};

use super::Calls;
use super::call::{CallStage, TrackedCall};
use crate::permission::{narrowest_pattern, scripts_named};
use crate::session::Deciding;

impl Deciding<'_> {
    pub(in crate::session) fn request_approval(&mut self, id: &CallId) {
        let (Some(call), Some(policy)) = (self.state.calls.get(id), self.state.assignment.policy()) else {
            return;
        };
        let now = self.step.now();
        let timeout_ms = policy.permissions.approval_timeout_ms;
        let request = ApprovalRequested {
            call: id.clone(),
            tool: call.tool.clone(),
            input: call.input.clone(),
            why: call.why_ask(),
            pattern: narrowest_pattern(&call.tool, &call.input, &policy.workspace),
            due: now.at.plus_ms(timeout_ms),
            scripts: call.scripts.clone().unwrap_or_default(),
            unnamed: scripts_named(&call.tool, &call.input).is_some_and(|names| names.unnamed),
        };
        self.commit(request);
        self.open(now.timer(timeout_ms));
    }

    /// The answer to the question of entry `asked`; only the first counts.
    pub(in crate::session) fn resolve(&mut self, asked: Seq, answer: ApprovalAnswer, by: String) {
        let Some(open) = self.state.calls.approvals.get(&asked) else { return };
        let answer = if open.is_for_one_call() { bound_to_one_call(answer) } else { answer };
        let lasts = matches!(&answer, ApprovalAnswer::Allow { scope, .. } if *scope != ApprovalScope::Once);
        let others = format!("{by} (with #{asked})");
        self.settle_approval(asked, answer, by);
        if lasts {
            self.settle_covered(&others);
        }
        if self.state.lifecycle.is_live() {
            self.advance_calls();
        }
    }

    fn settle_approval(&mut self, asked: Seq, answer: ApprovalAnswer, by: String) {
        let before = self.state.calls.approval_timers();
        self.commit(ApprovalResolved { asked, answer, by });
        if self.state.lifecycle.is_live() {
            let after = self.state.calls.approval_timers();
            before.difference(&after).for_each(|timer| self.step.close(*timer));
        }
    }

    /// An approval with a longer scope also answers other open questions.
    fn settle_covered(&mut self, by: &str) {
        for asked in self.state.calls.covered_approvals() {
            let answer = ApprovalAnswer::Allow { scope: ApprovalScope::Once, pattern: None };
            self.settle_approval(asked, answer, by.to_owned());
        }
    }

    /// Sets the deadline of the open questions; the entry just committed gave them the full time again.
    pub(in crate::session) fn time_approvals(&mut self) {
        if !self.state.calls.approvals.is_empty() {
            self.open(self.step.now().timer(self.state.assignment.approval_timeout_ms()));
        }
    }

    pub(in crate::session) fn approvals_timed_out(&mut self, timer: Seq) {
        if self.state.lifecycle.is_stopping() || self.state.lifecycle.outcome().is_some() {
            return;
        }
        let late = self.state.calls.approving_until(timer);
        let Some(LateApproval { tool, .. }) = late.first() else { return };
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
                for LateApproval { asked, .. } in late {
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
    pub(in crate::session) fn withdraw_approvals(&mut self) {
        let open = self.state.calls.approvals.keys().copied().collect::<Vec<_>>();
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

impl Calls {
    /// The questions that expire with `timer`.
    fn approving_until(&self, timer: Seq) -> Vec<LateApproval> {
        let late = self.of_answer.iter().filter_map(|call| match call.stage {
            CallStage::Approving { asked, timer: found } if found == timer => {
                Some(LateApproval { asked, tool: call.tool.clone() })
            }
            _ => None,
        });
        late.collect()
    }

    /// The questions that the permissions alone ask, and that they answer by now.
    fn covered_approvals(&self) -> Vec<Seq> {
        let by_rules = |id: &CallId| self.get(id).is_some_and(TrackedCall::is_asked_by_rules);
        let open = self.approvals.values().filter(|open| by_rules(&open.call));
        open.filter(|open| self.permits.allow(&open.tool, &open.input)).map(|open| open.asked).collect()
    }
}

/// A question that got no answer in time.
struct LateApproval {
    asked: Seq,
    tool: String,
}

/// A script may have changed by the next call: its approval is for this call only, whatever scope was chosen.
fn bound_to_one_call(answer: ApprovalAnswer) -> ApprovalAnswer {
    match answer {
        ApprovalAnswer::Allow { .. } => ApprovalAnswer::Allow { scope: ApprovalScope::Once, pattern: None },
        ApprovalAnswer::Deny { .. } => answer,
    }
}
