//! What the agent of a workflow's step is asked to do, and how much of the step's budget is left for it.

use provost_event::{AgentSpawned, Brief, Budget, Elapsed, SlotAssignment, StepPolicy};

use super::agents::Agents;
use super::flow::{StepNumber, cut};
use super::ledger::Ledger;
use super::policy::PolicyInForce;
use super::spawn::Acquired;
use super::workflow::Workflow;

/// Maximum bytes of earlier steps' final texts that a step gets, all of them together.
const TOLD_BYTES_MAX: usize = 64 * 1024;

/// The steps of a run, with what their agents get.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepBriefs<'a> {
    pub(super) run: &'a PolicyInForce,
    pub(super) agents: &'a Agents,
    pub(super) workflow: &'a Workflow,
    pub(super) ledger: &'a Ledger,
    /// The run's elapsed time at its last entry.
    pub(super) elapsed: Elapsed,
}

impl StepBriefs<'_> {
    /// The agent for the next step that can begin at `now`, if any: it is queued for a slot, unless another agent
    /// yields to it.
    pub(super) fn next(&self, now: Elapsed) -> Option<AgentSpawned> {
        let step = self.workflow.steps()?.next(now)?;
        let policy = self.run.step(step)?;
        let priority = policy.priority;
        let slot = match self.agents.slots().would_acquire(priority) {
            Acquired::Granted => SlotAssignment::Free,
            Acquired::After(victim) => SlotAssignment::After(self.agents.table().session(victim)),
            Acquired::Exhausted => SlotAssignment::Queued,
        };
        let child = self.agents.table().next_session();
        let brief = self.brief(step, policy);
        Some(AgentSpawned { child, parent: None, call: None, depth: 0, brief, priority, slot })
    }

    fn brief(&self, step: StepNumber, policy: &StepPolicy) -> Brief {
        let named = policy.agent.as_deref().and_then(|name| self.run.sub_agent(name));
        let budget = tighter(policy.budget, named.map(|named| named.budget).unwrap_or_default());
        Brief {
            name: policy.name.clone(),
            goal: self.goal(step, &policy.goal),
            agent: policy.agent.clone(),
            instructions: None,
            tools: None,
            budget: self.rest_of(step, budget),
            turns_max: None,
            ask_timeout_ms: None,
            isolation: named.map(|named| named.isolation).unwrap_or_default(),
            done_when: None,
        }
    }

    /// The step's goal, with the final texts of its dependencies.
    fn goal(&self, step: StepNumber, goal: &str) -> String {
        let told = self.workflow.steps().iter().flat_map(|steps| steps.told(step)).collect::<Vec<_>>();
        if told.is_empty() {
            return goal.to_owned();
        }
        let each = TOLD_BYTES_MAX.checked_div(told.len()).unwrap_or_default();
        let mut text = format!("{goal}\n\nThis was done before. What was said last of each step:");
        for (name, said) in told {
            let said = if said.is_empty() { "(nothing)".to_owned() } else { cut(said, each) };
            text.push_str(&format!("\n\n<step name=\"{name}\">\n{said}\n</step>"));
        }
        text
    }

    /// What the attempts so far have left of a step's budget.
    fn rest_of(&self, step: StepNumber, budget: Budget) -> Budget {
        let attempts = self.workflow.steps().map(|steps| steps.attempts(step)).unwrap_or_default();
        attempts.iter().fold(budget, |left, agent| {
            let spent = self.ledger.spent(*agent).copied().unwrap_or_default();
            let worked_ms = self.agents.get(*agent).map_or(0, |agent| agent.clock().used_ms(self.elapsed));
            Budget {
                tokens: left.tokens.map(|tokens| tokens.saturating_sub(spent.tokens)),
                money: left.money.map(|money| money.saturating_sub(spent.cost)),
                wall_time_ms: left.wall_time_ms.map(|ms| ms.saturating_sub(worked_ms)),
                turns: left.turns.map(|turns| turns.saturating_sub(spent.turns)),
            }
        })
    }
}

/// The smaller one of each limit.
fn tighter(one: Budget, other: Budget) -> Budget {
    Budget {
        tokens: one.tokens.into_iter().chain(other.tokens).min(),
        money: one.money.into_iter().chain(other.money).min(),
        wall_time_ms: one.wall_time_ms.into_iter().chain(other.wall_time_ms).min(),
        turns: one.turns.into_iter().chain(other.turns).min(),
    }
}
