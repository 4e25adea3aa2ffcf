//! What an agent without work waits to begin with: a restart after a failure, or a further request.

use provost_event::{AgentAskedAgain, AgentRetryScheduled, Elapsed, Outcome, Timestamp};
use serde::{Deserialize, Serialize};

use crate::SessionEvent;
use crate::decision_time::DecisionTime;

/// A scheduled restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PendingRestart {
    pub(super) attempt: u32,
    pub(super) attempts_max: u32,
    /// The agent's failure.
    pub(super) failed: Outcome,
    /// Absent once the wait is over, or a person has resumed the agent.
    pub(super) wait: Option<RestartWait>,
}

/// The wait for a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RestartWait {
    /// Its end by the wall clock, for display.
    pub(super) due: Timestamp,
    /// Its end by the run's elapsed time, which counts.
    pub(super) ready: Elapsed,
}

impl PendingRestart {
    pub(super) fn of(scheduled: &AgentRetryScheduled, now: DecisionTime) -> Self {
        let AgentRetryScheduled { outcome, attempt, attempts_max, delay_ms, due, .. } = scheduled;
        let wait = RestartWait { due: *due, ready: now.elapsed.plus_ms(*delay_ms) };
        Self { attempt: *attempt, attempts_max: *attempts_max, failed: outcome.clone(), wait: Some(wait) }
    }

    pub(super) fn waits_go_on(&mut self, now: DecisionTime) {
        if let Some(wait) = &mut self.wait {
            wait.ready = now.remaining_wait(wait.due, wait.ready);
        }
    }
}

/// The further request to an agent that has delivered its result, until the agent begins with it in its own
/// session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::run) struct PendingRequest {
    text: String,
    by: String,
    turns_max: u32,
}

impl PendingRequest {
    pub(super) fn of(asked: &AgentAskedAgain) -> Self {
        Self { text: asked.text.clone(), by: format!("agent {}", asked.parent), turns_max: asked.turns_max }
    }

    /// The event that resumes the agent with this request.
    pub(in crate::run) fn into_event(self) -> SessionEvent {
        let Self { text, by, turns_max } = self;
        SessionEvent::Resume { by, turns_max: Some(turns_max), text: Some(text), reopens: true }
    }
}
