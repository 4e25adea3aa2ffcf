//! Who of a run's agents may work: how many at a time, and who makes way for whom.

mod seats;

use provost_event::{Priority, SpawnBudget};
use serde::{Deserialize, Serialize};

use seats::{Agent, Claim, Seat, Seats};

/// An agent's number within its run; the root, where there is one, is 0.
pub type AgentNumber = u32;

const ROOT: AgentNumber = 0;

/// What an agent that asks for a slot is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acquired {
    /// It has one.
    Granted,
    /// It is in the line before all for whom nobody makes way, and this agent leaves its slot.
    After(AgentNumber),
    /// There is none for it, and nobody makes way.
    Exhausted,
}

/// What an agent that has given up its slot wants next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// A slot, as soon as it is its turn.
    Waits,
    /// None until it is woken: it waits for its children, or for a person.
    Sleeps,
}

/// What follows from a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SlotMove {
    /// This agent shall leave its slot.
    Leave(AgentNumber),
    /// This agent has a slot now and begins.
    Begin(AgentNumber),
    /// This agent has a slot again and goes on.
    GoOn(AgentNumber),
}

impl SlotMove {
    /// Whose slot it is about.
    pub(super) const fn agent(self) -> AgentNumber {
        match self {
            Self::Leave(agent) | Self::Begin(agent) | Self::GoOn(agent) => agent,
        }
    }
}

/// The slots of a run. Slots held never exceed the budget's `max_agents`; an agent that waits or sleeps holds none, and
/// nobody waits while one is free. A call takes logarithmic time in the number of agents; one in which several get a
/// slot takes that for each of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnTracker {
    budget: SpawnBudget,
    /// The root's priority. It isn't among the seats, since nothing moves it.
    root: Option<Priority>,
    seats: Seats,
    /// Nobody gets a slot for now.
    is_held: bool,
    /// Counts what happened, to tell what was earlier.
    events: u64,
}

impl SpawnTracker {
    /// The slots of a run whose root works with this priority and holds the first slot for ever; `None` is a run without
    /// a root, in which no agent is special.
    #[must_use]
    pub fn new(budget: SpawnBudget, root: Option<Priority>) -> Self {
        Self { budget, root, seats: Seats::default(), is_held: false, events: 0 }
    }

    /// Another number of slots, and another way to give them, from here on. Nobody loses a slot that is held.
    pub const fn limit(&mut self, budget: SpawnBudget) {
        self.budget = budget;
    }

    /// Slots that are held.
    #[must_use]
    pub fn held(&self) -> usize {
        self.seats.held() + usize::from(self.root.is_some())
    }

    /// Whether the agent shall do nothing more for now: it makes way, or it has worked and holds no slot. One that is
    /// unknown or has yet to begin is not paused.
    #[must_use]
    pub fn is_paused(&self, agent: AgentNumber) -> bool {
        self.seats.get(agent).is_some_and(Agent::is_paused)
    }

    /// The agent's priority, from its call for a slot until its release.
    #[must_use]
    pub fn priority(&self, agent: AgentNumber) -> Option<Priority> {
        self.root.filter(|_| agent == ROOT).or_else(|| self.seats.get(agent).map(|agent| agent.priority))
    }

    /// What a new agent of this priority would be told by [`acquire`](Self::acquire).
    pub fn would_acquire(&self, priority: Priority) -> Acquired {
        if self.has_room() {
            return Acquired::Granted;
        }
        if priority <= Priority::Normal || !self.budget.allow_preempt {
            return Acquired::Exhausted;
        }
        let victim = self.seats.lowest_below(priority);
        victim.map_or(Acquired::Exhausted, Acquired::After)
    }

    /// A slot for a new agent. With none free, one above [`Priority::Normal`] joins the line, and the agent with the
    /// lowest priority strictly below its own makes way, of several the youngest; never the root. An agent that is known
    /// already keeps what it has.
    pub fn acquire(&mut self, agent: AgentNumber, priority: Priority) -> Acquired {
        if self.is_root(agent) {
            return Acquired::Granted;
        }
        if let Some(known) = self.seats.get(agent) {
            return if known.seat.holds_slot() { Acquired::Granted } else { Acquired::Exhausted };
        }
        let acquired = self.would_acquire(priority);
        match acquired {
            Acquired::Granted => self.come(agent, priority, |_| Seat::Working),
            Acquired::After(victim) => {
                self.change(victim, |victim| victim.seat = Seat::Leaving);
                self.come(agent, priority, |since| Seat::Waiting { since });
                self.change(agent, |agent| agent.claim = Claim::Heir);
            }
            Acquired::Exhausted => {}
        }
        acquired
    }

    /// A new agent joins the line, however long it gets, and nobody makes way for it. Nothing happens to one that is
    /// known already.
    pub fn wait(&mut self, agent: AgentNumber, priority: Priority) -> Vec<SlotMove> {
        if !self.is_root(agent) && self.seats.get(agent).is_none() {
            self.come(agent, priority, |since| Seat::Waiting { since });
        }
        self.fill()
    }

    /// An agent has given up its slot: it was asked to, or rests by itself. One that waits already may go to sleep. The
    /// root keeps its slot.
    pub fn left(&mut self, agent: AgentNumber, then: Then) -> Vec<SlotMove> {
        let since = self.next_event();
        self.change(agent, |agent| match then {
            Then::Sleeps => agent.seat = Seat::Sleeping,
            Then::Waits if agent.seat.holds_slot() => agent.seat = Seat::Waiting { since },
            Then::Waits => {}
        });
        self.fill()
    }

    /// An agent that sleeps joins the line. Nothing happens to others.
    pub fn wake(&mut self, agent: AgentNumber) -> Vec<SlotMove> {
        let since = self.next_event();
        self.change(agent, |agent| {
            if agent.seat == Seat::Sleeping {
                agent.seat = Seat::Waiting { since };
            }
        });
        self.fill()
    }

    /// The agent is done and gives back its slot, if it holds one. The root's is never lost.
    pub fn release(&mut self, agent: AgentNumber) -> Vec<SlotMove> {
        self.seats.remove(agent);
        self.fill()
    }

    /// Gives an agent another priority. One that falls, to below [`Priority::Normal`], while somebody waits makes way; a
    /// paused one that rises, to that or above, is first in the line, as soon as it wants a slot and until it falls below
    /// again.
    pub fn reprioritize(&mut self, agent: AgentNumber, priority: Priority) -> Vec<SlotMove> {
        if self.is_root(agent) {
            self.root = Some(priority);
            return Vec::new();
        }
        let Some(mut known) = self.seats.get(agent) else { return Vec::new() };
        let (rises, falls) = (priority > known.priority, priority < known.priority);
        let is_low = priority < Priority::Normal;
        let leaves = falls && is_low && known.seat == Seat::Working && self.seats.somebody_waits();
        known.claim = match known.claim {
            Claim::Heir => Claim::Heir,
            Claim::None | Claim::Risen if is_low => Claim::None,
            Claim::None if rises && known.is_paused() => Claim::Risen,
            claim @ (Claim::None | Claim::Risen) => claim,
        };
        known.priority = priority;
        if leaves {
            known.seat = Seat::Leaving;
        }
        self.seats.put(agent, known);
        if leaves { vec![SlotMove::Leave(agent)] } else { Vec::new() }
    }

    /// From here on nobody gets a slot that comes free.
    pub const fn hold(&mut self) {
        self.is_held = true;
    }

    /// Slots are given again, to those who wait by now.
    pub fn go_on(&mut self) -> Vec<SlotMove> {
        self.is_held = false;
        self.fill()
    }

    fn is_root(&self, agent: AgentNumber) -> bool {
        agent == ROOT && self.root.is_some()
    }

    fn has_room(&self) -> bool {
        self.held() < self.budget.slots()
    }

    const fn next_event(&mut self) -> u64 {
        self.events = self.events.saturating_add(1);
        self.events
    }

    fn come(&mut self, number: AgentNumber, priority: Priority, seat: impl FnOnce(u64) -> Seat) {
        let came = self.next_event();
        let seat = seat(came);
        let has_worked = seat == Seat::Working;
        self.seats.put(number, Agent { priority, came, seat, has_worked, claim: Claim::None });
    }

    fn change(&mut self, number: AgentNumber, change: impl FnOnce(&mut Agent)) {
        if let Some(mut agent) = self.seats.get(number) {
            change(&mut agent);
            self.seats.put(number, agent);
        }
    }

    /// Gives free slots to those who wait.
    fn fill(&mut self) -> Vec<SlotMove> {
        let mut moves = Vec::new();
        while self.has_room() && !self.is_held {
            let Some((next, agent)) = self.seats.next_in_line() else { break };
            moves.push(if agent.has_worked { SlotMove::GoOn(next) } else { SlotMove::Begin(next) });
            self.seats
                .put(next, Agent { seat: Seat::Working, has_worked: true, claim: Claim::None, ..agent });
        }
        moves
    }
}
