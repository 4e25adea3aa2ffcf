//! The run's actor: its agents, their shared budget, and the status of the run.
//!
//! A run is made of parts, each with its own fields, its own `apply` for the entries that concern it, and its own
//! decisions. `decide` routes an event to the parts and turns their answers into entries and effects.

mod agent_policy;
mod agents;
mod budget;
mod clock;
mod decide;
mod flow;
mod ledger;
mod lifecycle;
mod lineage;
mod policy;
mod report;
mod requests;
mod spawn;
mod spawn_tools;
mod status;
mod step_briefs;
mod workflow;

use provost_event::{Entry, LifecycleEntry, Outcome, RunId, Seq};
use serde::{Deserialize, Serialize};

pub use agent_policy::{told_of_goal, worktree_branch, worktree_name};
pub use agents::AgentState;
pub(crate) use decide::DELIVERED;
pub use flow::{Attempt, FlowProblem, StepNumber, StepStatus, StepTracker, StepWait, check_flow};
pub use ledger::{ExecutionTracker, FINAL_SUMMARY_TOKENS, Ledger, Refusal, USEFUL_OUTPUT_TOKENS, Uncertain};
pub use spawn::{Acquired, AgentNumber, SlotMove, SpawnTracker, Then};
pub use spawn_tools::{SPAWN_ALIASES, SPAWN_TOOL, agent_tool, judged_spawn_tool, spawn_tool};
pub use status::AgentStatus;

use crate::decision_time::DecisionTime;
use crate::snapshot::{self, Snapshots};
use agent_policy::AgentPolicies;
use agents::{Agents, ROOT};
use budget::RunBudget;
use lifecycle::Lifecycle;
use lineage::Lineage;
use policy::PolicyInForce;
use requests::Requests;
use step_briefs::StepBriefs;
use workflow::Workflow;

/// Minimum number of entries between two snapshots for each agent, if that exceeds the default: all snapshots
/// together stay smaller than the log.
const ENTRIES_AN_AGENT: usize = 4;

/// A run: the fold of its log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunState {
    run: RunId,
    head: Seq,
    /// The last snapshot entry.
    snapshot: Seq,
    lifecycle: Lifecycle,
    policy: PolicyInForce,
    budget: RunBudget,
    agents: Agents,
    workflow: Workflow,
    lineage: Lineage,
}

impl RunState {
    /// A run before its first entry.
    #[must_use]
    pub fn new(run: RunId) -> Self {
        Self {
            run,
            head: Seq::START,
            snapshot: Seq::START,
            lifecycle: Lifecycle::default(),
            policy: PolicyInForce::default(),
            budget: RunBudget::default(),
            agents: Agents::new(run),
            workflow: Workflow::default(),
            lineage: Lineage::default(),
        }
    }

    /// Folds in the next entry of its log. The only place where its state changes.
    pub(crate) fn apply(&mut self, entry: &Entry, now: DecisionTime) {
        self.head = self.head.next();
        self.lineage.apply(entry, self.run);
        if matches!(entry, Entry::Lifecycle(LifecycleEntry::Forked(_) | LifecycleEntry::ProcessesLeft(_))) {
            // They change nothing else, not even the time of its last entry.
            return;
        }
        if matches!(entry, Entry::Lifecycle(LifecycleEntry::Snapshot(_))) {
            self.snapshot = self.head;
        }
        let segment = self.lifecycle.segment_change(entry);
        self.budget.apply(entry, self.policy.get(), segment, now.elapsed);
        self.policy.apply(entry);
        self.agents.apply(entry, segment, now);
        self.workflow.apply(entry, segment, self.agents.table(), now);
        self.lifecycle.apply(entry, now);
        if self.lifecycle.is_worked_on() && self.policy.is_started() {
            let is_waiting = self.agents.table().any_awaits() && !self.does_more_than_wait();
            self.budget.count_work(!is_waiting, now.elapsed);
        }
        self.lifecycle.set_timer(self.head, self.next_due());
    }

    /// The first time at which it acts by itself.
    fn next_due(&self) -> Option<provost_event::Elapsed> {
        let steps_due = self.workflow.due().filter(|_| !self.is_stopping());
        [self.budget.due(), self.agents.table().first_due(), steps_due].into_iter().flatten().min()
    }

    /// Whether any of its agents does more than wait for a provider, or for agents that do.
    fn does_more_than_wait(&self) -> bool {
        let mut at_work = self.agents.table().iter().filter(|(_, agent)| agent.is_at_work()).peekable();
        if at_work.peek().is_none() {
            // Steps that wait to be retried, or a run that begins.
            return true;
        }
        at_work.any(|(number, agent)| {
            agent.awaits().is_none() && (agent.children() == 0 || self.ledger().has_reserved(number))
        })
    }

    /// Whether no agent begins any more, since all are being stopped.
    const fn is_stopping(&self) -> bool {
        self.lifecycle.stopping().is_some() || self.budget.winds_down()
    }

    /// Whether agents may begin or continue.
    const fn may_start(&self) -> bool {
        self.lifecycle.is_worked_on() && !self.is_stopping()
    }

    /// The outcome with which its segment ends now, as none of its agents works and none will without a request.
    fn segment_end(&self) -> Option<Outcome> {
        if self.workflow.steps().is_some() {
            return self.workflow_end();
        }
        let table = self.agents.table();
        let root = table.get(ROOT)?;
        if let Some(outcome) = root.finished() {
            return (table.live() == 0 && !self.has_ended()).then(|| outcome.clone());
        }
        let is_idle = table.at_work() == 0 && (self.is_stopping() || !table.any_awaits_restart());
        root.suspended().filter(|_| self.lifecycle.is_worked_on() && is_idle).cloned()
    }

    /// The same for a run of a workflow, which has no root agent.
    fn workflow_end(&self) -> Option<Outcome> {
        if self.has_ended() {
            return None;
        }
        let table = self.agents.table();
        let stopping = self.lifecycle.stopping();
        if table.live() == 0
            && let Some(outcome) = stopping.filter(|outcome| outcome.is_final()).cloned()
        {
            return Some(outcome);
        }
        if table.live() == 0
            && let Some(outcome) = self.workflow.completed()
        {
            return Some(outcome);
        }
        if !self.lifecycle.is_worked_on() || table.at_work() > 0 {
            return None;
        }
        if let Some(stopping) = stopping {
            return (!stopping.is_final()).then(|| stopping.clone());
        }
        if self.budget.winds_down() {
            let spent = workflow::spent(table).cloned();
            return spent.or_else(|| self.budget.time_used(self.elapsed()).map(Outcome::BudgetExhausted));
        }
        self.workflow.outcome_at_rest(table)
    }

    /// The policies of its agents.
    const fn policies(&self) -> AgentPolicies<'_> {
        AgentPolicies { run: &self.policy, agents: &self.agents, workflow: &self.workflow }
    }

    /// The requests of its agents for others.
    const fn requests(&self) -> Requests<'_> {
        Requests {
            policies: self.policies(),
            ledger: self.budget.ledger(),
            run_is_stopping: self.is_stopping(),
        }
    }

    /// What the agents of its steps get.
    const fn step_briefs(&self) -> StepBriefs<'_> {
        StepBriefs {
            run: &self.policy,
            agents: &self.agents,
            workflow: &self.workflow,
            ledger: self.budget.ledger(),
            elapsed: self.elapsed(),
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.lifecycle.has_ended()
    }

    /// Restores from the log's first entry what a snapshot leaves out.
    pub(crate) fn complete(&mut self, first: &Entry) -> bool {
        let Entry::Lifecycle(LifecycleEntry::RunStarted(started)) = first else { return false };
        self.policy.complete(started);
        true
    }
}

impl Snapshots for RunState {
    fn is_due(&self) -> bool {
        let size = self.agents.table().len().saturating_mul(ENTRIES_AN_AGENT);
        let size = u64::try_from(size).unwrap_or(u64::MAX);
        self.head.0.saturating_sub(self.snapshot.0) >= size.max(snapshot::EVERY)
    }

    fn take_in(&mut self, entry: &Entry, now: DecisionTime) {
        self.apply(entry, now);
    }
}
