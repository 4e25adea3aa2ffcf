//! The names of a run's agents, for people: their numbers, and the names that they were given.

use std::collections::HashMap;

use provost_engine::RunState;
use provost_event::{ActorKey, AgentEntry, Entry, Record, SessionId};

use crate::render::one_line;

/// Columns of an agent's name; a model may have chosen it.
const WIDTH_MAX: usize = 20;

/// The names of a run's agents, as far as they are known.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    by_number: HashMap<u32, String>,
}

impl Names {
    /// Those of all agents that the run has had so far.
    pub(crate) fn of(state: &RunState) -> Self {
        let named = state.agents().filter(|agent| !agent.name.is_empty());
        Self { by_number: named.map(|agent| (agent.session.agent, short(agent.name))).collect() }
    }

    /// Takes in a name that `record` gives.
    pub(crate) fn learn(&mut self, record: &Record) {
        if let (ActorKey::Run(_), Entry::Agent(AgentEntry::Spawned(spawned))) = (record.actor, &record.entry)
        {
            self.by_number.insert(spawned.child.agent, short(&spawned.brief.name));
        }
    }

    /// Takes in those of others.
    pub(crate) fn add(&mut self, others: Self) {
        self.by_number.extend(others.by_number);
    }

    /// Whether any agent but the root is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_number.is_empty()
    }

    /// An agent's name alone; empty for the root and for one that isn't known.
    pub(crate) fn name(&self, session: SessionId) -> &str {
        self.by_number.get(&session.agent).map_or("", String::as_str)
    }

    /// The same by the agent's number.
    pub(crate) fn name_of(&self, agent: u32) -> &str {
        self.by_number.get(&agent).map_or("", String::as_str)
    }

    /// `3 reviewer`; the number alone for one that isn't known.
    pub(crate) fn label(&self, session: SessionId) -> String {
        labelled(session.agent, self.name(session))
    }

    /// `agent 3 (reviewer)`.
    pub(crate) fn in_words(&self, session: SessionId) -> String {
        agent_in_words(session.agent, self.name(session))
    }

    /// The prefix of an agent's lines; nothing for the root.
    pub(crate) fn prefix(&self, actor: ActorKey) -> Option<String> {
        match actor {
            ActorKey::Session(session) if session.agent > 0 => Some(self.label(session)),
            ActorKey::Session(_) | ActorKey::Run(_) => None,
        }
    }
}

/// `3 reviewer`.
pub(crate) fn labelled(number: u32, name: &str) -> String {
    if name.is_empty() { number.to_string() } else { format!("{number} {name}") }
}

/// `agent 3 (reviewer)`.
pub(crate) fn agent_in_words(number: u32, name: &str) -> String {
    if name.is_empty() { format!("agent {number}") } else { format!("agent {number} ({name})") }
}

/// An agent's name in a few columns.
pub(crate) fn short(name: &str) -> String {
    one_line(name, WIDTH_MAX)
}
