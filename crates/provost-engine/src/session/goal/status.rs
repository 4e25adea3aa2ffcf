//! The status of a goal, and its consequences for the session.

use std::collections::BTreeMap;

use provost_event::{
    Elapsed, GoalFinding, GoalPolicy, GoalState, GoalTrigger, Outcome, PauseReason, Seq, SupervisorError,
};
use serde::{Deserialize, Serialize};

use super::check::{Check, QuorumState};
use crate::session::{Phase, SessionState};

/// The state of a goal; the fold of its entries.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::session) struct GoalTrack {
    /// Incremented by each change of the state.
    pub(in crate::session) generation: u32,
    /// The verification in progress.
    pub(in crate::session) check: Option<Check>,
    /// Claims that were rejected.
    pub(in crate::session) rounds: u32,
    /// Verifications in a row without a verdict.
    pub(in crate::session) failures: u32,
    /// Waits since the last verdict.
    pub(in crate::session) waits: u32,
    /// When the first judge's call of the current outage ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::session) outage_since: Option<Elapsed>,
    /// Answers of judges, by the policy's name for them.
    pub(in crate::session) asked: BTreeMap<String, u32>,
    /// The number of the agent's answers at the last verdict.
    pub(in crate::session) answers_at_verdict: u32,
    /// The number of ended turns at the last verification by interval.
    pub(in crate::session) turns_at_interval: u32,
    pub(in crate::session) is_cleared: bool,
    /// It was set while the agent was suspended, and the agent has yet to be notified.
    #[serde(default)]
    pub(in crate::session) is_untold: bool,
    /// It replaced another goal.
    #[serde(default)]
    pub(in crate::session) had_another: bool,
    /// It was verified at the present limit.
    pub(in crate::session) at_limit: bool,
    pub(in crate::session) finding: Option<GoalFinding>,
}

/// The status of an agent's goal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GoalStatus {
    /// The condition that must be true.
    pub condition: String,
    /// The state.
    pub state: GoalState,
    /// Incremented by each change of `state`.
    pub generation: u32,
    /// Claims that were rejected since the agent was last resumed.
    pub rounds: u32,
    /// Verifications in a row without a verdict.
    pub failures: u32,
    /// Turns in a row without measurable progress.
    pub idle_turns: u32,
    /// The result of the last verification.
    pub finding: Option<GoalFinding>,
}

impl SessionState {
    /// The status of the agent's goal; `None` if it has none.
    #[must_use]
    pub fn goal(&self) -> Option<GoalStatus> {
        let (policy, track) = (self.assignment.goal_policy()?, self.goal_track.as_ref()?);
        Some(GoalStatus {
            condition: policy.condition.clone(),
            state: self.goal_state(track),
            generation: track.generation,
            rounds: track.rounds,
            failures: track.failures,
            idle_turns: self.progress.idle_turns,
            finding: track.finding.clone(),
        })
    }

    fn goal_state(&self, track: &GoalTrack) -> GoalState {
        match &self.outcome {
            Some(Outcome::Failed { .. }) => GoalState::Failed,
            _ if track.is_cleared => GoalState::Aborted,
            Some(Outcome::Completed { .. }) => GoalState::Achieved,
            Some(Outcome::Aborted { .. } | Outcome::Cancelled { .. }) => GoalState::Aborted,
            Some(Outcome::Blocked { .. }) => GoalState::Blocked,
            Some(Outcome::Paused { why: PauseReason::Stuck { .. } }) => GoalState::Stuck,
            Some(Outcome::Paused { .. } | Outcome::BudgetExhausted(_)) => GoalState::Paused,
            None if self.live_check().is_some() => GoalState::Verifying,
            None => GoalState::Running,
        }
    }

    /// The goal that applies to the agent: one is set and hasn't been cleared.
    pub(in crate::session) fn bound_by(&self) -> Option<(&GoalPolicy, &GoalTrack)> {
        let track = self.goal_track.as_deref().filter(|track| !track.is_cleared)?;
        Some((self.assignment.goal_policy()?, track))
    }

    pub(in crate::session) fn has_goal(&self) -> bool {
        self.bound_by().is_some()
    }

    /// The verification in progress, if its result still counts.
    pub(in crate::session) fn live_check(&self) -> Option<&Check> {
        self.goal_track.as_ref()?.check.as_ref().filter(|check| !check.is_stale)
    }

    pub(in crate::session) fn check_standing(&self) -> QuorumState {
        match (self.assignment.goal_policy(), self.live_check()) {
            (Some(policy), Some(check)) => check.standing(policy),
            _ => QuorumState::Undecided(SupervisorError::Parse(String::new())),
        }
    }

    /// The turn of a verification.
    pub(in crate::session) fn turn_checked(&self, trigger: GoalTrigger) -> u32 {
        match trigger {
            GoalTrigger::Claim => self.next_turn(),
            GoalTrigger::Interval | GoalTrigger::Limit => self.counters.turns_ended.max(1),
        }
    }

    /// Whether a claim is being verified.
    pub(in crate::session) fn checks_claim(&self) -> bool {
        self.live_check().is_some_and(|check| check.trigger == GoalTrigger::Claim)
    }

    /// Whether the next model call is a judge's.
    pub(in crate::session) fn wants_judge(&self) -> bool {
        matches!(self.phase, Phase::Verifying | Phase::JudgeWaits(_)) && self.live_check().is_some()
    }

    /// Whether the session returns to `phase` after the final summary, or after the last check of the goal.
    pub(in crate::session) fn stands_aside_of(&self, phase: Phase) -> bool {
        let check = self.goal_track.as_ref().and_then(|track| track.check.as_ref());
        self.before_final_summary == Some(phase) || check.is_some_and(|check| check.back == phase)
    }

    /// The open effect at a limit before the session stops: the final summary, or the last check of the goal.
    pub(in crate::session) fn ending_at_limit(&self) -> Option<Seq> {
        let at_limit = self.live_check().is_some_and(|check| check.trigger == GoalTrigger::Limit);
        match self.phase {
            Phase::Judging(seq) | Phase::CheckingStop(seq) if at_limit => Some(seq),
            _ => self.wrapping_up(),
        }
    }

    pub(in crate::session) fn failures(&self) -> (u32, u32) {
        self.bound_by().map_or((0, 0), |(policy, track)| (track.failures, policy.failures_max))
    }

    pub(in crate::session) fn rounds(&self) -> (u32, u32) {
        self.bound_by().map_or((0, 0), |(policy, track)| (track.rounds, policy.rounds_max))
    }

    pub(in crate::session) fn is_interval_over(&self) -> bool {
        let Some((policy, track)) = self.bound_by() else { return false };
        let ended = self.counters.turns_ended;
        policy.verify_every.is_some_and(|every| ended > 0 && ended.is_multiple_of(every))
            && track.turns_at_interval != ended
            && track.answers_at_verdict != self.counters.answers
            && matches!(self.phase, Phase::Ready | Phase::Between)
    }

    /// Whether the agent has worked since the last verdict, so that the goal may be reached.
    pub(in crate::session) fn may_check_at_limit(&self, outcome: &Outcome) -> bool {
        let Some((_, track)) = self.bound_by() else { return false };
        matches!(outcome, Outcome::BudgetExhausted(_))
            && !track.at_limit
            && self.live_check().is_none()
            && self.counters.answers > 0
            && track.answers_at_verdict != self.counters.answers
            && !matches!(self.phase, Phase::New | Phase::MakingWorktree(_))
            && self.running().next().is_none()
            && self.counters.interruptions < self.assignment.limits().interruptions_max
    }
}
