//! Who of a run's agents may work: how many at a time, and who makes way for whom.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use provost_event::{Priority, SpawnBudget};
use serde::{Deserialize, Serialize};

/// An agent's number within its run; the root is 0.
pub type AgentNumber = u32;

/// The root, whose slot is never lost.
const ROOT: AgentNumber = 0;

/// How an agent stands with the slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Seat {
    /// It holds a slot.
    Working,
    /// It holds a slot, and gives it up as soon as it can: it was asked to make way. `first`: it has risen since.
    Leaving { first: bool },
    /// It holds none and wants one. `since` orders those who want one; whoever is `first` comes before all others.
    Waiting { since: u64, first: bool, has_worked: bool },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Agent {
    priority: Priority,
    /// Orders agents by when they came; the youngest makes way first.
    came: u64,
    seat: Seat,
}

/// What an agent that asks for a slot is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acquired {
    /// It has one.
    Granted,
    /// It gets one when this agent has left.
    After(AgentNumber),
    /// There is none for it, and nobody makes way.
    Exhausted,
}

/// What follows from a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotMove {
    /// This agent shall leave its slot.
    Leave(AgentNumber),
    /// This agent has a slot now and begins.
    Begin(AgentNumber),
    /// This agent has a slot again and goes on.
    GoOn(AgentNumber),
}

/// The slots of a run. Slots held never exceed the budget's `max_agents`; an agent that waits holds none, and nobody
/// waits while one is free.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnTracker {
    budget: SpawnBudget,
    agents: BTreeMap<AgentNumber, Agent>,
    /// Counts what happened, to tell what was earlier.
    events: u64,
}

impl SpawnTracker {
    /// The slots of a run whose root works with `priority`; it holds the first one.
    #[must_use]
    pub fn new(budget: SpawnBudget, priority: Priority) -> Self {
        let root = Agent { priority, came: 0, seat: Seat::Working };
        Self { budget, agents: BTreeMap::from([(ROOT, root)]), events: 0 }
    }

    /// Slots that are held.
    #[must_use]
    pub fn held(&self) -> usize {
        self.agents.values().filter(|agent| agent.seat.holds_slot()).count()
    }

    /// Whether the agent shall do nothing more for now: it makes way, or has. One that is unknown is not paused.
    #[must_use]
    pub fn is_paused(&self, agent: AgentNumber) -> bool {
        let is_paused = |agent: &Agent| match agent.seat {
            Seat::Working => false,
            Seat::Leaving { .. } => true,
            Seat::Waiting { has_worked, .. } => has_worked,
        };
        self.agents.get(&agent).is_some_and(is_paused)
    }

    /// A slot for a new agent. With none free, an agent above [`Priority::Normal`] gets that of the one with the lowest
    /// priority strictly below its own, of several the youngest; never the root's, nor one of `spared` (those that
    /// wait for the new one). An agent that is known already keeps what it has.
    pub fn acquire(&mut self, agent: AgentNumber, priority: Priority, spared: &[AgentNumber]) -> Acquired {
        if let Some(known) = self.agents.get(&agent) {
            return if known.seat.holds_slot() { Acquired::Granted } else { Acquired::Exhausted };
        }
        if self.held() < self.budget.slots() {
            self.come(agent, priority, |_| Seat::Working);
            return Acquired::Granted;
        }
        let may_preempt = priority > Priority::Normal && self.budget.allow_preempt;
        let Some(victim) = self.victim(priority, spared).filter(|_| may_preempt) else {
            return Acquired::Exhausted;
        };
        self.seat(victim, Seat::Leaving { first: false });
        self.come(agent, priority, |since| Seat::Waiting { since, first: false, has_worked: false });
        Acquired::After(victim)
    }

    /// An agent that was asked to make way has done so. Nothing happens if it wasn't.
    pub fn left(&mut self, agent: AgentNumber) -> Vec<SlotMove> {
        if let Some(Seat::Leaving { first }) = self.agents.get(&agent).map(|agent| agent.seat) {
            let since = self.next_event();
            self.seat(agent, Seat::Waiting { since, first, has_worked: true });
        }
        self.fill()
    }

    /// The agent is done and gives back its slot, if it holds one. The root's is never lost.
    pub fn release(&mut self, agent: AgentNumber) -> Vec<SlotMove> {
        if agent != ROOT {
            self.agents.remove(&agent);
        }
        self.fill()
    }

    /// Gives an agent another priority. One that falls below [`Priority::Normal`] while all slots are held and somebody
    /// waits makes way; a paused one that rises to it or above is first in the line.
    pub fn reprioritize(&mut self, agent: AgentNumber, priority: Priority) -> Option<SlotMove> {
        let somebody_waits = self.agents.values().any(|agent| matches!(agent.seat, Seat::Waiting { .. }));
        let Some(known) = self.agents.get_mut(&agent) else { return None };
        let rises = priority > known.priority && priority >= Priority::Normal;
        known.priority = priority;
        match &mut known.seat {
            Seat::Leaving { first } | Seat::Waiting { first, has_worked: true, .. } => {
                *first = *first || rises
            }
            Seat::Working if agent != ROOT && priority < Priority::Normal && somebody_waits => {
                known.seat = Seat::Leaving { first: false };
                return Some(SlotMove::Leave(agent));
            }
            Seat::Working | Seat::Waiting { .. } => {}
        }
        None
    }

    fn next_event(&mut self) -> u64 {
        self.events = self.events.saturating_add(1);
        self.events
    }

    fn come(&mut self, agent: AgentNumber, priority: Priority, seat: impl FnOnce(u64) -> Seat) {
        let came = self.next_event();
        self.agents.insert(agent, Agent { priority, came, seat: seat(came) });
    }

    fn seat(&mut self, agent: AgentNumber, seat: Seat) {
        if let Some(agent) = self.agents.get_mut(&agent) {
            agent.seat = seat;
        }
    }

    /// Who makes way for an agent of this priority.
    fn victim(&self, newcomer: Priority, spared: &[AgentNumber]) -> Option<AgentNumber> {
        let may_leave = |(number, agent): &(&AgentNumber, &Agent)| {
            agent.seat == Seat::Working
                && agent.priority < newcomer
                && **number != ROOT
                && !spared.contains(number)
        };
        let candidates = self.agents.iter().filter(may_leave);
        candidates.min_by_key(|(_, agent)| (agent.priority, Reverse(agent.came))).map(|(number, _)| *number)
    }

    /// Gives free slots to those who wait.
    fn fill(&mut self) -> Vec<SlotMove> {
        let mut turns = Vec::new();
        while self.held() < self.budget.slots() {
            let waiting = self.agents.iter().filter_map(|(number, agent)| match agent.seat {
                Seat::Waiting { since, first, has_worked } => {
                    Some(((first, agent.priority, Reverse(since)), *number, has_worked))
                }
                Seat::Working | Seat::Leaving { .. } => None,
            });
            let Some((_, next, has_worked)) = waiting.max_by_key(|(rank, ..)| *rank) else { break };
            self.seat(next, Seat::Working);
            turns.push(if has_worked { SlotMove::GoOn(next) } else { SlotMove::Begin(next) });
        }
        turns
    }
}

impl Seat {
    const fn holds_slot(self) -> bool {
        matches!(self, Self::Working | Self::Leaving { .. })
    }
}
