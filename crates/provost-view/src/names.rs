//! The names of a run's agents.

use std::collections::BTreeMap;

use provost_engine::RunState;
use provost_event::{ActorKey, AgentEntry, Entry, Record, SessionId};

/// The names of a run's agents, as far as they are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentNames {
    by_number: BTreeMap<u32, String>,
}

impl AgentNames {
    /// Those of all agents that the run has had so far.
    #[must_use]
    pub fn of(state: &RunState) -> Self {
        let named = state.agents().filter(|agent| !agent.name.is_empty());
        Self { by_number: named.map(|agent| (agent.session.agent, agent.name.to_owned())).collect() }
    }

    /// Adds a name that `record` gives.
    pub fn learn(&mut self, record: &Record) {
        if let (ActorKey::Run(_), Entry::Agent(AgentEntry::Spawned(spawned))) = (record.actor, &record.entry)
        {
            self.by_number.insert(spawned.child.agent, spawned.brief.name.clone());
        }
    }

    /// An agent's name; empty for the root and for one that isn't known.
    #[must_use]
    pub fn name(&self, session: SessionId) -> &str {
        self.by_number.get(&session.agent).map_or("", String::as_str)
    }
}
