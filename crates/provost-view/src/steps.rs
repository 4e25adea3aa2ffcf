//! The steps of a run's workflow: status, agent and usage.

use std::collections::{BTreeMap, BTreeSet};

use provost_engine::{RunState, StepStatus};
use provost_event::{Budget, Elapsed, FlowPolicy, MicroDollars, Outcome, Priority, StepPolicy, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{RunAgent, RunAgentState};

/// The status of a step, as the member `state` has it, with what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state")]
pub enum WorkflowStepState {
    /// Other steps must be done before it.
    #[serde(rename = "waiting")]
    Waits {
        /// The names of these steps.
        waits_for: Vec<String>,
    },
    /// It can begin.
    #[serde(rename = "ready")]
    Ready,
    /// Its agent exists, and isn't done.
    #[serde(rename = "at work")]
    AtWork {
        /// The status of the agent.
        worker: RunAgentState,
    },
    /// Its agent was at work when the run's process was killed; none holds the run now.
    #[serde(rename = "interrupted")]
    Interrupted,
    /// Its agent's work is over; the run hasn't decided yet what that means for the step.
    #[serde(rename = "stopped")]
    Stopped {
        /// How the agent ended.
        outcome: Outcome,
    },
    /// It has failed and is retried.
    #[serde(rename = "to be tried again")]
    Again {
        /// Milliseconds until then, at most; null where no process holds the run.
        wait_ms: Option<u64>,
    },
    /// It is done.
    #[serde(rename = "done")]
    Done,
    /// It has failed, and the user must resume the run.
    #[serde(rename = "asks")]
    Asks {
        /// The failure.
        outcome: Outcome,
    },
    /// It has failed.
    #[serde(rename = "failed")]
    Failed {
        /// The failure.
        outcome: Outcome,
    },
    /// A step that it needs has failed.
    #[serde(rename = "skipped")]
    Skipped {
        /// The step that has failed; null if that isn't known.
        because_of: Option<String>,
    },
    /// The run has ended before it was begun.
    #[serde(rename = "never begun")]
    NeverBegun,
}

/// One step of a workflow. What it took is what counts for its budget: that of all attempts since the run was last
/// resumed after a failure of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowStep {
    /// Its name.
    #[serde(rename = "step")]
    pub name: String,
    /// What its agent is to do.
    pub goal: String,
    /// The steps that must be done before it.
    pub needs: Vec<String>,
    /// Its status.
    #[serde(flatten)]
    pub state: WorkflowStepState,
    /// The number of the agent that does it, or has done it; null before it has begun.
    pub agent: Option<u32>,
    /// The agents that have tried it, the last one last.
    pub agents: Vec<u32>,
    /// The attempt that is made, or made next, or was the last; counted anew when the user had the run go on.
    pub attempt: u32,
    /// Maximum of `attempt`.
    pub attempts_max: u32,
    /// The priority of its agent for a slot; null once that has ended.
    pub priority: Option<Priority>,
    /// Turns.
    pub turns: u32,
    /// Maximum turns of the last attempt; null if unlimited, not known, or not the only attempt.
    pub turns_max: Option<u32>,
    /// Tokens.
    pub tokens: u64,
    /// The cost; null where the price of what it used isn't known.
    #[serde(rename = "cost_micro_usd")]
    pub cost: Option<MicroDollars>,
    /// What it may use.
    pub budget: Budget,
    /// How long its agents have worked.
    pub worked_ms: u64,
}

/// The steps of a run's workflow, in the order in which they were written; none where it has no workflow. `now` is
/// given while a process holds the run.
pub(crate) fn steps_of(run: &RunState, agents: &[RunAgent], now: Option<Timestamp>) -> Vec<WorkflowStep> {
    let (Some(tracker), Some(flow)) = (run.flow(), run.policy().and_then(|policy| policy.flow.as_ref()))
    else {
        return Vec::new();
    };
    let mut by_step: BTreeMap<&str, Vec<&RunAgent>> = BTreeMap::new();
    for agent in agents.iter().filter(|agent| agent.parent.is_none()) {
        by_step.entry(&agent.name).or_default().push(agent);
    }
    let standings = tracker.iter().collect::<BTreeMap<_, _>>();
    let has_ended = run.outcome().is_some_and(Outcome::is_final);
    let all = All { standings, flow, now, elapsed: run.elapsed(), has_ended };
    let numbered = flow.steps.iter().enumerate();
    let step = |(number, policy): (usize, &StepPolicy)| {
        let tried = by_step.get(policy.name.as_str()).map(Vec::as_slice).unwrap_or_default();
        all.step(policy, tried, tracker.attempts(number))
    };
    numbered.map(step).collect()
}

/// The state of the workflow that a step is seen in.
struct All<'a> {
    standings: BTreeMap<&'a str, &'a StepStatus>,
    flow: &'a FlowPolicy,
    now: Option<Timestamp>,
    elapsed: Elapsed,
    has_ended: bool,
}

impl All<'_> {
    fn step(&self, policy: &StepPolicy, tried: &[&RunAgent], attempts: &[u32]) -> WorkflowStep {
        let last = tried.last();
        // Those before the run was resumed don't draw from the budget any more.
        let counted = tried.iter().filter(|agent| attempts.contains(&agent.number())).collect::<Vec<_>>();
        let attempts = u32::try_from(attempts.len()).unwrap_or(u32::MAX);
        let state = self.state(policy, last.map(|agent| &agent.state));
        let is_open = matches!(
            state,
            WorkflowStepState::Waits { .. } | WorkflowStepState::Ready | WorkflowStepState::Again { .. }
        );
        let own = policy.budget;
        let agents_own = last.map(|agent| agent.budget).unwrap_or_default();
        WorkflowStep {
            name: policy.name.clone(),
            goal: policy.goal.clone(),
            needs: policy.needs.clone(),
            agent: last.map(|agent| agent.number()),
            agents: tried.iter().map(|agent| agent.number()).collect(),
            attempt: attempts
                .saturating_add(u32::from(matches!(state, WorkflowStepState::Again { .. })))
                .max(1),
            attempts_max: policy.attempts_max,
            priority: if is_open { Some(policy.priority) } else { last.and_then(|agent| agent.priority) },
            turns: counted.iter().map(|agent| agent.turns).fold(0, u32::saturating_add),
            turns_max: last.and_then(|agent| agent.turns_max).filter(|_| counted.len() == 1),
            tokens: counted.iter().map(|agent| agent.tokens).fold(0, u64::saturating_add),
            cost: counted.iter().try_fold(MicroDollars(0), |sum, agent| agent.cost.map(|cost| sum + cost)),
            budget: if own.is_unlimited() && counted.len() == 1 { agents_own } else { own },
            worked_ms: counted.iter().map(|agent| agent.worked_ms).fold(0, u64::saturating_add),
            state,
        }
    }

    fn state(&self, policy: &StepPolicy, agent: Option<&RunAgentState>) -> WorkflowStepState {
        match self.of(&policy.name) {
            Some(StepStatus::AtWork(_)) => of_agent(agent),
            Some(StepStatus::Done) => WorkflowStepState::Done,
            Some(StepStatus::Failed(outcome)) => WorkflowStepState::Failed { outcome: outcome.clone() },
            Some(StepStatus::Skipped) => WorkflowStepState::Skipped { because_of: self.failed_above(policy) },
            // The run has ended: no step waits or is retried any more.
            Some(StepStatus::Asks(outcome)) if self.has_ended => {
                WorkflowStepState::Failed { outcome: outcome.clone() }
            }
            Some(StepStatus::Later(_)) if self.has_ended => match agent.and_then(RunAgentState::outcome) {
                Some(outcome) => WorkflowStepState::Failed { outcome: outcome.clone() },
                None => WorkflowStepState::NeverBegun,
            },
            Some(StepStatus::Waiting | StepStatus::Ready) | None if self.has_ended => {
                WorkflowStepState::NeverBegun
            }
            Some(StepStatus::Asks(outcome)) => WorkflowStepState::Asks { outcome: outcome.clone() },
            Some(StepStatus::Later(wait)) => WorkflowStepState::Again {
                // What a process had measured when it last wrote something is the most that can be left.
                wait_ms: self.now.map(|now| wait.due.since_ms(now).min(wait.ready.since_ms(self.elapsed))),
            },
            Some(StepStatus::Ready) => WorkflowStepState::Ready,
            Some(StepStatus::Waiting) | None => {
                let missing = |need: &&String| self.of(need) != Some(&StepStatus::Done);
                WorkflowStepState::Waits { waits_for: policy.needs.iter().filter(missing).cloned().collect() }
            }
        }
    }

    fn of(&self, step: &str) -> Option<&StepStatus> {
        self.standings.get(step).copied()
    }

    /// The step that has failed of those that this one needs, directly or not.
    fn failed_above(&self, policy: &StepPolicy) -> Option<String> {
        let (mut seen, mut next) = (BTreeSet::new(), policy.needs.iter().collect::<Vec<_>>());
        while let Some(need) = next.pop() {
            match self.of(need) {
                Some(StepStatus::Failed(_)) => return Some(need.clone()),
                Some(StepStatus::Skipped) if seen.insert(need) => {
                    let above = self.flow.steps.iter().filter(|step| step.name == *need);
                    next.extend(above.flat_map(|step| &step.needs));
                }
                _ => {}
            }
        }
        None
    }
}

/// The status of a step whose agent has this status; `None` before the agent's session is known.
fn of_agent(agent: Option<&RunAgentState>) -> WorkflowStepState {
    match agent {
        Some(RunAgentState::Interrupted) => WorkflowStepState::Interrupted,
        Some(RunAgentState::Done { outcome }) => WorkflowStepState::Stopped { outcome: outcome.clone() },
        Some(state) => WorkflowStepState::AtWork { worker: state.clone() },
        None => WorkflowStepState::AtWork { worker: RunAgentState::Queued },
    }
}
