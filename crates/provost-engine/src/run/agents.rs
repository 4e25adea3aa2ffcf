//! The agents of a run: their parents, who works, who is suspended, whose time is limited.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use provost_event::{
    AgentAskedAgain, AgentFinished, AgentRetryScheduled, AgentSpawned, AgentSuspended, Elapsed, Outcome,
    PauseReason, Priority, ProviderAwaited, Reprioritized, RunId, Seq, SessionId, SlotAssignment,
    SpawnBudget,
};
use serde::{Deserialize, Serialize};

use super::AgentNumber;
use super::again::PendingRequest;
use super::agent::{Agent, AgentState, Yields};
use super::clock::WorkClock;
use super::restart::PendingRestart;
use super::spawn::{SlotMove, SpawnTracker, Then};
use crate::decision_time::DecisionTime;

/// The agent that a run begins with.
pub(super) const ROOT: AgentNumber = 0;

/// All agents of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Agents {
    run: RunId,
    all: BTreeMap<AgentNumber, Agent>,
    pub(super) slots: SpawnTracker,
    /// Slots that have changed hands, with agents that are still to be notified.
    pub(super) moves: VecDeque<SlotMove>,
    next: AgentNumber,
    /// Agents whose sessions are worked on.
    at_work: u32,
    /// Agents besides the root whose work isn't over.
    live: u32,
    dues: BTreeSet<(Elapsed, AgentNumber)>,
    /// Agents that wait for their model's provider.
    #[serde(default)]
    awaiting: u32,
}

impl Agents {
    pub(super) fn new(run: RunId) -> Self {
        Self {
            run,
            all: BTreeMap::new(),
            slots: SpawnTracker::new(SpawnBudget::default(), None),
            moves: VecDeque::new(),
            next: 0,
            at_work: 0,
            live: 0,
            dues: BTreeSet::new(),
            awaiting: 0,
        }
    }

    /// The run begins with a root agent.
    pub(super) fn begin(&mut self, budget: SpawnBudget, now: DecisionTime) {
        self.slots = SpawnTracker::new(budget, Some(Priority::Normal));
        let root = Agent {
            parent: None,
            call: None,
            last_call: Seq::START,
            depth: 0,
            name: String::new(),
            brief: None,
            clock: WorkClock::default(),
            ask_timeout_ms: None,
            spawned_at: now.at,
            spawned: now.elapsed,
            has_begun: true,
            yields: None,
            suspended: None,
            shall_go_on: false,
            stopping: None,
            suspended_for_child: false,
            finished: None,
            children: 0,
            run_is_exhausted: false,
            due: None,
            awaits: None,
            restart: None,
            request: None,
            turns_max: None,
            restarts: 0,
        };
        self.all.insert(ROOT, root);
        (self.next, self.at_work) = (1, 1);
    }

    /// The run begins without agents.
    pub(super) fn begin_without_root(&mut self, budget: SpawnBudget) {
        self.slots = SpawnTracker::new(budget, None);
        self.next = 1;
    }

    pub(super) fn session(&self, agent: AgentNumber) -> SessionId {
        SessionId { run: self.run, agent }
    }

    pub(super) fn get(&self, agent: AgentNumber) -> Option<&Agent> {
        self.all.get(&agent)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (AgentNumber, &Agent)> {
        self.all.iter().map(|(number, agent)| (*number, agent))
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// The number that the next agent gets.
    pub(super) const fn next(&self) -> AgentNumber {
        self.next
    }

    /// Agents whose sessions are worked on.
    pub(super) const fn at_work(&self) -> u32 {
        self.at_work
    }

    /// Agents besides the root whose work isn't over.
    pub(super) const fn live(&self) -> u32 {
        self.live
    }

    /// The agents that work for `agent`, directly or not, whose work isn't over; parents come before their
    /// sub-agents.
    pub(super) fn below(&self, agent: AgentNumber) -> Vec<AgentNumber> {
        if self.get(agent).is_none_or(|agent| agent.children == 0) {
            return Vec::new();
        }
        // A parent's number is always smaller than its sub-agents'.
        let mut found = BTreeSet::from([agent]);
        for (number, one) in self.all.range(agent.saturating_add(1)..) {
            if one.is_live() && one.parent.is_some_and(|parent| found.contains(&parent)) {
                found.insert(*number);
            }
        }
        found.remove(&agent);
        found.into_iter().collect()
    }

    /// Whether an agent makes no progress until a person acts: it is finished or suspended, and all its sub-agents
    /// stand still; or it has yielded its slot to sub-agents that all stand still.
    pub(super) fn stands_still(&self, agent: AgentNumber) -> bool {
        let Some(one) = self.get(agent) else { return true };
        match one.standing() {
            AgentState::Suspended(_) if one.children == 0 => true,
            AgentState::Suspended(_) | AgentState::Preempted { .. } if one.children > 0 => {
                let children =
                    self.iter().filter(|(_, child)| child.parent == Some(agent) && child.is_live());
                let mut children = children.map(|(number, _)| number);
                children.all(|child| self.stands_still(child))
            }
            AgentState::Finished(_) => true,
            _ => false,
        }
    }

    /// The first time at which the run acts on an agent's time limits.
    pub(super) fn first_due(&self) -> Option<Elapsed> {
        self.dues.first().map(|(due, _)| *due)
    }

    /// The agents whose time is due.
    pub(super) fn due_by(&self, now: Elapsed) -> Vec<AgentNumber> {
        self.dues.iter().take_while(|(due, _)| *due <= now).map(|(_, agent)| *agent).collect()
    }

    pub(super) fn spawned(&mut self, spawned: &AgentSpawned, now: DecisionTime) {
        let number = spawned.child.agent;
        let parent = spawned.parent.map(|parent| parent.agent);
        let brief = &spawned.brief;
        let agent = Agent {
            parent,
            call: spawned.call,
            last_call: Seq::START,
            depth: spawned.depth,
            name: brief.name.clone(),
            clock: WorkClock::limited(brief.budget.wall_time_ms),
            ask_timeout_ms: brief.ask_timeout_ms,
            brief: Some(brief.clone()),
            spawned_at: now.at,
            spawned: now.elapsed,
            has_begun: false,
            yields: None,
            suspended: None,
            shall_go_on: false,
            stopping: None,
            suspended_for_child: false,
            finished: None,
            children: 0,
            run_is_exhausted: false,
            due: None,
            awaits: None,
            restart: None,
            request: None,
            turns_max: None,
            restarts: 0,
        };
        self.all.insert(number, agent);
        self.next = self.next.max(number.saturating_add(1));
        self.live = self.live.saturating_add(1);
        if let Some(parent) = parent.and_then(|parent| self.all.get_mut(&parent)) {
            parent.children = parent.children.saturating_add(1);
            parent.last_call = spawned.call.unwrap_or(parent.last_call);
        }
        self.asks_for_slot(number, spawned.priority, spawned.slot);
    }

    fn asks_for_slot(&mut self, number: AgentNumber, priority: Priority, slot: SlotAssignment) {
        match slot {
            SlotAssignment::Free => {
                self.slots.acquire(number, priority);
                self.moves.push_back(SlotMove::Begin(number));
            }
            SlotAssignment::After(_) => {
                self.slots.acquire(number, priority);
            }
            SlotAssignment::Queued => self.moves.extend(self.slots.wait(number, priority)),
        }
    }

    /// An agent whose work was over has another request, which it begins as soon as it has a slot.
    pub(super) fn asked_again(&mut self, asked: &AgentAskedAgain, now: DecisionTime) {
        let number = asked.child.agent;
        self.change(number, |agent| {
            agent.suspended = agent.finished.take();
            agent.shall_go_on = true;
            agent.stopping = None;
            agent.suspended_for_child = false;
            agent.call = Some(asked.call);
            agent.restarts = 0;
            agent.turns_max = Some(asked.turns_max);
            (agent.spawned_at, agent.spawned) = (now.at, now.elapsed);
            agent.clock.asked_again();
            agent.request = Some(Box::new(PendingRequest::of(asked)));
            if let Some(brief) = &mut agent.brief {
                brief.goal.clone_from(&asked.text);
            }
        });
        self.live = self.live.saturating_add(1);
        if let Some(parent) = self.all.get_mut(&asked.parent.agent) {
            parent.children = parent.children.saturating_add(1);
            parent.last_call = asked.call;
        }
        self.asks_for_slot(number, asked.priority, asked.slot);
    }

    /// An agent has its slot and works.
    pub(super) fn started(&mut self, agent: AgentNumber, now: Elapsed) {
        self.moves.pop_front();
        self.change(agent, |agent| {
            agent.has_begun = true;
            agent.suspended = None;
            agent.shall_go_on = false;
            agent.request = None;
            if agent.restart.take().is_some() {
                agent.restarts = agent.restarts.saturating_add(1);
            }
            agent.clock.start(now);
        });
    }

    pub(super) fn yields(&mut self, agent: AgentNumber, to: Option<SessionId>) {
        if to.is_none() {
            self.moves.pop_front();
        }
        self.change(agent, |agent| agent.yields = Some(Yields { to }));
    }

    pub(super) fn paused(&mut self, paused: &AgentSuspended, now: Elapsed) {
        let agent = paused.child.agent;
        self.change(agent, |agent| {
            agent.suspended = Some(paused.outcome.clone());
            agent.awaits = None;
            agent.shall_go_on = false;
            agent.yields = None;
            agent.stopping = None;
            agent.suspended_for_child = paused.for_child;
            agent.clock.stop(now);
            if let Some(restart) = &mut agent.restart {
                restart.wait = None;
            }
        });
        // It no longer needs to be told to yield, and it doesn't take the slot that it was just given.
        self.moves.retain(|one| one.agent() != agent);
        let has_children = self.get(agent).is_some_and(|agent| agent.children > 0);
        let waits = paused.outcome.is_preempted() && !has_children;
        let then = if waits { Then::Waits } else { Then::Idles };
        self.moves.extend(self.slots.left(agent, then));
    }

    /// It has failed, and a restart is scheduled.
    pub(super) fn retry_scheduled(&mut self, scheduled: &AgentRetryScheduled, now: DecisionTime) {
        let agent = scheduled.agent.agent;
        self.change(agent, |agent| {
            agent.suspended = Some(scheduled.outcome.clone());
            agent.restart = Some(Box::new(PendingRestart::of(scheduled, now)));
            agent.awaits = None;
            agent.shall_go_on = false;
            agent.yields = None;
            agent.stopping = None;
            agent.suspended_for_child = false;
            agent.clock.stop(now.elapsed);
        });
        self.moves.retain(|one| one.agent() != agent);
        self.moves.extend(self.slots.left(agent, Then::Idles));
    }

    /// Whether any agent waits for its restart.
    pub(super) fn any_awaits_restart(&self) -> bool {
        self.all.values().any(|agent| agent.restart_ready().is_some())
    }

    /// A request to resume it. While it still has sub-agents at work it continues when they are done.
    pub(super) fn resumed(&mut self, agent: AgentNumber) {
        self.change(agent, |agent| {
            agent.suspended_for_child = true;
            if let Some(restart) = &mut agent.restart {
                restart.wait = None;
            }
        });
        let may = |agent: &Agent| agent.is_live() && agent.suspended.is_some() && agent.children == 0;
        if self.get(agent).is_some_and(may) {
            self.change(agent, |agent| agent.shall_go_on = true);
            self.moves.extend(self.slots.wake(agent));
        }
    }

    /// The outcome with which `agent` or an agent below it is suspended, if `agent` stands still.
    pub(super) fn hangs_on(&self, agent: AgentNumber) -> Option<Outcome> {
        if self.get(agent)?.is_at_work() || !self.stands_still(agent) {
            return None;
        }
        let mut those = self.below(agent);
        those.push(agent);
        let suspended = those.into_iter().filter_map(|one| self.get(one)?.suspended.clone());
        suspended.into_iter().find(|rest| !rest.is_preempted())
    }

    /// Whether it continues when its last sub-agent is done, and no agent above it was suspended with all below.
    pub(super) fn waits_for_children(&self, agent: AgentNumber) -> bool {
        let waits = |agent: &Agent| {
            agent.suspended.as_ref().is_some_and(|rest| rest.is_preempted() || agent.suspended_for_child)
        };
        let is_asked = |agent: &Agent| {
            let asked = |rest: &Outcome| matches!(rest, Outcome::Paused { why: PauseReason::Asked { .. } });
            !agent.suspended_for_child && agent.suspended.as_ref().is_some_and(asked)
        };
        let Some(one) = self.get(agent).filter(|agent| waits(agent)) else { return false };
        let above = std::iter::successors(one.parent, |above| self.get(*above)?.parent);
        !above.filter_map(|above| self.get(above)).any(is_asked)
    }

    pub(super) fn finished(&mut self, finished: &AgentFinished, now: Elapsed) {
        let number = finished.child.agent;
        if self.get(number).is_none_or(|agent| !agent.is_live()) {
            return;
        }
        self.change(number, |agent| {
            agent.finished = Some(finished.outcome.clone());
            agent.awaits = None;
            if let Some(brief) = &mut agent.brief {
                (brief.goal, brief.instructions) = (String::new(), None);
            }
            agent.request = None;
            agent.clock.stop(now);
        });
        self.live = self.live.saturating_sub(1);
        // It may have been given a slot that it no longer needs.
        self.moves.retain(|one| one.agent() != number);
        if let Some(number) = self.get(number).and_then(|agent| agent.parent)
            && let Some(parent) = self.all.get_mut(&number)
        {
            parent.children = parent.children.saturating_sub(1);
            // It may be next for the slot that becomes free here.
            if self.waits_for_children(number) {
                self.resumed(number);
            }
        }
        self.moves.extend(self.slots.release(number));
    }

    pub(super) fn reprioritized(&mut self, reprioritized: &Reprioritized) {
        let moves = self.slots.reprioritize(reprioritized.agent.agent, reprioritized.priority);
        self.moves.extend(moves);
    }

    /// An agent was told to end or to be suspended.
    pub(super) fn stopping(&mut self, agent: AgentNumber, outcome: &Outcome) {
        self.change(agent, |agent| {
            agent.stopping = Some(outcome.clone());
            agent.suspended_for_child = false;
        });
    }

    /// The root is suspended or has ended; it keeps its slot.
    pub(super) fn root_stopped(&mut self, outcome: &Outcome, for_child: bool) {
        self.change(ROOT, |root| {
            root.awaits = None;
            root.suspended_for_child = for_child;
            if outcome.is_final() {
                root.finished = Some(outcome.clone());
            } else {
                root.suspended = Some(outcome.clone());
            }
        });
    }

    /// The root continues with the slot that it has kept.
    pub(super) fn root_goes_on(&mut self) {
        self.change(ROOT, |root| {
            root.suspended = None;
            root.finished = None;
        });
    }

    /// The run is resumed, and with it the root and all suspended agents.
    pub(super) fn run_resumed(&mut self) {
        self.root_goes_on();
        // A wait for a restart continues by its own timer.
        let suspended = self.iter().filter(|(_, agent)| agent.is_live() && agent.suspended.is_some());
        let suspended = suspended.filter(|(_, agent)| agent.restart_ready().is_none());
        for agent in suspended.map(|(number, _)| number).collect::<Vec<_>>() {
            self.resumed(agent);
        }
        self.moves.extend(self.slots.go_on());
    }

    /// The waits for restarts continue, corrected by the wall clock for the time in which no process held the run.
    pub(super) fn waits_go_on(&mut self, now: DecisionTime) {
        let waiting = self.iter().filter(|(_, agent)| agent.restart_ready().is_some());
        for agent in waiting.map(|(number, _)| number).collect::<Vec<_>>() {
            self.change(agent, |agent| {
                if let Some(restart) = &mut agent.restart {
                    restart.waits_go_on(now);
                }
            });
        }
    }

    /// An agent has reached a limit of the run, of its own, or of an agent above it.
    pub(super) fn exhausted(&mut self, agent: AgentNumber, of: Option<SessionId>, is_time: bool) {
        let of = of.map(|session| session.agent);
        self.change(agent, |one| {
            one.run_is_exhausted = of.is_none();
            if is_time && of == Some(agent) {
                one.clock.winds_down = true;
            }
        });
    }

    /// Whether any agent waits for its model's provider.
    pub(super) fn any_awaits(&self) -> bool {
        self.awaiting > 0
    }

    /// Sets or clears the provider that an agent waits for.
    pub(super) fn awaits(&mut self, number: AgentNumber, awaited: Option<ProviderAwaited>, now: Elapsed) {
        let awaits = self.get(number).is_some_and(|agent| agent.awaits.is_some());
        if !awaits && awaited.is_none() {
            return;
        }
        self.change(number, |agent| {
            match &awaited {
                Some(_) => agent.clock.stop(now),
                // The root's time is the run's.
                None if number != ROOT => agent.clock.go_on(now),
                None => {}
            }
            agent.awaits = awaited.map(Box::new);
        });
    }

    /// Changes an agent, and updates the counts and orders that depend on it.
    fn change(&mut self, number: AgentNumber, change: impl FnOnce(&mut Agent)) {
        let Some(agent) = self.all.get_mut(&number) else { return };
        let (was_at_work, awaited) = (agent.is_at_work(), agent.awaits.is_some());
        change(agent);
        match (awaited, agent.awaits.is_some()) {
            (false, true) => self.awaiting = self.awaiting.saturating_add(1),
            (true, false) => self.awaiting = self.awaiting.saturating_sub(1),
            (true, true) | (false, false) => {}
        }
        let (is_at_work, due) = (agent.is_at_work(), agent.next_due());
        let due_before = std::mem::replace(&mut agent.due, due);
        match (was_at_work, is_at_work) {
            (false, true) => self.at_work = self.at_work.saturating_add(1),
            (true, false) => self.at_work = self.at_work.saturating_sub(1),
            (true, true) | (false, false) => {}
        }
        if due != due_before {
            due_before.into_iter().for_each(|due| {
                self.dues.remove(&(due, number));
            });
            self.dues.extend(due.map(|due| (due, number)));
        }
    }
}
