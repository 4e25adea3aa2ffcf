//! How each entry changes a run. The only place where its state changes.

use provost_event::{
    AgentEntry, AgentResumeRequested, AgentRetryScheduled, AgentSpawned, BudgetEntry, BudgetExhausted,
    Dimension, Elapsed, Entry, LifecycleEntry, ModelEntry, Outcome, ResumeCause, Resumed, RunStarted,
};

use super::RunState;
use super::agent::Agent;
use super::agents::ROOT;
use super::clock::WorkClock;
use super::flow::StepTracker;
use crate::decision_time::DecisionTime;

impl RunState {
    pub(crate) fn apply(&mut self, entry: &Entry, now: DecisionTime) {
        self.head = self.head.next();
        match entry {
            Entry::Lifecycle(LifecycleEntry::RunStarted(started)) => self.started(started, now),
            Entry::Budget(BudgetEntry::Reserved(reserved)) => {
                self.ledger.reserve(reserved);
                self.agents.awaits(reserved.session.agent, None, now.elapsed);
            }
            Entry::Model(ModelEntry::ProviderAwaited(awaited)) => {
                self.agents.awaits(awaited.session.agent, Some(awaited.clone()), now.elapsed);
            }
            Entry::Model(ModelEntry::Changed(changed)) => self.model = Some(changed.to.clone()),
            Entry::Model(ModelEntry::OutageWaitChanged(changed)) => {
                self.outage_max_ms = Some(changed.outage_max_ms)
            }
            Entry::Lifecycle(LifecycleEntry::RunPolicyChanged(changed)) => self.policy_changed(changed),
            Entry::Budget(BudgetEntry::Charged(charged)) => self.ledger.charge(charged),
            Entry::Budget(BudgetEntry::Exhausted(exhausted)) => self.exhausted(exhausted),
            Entry::Agent(AgentEntry::Spawned(spawned)) => self.spawned(spawned, now),
            Entry::Agent(AgentEntry::AskedAgain(asked)) => self.asked_again(asked, now),
            Entry::Agent(AgentEntry::Started(started)) => {
                self.agents.started(started.child.agent, now.elapsed)
            }
            Entry::Agent(AgentEntry::YieldRequested(yields)) => {
                self.agents.yields(yields.child.agent, yields.to)
            }
            Entry::Agent(AgentEntry::Suspended(paused)) => {
                self.ledger.agent_stopped(paused.child.agent);
                match paused.child.agent {
                    ROOT => self.agents.root_stopped(&paused.outcome, paused.for_child),
                    _ => self.agents.paused(paused, now.elapsed),
                }
            }
            Entry::Agent(AgentEntry::Finished(finished)) => {
                self.ledger.agent_stopped(finished.child.agent);
                self.retries.reset(finished.child.agent);
                match finished.child.agent {
                    ROOT => self.agents.root_stopped(&finished.outcome, false),
                    _ => self.agents.finished(finished, now.elapsed),
                }
            }
            Entry::Agent(AgentEntry::RetryScheduled(scheduled)) => self.retry_scheduled(scheduled, now),
            Entry::Agent(AgentEntry::ResumeRequested(resumed)) => self.agent_resume_requested(resumed),
            Entry::Agent(AgentEntry::Reprioritized(reprioritized)) => {
                self.agents.reprioritized(reprioritized)
            }
            Entry::Agent(AgentEntry::StepEnded(ended)) => {
                if let Some(flow) = &mut self.flow {
                    flow.ended(ended, now.elapsed);
                }
            }
            Entry::Lifecycle(LifecycleEntry::StopRequested(requested)) => match requested.agent {
                Some(session) => self.agents.stopping(session.agent, &requested.outcome),
                None => {
                    self.stopping = Some(requested.outcome.clone());
                    self.agents.slots.hold();
                }
            },
            Entry::Lifecycle(LifecycleEntry::Snapshot(_)) => self.snapshot = self.head,
            // Forking a run changes nothing in it.
            Entry::Lifecycle(LifecycleEntry::Forked(forked)) => return self.forked(forked),
            Entry::Lifecycle(LifecycleEntry::ProcessesLeft(_)) => return,
            Entry::Lifecycle(LifecycleEntry::Paused(paused)) => {
                self.segment_ended(&paused.outcome, now.elapsed)
            }
            Entry::Lifecycle(LifecycleEntry::Ended(ended)) => self.segment_ended(&ended.outcome, now.elapsed),
            Entry::Lifecycle(LifecycleEntry::Resumed(resumed)) => self.resumed(resumed, now),
            _ => {}
        }
        self.updated_at = now.at;
        self.elapsed = now.elapsed;
        self.count_work(now.elapsed);
        self.set_timer();
    }

    fn spawned(&mut self, spawned: &AgentSpawned, now: DecisionTime) {
        let parent = spawned.parent.map(|parent| parent.agent);
        self.ledger.admit(spawned.child.agent, parent, spawned.brief.budget);
        if let Some(flow) = self.flow.as_mut().filter(|_| parent.is_none())
            && let Some(step) = flow.find(&spawned.brief.name)
        {
            flow.began(step, spawned.child.agent);
        }
        self.agents.spawned(spawned, now);
    }

    fn retry_scheduled(&mut self, scheduled: &AgentRetryScheduled, now: DecisionTime) {
        let agent = scheduled.agent.agent;
        self.ledger.agent_stopped(agent);
        self.retries.limit(agent, scheduled.attempts_max);
        self.retries.should_retry(agent);
        self.agents.retry_scheduled(scheduled, now);
    }

    fn agent_resume_requested(&mut self, resumed: &AgentResumeRequested) {
        let agent = resumed.child.agent;
        if self.agents.get(agent).is_none_or(|agent| agent.restart.is_none()) {
            self.resumed_by.clone_from(&resumed.by);
            self.retries.reset(agent);
        }
        match resumed.child.agent {
            ROOT => self.agents.root_goes_on(),
            agent => self.agents.resumed(agent),
        }
    }

    /// The run's timer is due with the first thing that it waits for.
    fn set_timer(&mut self) {
        let due = self.clock.due().into_iter().chain(self.agents.first_due()).chain(self.step_due()).min();
        let due = due.filter(|_| self.outcome.is_none());
        if due != self.timer.map(|(_, due)| due) {
            self.timer = due.map(|due| (self.head, due));
        }
    }

    fn started(&mut self, started: &RunStarted, now: DecisionTime) {
        self.goal.clone_from(&started.goal);
        self.budget = started.policy.budget;
        self.turns_max = started.policy.agent.limits.turns_max;
        self.flow = started.policy.flow.as_ref().map(StepTracker::new);
        if self.flow.is_some() {
            self.agents.begin_without_root(started.policy.spawn);
        } else {
            self.agents.begin(started.policy.spawn, now);
        }
        self.policy = Some(started.policy.clone());
        self.started_at = now.at;
        self.clock = WorkClock::limited(self.budget.wall_time_ms);
        self.clock.start(now.elapsed);
    }

    fn exhausted(&mut self, exhausted: &BudgetExhausted) {
        let is_time = exhausted.dimension() == Dimension::WallTime;
        if is_time && exhausted.of.is_none() {
            self.clock.winds_down = true;
            self.agents.slots.hold();
        }
        self.agents.exhausted(exhausted.session.agent, exhausted.of, is_time);
    }

    fn segment_ended(&mut self, outcome: &Outcome, now: Elapsed) {
        self.clock.stop(now);
        self.outcome = Some(outcome.clone());
        self.stopping = None;
        self.agents.slots.hold();
        self.ledger.agent_stopped(ROOT);
        self.agents.root_stopped(outcome, false);
    }

    fn resumed(&mut self, resumed: &Resumed, now: DecisionTime) {
        let has_ended = self.has_ended();
        // No process held it for a while: a time that it waits for may have passed, and its timer is set anew.
        self.timer = None;
        self.agents.waits_go_on(now);
        if let Some(flow) = &mut self.flow {
            flow.waits_go_on(now);
        }
        if self.outcome.is_some() && resumed.cause != ResumeCause::ToEnd {
            self.clock.start(now.elapsed);
            let awaits_restart = |agent: &Agent| agent.restart.is_some();
            let has_worked = self.agents.iter().filter(|(_, agent)| !awaits_restart(agent));
            has_worked.for_each(|(number, _)| self.retries.reset(number));
            self.agents.run_resumed();
            if let Some(flow) = &mut self.flow {
                flow.resumed();
                if has_ended {
                    flow.reopened(|agent| self.agents.get(agent).is_some_and(|agent| agent.is_live()));
                }
            }
        }
        self.outcome = None;
        if let ResumeCause::Asked { by } = &resumed.cause {
            self.resumed_by.clone_from(by);
        }
        self.budget = self.budget.changed_by(resumed.budget);
        self.clock.limit_ms = self.budget.wall_time_ms;
        self.turns_max = resumed.turns_max.unwrap_or(self.turns_max);
        // Reservations for calls that no task waits for any more are settled by the sessions themselves.
    }

    /// Whether no agent begins any more, since all are being stopped.
    pub(super) const fn is_stopping(&self) -> bool {
        self.stopping.is_some() || self.clock.winds_down
    }
}
