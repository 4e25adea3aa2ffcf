//! The states of a run's agents, sorted by which yields first and by which is next, so that neither needs a
//! search.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use provost_event::Priority;
use serde::{Deserialize, Serialize, Serializer};

use super::AgentNumber;

/// An agent's state with regard to slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Seat {
    /// It holds a slot.
    Working,
    /// It holds a slot, and gives it up as soon as it can: it was asked to yield.
    Leaving,
    /// It holds none and needs one. `since` orders the queue by arrival.
    Waiting { since: u64 },
    /// It holds none and needs none.
    Sleeping,
}

/// The precedence of a queued agent, which outranks priority.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Claim {
    #[default]
    None,
    /// Its priority was raised while it was paused.
    Risen,
    /// Another agent yields to it: that slot is reserved for it.
    Heir,
}

/// An agent that has a slot, or needs one now or later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Packed", into = "Packed")]
pub(super) struct Agent {
    pub(super) priority: Priority,
    /// Orders agents by arrival; the youngest yields first.
    pub(super) came: u64,
    pub(super) seat: Seat,
    /// It has held a slot.
    pub(super) has_worked: bool,
    pub(super) claim: Claim,
}

/// An agent without its fields' names: a snapshot may have many.
type Packed = (Priority, u64, Seat, bool, Claim);

impl From<Packed> for Agent {
    fn from((priority, came, seat, has_worked, claim): Packed) -> Self {
        Self { priority, came, seat, has_worked, claim }
    }
}

impl From<Agent> for Packed {
    fn from(agent: Agent) -> Self {
        (agent.priority, agent.came, agent.seat, agent.has_worked, agent.claim)
    }
}

/// The order of yielding, the lowest first.
type Youth = (Priority, Reverse<u64>, AgentNumber);
/// The order of the queue, the lowest first.
type Rank = (Reverse<Claim>, Reverse<Priority>, u64, AgentNumber);

/// The agents by number, and the orders that follow from their states. Only the agents are serialized.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "BTreeMap<AgentNumber, Agent>")]
pub(super) struct Seats {
    agents: BTreeMap<AgentNumber, Agent>,
    working: BTreeSet<Youth>,
    line: BTreeSet<Rank>,
    held: usize,
}

impl From<BTreeMap<AgentNumber, Agent>> for Seats {
    fn from(agents: BTreeMap<AgentNumber, Agent>) -> Self {
        let mut seats = Self::default();
        for (number, agent) in agents {
            seats.put(number, agent);
        }
        seats
    }
}

impl Serialize for Seats {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.agents.serialize(serializer)
    }
}

impl Seats {
    pub(super) fn get(&self, number: AgentNumber) -> Option<Agent> {
        self.agents.get(&number).copied()
    }

    /// Slots that are held.
    pub(super) const fn held(&self) -> usize {
        self.held
    }

    pub(super) fn somebody_waits(&self) -> bool {
        !self.line.is_empty()
    }

    /// The working agent with the lowest priority, if that is below this one; among several the youngest.
    pub(super) fn lowest_below(&self, priority: Priority) -> Option<AgentNumber> {
        let (lowest, _, number) = self.working.first()?;
        (*lowest < priority).then_some(*number)
    }

    /// The agent that gets the next free slot.
    pub(super) fn next_in_line(&self) -> Option<(AgentNumber, Agent)> {
        let (.., number) = self.line.first()?;
        Some((*number, self.get(*number)?))
    }

    /// Sets an agent's state.
    pub(super) fn put(&mut self, number: AgentNumber, agent: Agent) {
        if let Some(before) = self.agents.insert(number, agent) {
            self.forget(number, before);
        }
        match agent.seat {
            Seat::Working => {
                self.working.insert(youth(number, agent));
            }
            Seat::Waiting { since } => {
                self.line.insert(rank(number, agent, since));
            }
            Seat::Leaving | Seat::Sleeping => {}
        }
        self.held += usize::from(agent.seat.holds_slot());
    }

    /// Removes an agent.
    pub(super) fn remove(&mut self, number: AgentNumber) {
        if let Some(before) = self.agents.remove(&number) {
            self.forget(number, before);
        }
    }

    fn forget(&mut self, number: AgentNumber, before: Agent) {
        match before.seat {
            Seat::Working => {
                self.working.remove(&youth(number, before));
            }
            Seat::Waiting { since } => {
                self.line.remove(&rank(number, before, since));
            }
            Seat::Leaving | Seat::Sleeping => {}
        }
        self.held -= usize::from(before.seat.holds_slot());
    }
}

const fn youth(number: AgentNumber, agent: Agent) -> Youth {
    (agent.priority, Reverse(agent.came), number)
}

const fn rank(number: AgentNumber, agent: Agent, since: u64) -> Rank {
    (Reverse(agent.claim), Reverse(agent.priority), since, number)
}

impl Agent {
    /// It must pause for now.
    pub(super) const fn is_paused(self) -> bool {
        self.has_worked && !matches!(self.seat, Seat::Working)
    }
}

impl Seat {
    pub(super) const fn holds_slot(self) -> bool {
        matches!(self, Self::Working | Self::Leaving)
    }
}
