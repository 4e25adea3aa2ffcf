//! Verifying the goal: on a claim, by interval, and at a limit.

use provost_event::{
    GoalCheckStarted, GoalCleared, GoalFinding, GoalTrigger, GoalVerdict, ItemKind, Origin, Outcome,
    PauseReason, Retry, RetryCause, Seq, StopRequested, SystemItem, Verdict, Verification,
};

use crate::RunEvent;
use crate::session::{Deciding, Phase};

/// What follows a verdict.
enum AfterVerdict {
    /// The agent, which asked to stop, may do so.
    LetGo,
    /// The agent is done, although it didn't ask to stop.
    Complete,
    /// The agent is told what is missing.
    NotReached { reasoning: String, suggestions: Vec<String> },
    /// The session stops with this outcome or the one requested before, or else continues.
    GoOn(Option<Outcome>),
}

impl AfterVerdict {
    /// `unheard` says whether a message to the agent came after its last call; `rest` is the outcome where the goal
    /// is unverified.
    fn of(finding: GoalFinding, trigger: GoalTrigger, unheard: bool, rest: Option<Outcome>) -> Self {
        match (finding, trigger) {
            (GoalFinding::Achieved { .. }, GoalTrigger::Claim) => Self::LetGo,
            (GoalFinding::Achieved { .. }, _) if !unheard => Self::Complete,
            (GoalFinding::Achieved { .. }, _) => Self::GoOn(None),
            (GoalFinding::NotAchieved { reasoning, suggestions, .. }, _) => {
                Self::NotReached { reasoning, suggestions }
            }
            (GoalFinding::Unverified { .. }, GoalTrigger::Limit) => Self::GoOn(None),
            (GoalFinding::Unverified { .. }, GoalTrigger::Interval) => {
                let unreachable =
                    |why: &PauseReason| matches!(why, PauseReason::JudgeUnreachable { times: 1.., .. });
                let suspends = |rest: &Outcome| matches!(rest, Outcome::Paused { why } if unreachable(why));
                Self::GoOn(rest.filter(suspends))
            }
            (GoalFinding::Unverified { .. }, GoalTrigger::Claim) => Self::GoOn(rest),
        }
    }
}

impl Deciding<'_> {
    /// Begins to verify the goal: first by the stop hooks, then by the judges.
    pub(in crate::session) fn start_check(&mut self, trigger: GoalTrigger) {
        let Some(generation) = self.state.goal.next_generation() else { return };
        let turn = self.state.turn_checked(trigger);
        self.commit(GoalCheckStarted { trigger, turn, generation });
        match self.state.lifecycle.phase() {
            Phase::CheckingStop(_) => self.put_stop_question(),
            _ => self.ask_judge(),
        }
    }

    /// Continues a verification that was interrupted.
    pub(in crate::session) fn go_on_checking(&mut self) {
        match (self.state.goal.live_trigger(), self.state.lifecycle.phase()) {
            (Some(GoalTrigger::Claim), Phase::CheckingStop(_)) => self.check_stop(),
            (Some(_), Phase::CheckingStop(_)) => self.put_stop_question(),
            (Some(_), _) => self.ask_judge(),
            (None, _) => self.go_on_stopping(),
        }
    }

    /// The process that called the judge, or the stop hooks for a verification, is gone. Returns whether a
    /// verification was lost.
    pub(in crate::session) fn recover_check(&mut self, lost: Phase, fresh: &[Seq]) -> bool {
        match lost {
            Phase::Judging(seq) if fresh.contains(&seq) && self.state.goal.is_verified() => {}
            Phase::Judging(seq) => {
                self.step.close(seq);
                self.settle(self.state.lost_usage());
                let call = self.state.turns.model_calls();
                self.commit(Retry::at_once(call, RetryCause::Interrupted, self.state.lost_usage()));
                self.go_on_checking();
            }
            Phase::JudgeWaits(seq) => {
                self.step.close(seq);
                self.go_on_checking();
            }
            Phase::Verifying => self.go_on_checking(),
            Phase::CheckingStop(seq) if self.state.goal.is_verified() => {
                self.step.close(seq);
                match self.state.goal.live_trigger() {
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
    pub(in crate::session) fn checks_at_limit(&mut self, outcome: &Outcome) -> bool {
        if !self.state.may_check_at_limit(outcome) {
            return false;
        }
        if let Phase::Waiting(timer) | Phase::JudgeWaits(timer) = self.state.lifecycle.phase() {
            self.step.close(timer);
        }
        if !self.state.lifecycle.stops_as(outcome) {
            self.commit(StopRequested { agent: None, outcome: outcome.clone(), for_child: false });
        }
        self.start_check(GoalTrigger::Limit);
        true
    }

    /// Records the result of the verification, and acts on it: with the outcome `rest`, if given, where it is
    /// unverified.
    pub(super) fn conclude(&mut self, finding: GoalFinding, rest: Option<Outcome>) {
        let Some(check) = self.state.goal.live_check() else { return };
        let trigger = check.trigger();
        let generation = check.generation();
        let turn = self.state.turn_checked(trigger);
        self.commit(GoalVerdict { trigger, turn, generation, finding: finding.clone() });
        let unheard = self.state.turns.is_unheard() || self.state.hooks.have_prompts();
        match AfterVerdict::of(finding, trigger, unheard, rest) {
            AfterVerdict::LetGo => self.let_go(Verification::Passed),
            AfterVerdict::Complete => {
                let verdict = Verdict::find(self.state.turns.text());
                if matches!(self.state.lifecycle.phase(), Phase::CheckingStop(_)) {
                    // The time limit was reached during the claim.
                    self.end_turn(0);
                }
                self.finish_segment(Outcome::Completed { verdict, verification: Verification::Passed });
            }
            AfterVerdict::NotReached { reasoning, suggestions } => {
                self.tell_what_is_missing(trigger, &reasoning, &suggestions);
                self.not_achieved(trigger, reasoning);
            }
            AfterVerdict::GoOn(rest) => self.go_on_unfinished(rest),
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
        if self.state.goal.has_no_rounds_left(&self.state.assignment) {
            self.finish_segment(Outcome::Blocked { reasons: vec![format!("judge: {reasoning}")] });
        } else {
            self.next_turn();
        }
    }

    /// Stops with `rest` or with the outcome that was requested before; otherwise continues the work.
    pub(in crate::session) fn go_on_unfinished(&mut self, rest: Option<Outcome>) {
        match rest.or_else(|| self.state.lifecycle.stopping().cloned()) {
            Some(outcome) => self.finish_segment(outcome),
            None => self.next_turn(),
        }
    }

    /// A turn has ended: suspends the session after too many turns without progress, or verifies the goal if that
    /// is due. Returns whether it does either.
    pub(in crate::session) fn looks_at_goal(&mut self) -> bool {
        if self.state.lifecycle.is_stopping() || self.state.lifecycle.outcome().is_some() {
            return false;
        }
        if self.looks_at_progress() {
            return true;
        }
        let is_due = self.state.goal.is_interval_over(self.state.goal_facts());
        if is_due {
            self.start_check(GoalTrigger::Interval);
        }
        is_due
    }

    /// Clears the goal. What is in flight stops, and the session is suspended.
    pub(in crate::session) fn clear_goal(&mut self, by: String) {
        if self.state.goal.in_force(&self.state.assignment).is_none() {
            return;
        }
        self.commit(GoalCleared { by: by.clone() });
        let agent = Some(self.state.session.agent);
        if self.state.lifecycle.outcome().is_some_and(Outcome::is_preempted) {
            // A preempted session would continue without a request.
            return self.tell_run(RunEvent::Pause { agent, by });
        }
        if self.state.lifecycle.outcome().is_some() || self.state.closing().is_some() {
            return;
        }
        match (self.state.lifecycle.stopping().cloned(), self.state.lifecycle.phase()) {
            (Some(_), Phase::Judging(seq)) => self.step.abort(seq),
            (Some(outcome), Phase::Verifying | Phase::JudgeWaits(_)) => self.finish_segment(outcome),
            (Some(_), _) => {}
            (None, _) => {
                if self.state.calls.are_delegated() {
                    self.tell_run(RunEvent::Pause { agent, by: by.clone() });
                }
                self.stop(Outcome::Paused { why: PauseReason::GoalCleared { by } });
            }
        }
    }
}
