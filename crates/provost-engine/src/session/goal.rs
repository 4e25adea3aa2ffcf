//! Whether the goal is reached: the stop hooks check the claim, then the judges, and their verdicts decide.

mod check;
mod judge;
mod status;

use provost_event::{
    GoalCheckStarted, GoalCleared, GoalFinding, GoalTrigger, GoalVerdict, ItemKind, Origin, Outcome,
    PauseReason, Retry, RetryCause, Seq, StopRequested, SystemItem, Verdict, Verification,
};

pub(super) use check::Check;
pub use judge::JUDGE_TOKENS;
pub use status::GoalStatus;
pub(super) use status::GoalTrack;

use super::{Deciding, Phase};
use crate::RunEvent;

impl Deciding<'_> {
    /// Begins to verify the goal: first by the stop hooks, then by the judges.
    pub(super) fn start_check(&mut self, trigger: GoalTrigger) {
        let Some(track) = &self.state.goal_track else { return };
        let generation = track.generation.saturating_add(1);
        let turn = self.state.turn_checked(trigger);
        self.commit(GoalCheckStarted { trigger, turn, generation });
        match self.state.phase {
            Phase::CheckingStop(_) => self.put_stop_question(),
            _ => self.ask_judge(),
        }
    }

    /// Continues a verification that was interrupted.
    pub(super) fn go_on_checking(&mut self) {
        match (self.state.live_check().map(|check| check.trigger), self.state.phase) {
            (Some(GoalTrigger::Claim), Phase::CheckingStop(_)) => self.check_stop(),
            (Some(_), Phase::CheckingStop(_)) => self.put_stop_question(),
            (Some(_), _) => self.ask_judge(),
            (None, _) => self.go_on_stopping(),
        }
    }

    /// The process that called the judge, or the stop hooks for a verification, is gone. Returns whether a
    /// verification was lost.
    pub(super) fn recover_check(&mut self, lost: Phase, fresh: &[Seq]) -> bool {
        match lost {
            Phase::Judging(seq) if fresh.contains(&seq) && self.state.live_check().is_some() => {}
            Phase::Judging(seq) => {
                self.step.close(seq);
                self.settle(self.state.lost_usage());
                let (call, cause) = (self.state.counters.calls, RetryCause::Interrupted);
                self.commit(Retry::at_once(call, cause, self.state.lost_usage()));
                self.go_on_checking();
            }
            Phase::JudgeWaits(seq) => {
                self.step.close(seq);
                self.go_on_checking();
            }
            Phase::Verifying => self.go_on_checking(),
            Phase::CheckingStop(seq) if self.state.live_check().is_some() => {
                self.step.close(seq);
                match self.state.live_check().map(|check| check.trigger) {
                    // Timers of questions may have been set by the same entry.
                    Some(GoalTrigger::Limit) => self.start_check(GoalTrigger::Limit),
                    _ => self.go_on_checking(),
                }
            }
            _ => return false,
        }
        true
    }

    /// Verifies once at a limit whether the goal is reached. Returns whether a verification begins.
    pub(super) fn checks_at_limit(&mut self, outcome: &Outcome) -> bool {
        if !self.state.may_check_at_limit(outcome) {
            return false;
        }
        if let Phase::Waiting(timer) | Phase::JudgeWaits(timer) = self.state.phase {
            self.step.close(timer);
        }
        if self.state.stopping.as_ref() != Some(outcome) {
            self.commit(StopRequested { agent: None, outcome: outcome.clone(), for_child: false });
        }
        self.start_check(GoalTrigger::Limit);
        true
    }

    /// Records the result of the verification, and acts on it: with the outcome `rest`, if given, where it is
    /// unverified.
    fn conclude(&mut self, finding: GoalFinding, rest: Option<Outcome>) {
        let Some(check) = self.state.live_check() else { return };
        let (trigger, generation) = (check.trigger, check.generation);
        let turn = self.state.turn_checked(trigger);
        self.commit(GoalVerdict { trigger, turn, generation, finding: finding.clone() });
        let unheard = self.state.unheard || self.state.has_open_prompts();
        match (finding, trigger) {
            (GoalFinding::Achieved { .. }, GoalTrigger::Claim) => self.let_go(Verification::Passed),
            (GoalFinding::Achieved { .. }, _) if !unheard => {
                let verdict = Verdict::find(&self.state.turn_text);
                if matches!(self.state.phase, Phase::CheckingStop(_)) {
                    // The time limit was reached during the claim.
                    self.end_turn(0);
                }
                self.finish_segment(Outcome::Completed { verdict, verification: Verification::Passed });
            }
            (GoalFinding::Achieved { .. }, _) => self.go_on_unfinished(None),
            (GoalFinding::NotAchieved { reasoning, suggestions, .. }, trigger) => {
                self.tell_what_is_missing(trigger, &reasoning, &suggestions);
                self.not_achieved(trigger, reasoning);
            }
            (GoalFinding::Unverified { .. }, GoalTrigger::Limit) => self.go_on_unfinished(None),
            (GoalFinding::Unverified { .. }, GoalTrigger::Interval) => {
                let unreachable =
                    |why: &PauseReason| matches!(why, PauseReason::JudgeUnreachable { times: 1.., .. });
                let rest = rest.filter(|rest| matches!(rest, Outcome::Paused { why } if unreachable(why)));
                self.go_on_unfinished(rest);
            }
            (GoalFinding::Unverified { .. }, GoalTrigger::Claim) => self.go_on_unfinished(rest),
        }
    }

    fn tell_what_is_missing(&mut self, trigger: GoalTrigger, reasoning: &str, suggestions: &[String]) {
        let opening = match trigger {
            GoalTrigger::Claim => "The goal isn't reached yet, so you can't stop.",
            GoalTrigger::Interval | GoalTrigger::Limit => "The goal isn't reached yet.",
        };
        let mut body = format!("{opening} An independent judge who saw the evidence says:\n\n{reasoning}");
        if !suggestions.is_empty() {
            let lines = suggestions.iter().map(|line| format!("\n- {line}")).collect::<String>();
            body.push_str("\n\nWhat it suggests:");
            body.push_str(&lines);
        }
        self.commit(SystemItem { item: ItemKind::GoalNotReached, body, origin: Origin::Judges });
    }

    fn not_achieved(&mut self, trigger: GoalTrigger, reasoning: String) {
        if trigger != GoalTrigger::Claim {
            return self.go_on_unfinished(None);
        }
        self.end_turn(0);
        let (rounds, most) = self.state.rounds();
        if rounds >= most {
            self.finish_segment(Outcome::Blocked { reasons: vec![format!("judge: {reasoning}")] });
        } else {
            self.next_turn();
        }
    }

    /// Stops with `rest` or with the outcome that was requested before; otherwise continues the work.
    pub(super) fn go_on_unfinished(&mut self, rest: Option<Outcome>) {
        match rest.or_else(|| self.state.stopping.clone()) {
            Some(outcome) => self.finish_segment(outcome),
            None => self.next_turn(),
        }
    }

    /// A turn has ended: suspends the session after too many turns without progress, or verifies the goal if that
    /// is due. Returns whether it does either.
    pub(super) fn looks_at_goal(&mut self) -> bool {
        if self.state.stopping.is_some() || self.state.outcome.is_some() {
            return false;
        }
        if self.looks_at_progress() {
            return true;
        }
        let is_due = self.state.is_interval_over();
        if is_due {
            self.start_check(GoalTrigger::Interval);
        }
        is_due
    }

    /// Clears the goal. What is in flight stops, and the session is suspended.
    pub(super) fn clear_goal(&mut self, by: String) {
        if !self.state.has_goal() {
            return;
        }
        self.commit(GoalCleared { by: by.clone() });
        let agent = Some(self.state.session.agent);
        if self.state.outcome.as_ref().is_some_and(Outcome::is_preempted) {
            // A preempted session would continue without a request.
            return self.tell_run(RunEvent::Pause { agent, by });
        }
        if self.state.outcome.is_some() || self.state.closing().is_some() {
            return;
        }
        match (self.state.stopping.clone(), self.state.phase) {
            (Some(_), Phase::Judging(seq)) => self.step.abort(seq),
            (Some(outcome), Phase::Verifying | Phase::JudgeWaits(_)) => self.finish_segment(outcome),
            (Some(_), _) => {}
            (None, _) => {
                if self.state.calls.iter().any(|call| self.state.is_delegated(&call.id)) {
                    self.tell_run(RunEvent::Pause { agent, by: by.clone() });
                }
                self.stop(Outcome::Paused { why: PauseReason::GoalCleared { by } });
            }
        }
    }
}
