//! Agents that have failed: whether they are restarted, and when. The root agent isn't restarted automatically.

use provost_event::{
    AgentResumeRequested, AgentRetryScheduled, Elapsed, Outcome, RetryPolicy, SessionId, Timestamp,
};
use serde::{Deserialize, Serialize};

use super::agents::ROOT;
use super::{AgentNumber, Deciding, RunState};
use crate::decision_time::DecisionTime;
use crate::retry::restart_delay_ms;

/// Who resumes an agent that is restarted.
const BY_POLICY: &str = "the retry policy";

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

impl Deciding<'_> {
    /// Schedules a restart for an agent that has failed, if its policy allows one. Returns whether it does.
    pub(super) fn restarts(&mut self, session: SessionId, outcome: &Outcome) -> bool {
        let Some((policy, attempt)) = self.state.next_restart(session.agent, outcome) else { return false };
        let delay_ms = restart_delay_ms(policy, attempt, self.entropy);
        let stopping = self.state.agents.get(session.agent).and_then(|agent| agent.stopping.clone());
        self.commit(AgentRetryScheduled {
            agent: session,
            outcome: outcome.clone(),
            attempt,
            attempts_max: policy.attempts_max,
            delay_ms,
            due: self.step.now().at.plus_ms(delay_ms),
        });
        if let Some(stopping) = stopping {
            // The agent failed while it was being suspended.
            self.hold(session.agent, &stopping);
        }
        true
    }

    /// The wait before an agent's restart is over: it continues as soon as there is a slot.
    pub(super) fn restart_is_due(&mut self, agent: AgentNumber) {
        let child = self.state.agents.session(agent);
        self.commit(AgentResumeRequested { child, by: BY_POLICY.to_owned() });
    }

    /// Ends an agent that waits for its restart, with its failure as the outcome. Returns whether it did.
    pub(super) fn ends_without_restart(&mut self, agent: AgentNumber, outcome: &Outcome) -> bool {
        let failed =
            self.state.agents.get(agent).and_then(|agent| Some(agent.restart.as_ref()?.failed.clone()));
        let Some(failed) = failed.filter(|failed| outcome.is_final() && failed.is_final()) else {
            return false;
        };
        self.finish(self.state.agents.session(agent), failed, "");
        true
    }
}

impl RunState {
    /// The policy and the number in a row of the restart after `outcome`; `None` if there is none.
    fn next_restart(&self, agent: AgentNumber, outcome: &Outcome) -> Option<(RetryPolicy, u32)> {
        let one = self.agents.get(agent).filter(|one| one.is_at_work() && one.children == 0)?;
        let ends = |stopping: &Option<Outcome>| stopping.as_ref().is_some_and(Outcome::is_final);
        if agent == ROOT || !outcome.may_restart() || ends(&one.stopping) || ends(&self.stopping) {
            return None;
        }
        let mut policy = self.policy_of(agent)?.limits.retry;
        policy.attempts_max = self.step_restarts_max(one).unwrap_or(policy.attempts_max);
        let mut retries = self.retries.clone();
        retries.limit(agent, policy.attempts_max);
        retries.should_retry(agent).then(|| (policy, retries.attempts(agent)))
    }
}
