//! The agents of a run by number, what is counted of them, and how they stand to each other.

use std::collections::{BTreeMap, BTreeSet};

use provost_event::{Elapsed, Outcome, RunId, Seq, SessionId};
use serde::{Deserialize, Serialize};

use super::ROOT;
use super::agent::{Agent, AgentState};
use crate::run::AgentNumber;

/// An agent at work, and the call by which it waits for an agent below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::run) struct WaitingCall {
    pub(in crate::run) session: SessionId,
    pub(in crate::run) call: Seq,
}

/// All agents of a run. The root, where there is one, is number 0; a parent's number is always smaller than its
/// sub-agents'.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::run) struct AgentTable {
    run: RunId,
    all: BTreeMap<AgentNumber, Agent>,
    next: AgentNumber,
    /// Agents whose sessions are worked on.
    at_work: u32,
    /// Agents besides the root whose work isn't over.
    live: u32,
    /// Agents that wait for their model's provider.
    awaiting: u32,
    dues: BTreeSet<(Elapsed, AgentNumber)>,
}

/// What is counted of one agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counted {
    at_work: bool,
    live: bool,
    awaiting: bool,
    due: Option<Elapsed>,
}

impl Counted {
    fn of(number: AgentNumber, agent: &Agent) -> Self {
        Self {
            at_work: agent.is_at_work(),
            live: number != ROOT && agent.is_live(),
            awaiting: agent.awaits.is_some(),
            due: agent.next_due(),
        }
    }
}

impl AgentTable {
    pub(super) const fn new(run: RunId) -> Self {
        Self {
            run,
            all: BTreeMap::new(),
            next: ROOT + 1,
            at_work: 0,
            live: 0,
            awaiting: 0,
            dues: BTreeSet::new(),
        }
    }

    pub(in crate::run) const fn session(&self, agent: AgentNumber) -> SessionId {
        SessionId { run: self.run, agent }
    }

    pub(in crate::run) fn get(&self, agent: AgentNumber) -> Option<&Agent> {
        self.all.get(&agent)
    }

    pub(in crate::run) fn iter(&self) -> impl Iterator<Item = (AgentNumber, &Agent)> {
        self.all.iter().map(|(number, agent)| (*number, agent))
    }

    pub(in crate::run) fn len(&self) -> usize {
        self.all.len()
    }

    /// The session of the next agent.
    pub(in crate::run) const fn next_session(&self) -> SessionId {
        self.session(self.next)
    }

    /// Agents whose sessions are worked on.
    pub(in crate::run) const fn at_work(&self) -> u32 {
        self.at_work
    }

    /// The sessions that are worked on.
    pub(in crate::run) fn sessions_at_work(&self) -> Vec<SessionId> {
        let at_work = self.iter().filter(|(_, agent)| agent.is_at_work());
        at_work.map(|(number, _)| self.session(number)).collect()
    }

    /// Agents besides the root whose work isn't over.
    pub(in crate::run) const fn live(&self) -> u32 {
        self.live
    }

    /// Whether any agent waits for its model's provider.
    pub(in crate::run) const fn any_awaits(&self) -> bool {
        self.awaiting > 0
    }

    /// Whether any agent waits for its restart.
    pub(in crate::run) fn any_awaits_restart(&self) -> bool {
        self.all.values().any(|agent| agent.restart_ready().is_some())
    }

    /// The agents that a change of the model or the policy applies to: those that have begun and may still work.
    /// The root may, as another segment may begin.
    pub(in crate::run) fn that_may_work(&self) -> Vec<AgentNumber> {
        let begun =
            self.iter().filter(|(number, agent)| agent.has_begun && (*number == ROOT || agent.is_live()));
        begun.map(|(number, _)| number).collect()
    }

    /// The agents that work for `agent`, directly or not, whose work isn't over; parents come before their
    /// sub-agents.
    pub(in crate::run) fn below(&self, agent: AgentNumber) -> Vec<AgentNumber> {
        if self.get(agent).is_none_or(|agent| agent.children == 0) {
            return Vec::new();
        }
        let mut found = BTreeSet::from([agent]);
        for (number, below) in self.all.range(agent.saturating_add(1)..) {
            if below.is_live() && below.parent.is_some_and(|parent| found.contains(&parent)) {
                found.insert(*number);
            }
        }
        found.remove(&agent);
        found.into_iter().collect()
    }

    /// Whether an agent makes no progress until a person acts: it is finished or suspended, and all its sub-agents
    /// stand still; or it has yielded its slot to sub-agents that all stand still.
    pub(in crate::run) fn stands_still(&self, number: AgentNumber) -> bool {
        let Some(agent) = self.get(number) else { return true };
        match agent.standing() {
            AgentState::Suspended(_) if agent.children == 0 => true,
            AgentState::Suspended(_) | AgentState::Preempted { .. } if agent.children > 0 => {
                let children =
                    self.iter().filter(|(_, child)| child.parent == Some(number) && child.is_live());
                let mut children = children.map(|(child, _)| child);
                children.all(|child| self.stands_still(child))
            }
            AgentState::Finished(_) => true,
            _ => false,
        }
    }

    /// The outcome with which `number` or an agent below it is suspended, if `number` stands still.
    pub(in crate::run) fn hangs_on(&self, number: AgentNumber) -> Option<Outcome> {
        if self.get(number)?.is_at_work() || !self.stands_still(number) {
            return None;
        }
        let those = self.below(number).into_iter().chain([number]);
        let mut suspended = those.filter_map(|one| self.get(one)?.suspended.clone());
        suspended.find(|outcome| !outcome.is_preempted())
    }

    /// Whether it continues when its last sub-agent is done, and no agent above it was suspended with all below.
    pub(in crate::run) fn waits_for_children(&self, number: AgentNumber) -> bool {
        let Some(agent) = self.get(number).filter(|agent| agent.waits_for_children()) else { return false };
        let above = std::iter::successors(agent.parent, |above| self.get(*above)?.parent);
        !above.filter_map(|above| self.get(above)).any(Agent::is_paused_by_request)
    }

    /// Whether the root continues now: it was suspended for its sub-agents, and they are done.
    pub(in crate::run) fn root_may_go_on(&self) -> bool {
        let root = self.get(ROOT);
        root.is_some_and(|root| root.suspended.is_some() && root.children == 0)
            && self.waits_for_children(ROOT)
    }

    /// The nearest agent at work above `number`, to be told that an agent below continues.
    pub(in crate::run) fn nearest_at_work(&self, number: AgentNumber) -> Option<WaitingCall> {
        self.first_above(number, |_| true)
    }

    /// The nearest agent at work above `number`, to be told that `number` is suspended. None if an agent in between
    /// still has other sub-agents to wait for.
    pub(in crate::run) fn affected_by_suspension(&self, number: AgentNumber) -> Option<WaitingCall> {
        self.first_above(number, |parent| self.stands_still(parent))
    }

    fn first_above(
        &self,
        number: AgentNumber,
        may_pass: impl Fn(AgentNumber) -> bool,
    ) -> Option<WaitingCall> {
        let mut below = number;
        loop {
            let agent = self.get(below)?;
            let parent = agent.parent?;
            let call = agent.call?;
            if self.get(parent).is_some_and(Agent::is_at_work) {
                return Some(WaitingCall { session: self.session(parent), call });
            }
            if !may_pass(parent) {
                return None;
            }
            below = parent;
        }
    }

    /// The first time at which the run acts on an agent's time limits.
    pub(in crate::run) fn first_due(&self) -> Option<Elapsed> {
        self.dues.first().map(|(due, _)| *due)
    }

    /// The agents whose time is due.
    pub(in crate::run) fn due_by(&self, now: Elapsed) -> Vec<AgentNumber> {
        self.dues.iter().take_while(|(due, _)| *due <= now).map(|(_, agent)| *agent).collect()
    }

    /// Adds an agent.
    pub(super) fn insert(&mut self, number: AgentNumber, agent: Agent) {
        let counted = Counted::of(number, &agent);
        self.all.insert(number, agent);
        self.next = self.next.max(number.saturating_add(1));
        self.count(number, Counted::default(), counted);
    }

    /// Changes an agent.
    pub(super) fn change(&mut self, number: AgentNumber, change: impl FnOnce(&mut Agent)) {
        let Some(agent) = self.all.get_mut(&number) else { return };
        let before = Counted::of(number, agent);
        change(agent);
        let after = Counted::of(number, agent);
        self.count(number, before, after);
    }

    /// `parent` has another sub-agent, by this call of its log.
    pub(super) fn child_added(&mut self, parent: AgentNumber, call: Option<Seq>) {
        self.change(parent, |parent| {
            parent.children = parent.children.saturating_add(1);
            parent.last_call = call.unwrap_or(parent.last_call);
        });
    }

    fn count(&mut self, number: AgentNumber, before: Counted, after: Counted) {
        recount(&mut self.at_work, before.at_work, after.at_work);
        recount(&mut self.live, before.live, after.live);
        recount(&mut self.awaiting, before.awaiting, after.awaiting);
        if before.due != after.due {
            if let Some(due) = before.due {
                self.dues.remove(&(due, number));
            }
            self.dues.extend(after.due.map(|due| (due, number)));
        }
    }
}

/// Counts an agent that does or doesn't belong to those that are counted.
const fn recount(count: &mut u32, before: bool, after: bool) {
    match (before, after) {
        (false, true) => *count = count.saturating_add(1),
        (true, false) => *count = count.saturating_sub(1),
        (true, true) | (false, false) => {}
    }
}
