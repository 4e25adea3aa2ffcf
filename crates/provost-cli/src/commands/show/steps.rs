//! The steps of a run's workflow as `show` gathers them: status, agent and usage.

use std::collections::{BTreeMap, BTreeSet};

use provost_engine::{RunState, StepStatus};
use provost_event::{Budget, Elapsed, FlowPolicy, MicroDollars, Outcome, Priority, StepPolicy, Timestamp};
use serde::Serialize;

use super::agents::{Node, State};

/// The status of a step, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StepState {
    /// These must be done before it.
    Waits(Vec<String>),
    Ready,
    /// Its agent exists, and has this status.
    AtWork(State),
    /// It has failed and is retried: in this many milliseconds, if a process holds the run.
    Again(Option<u64>),
    Done,
    /// It has failed, and the user must resume the run.
    Asks(Outcome),
    Failed(Outcome),
    /// Skipped because of this step, which has failed.
    Skipped(Option<String>),
    /// The run has ended before it was begun.
    NeverBegun,
}

impl StepState {
    /// In one word, for programs.
    pub(super) const fn word(&self) -> &'static str {
        match self {
            Self::Waits(_) => "waiting",
            Self::Ready => "ready",
            Self::AtWork(State::Done(_)) => "stopped",
            Self::AtWork(State::Interrupted) => "interrupted",
            Self::AtWork(_) => "at work",
            Self::Again(_) => "to be tried again",
            Self::Done => "done",
            Self::Asks(_) => "asks",
            Self::Failed(_) => "failed",
            Self::Skipped(_) => "skipped",
            Self::NeverBegun => "never begun",
        }
    }

    const fn outcome(&self) -> Option<&Outcome> {
        match self {
            Self::Asks(outcome) | Self::Failed(outcome) => Some(outcome),
            Self::AtWork(state) => state.outcome(),
            _ => None,
        }
    }
}

/// One step, as it is drawn. What it took is what counts for its budget: that of all attempts since the run was last
/// resumed after a failure of it.
#[derive(Debug, Clone)]
pub(super) struct FlowStep {
    pub(super) name: String,
    pub(super) goal: String,
    pub(super) needs: Vec<String>,
    pub(super) standing: StepState,
    /// The agents that have tried it, the last one last.
    pub(super) agents: Vec<u32>,
    /// The attempt that is made, or made next, or was the last; counted anew when the user had the run go on.
    pub(super) attempt: u32,
    pub(super) attempts_max: u32,
    pub(super) priority: Option<Priority>,
    pub(super) turns: u32,
    /// Of the last attempt.
    pub(super) turns_max: Option<u32>,
    pub(super) tokens: u64,
    /// `None` where the price of what it used isn't known.
    pub(super) cost: Option<MicroDollars>,
    pub(super) budget: Budget,
    pub(super) worked_ms: u64,
}

impl FlowStep {
    /// The agent that does it, or has done it.
    pub(super) fn agent(&self) -> Option<u32> {
        self.agents.last().copied()
    }
}

/// The steps of a run's workflow, in the order in which they were written; none where it has no workflow. `now` is
/// given while a process holds the run.
pub(super) fn steps(run: &RunState, agents: &[Node], now: Option<Timestamp>) -> Vec<FlowStep> {
    let (Some(tracker), Some(flow)) = (run.flow(), run.policy().and_then(|policy| policy.flow.as_ref()))
    else {
        return Vec::new();
    };
    let mut by_step: BTreeMap<&str, Vec<&Node>> = BTreeMap::new();
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
    fn step(&self, policy: &StepPolicy, tried: &[&Node], attempts: &[u32]) -> FlowStep {
        let last = tried.last();
        // Those before the run was resumed don't draw from the budget any more.
        let counted = tried.iter().filter(|agent| attempts.contains(&agent.number())).collect::<Vec<_>>();
        let attempts = u32::try_from(attempts.len()).unwrap_or(u32::MAX);
        let standing = self.standing(policy, last.map(|agent| &agent.state));
        let is_open = matches!(standing, StepState::Waits(_) | StepState::Ready | StepState::Again(_));
        let own = policy.budget;
        let agents_own = last.map(|agent| agent.budget).unwrap_or_default();
        FlowStep {
            name: policy.name.clone(),
            goal: policy.goal.clone(),
            needs: policy.needs.clone(),
            agents: tried.iter().map(|agent| agent.number()).collect(),
            attempt: attempts.saturating_add(u32::from(matches!(standing, StepState::Again(_)))).max(1),
            attempts_max: policy.attempts_max,
            priority: if is_open { Some(policy.priority) } else { last.and_then(|agent| agent.priority) },
            turns: counted.iter().map(|agent| agent.turns).fold(0, u32::saturating_add),
            turns_max: last.and_then(|agent| agent.turns_max).filter(|_| counted.len() == 1),
            tokens: counted.iter().map(|agent| agent.tokens).fold(0, u64::saturating_add),
            cost: counted.iter().try_fold(MicroDollars(0), |sum, agent| agent.cost.map(|cost| sum + cost)),
            budget: if own.is_unlimited() && counted.len() == 1 { agents_own } else { own },
            worked_ms: counted.iter().map(|agent| agent.worked_ms).fold(0, u64::saturating_add),
            standing,
        }
    }

    fn standing(&self, policy: &StepPolicy, agent: Option<&State>) -> StepState {
        match self.of(&policy.name) {
            Some(StepStatus::AtWork(_)) => StepState::AtWork(agent.cloned().unwrap_or(State::Queued)),
            Some(StepStatus::Done) => StepState::Done,
            Some(StepStatus::Failed(outcome)) => StepState::Failed(outcome.clone()),
            Some(StepStatus::Skipped) => StepState::Skipped(self.failed_above(policy)),
            // The run has ended: no step waits or is retried any more.
            Some(StepStatus::Asks(outcome)) if self.has_ended => StepState::Failed(outcome.clone()),
            Some(StepStatus::Later(_)) if self.has_ended => match agent.and_then(State::outcome) {
                Some(outcome) => StepState::Failed(outcome.clone()),
                None => StepState::NeverBegun,
            },
            Some(StepStatus::Waiting | StepStatus::Ready) | None if self.has_ended => StepState::NeverBegun,
            Some(StepStatus::Asks(outcome)) => StepState::Asks(outcome.clone()),
            Some(StepStatus::Later(wait)) => StepState::Again(self.now.map(|now| {
                // What a process had measured when it last wrote something is the most that can be left.
                wait.due.since_ms(now).min(wait.ready.since_ms(self.elapsed))
            })),
            Some(StepStatus::Ready) => StepState::Ready,
            Some(StepStatus::Waiting) | None => {
                let missing = |need: &&String| self.of(need) != Some(&StepStatus::Done);
                StepState::Waits(policy.needs.iter().filter(missing).cloned().collect())
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

/// A step for programs.
#[derive(Serialize)]
pub(super) struct StepJson<'a> {
    step: &'a str,
    goal: &'a str,
    needs: &'a [String],
    state: &'static str,
    state_text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'a Outcome>,
    /// The agent that does it, or has done it.
    agent: Option<u32>,
    /// All that have tried it.
    agents: &'a [u32],
    attempt: u32,
    attempts_max: u32,
    priority: Option<Priority>,
    turns: u32,
    tokens: u64,
    cost_micro_usd: Option<MicroDollars>,
    budget: Budget,
    worked_ms: u64,
}

impl<'a> StepJson<'a> {
    pub(super) fn of(step: &'a FlowStep) -> Self {
        Self {
            step: &step.name,
            goal: &step.goal,
            needs: &step.needs,
            state: step.standing.word(),
            state_text: super::tree::step_in_words(step),
            outcome: step.standing.outcome(),
            agent: step.agent(),
            agents: &step.agents,
            attempt: step.attempt,
            attempts_max: step.attempts_max,
            priority: step.priority,
            turns: step.turns,
            tokens: step.tokens,
            cost_micro_usd: step.cost,
            budget: step.budget,
            worked_ms: step.worked_ms,
        }
    }
}

/// In how long it is tried again.
pub(super) fn in_time(wait_ms: Option<u64>) -> String {
    match wait_ms {
        None => "tried again".to_owned(),
        Some(0) => "tried again now".to_owned(),
        Some(wait_ms) => format!("tried again in {} s", wait_ms.div_ceil(1_000)),
    }
}
