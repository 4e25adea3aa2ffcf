//! How a session applies the decisions of hooks.

use provost_event::{
    HookDecision, HookPoint, HookReport, HookTrigger, HooksDecided, ItemKind, NamedScript, OnFailure, Origin,
    Outcome, PauseReason, Seq, SystemItem, UserMessage,
};

use crate::session::assignment::Assignment;
use crate::session::{Deciding, Phase};

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

impl Deciding<'_> {
    pub(in crate::session) fn hooks_said(
        &mut self,
        seq: Seq,
        reports: Vec<HookReport>,
        scripts: Option<Vec<NamedScript>>,
    ) {
        if self.state.lifecycle.outcome().is_some() {
            return;
        }
        let Some(about) = self.state.hooks.get(seq).cloned() else { return };
        self.step.close(seq);
        for report in &reports {
            for body in &report.reminders {
                let origin = Origin::Hook(report.hook.clone());
                self.commit(SystemItem { item: ItemKind::Reminder, body: body.clone(), origin });
            }
        }
        let heard = CombinedDecision::of(&reports, &self.state.assignment);
        let is_goal = self.state.lifecycle.phase() == Phase::Preparing(seq);
        self.commit(HooksDecided { asked: seq, reports, scripts });
        match about {
            HookTrigger::Closing { .. } => self.apply_closing_decision(),
            HookTrigger::Prompt { text, by } if !is_goal => self.apply_prompt_decision(heard, text, by),
            _ if self.state.lifecycle.is_stopping() => self.go_on_stopping(),
            about => self.apply_gate_decision(&about, heard),
        }
    }

    /// Applies decisions on the questions that the session waits for.
    fn apply_gate_decision(&mut self, about: &HookTrigger, heard: CombinedDecision) {
        let heard = match (about, heard) {
            // Without its goal the session has nothing to do.
            (HookTrigger::Prompt { .. }, CombinedDecision::Deny { hook, reason }) => {
                CombinedDecision::Abort { hook, reason }
            }
            (_, heard) => heard,
        };
        match heard {
            CombinedDecision::Abort { hook, reason } if matches!(about, HookTrigger::TurnEnd { .. }) => {
                self.end_turn(0);
                self.finish_segment(Outcome::Aborted { hook, reason });
            }
            CombinedDecision::Abort { hook, reason } => self.stop(Outcome::Aborted { hook, reason }),
            CombinedDecision::Pause { hook, reason } => {
                self.pause_for(about, PauseReason::Hook { hook, reason })
            }
            _ => self.go_on_after(about),
        }
    }

    fn go_on_after(&mut self, about: &HookTrigger) {
        match about {
            HookTrigger::Session { .. }
            | HookTrigger::Subagent
            | HookTrigger::Prompt { .. }
            | HookTrigger::Request { .. }
            | HookTrigger::Compaction
            | HookTrigger::Compacted => self.next_call(),
            HookTrigger::Call { .. }
            | HookTrigger::Spawn { .. }
            | HookTrigger::Approval { .. }
            | HookTrigger::Result { .. }
            | HookTrigger::ChildEnd { .. }
            | HookTrigger::Batch { .. } => self.advance_calls(),
            HookTrigger::TurnEnd { .. } => self.ask_stop_hooks(),
            HookTrigger::Closing { .. } => {}
        }
    }

    /// Running tools finish; calls that have not begun wait until the session is resumed.
    fn pause_for(&mut self, about: &HookTrigger, why: PauseReason) {
        let outcome = Outcome::Paused { why };
        match about {
            HookTrigger::Call { .. }
            | HookTrigger::Spawn { .. }
            | HookTrigger::Approval { .. }
            | HookTrigger::Result { .. }
            | HookTrigger::ChildEnd { .. }
            | HookTrigger::Batch { .. } => {
                self.commit(provost_event::StopRequested { agent: None, outcome, for_child: false });
                self.advance_calls();
            }
            _ => self.finish_segment(outcome),
        }
    }

    fn apply_prompt_decision(&mut self, heard: CombinedDecision, text: String, by: String) {
        match heard {
            CombinedDecision::Deny { .. } => {
                // A segment that was begun for a message that a hook denied has nothing to do.
                if let Some(done) = self
                    .state
                    .lifecycle
                    .done_before()
                    .cloned()
                    .filter(|_| !self.state.lifecycle.is_stopping())
                {
                    return self.finish_segment(done);
                }
            }
            CombinedDecision::Abort { hook, reason } => return self.stop(Outcome::Aborted { hook, reason }),
            CombinedDecision::Free
            | CombinedDecision::Allow
            | CombinedDecision::Ask(_)
            | CombinedDecision::Pause { .. } => {
                self.commit(UserMessage { content: vec![provost_event::Block::Text(text)], by });
            }
        }
        if self.state.lifecycle.phase() == Phase::Ready && !self.state.lifecycle.is_stopping() {
            self.next_call();
        }
    }

    /// A stop was requested while hooks ran: their decisions no longer count.
    pub(in crate::session) fn go_on_stopping(&mut self) {
        match (self.state.lifecycle.phase(), self.state.lifecycle.stopping().cloned()) {
            (Phase::Acting, _) => self.advance_calls(),
            (_, Some(outcome)) => self.finish_segment(outcome),
            (_, None) => {}
        }
    }

    fn apply_closing_decision(&mut self) {
        if let Some(outcome) = self.state.lifecycle.stopping().cloned() {
            self.close_segment(outcome);
        }
    }
}

impl CombinedDecision {
    /// The most restrictive of the hooks' decisions; among equal ones the first.
    pub(in crate::session) fn of(reports: &[HookReport], assignment: &Assignment) -> Self {
        let all = reports.iter().map(|report| Self::of_report(report, assignment));
        all.fold(Self::Free, |first, next| if next.rank() > first.rank() { next } else { first })
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
            HookDecision::Failed(why) => Self::of_failed(report, why, assignment),
        }
    }

    /// The effect of a hook without an answer: none, or the strongest refusal at its hook point.
    fn of_failed(report: &HookReport, why: String, assignment: &Assignment) -> Self {
        let policy =
            assignment.hooks().iter().find(|hook| hook.name == report.hook && hook.point == report.point);
        let on_failure =
            policy.map_or_else(|| OnFailure::default_at(report.point), |policy| policy.on_failure);
        let hook = report.hook.clone();
        let reason = format!("it gave no answer: {why}");
        match (on_failure, report.point) {
            (OnFailure::Continue, _) => Self::Free,
            (
                OnFailure::Deny,
                HookPoint::PreToolCall
                | HookPoint::Spawn
                | HookPoint::Approval
                | HookPoint::PromptSubmit
                | HookPoint::PreCompact
                | HookPoint::Stop
                | HookPoint::SubagentStop,
            ) => Self::Deny { hook, reason },
            (OnFailure::Deny, HookPoint::TurnEnd | HookPoint::PostToolBatch) => Self::Pause { hook, reason },
            (
                OnFailure::Deny,
                HookPoint::SessionStart
                | HookPoint::SubagentStart
                | HookPoint::PreLlmRequest
                | HookPoint::ChildEnd
                | HookPoint::PostToolCall
                | HookPoint::PostToolSuccess
                | HookPoint::PostToolFailure,
            ) => Self::Abort { hook, reason },
            // No call waits for their decision.
            (
                OnFailure::Deny,
                HookPoint::Notification
                | HookPoint::PostCompact
                | HookPoint::Abort
                | HookPoint::StopFailure
                | HookPoint::SessionEnd,
            ) => Self::Free,
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
