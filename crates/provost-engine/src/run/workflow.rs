//! The workflow of a run, if it runs one: which steps are next, and what becomes of the run when none is.

use provost_event::{
    AgentEntry, Elapsed, Entry, ErrorClass, LifecycleEntry, OnStepFailure, Outcome, PauseReason, StepEnd,
    Verdict,
};
use serde::{Deserialize, Serialize};

use super::agents::{Agent, AgentTable};
use super::flow::{Attempt, StepNumber, StepTracker};
use super::lifecycle::SegmentChange;
use crate::decision_time::DecisionTime;

/// The end of an attempt at a step, and what it means for the run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AttemptEnd {
    /// The number of the attempt, from 1.
    pub(super) attempt: u32,
    pub(super) end: StepEnd,
}

impl AttemptEnd {
    /// The outcome of the run, if that fails with the step.
    pub(super) fn run_fails(&self, step: &str) -> Option<Outcome> {
        let StepEnd::Failed { outcome, then: OnStepFailure::Abort, .. } = &self.end else { return None };
        Some(match outcome {
            Outcome::Aborted { hook, reason } => {
                Outcome::Aborted { hook: hook.clone(), reason: format!("step `{step}`: {reason}") }
            }
            other => failed(format!("`{step}`: {other}")),
        })
    }
}

/// The workflow of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Workflow {
    /// Absent for a run with a root agent.
    steps: Option<StepTracker>,
}

impl Workflow {
    pub(super) const fn steps(&self) -> Option<&StepTracker> {
        self.steps.as_ref()
    }

    /// The step that an agent works on, if any.
    pub(super) fn step_of(&self, agent: &Agent) -> Option<StepNumber> {
        self.steps.as_ref().filter(|_| agent.parent().is_none())?.find(agent.name())
    }

    /// When the next step is due to be retried.
    pub(super) fn due(&self) -> Option<Elapsed> {
        self.steps.as_ref()?.first_due()
    }

    /// What follows from the end of an attempt of `agent` at its step. While the run is ending, stopping its agents
    /// is no failure of their steps.
    pub(super) fn attempt_ended(
        &self,
        agent: &Agent,
        attempt: &Attempt<'_>,
        run_is_ending: bool,
    ) -> Option<AttemptEnd> {
        let step = self.step_of(agent)?;
        let steps = self.steps.as_ref()?;
        let end = steps.after(step, attempt)?;
        if run_is_ending && !matches!(end, StepEnd::Done { .. }) {
            return None;
        }
        let attempt = u32::try_from(steps.attempts(step).len()).unwrap_or(u32::MAX);
        Some(AttemptEnd { attempt, end })
    }

    /// The outcome of a run whose steps are all over: PARTIAL where one has failed or was skipped.
    pub(super) fn completed(&self) -> Option<Outcome> {
        let steps = self.steps.as_ref().filter(|steps| steps.is_over())?;
        let verdict = (!steps.is_done()).then_some(Verdict::Partial);
        Some(Outcome::Completed { verdict, verification: steps.verification() })
    }

    /// The outcome of a run without working agents that isn't stopped; `None` if a step is still to begin.
    pub(super) fn outcome_at_rest(&self, agents: &AgentTable) -> Option<Outcome> {
        let steps = self.steps.as_ref()?;
        if steps.first_due().is_some() || agents.any_awaits_restart() {
            return None;
        }
        let first = spent(agents).or_else(|| suspended(agents).next());
        if let Some(outcome) = first {
            return Some(outcome.clone());
        }
        if let Some((step, outcome)) = steps.asks() {
            let why = PauseReason::StepFailed { step: step.to_owned(), reason: outcome.to_string() };
            return Some(Outcome::Paused { why });
        }
        (agents.live() == 0).then(|| failed("none of those that are left can be begun"))
    }

    pub(super) fn apply(
        &mut self,
        entry: &Entry,
        segment: SegmentChange,
        agents: &AgentTable,
        now: DecisionTime,
    ) {
        if let Entry::Lifecycle(LifecycleEntry::RunStarted(started)) = entry {
            self.steps = started.policy.flow.as_ref().map(StepTracker::new);
        }
        let Some(steps) = &mut self.steps else { return };
        match entry {
            Entry::Agent(AgentEntry::Spawned(spawned)) if spawned.parent.is_none() => {
                if let Some(step) = steps.find(&spawned.brief.name) {
                    steps.began(step, spawned.child.agent);
                }
            }
            Entry::Agent(AgentEntry::StepEnded(ended)) => steps.ended(ended, now.elapsed),
            Entry::Lifecycle(LifecycleEntry::RunPolicyChanged(changed)) => {
                if let Some(flow) = &changed.policy.flow {
                    steps.policy_changed(flow);
                }
            }
            Entry::Lifecycle(LifecycleEntry::Resumed(_)) => {
                steps.waits_go_on(now);
                if segment != SegmentChange::None {
                    steps.resumed();
                }
                if segment == SegmentChange::Reopens {
                    steps.reopened(|agent| agents.get(agent).is_some_and(Agent::is_live));
                }
            }
            _ => {}
        }
    }
}

/// The outcomes of suspended agents, except for those that wait for a slot.
fn suspended(agents: &AgentTable) -> impl Iterator<Item = &Outcome> {
    let live = agents.iter().filter(|(_, agent)| agent.is_live());
    live.filter_map(|(_, agent)| agent.suspended()).filter(|outcome| !outcome.is_preempted())
}

/// The outcome of the first agent that is suspended at a limit.
pub(super) fn spent(agents: &AgentTable) -> Option<&Outcome> {
    suspended(agents).find(|outcome| matches!(outcome, Outcome::BudgetExhausted(_)))
}

fn failed(message: impl Into<String>) -> Outcome {
    Outcome::Failed { class: ErrorClass::StepFailed, message: message.into() }
}
