//! Which of a run's agents may work: how many at a time, and which ones yield to others.

mod slots;

use provost_event::{Priority, SpawnBudget};
use serde::{Deserialize, Serialize};

use slots::{AgentSlot, QueuePrecedence, SlotState, SlotTable};

/// An agent's number within its run; the root, where there is one, is 0.
pub type AgentNumber = u32;

const ROOT: AgentNumber = 0;

/// The answer to an agent that requests a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acquired {
    /// It has one.
    Granted,
    /// It is queued before all agents that no other yields to, and this agent yields its slot.
    After(AgentNumber),
    /// There is no slot, and no agent yields one.
    Exhausted,
}

/// What an agent that has given up its slot needs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// A slot, in its turn.
    Waits,
    /// None until it is woken: it waits for its sub-agents, or for a person.
    Idles,
}

/// A consequence of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SlotMove {
    /// This agent must give up its slot.
    Leave(AgentNumber),
    /// This agent has a slot now and begins.
    Begin(AgentNumber),
    /// This agent has a slot again and continues.
    GoOn(AgentNumber),
}

impl SlotMove {
    /// The agent whose slot it is.
    pub(super) const fn agent(self) -> AgentNumber {
        match self {
            Self::Leave(agent) | Self::Begin(agent) | Self::GoOn(agent) => agent,
        }
    }
}

/// The slots of a run. Slots held never exceed the budget's `max_agents`; a waiting or suspended agent holds none,
/// and no agent waits while a slot is free. A call takes time logarithmic in the number of agents; a call that
/// gives out several slots takes that for each of them.
///
/// ```
/// use provost_engine::{Acquired, SpawnTracker};
/// use provost_event::{Priority, SpawnBudget};
///
/// let budget = SpawnBudget { max_agents: 2, ..SpawnBudget::default() };
/// let mut slots = SpawnTracker::new(budget, Some(Priority::Normal));
/// assert_eq!(slots.acquire(1, Priority::Normal), Acquired::Granted);
/// assert_eq!(slots.acquire(2, Priority::Normal), Acquired::Exhausted, "the root has the other slot");
/// assert_eq!(slots.acquire(3, Priority::High), Acquired::After(1), "agent 1 must give up its slot");
/// assert!(slots.is_paused(1));
/// assert_eq!(slots.held(), 2);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnTracker {
    budget: SpawnBudget,
    /// The root's priority. It isn't in the slot table, since nothing moves it.
    root: Option<Priority>,
    slot_table: SlotTable,
    /// No agent gets a slot for now.
    is_held: bool,
    /// Counts events, for their order.
    events: u64,
}

impl SpawnTracker {
    /// The slots of a run whose root has this priority and always holds the first slot; `None` is a run without a
    /// root, in which no agent is special.
    #[must_use]
    pub fn new(budget: SpawnBudget, root: Option<Priority>) -> Self {
        Self { budget, root, slot_table: SlotTable::default(), is_held: false, events: 0 }
    }

    /// Sets another number of slots and another rule to assign them. Slots that are held aren't taken away.
    pub const fn limit(&mut self, budget: SpawnBudget) {
        self.budget = budget;
    }

    /// Slots that are held.
    #[must_use]
    pub fn held(&self) -> usize {
        self.slot_table.held() + usize::from(self.root.is_some())
    }

    /// Whether the agent must pause for now: it yields, or it has worked and holds no slot. An unknown agent, or
    /// one that has yet to begin, is not paused.
    #[must_use]
    pub fn is_paused(&self, agent: AgentNumber) -> bool {
        self.slot_table.get(agent).is_some_and(AgentSlot::is_paused)
    }

    /// The agent's priority, from its request for a slot until its release.
    #[must_use]
    pub fn priority(&self, agent: AgentNumber) -> Option<Priority> {
        self.root.filter(|_| agent == ROOT).or_else(|| self.slot_table.get(agent).map(|agent| agent.priority))
    }

    /// What [`acquire`](Self::acquire) would return to a new agent of this priority.
    pub fn would_acquire(&self, priority: Priority) -> Acquired {
        if self.has_room() {
            return Acquired::Granted;
        }
        if priority <= Priority::Normal || !self.budget.allow_preempt {
            return Acquired::Exhausted;
        }
        let victim = self.slot_table.lowest_below(priority);
        victim.map_or(Acquired::Exhausted, Acquired::After)
    }

    /// Requests a slot for a new agent. If none is free, an agent above [`Priority::Normal`] is queued, and the
    /// agent with the lowest priority strictly below its own yields, among several the youngest; never the root. A
    /// known agent keeps its state.
    pub fn acquire(&mut self, agent: AgentNumber, priority: Priority) -> Acquired {
        if self.is_root(agent) {
            return Acquired::Granted;
        }
        if let Some(known) = self.slot_table.get(agent) {
            return if known.slot_state.holds_slot() { Acquired::Granted } else { Acquired::Exhausted };
        }
        let acquired = self.would_acquire(priority);
        match acquired {
            Acquired::Granted => self.come(agent, priority, |_| SlotState::Working),
            Acquired::After(victim) => {
                self.change(victim, |victim| victim.slot_state = SlotState::Yielding);
                self.come(agent, priority, |since| SlotState::Waiting { since });
                self.change(agent, |agent| agent.claim = QueuePrecedence::Heir);
            }
            Acquired::Exhausted => {}
        }
        acquired
    }

    /// Queues a new agent without preemption, whatever the length of the queue. Does nothing for a known agent.
    pub fn wait(&mut self, agent: AgentNumber, priority: Priority) -> Vec<SlotMove> {
        if !self.is_root(agent) && self.slot_table.get(agent).is_none() {
            self.come(agent, priority, |since| SlotState::Waiting { since });
        }
        self.fill()
    }

    /// An agent has given up its slot: it was asked to, or is suspended by itself. A queued agent may become idle.
    /// The root keeps its slot.
    pub fn left(&mut self, agent: AgentNumber, then: Then) -> Vec<SlotMove> {
        let since = self.next_event();
        self.change(agent, |agent| match then {
            Then::Idles => agent.slot_state = SlotState::Idle,
            Then::Waits if agent.slot_state.holds_slot() => agent.slot_state = SlotState::Waiting { since },
            Then::Waits => {}
        });
        self.fill()
    }

    /// Queues an idle agent for a slot. Does nothing for others.
    pub fn wake(&mut self, agent: AgentNumber) -> Vec<SlotMove> {
        let since = self.next_event();
        self.change(agent, |agent| {
            if agent.slot_state == SlotState::Idle {
                agent.slot_state = SlotState::Waiting { since };
            }
        });
        self.fill()
    }

    /// The agent is done and releases its slot, if it holds one. The root's is never released.
    pub fn release(&mut self, agent: AgentNumber) -> Vec<SlotMove> {
        self.slot_table.remove(agent);
        self.fill()
    }

    /// Changes an agent's priority. An agent that falls below [`Priority::Normal`] while another is queued yields.
    /// A paused one that rises to that or above is first in the queue, as soon as it needs a slot and until it
    /// falls below again.
    pub fn reprioritize(&mut self, agent: AgentNumber, priority: Priority) -> Vec<SlotMove> {
        if self.is_root(agent) {
            self.root = Some(priority);
            return Vec::new();
        }
        let Some(mut known) = self.slot_table.get(agent) else { return Vec::new() };
        let rises = priority > known.priority;
        let falls = priority < known.priority;
        let is_low = priority < Priority::Normal;
        let leaves =
            falls && is_low && known.slot_state == SlotState::Working && self.slot_table.has_queued();
        known.claim = match known.claim {
            QueuePrecedence::Heir => QueuePrecedence::Heir,
            QueuePrecedence::None | QueuePrecedence::Risen if is_low => QueuePrecedence::None,
            QueuePrecedence::None if rises && known.is_paused() => QueuePrecedence::Risen,
            claim @ (QueuePrecedence::None | QueuePrecedence::Risen) => claim,
        };
        known.priority = priority;
        if leaves {
            known.slot_state = SlotState::Yielding;
        }
        self.slot_table.put(agent, known);
        if leaves { vec![SlotMove::Leave(agent)] } else { Vec::new() }
    }

    /// Stops assigning slots.
    pub const fn hold(&mut self) {
        self.is_held = true;
    }

    /// Assigns slots again, at once to the queued agents.
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

    fn come(&mut self, number: AgentNumber, priority: Priority, slot_state: impl FnOnce(u64) -> SlotState) {
        let came = self.next_event();
        let slot_state = slot_state(came);
        let has_worked = slot_state == SlotState::Working;
        self.slot_table
            .put(number, AgentSlot { priority, came, slot_state, has_worked, claim: QueuePrecedence::None });
    }

    fn change(&mut self, number: AgentNumber, change: impl FnOnce(&mut AgentSlot)) {
        if let Some(mut agent) = self.slot_table.get(number) {
            change(&mut agent);
            self.slot_table.put(number, agent);
        }
    }

    /// Assigns free slots to queued agents.
    fn fill(&mut self) -> Vec<SlotMove> {
        let mut moves = Vec::new();
        while self.has_room() && !self.is_held {
            let Some((next, agent)) = self.slot_table.next_in_queue() else { break };
            moves.push(if agent.has_worked { SlotMove::GoOn(next) } else { SlotMove::Begin(next) });
            self.slot_table.put(
                next,
                AgentSlot {
                    slot_state: SlotState::Working,
                    has_worked: true,
                    claim: QueuePrecedence::None,
                    ..agent
                },
            );
        }
        moves
    }
}
