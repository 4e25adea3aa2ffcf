//! How a session applies the decisions of hooks.

use provost_event::{
    HookDecision, HookReport, HookStage, HookTrigger, HooksDecided, ItemKind, Json, NamedScript, OnFailure,
    Origin, Outcome, PauseReason, PointRefusal, Seq, SystemItem, UserMessage,
};

use crate::SessionEvent;
use crate::session::{Deciding, Phase, assignment::Assignment, calls::run, model_call, segment, stop};

/// The combined decision of hooks, the least restrictive first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::session) enum CombinedDecision {
    Free,
    Allow,
    Ask(String),
    Deny { hook: String, reason: String },
    Pause { hook: String, reason: String },
    Abort { hook: String, reason: String },
}

/// The arguments with which a hook has a call made instead of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::session) struct CallReplacement {
    /// The hook.
    pub(in crate::session) by: String,
    pub(in crate::session) input: Json,
    /// Why the hook itself requires approval of the other call, if it does.
    pub(in crate::session) ask: Option<String>,
}

impl CallReplacement {
    /// The last proposal in `reports`: hooks of the contracts that have proposals are called in no order. None if
    /// one of them isn't to be followed, which denies the call.
    pub(in crate::session) fn of(
        about: &HookTrigger,
        reports: &[HookReport],
        assignment: &Assignment,
    ) -> Option<Self> {
        if !assignment.may_replace(about) {
            return None;
        }
        reports.iter().rev().find_map(|report| {
            let ask = match &report.decision {
                HookDecision::Ask(reason) => Some(format!("hook {}: {reason}", report.hook)),
                _ => None,
            };
            Some(Self { by: report.hook.clone(), input: report.replacement.clone()?, ask })
        })
    }
}

/// Why a call is denied for which a hook proposes other arguments, where they can't take the place of its own.
fn must_be_called_otherwise(wanted: &Json) -> String {
    let text = wanted.text();
    let cut = text.get(..text.floor_char_boundary(WANTED_BYTES_MAX)).unwrap_or_default();
    let more = if cut.len() < text.len() { " […]" } else { "" };
    format!(
        "this call was not made: a hook wants the tool called with other arguments. Call it with exactly these instead: {cut}{more}"
    )
}

/// Bytes of proposed arguments that the model is told.
const WANTED_BYTES_MAX: usize = 32 * 1024;

pub(in crate::session) fn hooks_said(
    deciding: &mut Deciding<'_>,
    seq: Seq,
    reports: Vec<HookReport>,
    scripts: Option<Vec<NamedScript>>,
) {
    if deciding.state.lifecycle.outcome().is_some() {
        return;
    }
    let Some(about) = deciding.state.hooks.get(seq).cloned() else { return };
    deciding.step.close(seq);
    for report in &reports {
        for body in &report.reminders {
            let origin = Origin::Hook(report.hook.clone());
            deciding.commit(SystemItem {
                item: ItemKind::Reminder,
                body: body.clone(),
                origin,
                rules: Vec::new(),
            });
        }
    }
    let heard = CombinedDecision::of(&about, &reports, &deciding.state.assignment);
    let is_goal = deciding.state.lifecycle.phase() == Phase::Preparing(seq);
    deciding.commit(HooksDecided { asked: seq, reports, scripts });
    match about {
        HookTrigger::Closing { .. } => apply_closing_decision(deciding),
        HookTrigger::Prompt { text, by } if !is_goal => apply_prompt_decision(deciding, heard, text, by),
        _ if deciding.state.lifecycle.is_stopping() => go_on_stopping(deciding),
        about => apply_gate_decision(deciding, &about, heard),
    }
}

/// A hook that no turn waits for has said something: the model is told with its next call.
pub(in crate::session) fn said_later(deciding: &mut Deciding<'_>, event: SessionEvent) {
    let SessionEvent::HookSaid { hook, body, wakes } = event else { return };
    if !deciding.state.lifecycle.is_live() || deciding.state.lifecycle.is_stopping() {
        return;
    }
    let item = if wakes { ItemKind::HookWoke } else { ItemKind::Reminder };
    deciding.commit(SystemItem { item, body, origin: Origin::Hook(hook), rules: Vec::new() });
}

/// Applies decisions on the questions that the session waits for.
fn apply_gate_decision(deciding: &mut Deciding<'_>, about: &HookTrigger, heard: CombinedDecision) {
    let heard = match (about, heard) {
        // Without its goal the session has nothing to do.
        (HookTrigger::Prompt { .. }, CombinedDecision::Deny { hook, reason }) => {
            CombinedDecision::Abort { hook, reason }
        }
        (_, heard) => heard,
    };
    match heard {
        CombinedDecision::Abort { hook, reason } if matches!(about, HookTrigger::TurnEnd { .. }) => {
            deciding.end_turn(0);
            segment::finish(deciding, Outcome::Aborted { hook, reason });
        }
        CombinedDecision::Abort { hook, reason } => {
            segment::stop(deciding, Outcome::Aborted { hook, reason })
        }
        CombinedDecision::Pause { hook, reason } => {
            pause_for(deciding, about, PauseReason::Hook { hook, reason })
        }
        _ => go_on_after(deciding, about),
    }
}

fn go_on_after(deciding: &mut Deciding<'_>, about: &HookTrigger) {
    match about.stage() {
        HookStage::NextCall => model_call::next_call(deciding),
        HookStage::ToolCalls => run::advance(deciding),
        HookStage::TurnEnd => stop::ask_stop_hooks(deciding),
        HookStage::Closing => {}
    }
}

/// Running tools finish; calls that have not begun wait until the session is resumed.
fn pause_for(deciding: &mut Deciding<'_>, about: &HookTrigger, why: PauseReason) {
    let outcome = Outcome::Paused { why };
    if about.stage() == HookStage::ToolCalls {
        deciding.commit(provost_event::StopRequested { agent: None, outcome, for_child: false });
        run::advance(deciding);
    } else {
        segment::finish(deciding, outcome);
    }
}

fn apply_prompt_decision(deciding: &mut Deciding<'_>, heard: CombinedDecision, text: String, by: String) {
    match heard {
        CombinedDecision::Deny { .. } => {
            // A segment that was begun for a message that a hook denied has nothing to do.
            if let Some(done) = deciding
                .state
                .lifecycle
                .done_before()
                .cloned()
                .filter(|_| !deciding.state.lifecycle.is_stopping())
            {
                return segment::finish(deciding, done);
            }
        }
        CombinedDecision::Abort { hook, reason } => {
            return segment::stop(deciding, Outcome::Aborted { hook, reason });
        }
        CombinedDecision::Free
        | CombinedDecision::Allow
        | CombinedDecision::Ask(_)
        | CombinedDecision::Pause { .. } => {
            deciding.commit(UserMessage { content: vec![provost_event::Block::Text(text)], by });
        }
    }
    if deciding.state.lifecycle.phase() == Phase::Ready && !deciding.state.lifecycle.is_stopping() {
        model_call::next_call(deciding);
    }
}

/// A stop was requested while hooks ran: their decisions no longer count.
pub(in crate::session) fn go_on_stopping(deciding: &mut Deciding<'_>) {
    match (deciding.state.lifecycle.phase(), deciding.state.lifecycle.stopping().cloned()) {
        (Phase::Acting, _) => run::advance(deciding),
        (_, Some(outcome)) => segment::finish(deciding, outcome),
        (_, None) => {}
    }
}

fn apply_closing_decision(deciding: &mut Deciding<'_>) {
    if let Some(outcome) = deciding.state.lifecycle.stopping().cloned() {
        segment::close(deciding, outcome);
    }
}

impl CombinedDecision {
    /// The most restrictive of the hooks' decisions; among equal ones the first. Other arguments that can't take the
    /// place of the call's own deny it.
    pub(in crate::session) fn of(
        about: &HookTrigger,
        reports: &[HookReport],
        assignment: &Assignment,
    ) -> Self {
        let may_replace = assignment.may_replace(about);
        let all = reports.iter().map(|report| match &report.replacement {
            Some(wanted) if !may_replace => Self::of_report(report, assignment).or_stricter(Self::Deny {
                hook: report.hook.clone(),
                reason: must_be_called_otherwise(wanted),
            }),
            _ => Self::of_report(report, assignment),
        });
        all.fold(Self::Free, Self::or_stricter)
    }

    fn or_stricter(self, next: Self) -> Self {
        if next.rank() > self.rank() { next } else { self }
    }

    /// Whether the call, prompt or stop isn't to go on.
    pub(in crate::session) const fn refuses(&self) -> bool {
        matches!(self, Self::Deny { .. } | Self::Pause { .. } | Self::Abort { .. })
    }

    fn of_report(report: &HookReport, assignment: &Assignment) -> Self {
        let hook = report.hook.clone();
        match report.decision.clone() {
            HookDecision::Continue => Self::Free,
            HookDecision::Allow => Self::Allow,
            HookDecision::Ask(reason) => Self::Ask(format!("hook {hook}: {reason}")),
            HookDecision::Deny(reason) => Self::Deny { hook, reason },
            HookDecision::Pause(reason) => Self::Pause { hook, reason },
            HookDecision::Abort(reason) => Self::Abort { hook, reason },
            HookDecision::Failed(_) | HookDecision::Broken(_) | HookDecision::TimedOut(_) => {
                Self::of_failed(report, assignment)
            }
        }
    }

    /// The effect of a hook without an answer: none, or the strongest refusal at its hook point.
    fn of_failed(report: &HookReport, assignment: &Assignment) -> Self {
        let policy =
            assignment.hooks().iter().find(|hook| hook.name == report.hook && hook.point == report.point);
        let on_failure =
            policy.map_or_else(|| OnFailure::default_at(report.point), |policy| policy.on_failure);
        let hook = report.hook.clone();
        let reason = format!("it gave no answer: {}", report.decision.failure().unwrap_or_default());
        match (on_failure, report.point.refusal()) {
            (OnFailure::Continue | OnFailure::ContinueIfRun, _) | (OnFailure::Deny, PointRefusal::None) => {
                Self::Free
            }
            (OnFailure::Deny, PointRefusal::Deny) => Self::Deny { hook, reason },
            (OnFailure::Deny, PointRefusal::Pause) => Self::Pause { hook, reason },
            (OnFailure::Deny, PointRefusal::Abort) => Self::Abort { hook, reason },
        }
    }

    const fn rank(&self) -> u8 {
        match self {
            Self::Free => 0,
            Self::Allow => 1,
            Self::Ask(_) => 2,
            Self::Deny { .. } => 3,
            Self::Pause { .. } => 4,
            Self::Abort { .. } => 5,
        }
    }
}
