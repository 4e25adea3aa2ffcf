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
pub(super) enum SlotState {
    /// It holds a slot.
    Working,
    /// It holds a slot, and gives it up as soon as it can: it was asked to yield.
    Yielding,
    /// It holds none and needs one. `since` orders the queue by arrival.
    Waiting { since: u64 },
    /// It holds none and needs none.
    Idle,
}

/// The precedence of a queued agent, which outranks priority.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum QueuePrecedence {
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
pub(super) struct AgentSlot {
    pub(super) priority: Priority,
    /// Orders agents by arrival; the youngest yields first.
    pub(super) came: u64,
    pub(super) slot_state: SlotState,
    /// It has held a slot.
    pub(super) has_worked: bool,
    pub(super) claim: QueuePrecedence,
}

/// An agent without its fields' names: a snapshot may have many.
type Packed = (Priority, u64, SlotState, bool, QueuePrecedence);

impl From<Packed> for AgentSlot {
    fn from((priority, came, slot_state, has_worked, claim): Packed) -> Self {
        Self { priority, came, slot_state, has_worked, claim }
    }
}

impl From<AgentSlot> for Packed {
    fn from(agent: AgentSlot) -> Self {
        (agent.priority, agent.came, agent.slot_state, agent.has_worked, agent.claim)
    }
}

/// The order of yielding, the lowest first.
type Youth = (Priority, Reverse<u64>, AgentNumber);
/// The order of the queue, the lowest first.
type Rank = (Reverse<QueuePrecedence>, Reverse<Priority>, u64, AgentNumber);

/// The agents by number, and the orders that follow from their states. Only the agents are serialized.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "BTreeMap<AgentNumber, AgentSlot>")]
pub(super) struct SlotTable {
    agents: BTreeMap<AgentNumber, AgentSlot>,
    working: BTreeSet<Youth>,
    line: BTreeSet<Rank>,
    held: usize,
}

impl From<BTreeMap<AgentNumber, AgentSlot>> for SlotTable {
    fn from(agents: BTreeMap<AgentNumber, AgentSlot>) -> Self {
        let mut slot_table = Self::default();
        for (number, agent) in agents {
            slot_table.put(number, agent);
        }
        slot_table
    }
}

impl Serialize for SlotTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.agents.serialize(serializer)
    }
}

impl SlotTable {
    pub(super) fn get(&self, number: AgentNumber) -> Option<AgentSlot> {
        self.agents.get(&number).copied()
    }

    /// Slots that are held.
    pub(super) const fn held(&self) -> usize {
        self.held
    }

    pub(super) fn has_queued(&self) -> bool {
        !self.line.is_empty()
    }

    /// The working agent with the lowest priority, if that is below this one; among several the youngest.
    pub(super) fn lowest_below(&self, priority: Priority) -> Option<AgentNumber> {
        let (lowest, _, number) = self.working.first()?;
        (*lowest < priority).then_some(*number)
    }

    /// The agent that gets the next free slot.
    pub(super) fn next_in_queue(&self) -> Option<(AgentNumber, AgentSlot)> {
        let (.., number) = self.line.first()?;
        Some((*number, self.get(*number)?))
    }

    /// Sets an agent's state.
    pub(super) fn put(&mut self, number: AgentNumber, agent: AgentSlot) {
        if let Some(before) = self.agents.insert(number, agent) {
            self.forget(number, before);
        }
        match agent.slot_state {
            SlotState::Working => {
                self.working.insert(youth(number, agent));
            }
            SlotState::Waiting { since } => {
                self.line.insert(rank(number, agent, since));
            }
            SlotState::Yielding | SlotState::Idle => {}
        }
        self.held += usize::from(agent.slot_state.holds_slot());
    }

    /// Removes an agent.
    pub(super) fn remove(&mut self, number: AgentNumber) {
        if let Some(before) = self.agents.remove(&number) {
            self.forget(number, before);
        }
    }

    fn forget(&mut self, number: AgentNumber, before: AgentSlot) {
        match before.slot_state {
            SlotState::Working => {
                self.working.remove(&youth(number, before));
            }
            SlotState::Waiting { since } => {
                self.line.remove(&rank(number, before, since));
            }
            SlotState::Yielding | SlotState::Idle => {}
        }
        self.held -= usize::from(before.slot_state.holds_slot());
    }
}

const fn youth(number: AgentNumber, agent: AgentSlot) -> Youth {
    (agent.priority, Reverse(agent.came), number)
}

const fn rank(number: AgentNumber, agent: AgentSlot, since: u64) -> Rank {
    (Reverse(agent.claim), Reverse(agent.priority), since, number)
}

impl AgentSlot {
    /// It must pause for now.
    pub(super) const fn is_paused(self) -> bool {
        self.has_worked && !matches!(self.slot_state, SlotState::Working)
    }
}

impl SlotState {
    pub(super) const fn holds_slot(self) -> bool {
        matches!(self, Self::Working | Self::Yielding)
    }
}
