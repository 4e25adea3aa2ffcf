//! How entries on a goal change a session.

use provost_event::{
    Elapsed, GoalCheckStarted, GoalFinding, GoalJudged, GoalTrigger, GoalVerdict, JudgeAnswer,
    StopHookVerdict, StopVerdicts,
};

use super::super::goal::Check;
use super::super::{Phase, SessionState};

impl SessionState {
    pub(super) fn goal_check_started(&mut self, started: &GoalCheckStarted) {
        let asks_hooks = self.assignment.has_stop_hooks();
        let (head, phase) = (self.head, self.phase.when_suspended());
        let ended = self.counters.turns_ended;
        let Some(policy) = self.assignment.goal_policy() else { return };
        let Some(track) = &mut self.goal_track else { return };
        let back = match started.trigger {
            GoalTrigger::Claim => Phase::CheckingStop(head),
            // The event that lets a stepped session take the next turn came earlier.
            GoalTrigger::Interval => Phase::Ready,
            // A check that was abandoned for the limit has its own phase to return to.
            GoalTrigger::Limit => track.check.as_ref().map_or(phase, |check| check.back),
        };
        match started.trigger {
            // The turn of a claim needs no other check when it is over.
            GoalTrigger::Claim => track.turns_at_interval = ended.saturating_add(1),
            GoalTrigger::Interval => track.turns_at_interval = ended,
            GoalTrigger::Limit => track.at_limit = true,
        }
        track.generation = started.generation;
        track.check = Some(Check::new(started.trigger, started.generation, back, policy));
        self.phase = if asks_hooks { Phase::CheckingStop(head) } else { Phase::Verifying };
    }

    /// The stop hooks' answers during the verification of a goal. Returns whether they count as answers to an
    /// attempt to stop.
    pub(super) fn goal_stop_hooks_said(&mut self, verdicts: &StopVerdicts, is_free: bool) -> bool {
        let Some(track) = &mut self.goal_track else { return true };
        let Some(check) = track.check.as_ref().filter(|check| !check.is_stale) else { return true };
        let is_claim = check.trigger == GoalTrigger::Claim;
        let halts = |verdict: &StopHookVerdict| matches!(verdict, StopHookVerdict::Halt(_));
        let is_halted = verdicts.reports.iter().any(|report| halts(&report.verdict));
        if is_free && !is_halted {
            self.phase = Phase::Verifying;
        } else {
            let back = check.back;
            track.check = None;
            track.generation = track.generation.saturating_add(1);
            if !is_claim {
                self.phase = back;
            }
        }
        is_claim
    }

    pub(super) fn goal_judged(&mut self, judged: &GoalJudged, now: Elapsed) {
        let head = self.head;
        let Some(policy) = self.assignment.goal_policy() else { return };
        let Some(track) = &mut self.goal_track else { return };
        let asked = track.asked.entry(judged.judge.clone()).or_default();
        *asked = asked.saturating_add(1);
        self.progress.saw_workspace(&judged.evidence);
        let Some(check) = track.check.take() else { return };
        if judged.stale {
            self.phase = check.back;
            return;
        }
        track.outage_since = match &judged.answer {
            JudgeAnswer::Failed(error) if error.is_outage() => track.outage_since.or(Some(now)),
            JudgeAnswer::Failed(_) | JudgeAnswer::Verdict(_) => None,
        };
        let (check, is_undecided) = check.heard(&judged.answer, policy, judged.wait_ms);
        track.check = Some(check);
        if is_undecided {
            track.failures = track.failures.saturating_add(1);
        }
        if judged.wait_ms.is_some() {
            track.waits = track.waits.saturating_add(1);
        }
        self.phase = if judged.wait_ms.is_some() { Phase::JudgeWaits(head) } else { Phase::Verifying };
    }

    pub(super) fn goal_verdict(&mut self, verdict: &GoalVerdict) {
        let answers = self.counters.answers;
        let Some(track) = &mut self.goal_track else { return };
        track.generation = track.generation.saturating_add(1);
        track.answers_at_verdict = answers;
        match &verdict.finding {
            GoalFinding::Achieved { .. } => (track.failures, track.waits) = (0, 0),
            GoalFinding::NotAchieved { .. } => {
                (track.failures, track.waits) = (0, 0);
                track.rounds = track.rounds.saturating_add(u32::from(verdict.trigger == GoalTrigger::Claim));
            }
            GoalFinding::Unverified { .. } => {}
        }
        track.finding = Some(verdict.finding.clone());
        if let Some(check) = track.check.take() {
            self.phase = check.back;
        }
    }

    pub(super) fn goal_cleared(&mut self) {
        self.goal_check_is_void();
        if let Some(track) = &mut self.goal_track {
            track.is_cleared = true;
            track.generation = track.generation.saturating_add(1);
        }
    }

    /// The session is to stop, or the goal was cleared: the judges' answers no longer count.
    pub(super) fn goal_check_is_void(&mut self) {
        let Some(track) = &mut self.goal_track else { return };
        if let Some(check) = track.check.as_mut().filter(|check| !check.is_stale) {
            check.is_stale = true;
            track.generation = track.generation.saturating_add(1);
        }
    }

    pub(super) fn goal_stops(&mut self) {
        let Some(track) = &mut self.goal_track else { return };
        track.generation = track.generation.saturating_add(1);
        if let Some(check) = track.check.take() {
            self.phase = check.back;
        }
    }

    pub(super) fn goal_goes_on(&mut self) {
        if let Some(track) = &mut self.goal_track {
            track.generation = track.generation.saturating_add(1);
        }
    }

    pub(super) fn goal_resumed(&mut self) {
        self.goal_goes_on();
        let Some(track) = &mut self.goal_track else { return };
        (track.rounds, track.failures, track.waits) = (0, 0, 0);
        track.at_limit = false;
        track.answers_at_verdict = 0;
    }
}
