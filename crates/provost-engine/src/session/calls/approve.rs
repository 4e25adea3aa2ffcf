//! Approval: a person is asked whether a call may be made, and the first answer counts.

use provost_event::{
    ApprovalAnswer, ApprovalRequested, ApprovalResolved, ApprovalScope, CallId, CallQuestion, Outcome,
    OutsideSandbox, PauseReason, Seq, StopRequested, Unanswered,
};

use super::Calls;
use super::call::TrackedCall;
use crate::permission::{narrowest_pattern, scripts_named};
use crate::session::{Deciding, calls::run};

pub(in crate::session) fn request_approval(deciding: &mut Deciding<'_>, id: &CallId) {
    let (Some(call), Some(policy)) =
        (deciding.state.calls.of_answer.get(id), deciding.state.assignment.policy())
    else {
        return;
    };
    let now = deciding.step.now();
    let timeout_ms = policy.permissions.approval_timeout_ms;
    let tool = deciding.state.assignment.tool_identity(&call.tool);
    let request = ApprovalRequested {
        call: id.clone(),
        tool: call.tool.clone(),
        input: call.input.clone(),
        why: call.why_ask(),
        pattern: narrowest_pattern(&tool, &call.input, &policy.workspace),
        due: now.at.plus_ms(timeout_ms),
        scripts: call.scripts.clone().unwrap_or_default(),
        outside: call
            .leaves_sandbox()
            .then(|| OutsideSandbox { denied: deciding.state.calls.denied.clone() }),
        unnamed: scripts_named(&tool, &call.input).is_some_and(|names| names.unnamed),
        question: None,
    };
    deciding.commit(request);
    deciding.open(now.timer(timeout_ms));
}

/// Puts the question of a call's tool to the user. The call is made again with the answer, or not at all.
pub(super) fn ask_for_tool(deciding: &mut Deciding<'_>, call: &TrackedCall, question: CallQuestion) {
    let Some(policy) = deciding.state.assignment.policy() else { return };
    let now = deciding.step.now();
    let timeout_ms = policy.permissions.approval_timeout_ms;
    let tool = deciding.state.assignment.tool_identity(&call.tool);
    let request = ApprovalRequested {
        call: call.id.clone(),
        tool: call.tool.clone(),
        input: call.input.clone(),
        why: question.message.clone(),
        pattern: narrowest_pattern(&tool, &call.input, &policy.workspace),
        due: now.at.plus_ms(timeout_ms),
        scripts: Vec::new(),
        outside: None,
        unnamed: false,
        question: Some(Box::new(question)),
    };
    deciding.commit(request);
    deciding.open(now.timer(timeout_ms));
}

/// The answer to the question of entry `asked`; only the first counts.
pub(in crate::session) fn resolve(
    deciding: &mut Deciding<'_>,
    asked: Seq,
    answer: ApprovalAnswer,
    by: String,
) {
    let Some(open) = deciding.state.calls.approvals.get(&asked) else { return };
    let answer = if open.is_for_one_call() { bound_to_one_call(answer) } else { answer };
    let lasts = matches!(&answer, ApprovalAnswer::Allow { scope, .. } if *scope != ApprovalScope::Once);
    let others = format!("{by} (with #{asked})");
    settle_approval(deciding, asked, answer, by);
    if lasts {
        settle_covered(deciding, &others);
    }
    if deciding.state.lifecycle.is_live() {
        run::advance(deciding);
    }
}

fn settle_approval(deciding: &mut Deciding<'_>, asked: Seq, answer: ApprovalAnswer, by: String) {
    let before = deciding.state.calls.of_answer.approval_timers();
    deciding.commit(ApprovalResolved { asked, answer, by });
    if deciding.state.lifecycle.is_live() {
        let after = deciding.state.calls.of_answer.approval_timers();
        before.difference(&after).for_each(|timer| deciding.step.close(*timer));
    }
}

/// An approval with a longer scope also answers other open questions.
fn settle_covered(deciding: &mut Deciding<'_>, by: &str) {
    for asked in deciding.state.calls.covered_approvals() {
        let answer = ApprovalAnswer::Allow { scope: ApprovalScope::Once, pattern: None };
        settle_approval(deciding, asked, answer, by.to_owned());
    }
}

/// Sets the deadline of the open questions; the entry just committed gave them the full time again.
pub(in crate::session) fn time_approvals(deciding: &mut Deciding<'_>) {
    if !deciding.state.calls.approvals.is_empty() {
        deciding.open(deciding.step.now().timer(deciding.state.assignment.approval_timeout_ms()));
    }
}

pub(in crate::session) fn approvals_timed_out(deciding: &mut Deciding<'_>, timer: Seq) {
    if deciding.state.lifecycle.is_stopping() || deciding.state.lifecycle.outcome().is_some() {
        return;
    }
    let late = deciding.state.calls.of_answer.approving_until(timer);
    let Some(LateApproval { tool, .. }) = late.first() else { return };
    match deciding.state.assignment.when_unanswered() {
        Unanswered::Pause => {
            let why = PauseReason::Approval { tool: tool.clone() };
            deciding.commit(StopRequested {
                agent: None,
                outcome: Outcome::Paused { why },
                for_child: false,
            });
        }
        Unanswered::Deny => {
            for LateApproval { asked, .. } in late {
                let reason = "no answer in time".to_owned();
                settle_approval(
                    deciding,
                    asked,
                    ApprovalAnswer::Deny { reason },
                    ApprovalResolved::BY_TIMEOUT.to_owned(),
                );
            }
        }
    }
    run::advance(deciding);
}

/// The session ends: open questions no longer need an answer.
pub(in crate::session) fn withdraw_approvals(deciding: &mut Deciding<'_>) {
    let open = deciding.state.calls.approvals.keys().copied().collect::<Vec<_>>();
    for asked in open {
        let reason = "the agent was stopped before an answer came".to_owned();
        settle_approval(
            deciding,
            asked,
            ApprovalAnswer::Deny { reason },
            ApprovalResolved::BY_PROVOST.to_owned(),
        );
    }
}

impl Calls {
    /// The questions that the permissions alone ask, and that they answer by now.
    fn covered_approvals(&self) -> Vec<Seq> {
        let by_rules = |id: &CallId| self.of_answer.get(id).is_some_and(TrackedCall::is_asked_by_rules);
        let open = self.approvals.values().filter(|open| by_rules(&open.call) && open.question.is_none());
        open.filter(|open| self.permits.allow(&open.tool, &open.input)).map(|open| open.asked).collect()
    }
}

/// A question that got no answer in time.
pub(super) struct LateApproval {
    pub(super) asked: Seq,
    pub(super) tool: String,
}

/// A script may have changed by the next call: its approval is for this call only, whatever scope was chosen.
fn bound_to_one_call(answer: ApprovalAnswer) -> ApprovalAnswer {
    match answer {
        ApprovalAnswer::Allow { .. } => ApprovalAnswer::Allow { scope: ApprovalScope::Once, pattern: None },
        ApprovalAnswer::Answered { .. } | ApprovalAnswer::Deny { .. } => answer,
    }
}
