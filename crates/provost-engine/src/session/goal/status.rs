//! The status of a goal.

use provost_event::{GoalFinding, GoalState, Outcome, PauseReason};
use serde::Serialize;

use super::GoalTrack;
use crate::session::SessionState;

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
        let policy = self.assignment.goal_policy()?;
        let track = self.goal.track.as_ref()?;
        Some(GoalStatus {
            condition: policy.condition.clone(),
            state: self.goal_state(track),
            generation: track.generation,
            rounds: track.rounds,
            failures: track.failures,
            idle_turns: self.progress.idle_turns(),
            finding: track.finding.clone(),
        })
    }

    fn goal_state(&self, track: &GoalTrack) -> GoalState {
        match self.lifecycle.outcome() {
            Some(Outcome::Failed { .. }) => GoalState::Failed,
            _ if track.is_cleared => GoalState::Aborted,
            Some(Outcome::Completed { .. }) => GoalState::Achieved,
            Some(Outcome::Aborted { .. } | Outcome::Cancelled { .. }) => GoalState::Aborted,
            Some(Outcome::Blocked { .. }) => GoalState::Blocked,
            Some(Outcome::Paused { why: PauseReason::Stuck { .. } }) => GoalState::Stuck,
            Some(Outcome::Paused { .. } | Outcome::BudgetExhausted(_)) => GoalState::Paused,
            None if self.goal.is_verified() => GoalState::Verifying,
            None => GoalState::Running,
        }
    }
}
