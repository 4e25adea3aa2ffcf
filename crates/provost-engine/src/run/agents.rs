//! The agents of a run: their parents, who works, who is suspended, whose time is limited, and who has a slot.

mod agent;
mod pending;
mod slots;
mod table;

use provost_event::{
    AgentAskedAgain, AgentEntry, AgentFinished, AgentResumeRequested, AgentRetryScheduled, AgentSpawned,
    AgentSuspended, BudgetEntry, BudgetExhausted, Dimension, Elapsed, Entry, LifecycleEntry, ModelEntry,
    Outcome, Priority, ProviderAwaited, ResumeCause, Resumed, RunId, RunPolicy, SpawnBudget, StopRequested,
};
use serde::{Deserialize, Serialize};

pub use agent::AgentState;
pub(super) use agent::{Agent, FirstEvent, StopEffect, TimeUp};
pub(super) use slots::AgentSlots;
pub(super) use table::AgentTable;

use super::AgentNumber;
use super::lifecycle::SegmentChange;
use super::spawn::Then;
use crate::decision_time::DecisionTime;
use crate::retry::RetryTracker;
use agent::Yields;
use pending::{PendingRequest, PendingRestart};

/// The agent that a run begins with.
pub(super) const ROOT: AgentNumber = 0;

/// The agents of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Agents {
    table: AgentTable,
    slots: AgentSlots,
    /// The restarts in a row.
    retries: RetryTracker,
    /// Who resumed the run or one of its agents last.
    resumed_by: String,
}

impl Agents {
    pub(super) fn new(run: RunId) -> Self {
        Self {
            table: AgentTable::new(run),
            slots: AgentSlots::new(SpawnBudget::default(), None),
            retries: RetryTracker::default(),
            resumed_by: String::new(),
        }
    }

    pub(super) const fn table(&self) -> &AgentTable {
        &self.table
    }

    pub(super) const fn slots(&self) -> &AgentSlots {
        &self.slots
    }

    pub(super) fn get(&self, agent: AgentNumber) -> Option<&Agent> {
        self.table.get(agent)
    }

    pub(super) fn resumed_by(&self) -> &str {
        &self.resumed_by
    }

    /// Whether a restart may follow this outcome of an agent, if its policy allows one. The root isn't restarted
    /// automatically, nor is an agent with sub-agents or one that is to end.
    pub(super) fn may_restart(&self, number: AgentNumber, outcome: &Outcome) -> bool {
        let may = |agent: &Agent| {
            let is_ending = agent.stopping().is_some_and(Outcome::is_final);
            agent.is_at_work() && agent.children() == 0 && !is_ending
        };
        number != ROOT && outcome.may_restart() && self.get(number).is_some_and(may)
    }

    /// The number in a row of an agent's next restart; `None` if it has had `attempts_max`.
    pub(super) fn next_restart(&self, number: AgentNumber, attempts_max: u32) -> Option<u32> {
        let mut retries = self.retries.clone();
        retries.limit(number, attempts_max);
        retries.should_retry(number).then(|| retries.attempts(number))
    }

    pub(super) fn apply(&mut self, entry: &Entry, segment: SegmentChange, now: DecisionTime) {
        match entry {
            Entry::Agent(entry) => self.apply_to_agent(entry, now),
            Entry::Lifecycle(entry) => self.apply_to_run(entry, segment, now),
            Entry::Budget(BudgetEntry::Reserved(reserved)) => {
                self.awaits(reserved.session.agent, None, now.elapsed);
            }
            Entry::Budget(BudgetEntry::Exhausted(exhausted)) => self.exhausted(exhausted),
            Entry::Model(ModelEntry::ProviderAwaited(awaited)) => {
                self.awaits(awaited.session.agent, Some(awaited.clone()), now.elapsed);
            }
            _ => {}
        }
    }

    /// Applies an entry on one agent.
    fn apply_to_agent(&mut self, entry: &AgentEntry, now: DecisionTime) {
        match entry {
            AgentEntry::Spawned(spawned) => self.spawned(spawned, now),
            AgentEntry::AskedAgain(asked) => self.asked_again(asked, now),
            AgentEntry::Started(started) => {
                self.slots.move_made();
                self.table.change(started.child.agent, |agent| agent.work(now.elapsed));
            }
            AgentEntry::YieldRequested(yields) => {
                if yields.to.is_none() {
                    self.slots.move_made();
                }
                self.table.change(yields.child.agent, |agent| agent.yields = Some(Yields { to: yields.to }));
            }
            AgentEntry::Suspended(suspended) => self.suspended(suspended, now.elapsed),
            AgentEntry::Finished(finished) => self.finished(finished, now.elapsed),
            AgentEntry::RetryScheduled(scheduled) => self.retry_scheduled(scheduled, now),
            AgentEntry::ResumeRequested(resumed) => self.resume_requested(resumed),
            AgentEntry::Reprioritized(reprioritized) => {
                self.slots.reprioritize(reprioritized.agent.agent, reprioritized.priority);
            }
            // The workflow's, and those of a session's log.
            AgentEntry::StepEnded(_)
            | AgentEntry::MustYield(_)
            | AgentEntry::SubAgentSuspended(_)
            | AgentEntry::SubAgentResumed(_) => {}
        }
    }

    /// Applies an entry on the whole run, or a request to stop.
    fn apply_to_run(&mut self, entry: &LifecycleEntry, segment: SegmentChange, now: DecisionTime) {
        match entry {
            LifecycleEntry::RunStarted(started) => self.run_started(&started.policy, now),
            LifecycleEntry::RunPolicyChanged(changed) => self.slots.limit(changed.policy.spawn),
            LifecycleEntry::StopRequested(requested) => self.stop_requested(requested),
            LifecycleEntry::Paused(paused) => self.segment_ended(&paused.outcome),
            LifecycleEntry::Ended(ended) => self.segment_ended(&ended.outcome),
            LifecycleEntry::Resumed(resumed) => self.run_resumed(resumed, segment, now),
            _ => {}
        }
    }

    fn run_started(&mut self, policy: &RunPolicy, now: DecisionTime) {
        let has_root = policy.flow.is_none();
        self.slots = AgentSlots::new(policy.spawn, has_root.then_some(Priority::Normal));
        if has_root {
            self.table.insert(ROOT, Agent::root(now));
        }
    }

    fn spawned(&mut self, spawned: &AgentSpawned, now: DecisionTime) {
        let number = spawned.child.agent;
        self.table.insert(number, Agent::requested(spawned, now));
        if let Some(parent) = spawned.parent {
            self.table.child_added(parent.agent, spawned.call);
        }
        self.slots.request(number, spawned.priority, spawned.slot);
    }

    /// An agent whose work was over has another request, which it begins as soon as it has a slot.
    fn asked_again(&mut self, asked: &AgentAskedAgain, now: DecisionTime) {
        let number = asked.child.agent;
        self.retries.reset(number);
        self.table.change(number, |agent| {
            agent.suspended = agent.finished.take();
            agent.shall_go_on = true;
            agent.stopping = None;
            agent.suspended_for_child = false;
            agent.call = Some(asked.call);
            agent.restarts = 0;
            agent.turns_max = Some(asked.turns_max);
            agent.requested = now;
            agent.clock.asked_again();
            agent.request = Some(Box::new(PendingRequest::of(asked)));
            if let Some(brief) = &mut agent.brief {
                brief.goal.clone_from(&asked.text);
            }
        });
        self.table.child_added(asked.parent.agent, Some(asked.call));
        self.slots.request(number, asked.priority, asked.slot);
    }

    fn suspended(&mut self, suspended: &AgentSuspended, now: Elapsed) {
        let number = suspended.child.agent;
        if number == ROOT {
            return self.root_stopped(&suspended.outcome, suspended.for_child);
        }
        self.table.change(number, |agent| agent.pause(suspended, now));
        let has_children = self.get(number).is_some_and(|agent| agent.children > 0);
        let waits = suspended.outcome.is_preempted() && !has_children;
        self.slots.leave(number, if waits { Then::Waits } else { Then::Idles });
    }

    /// It has failed, and a restart is scheduled.
    fn retry_scheduled(&mut self, scheduled: &AgentRetryScheduled, now: DecisionTime) {
        let number = scheduled.agent.agent;
        self.retries.limit(number, scheduled.attempts_max);
        self.retries.should_retry(number);
        self.table.change(number, |agent| {
            agent.leave_work(&scheduled.outcome, now.elapsed);
            agent.restart = Some(Box::new(PendingRestart::of(scheduled, now)));
        });
        self.slots.leave(number, Then::Idles);
    }

    fn resume_requested(&mut self, resumed: &AgentResumeRequested) {
        let number = resumed.child.agent;
        if self.get(number).is_none_or(|agent| agent.restart.is_none()) {
            self.resumed_by.clone_from(&resumed.by);
            self.retries.reset(number);
        }
        match number {
            ROOT => self.root_goes_on(),
            number => self.resumed(number),
        }
    }

    /// A request to resume it. While it still has sub-agents at work it continues when they are done.
    fn resumed(&mut self, number: AgentNumber) {
        self.table.change(number, |agent| {
            agent.suspended_for_child = true;
            if let Some(restart) = &mut agent.restart {
                restart.wait = None;
            }
        });
        let may_go_on = |agent: &Agent| agent.is_live() && agent.suspended.is_some() && agent.children == 0;
        if self.get(number).is_some_and(may_go_on) {
            self.table.change(number, |agent| agent.shall_go_on = true);
            self.slots.wake(number);
        }
    }

    fn finished(&mut self, finished: &AgentFinished, now: Elapsed) {
        let number = finished.child.agent;
        self.retries.reset(number);
        if number == ROOT {
            return self.root_stopped(&finished.outcome, false);
        }
        let Some(agent) = self.get(number).filter(|agent| agent.is_live()) else { return };
        let parent = agent.parent;
        self.table.change(number, |agent| agent.finish(&finished.outcome, now));
        // It may have been given a slot that it no longer needs.
        self.slots.forget_moves(number);
        if let Some(parent) = parent {
            self.table.change(parent, |parent| parent.children = parent.children.saturating_sub(1));
            // It may be next for the slot that becomes free here.
            if self.table.waits_for_children(parent) {
                self.resumed(parent);
            }
        }
        self.slots.release(number);
    }

    /// An agent, or the whole run, was told to end or to be suspended.
    fn stop_requested(&mut self, requested: &StopRequested) {
        match requested.agent {
            Some(session) => self.table.change(session.agent, |agent| {
                agent.stopping = Some(requested.outcome.clone());
                agent.suspended_for_child = false;
            }),
            None => self.slots.hold(),
        }
    }

    fn segment_ended(&mut self, outcome: &Outcome) {
        self.slots.hold();
        self.root_stopped(outcome, false);
    }

    /// The root is suspended or has ended; it keeps its slot.
    fn root_stopped(&mut self, outcome: &Outcome, for_child: bool) {
        self.table.change(ROOT, |root| {
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
    fn root_goes_on(&mut self) {
        self.table.change(ROOT, |root| {
            root.suspended = None;
            root.finished = None;
        });
    }

    /// The run is resumed, and in a new segment the root and all suspended agents with it.
    fn run_resumed(&mut self, resumed: &Resumed, segment: SegmentChange, now: DecisionTime) {
        self.waits_go_on(now);
        if let ResumeCause::Asked { by } = &resumed.cause {
            self.resumed_by.clone_from(by);
        }
        if segment == SegmentChange::None {
            return;
        }
        let has_worked = self.table.iter().filter(|(_, agent)| agent.restart.is_none());
        has_worked.for_each(|(number, _)| self.retries.reset(number));
        self.root_goes_on();
        // A wait for a restart continues by its own timer.
        let suspended = self.table.iter().filter(|(_, agent)| agent.is_live() && agent.suspended.is_some());
        let suspended = suspended.filter(|(_, agent)| agent.restart_ready().is_none());
        for number in suspended.map(|(number, _)| number).collect::<Vec<_>>() {
            self.resumed(number);
        }
        self.slots.go_on();
    }

    /// The waits for restarts continue, corrected by the wall clock for the time in which no process held the run.
    fn waits_go_on(&mut self, now: DecisionTime) {
        let waiting = self.table.iter().filter(|(_, agent)| agent.restart_ready().is_some());
        for number in waiting.map(|(number, _)| number).collect::<Vec<_>>() {
            self.table.change(number, |agent| {
                if let Some(restart) = &mut agent.restart {
                    restart.waits_go_on(now);
                }
            });
        }
    }

    /// An agent has reached a limit of the run, of its own, or of an agent above it.
    fn exhausted(&mut self, exhausted: &BudgetExhausted) {
        let number = exhausted.session.agent;
        let of = exhausted.of.map(|session| session.agent);
        let is_time = exhausted.dimension() == Dimension::WallTime;
        if is_time && of.is_none() {
            self.slots.hold();
        }
        self.table.change(number, |agent| {
            agent.run_is_exhausted = of.is_none();
            if is_time && of == Some(number) {
                agent.clock.winds_down = true;
            }
        });
    }

    /// Sets or clears the provider that an agent waits for.
    fn awaits(&mut self, number: AgentNumber, awaited: Option<ProviderAwaited>, now: Elapsed) {
        let awaits = self.get(number).is_some_and(|agent| agent.awaits.is_some());
        if !awaits && awaited.is_none() {
            return;
        }
        self.table.change(number, |agent| {
            match &awaited {
                Some(_) => agent.clock.stop(now),
                // The root's time is the run's.
                None if number != ROOT => agent.clock.go_on(now),
                None => {}
            }
            agent.awaits = awaited.map(Box::new);
        });
    }
}
