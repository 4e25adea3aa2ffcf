//! The slots of a run's agents, and the changes of slots that the run has yet to act on.

use std::collections::VecDeque;

use provost_event::{Priority, SlotAssignment, SpawnBudget};
use serde::{Deserialize, Serialize};

use crate::run::AgentNumber;
use crate::run::spawn::{Acquired, SlotMove, SpawnTracker, Then};

/// The slots of a run's agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::run) struct AgentSlots {
    tracker: SpawnTracker,
    /// Slots that have changed hands, with agents that are still to be notified.
    moves: VecDeque<SlotMove>,
}

impl AgentSlots {
    /// The slots of a run whose root has this priority, if it has a root.
    pub(super) fn new(budget: SpawnBudget, root: Option<Priority>) -> Self {
        Self { tracker: SpawnTracker::new(budget, root), moves: VecDeque::new() }
    }

    /// Slots that are held.
    pub(in crate::run) fn held(&self) -> usize {
        self.tracker.held()
    }

    /// The agent's priority, from its request for a slot until its release.
    pub(in crate::run) fn priority(&self, agent: AgentNumber) -> Option<Priority> {
        self.tracker.priority(agent)
    }

    /// How a new agent of this priority would get its slot.
    pub(in crate::run) fn would_acquire(&self, priority: Priority) -> Acquired {
        self.tracker.would_acquire(priority)
    }

    /// The oldest change that the run has yet to act on.
    pub(in crate::run) fn next_move(&self) -> Option<SlotMove> {
        self.moves.front().copied()
    }

    /// The run acts on the oldest change.
    pub(super) fn move_made(&mut self) {
        self.moves.pop_front();
    }

    /// Changes that concern the agent are obsolete.
    pub(super) fn forget_moves(&mut self, agent: AgentNumber) {
        self.moves.retain(|one| one.agent() != agent);
    }

    /// An agent requests a slot, and gets it as was decided.
    pub(super) fn request(&mut self, agent: AgentNumber, priority: Priority, slot: SlotAssignment) {
        match slot {
            SlotAssignment::Free => {
                self.tracker.acquire(agent, priority);
                self.moves.push_back(SlotMove::Begin(agent));
            }
            SlotAssignment::After(_) => {
                self.tracker.acquire(agent, priority);
            }
            SlotAssignment::Queued => {
                let moves = self.tracker.wait(agent, priority);
                self.moves.extend(moves);
            }
        }
    }

    /// An agent gives up its slot. It no longer needs to be told to yield, and it doesn't take a slot that it was
    /// just given.
    pub(super) fn leave(&mut self, agent: AgentNumber, then: Then) {
        self.forget_moves(agent);
        let moves = self.tracker.left(agent, then);
        self.moves.extend(moves);
    }

    /// An agent without a slot needs one again.
    pub(super) fn wake(&mut self, agent: AgentNumber) {
        let moves = self.tracker.wake(agent);
        self.moves.extend(moves);
    }

    /// An agent needs no slot any more.
    pub(super) fn release(&mut self, agent: AgentNumber) {
        let moves = self.tracker.release(agent);
        self.moves.extend(moves);
    }

    pub(super) fn reprioritize(&mut self, agent: AgentNumber, priority: Priority) {
        let moves = self.tracker.reprioritize(agent, priority);
        self.moves.extend(moves);
    }

    pub(super) const fn limit(&mut self, budget: SpawnBudget) {
        self.tracker.limit(budget);
    }

    /// Stops assigning slots.
    pub(super) const fn hold(&mut self) {
        self.tracker.hold();
    }

    /// Assigns slots again.
    pub(super) fn go_on(&mut self) {
        let moves = self.tracker.go_on();
        self.moves.extend(moves);
    }
}
