//! How a session applies the decisions of hooks.

use provost_event::{
    HookDecision, HookMoment, HookReport, HookSubject, HooksDecided, ItemKind, NamedScript, OnFailure,
    Origin, Outcome, PauseReason, Seq, SystemItem, UserMessage,
};

use super::{Deciding, Phase, SessionState};

/// The combined decision of hooks, the least restrictive first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Heard {
    Free,
    Allow,
    Ask(String),
    Deny { hook: String, reason: String },
    Pause { hook: String, reason: String },
    Abort { hook: String, reason: String },
}

impl Deciding<'_> {
    pub(super) fn hooks_said(
        &mut self,
        seq: Seq,
        reports: Vec<HookReport>,
        scripts: Option<Vec<NamedScript>>,
    ) {
        if self.state.outcome.is_some() {
            return;
        }
        let Some(about) = self.state.questions.get(&seq).cloned() else { return };
        self.step.close(seq);
        for report in &reports {
            for body in &report.reminders {
                let origin = Origin::Hook(report.hook.clone());
                self.commit(SystemItem { item: ItemKind::Reminder, body: body.clone(), origin });
            }
        }
        let heard = self.state.heard(&reports);
        let is_goal = self.state.phase == Phase::Preparing(seq);
        self.commit(HooksDecided { asked: seq, reports, scripts });
        match about {
            HookSubject::Closing { .. } => self.closing_heard(),
            HookSubject::Prompt { text, by } if !is_goal => self.prompt_heard(heard, text, by),
            _ if self.state.stopping.is_some() => self.go_on_stopping(),
            about => self.gate_heard(&about, heard),
        }
    }

    /// Applies decisions on the questions that the session waits for.
    fn gate_heard(&mut self, about: &HookSubject, heard: Heard) {
        let heard = match (about, heard) {
            // Without its goal the session has nothing to do.
            (HookSubject::Prompt { .. }, Heard::Deny { hook, reason }) => Heard::Abort { hook, reason },
            (_, heard) => heard,
        };
        match heard {
            Heard::Abort { hook, reason } if matches!(about, HookSubject::TurnEnd { .. }) => {
                self.end_turn(0);
                self.rest(Outcome::Aborted { hook, reason });
            }
            Heard::Abort { hook, reason } => self.stop(Outcome::Aborted { hook, reason }),
            Heard::Pause { hook, reason } => self.pause_for(about, PauseReason::Hook { hook, reason }),
            _ => self.go_on_after(about),
        }
    }

    fn go_on_after(&mut self, about: &HookSubject) {
        match about {
            HookSubject::Session { .. }
            | HookSubject::Subagent
            | HookSubject::Prompt { .. }
            | HookSubject::Request { .. }
            | HookSubject::Compaction
            | HookSubject::Compacted => self.next_call(),
            HookSubject::Call { .. }
            | HookSubject::Spawn { .. }
            | HookSubject::Approval { .. }
            | HookSubject::Result { .. }
            | HookSubject::ChildEnd { .. }
            | HookSubject::Batch { .. } => self.advance_calls(),
            HookSubject::TurnEnd { .. } => self.ask_stop_hooks(),
            HookSubject::Closing { .. } => {}
        }
    }

    /// Running tools finish; calls that have not begun wait until the session is resumed.
    fn pause_for(&mut self, about: &HookSubject, why: PauseReason) {
        let outcome = Outcome::Paused { why };
        match about {
            HookSubject::Call { .. }
            | HookSubject::Spawn { .. }
            | HookSubject::Approval { .. }
            | HookSubject::Result { .. }
            | HookSubject::ChildEnd { .. }
            | HookSubject::Batch { .. } => {
                self.commit(provost_event::StopRequested { agent: None, outcome, for_child: false });
                self.advance_calls();
            }
            _ => self.rest(outcome),
        }
    }

    fn prompt_heard(&mut self, heard: Heard, text: String, by: String) {
        match heard {
            Heard::Deny { .. } => {
                // A segment that was begun for a message that a hook denied has nothing to do.
                if let Some(done) = self.state.done_before.clone().filter(|_| self.state.stopping.is_none()) {
                    return self.rest(done);
                }
            }
            Heard::Abort { hook, reason } => return self.stop(Outcome::Aborted { hook, reason }),
            Heard::Free | Heard::Allow | Heard::Ask(_) | Heard::Pause { .. } => {
                self.commit(UserMessage { content: vec![provost_event::Block::Text(text)], by });
            }
        }
        if self.state.phase == Phase::Ready && self.state.stopping.is_none() {
            self.next_call();
        }
    }

    /// A stop was requested while hooks ran: their decisions no longer count.
    pub(super) fn go_on_stopping(&mut self) {
        match (self.state.phase, self.state.stopping.clone()) {
            (Phase::Acting, _) => self.advance_calls(),
            (_, Some(outcome)) => self.rest(outcome),
            (_, None) => {}
        }
    }

    fn closing_heard(&mut self) {
        if let Some(outcome) = self.state.stopping.clone() {
            self.come_to_rest(outcome);
        }
    }
}

impl SessionState {
    /// The most restrictive of the hooks' decisions; among equal ones the first.
    pub(super) fn heard(&self, reports: &[HookReport]) -> Heard {
        let all = reports.iter().map(|report| self.heard_of(report));
        all.fold(Heard::Free, |first, next| if next.rank() > first.rank() { next } else { first })
    }

    fn heard_of(&self, report: &HookReport) -> Heard {
        let hook = report.hook.clone();
        match report.decision.clone() {
            HookDecision::Continue => Heard::Free,
            HookDecision::Allow => Heard::Allow,
            HookDecision::Ask(reason) => Heard::Ask(format!("hook {hook}: {reason}")),
            HookDecision::Deny(reason) => Heard::Deny { hook, reason },
            HookDecision::Pause(reason) => Heard::Pause { hook, reason },
            HookDecision::Abort(reason) => Heard::Abort { hook, reason },
            HookDecision::Failed(why) => self.failed(report, why),
        }
    }

    /// The effect of a hook without an answer: none, or the strongest refusal at its hook point.
    fn failed(&self, report: &HookReport, why: String) -> Heard {
        let hooks = self.policy.as_ref().map(|policy| policy.hooks.as_slice()).unwrap_or_default();
        let policy = hooks.iter().find(|hook| hook.name == report.hook && hook.moment == report.moment);
        let on_failure =
            policy.map_or_else(|| OnFailure::default_at(report.moment), |policy| policy.on_failure);
        let (hook, reason) = (report.hook.clone(), format!("it gave no answer: {why}"));
        match (on_failure, report.moment) {
            (OnFailure::Continue, _) => Heard::Free,
            (
                OnFailure::Deny,
                HookMoment::PreToolCall
                | HookMoment::Spawn
                | HookMoment::Approval
                | HookMoment::PromptSubmit
                | HookMoment::PreCompact
                | HookMoment::Stop
                | HookMoment::SubagentStop,
            ) => Heard::Deny { hook, reason },
            (OnFailure::Deny, HookMoment::TurnEnd | HookMoment::PostToolBatch) => {
                Heard::Pause { hook, reason }
            }
            (
                OnFailure::Deny,
                HookMoment::SessionStart
                | HookMoment::SubagentStart
                | HookMoment::PreLlmRequest
                | HookMoment::ChildEnd
                | HookMoment::PostToolCall
                | HookMoment::PostToolSuccess
                | HookMoment::PostToolFailure,
            ) => Heard::Abort { hook, reason },
            // No call waits for their decision.
            (
                OnFailure::Deny,
                HookMoment::Notification
                | HookMoment::PostCompact
                | HookMoment::Abort
                | HookMoment::StopFailure
                | HookMoment::SessionEnd,
            ) => Heard::Free,
        }
    }
}

impl Heard {
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
