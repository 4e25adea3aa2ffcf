//! The run's agents: which agent starts which, and the model's answers to each.

use std::path::Path;

use provost_engine::agent_tool;
use provost_event::{
    AgentPolicy, Budget, Isolation, Priority, RunPolicy, SpawnBudget, SubAgentPolicy, ToolSpec,
};

use super::Size;
use crate::agent;
use crate::model_script::Script;

const LEAD: &str = "lead";
const WORKER: &str = "worker";

/// A root that starts leads, each of which starts workers; or, if not all have a slot at once, a root that starts
/// all workers itself, which are queued.
pub(super) struct Tree {
    leads: usize,
    /// Of each lead; of the root where there are no leads.
    workers: usize,
    pub(super) slots: usize,
    turns: usize,
    pub(super) answer_ms: u64,
}

impl Tree {
    pub(super) fn of(Size { agents, slots, turns, answer_ms }: Size) -> Self {
        let turns = turns.max(2);
        match slots {
            Some(slots) if slots < agents => {
                Self { leads: 0, workers: agents.max(2) - 1, slots, turns, answer_ms }
            }
            _ => {
                let leads = agents.isqrt().max(2);
                let tree = Self { leads, workers: leads - 1, slots: 0, turns, answer_ms };
                Self { slots: tree.agents(), ..tree }
            }
        }
    }

    pub(super) const fn agents(&self) -> usize {
        if self.leads == 0 { 1 + self.workers } else { 1 + self.leads + self.leads * self.workers }
    }

    /// The models by name, with their answers.
    pub(super) fn scripts(&self) -> [(&'static str, Script); 3] {
        let works = |ask: Option<(&str, usize)>| {
            let ask = ask.map(|(agent, number)| (agent.to_owned(), number));
            let calls = self.turns - 1 - usize::from(ask.is_some());
            Script { ask, calls, each_ms: self.answer_ms }
        };
        let root = if self.leads == 0 { (WORKER, self.workers) } else { (LEAD, self.leads) };
        [
            (agent::MODEL, works(Some(root))),
            (LEAD, works(Some((WORKER, self.workers)))),
            (WORKER, works(None)),
        ]
    }

    /// The run with all its agents.
    pub(super) fn policy(&self, workspace: &Path) -> anyhow::Result<RunPolicy> {
        let policy = agent::policy(workspace)?;
        let (lead, worker) =
            (agent_tool(LEAD, "Has a part seen to."), agent_tool(WORKER, "Has a part done."));
        let slots = u32::try_from(self.slots)?;
        let agents =
            vec![sub_agent(LEAD, &policy.agent, [worker.clone()]), sub_agent(WORKER, &policy.agent, [])];
        let tools = [policy.agent.tools.clone(), vec![lead, worker]].concat();
        Ok(RunPolicy {
            spawn: SpawnBudget { max_agents: slots, max_depth: 4, ..SpawnBudget::default() },
            agents,
            agent: AgentPolicy { tools, ..policy.agent },
            ..policy
        })
    }
}

fn sub_agent<const N: usize>(name: &str, like: &AgentPolicy, besides: [ToolSpec; N]) -> SubAgentPolicy {
    let mut agent = like.clone();
    name.clone_into(&mut agent.model.name);
    agent.tools.extend(besides);
    SubAgentPolicy {
        name: name.to_owned(),
        agent,
        priority: Priority::Normal,
        budget: Budget::default(),
        ask_timeout_ms: None,
        isolation: Isolation::Shared,
    }
}
