//! The run's actor: its agents, their shared budget, and the status of the run.

mod again;
mod agent;
mod agents;
mod brief;
mod change;
mod clock;
mod command;
mod decide;
mod flow;
mod fold;
mod fork;
mod ledger;
mod orchestrate;
mod outage;
mod restart;
mod spawn;
mod worktree;

use provost_event::{
    Budget, Elapsed, Entry, Forked, LifecycleEntry, MicroDollars, ModelPolicy, Outcome, Priority, RunId,
    RunPolicy, Seq, SessionId, Timestamp,
};

use serde::{Deserialize, Serialize};

pub use agent::AgentState;
pub use brief::{SPAWN_TOOL, agent_tool, judged_spawn_tool, spawn_tool, told_of_goal};
pub use flow::{Attempt, FlowProblem, StepNumber, StepStatus, StepTracker, StepWait, check_flow};
pub use ledger::{ExecutionTracker, FINAL_SUMMARY_TOKENS, Ledger, Refusal, USEFUL_OUTPUT_TOKENS, Uncertain};
pub(crate) use orchestrate::DELIVERED;
pub use spawn::{Acquired, AgentNumber, SlotMove, SpawnTracker, Then};

use crate::ActorStatus;
use crate::decision_time::DecisionTime;
use crate::retry::RetryTracker;
use crate::snapshot::{self, Snapshots};
use crate::step::StepBuilder;
use agents::Agents;
use clock::WorkClock;

/// Minimum number of entries between two snapshots for each agent, if that exceeds the default: all snapshots
/// together stay smaller than the log.
const ENTRIES_AN_AGENT: usize = 4;

/// One agent of a run, as the run records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentStatus<'a> {
    /// Its session.
    pub session: SessionId,
    /// The agent that requested it, if any.
    pub parent: Option<SessionId>,
    /// How many agents are above it.
    pub depth: u32,
    /// Its name; empty for the root.
    pub name: &'a str,
    /// Its goal; absent for the root, and once its work is over.
    pub goal: Option<&'a str>,
    /// Its priority; absent once its work is over.
    pub priority: Option<Priority>,
    /// Its status.
    pub standing: AgentState,
    /// The part of the run's budget for it and those below it.
    pub budget: Budget,
    /// Turns that it took itself.
    pub turns: u32,
    /// The maximum of its turns in all, if it was asked again; absent if its policy sets the limit.
    pub turns_max: Option<u32>,
    /// Tokens charged for it and those below it.
    pub tokens: u64,
    /// Money charged for it and those below it, as far as prices are known.
    pub cost: MicroDollars,
    /// When it was requested.
    pub spawned_at: Timestamp,
    /// Milliseconds that it worked, as of the run's last entry; 0 for the root.
    pub worked_ms: u64,
    /// How many times it was restarted after a failure.
    pub restarts: u32,
}

/// A run: the fold of its log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunState {
    run: RunId,
    head: Seq,
    #[serde(skip)]
    goal: String,
    #[serde(skip)]
    policy: Option<RunPolicy>,
    budget: Budget,
    turns_max: u32,
    ledger: Ledger,
    outcome: Option<Outcome>,
    /// The outcome that it was told to stop with, and all its agents with it.
    stopping: Option<Outcome>,
    started_at: Timestamp,
    updated_at: Timestamp,
    elapsed: Elapsed,
    clock: WorkClock,
    agents: Agents,
    /// The steps, if it runs a workflow; it has no root agent then.
    flow: Option<StepTracker>,
    /// The restarts in a row of its agents.
    #[serde(default)]
    retries: RetryTracker,
    /// Who resumed it last.
    resumed_by: String,
    /// The model that a later change names in place of the policy's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<Box<ModelPolicy>>,
    /// The goal and the policy that replace those it was started with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changed: Option<Box<RunPolicy>>,
    /// How long outages are waited out, if a later change replaces the policy's value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outage_max_ms: Option<u64>,
    /// The source if it is a fork, and the runs that were forked from its agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    forked_from: Option<Forked>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    forks: Vec<Forked>,
    /// The entry that set the running timer, and when that is due.
    timer: Option<(Seq, Elapsed)>,
    /// The last snapshot entry.
    snapshot: Seq,
}

impl RunState {
    /// A run before its first entry.
    #[must_use]
    pub fn new(run: RunId) -> Self {
        Self {
            run,
            head: Seq::START,
            goal: String::new(),
            policy: None,
            budget: Budget::default(),
            turns_max: 0,
            ledger: Ledger::default(),
            outcome: None,
            stopping: None,
            started_at: Timestamp::default(),
            updated_at: Timestamp::default(),
            elapsed: Elapsed::default(),
            clock: WorkClock::default(),
            agents: Agents::new(run),
            flow: None,
            retries: RetryTracker::default(),
            resumed_by: String::new(),
            model: None,
            changed: None,
            outage_max_ms: None,
            forked_from: None,
            forks: Vec::new(),
            timer: None,
            snapshot: Seq::START,
        }
    }

    /// The last entry.
    #[must_use]
    pub const fn head(&self) -> Seq {
        self.head
    }

    /// The outcome while it is suspended or after its end; absent while it is worked on.
    #[must_use]
    pub const fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// What it has spent.
    #[must_use]
    pub const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// What it may spend.
    #[must_use]
    pub const fn budget(&self) -> Budget {
        self.budget
    }

    /// The turn limit of its root agent, by its policy and later changes.
    #[must_use]
    pub const fn turns_max(&self) -> u32 {
        self.turns_max
    }

    /// Its first entry's data; absent before that entry.
    #[must_use]
    pub const fn policy(&self) -> Option<&RunPolicy> {
        self.policy.as_ref()
    }

    /// Milliseconds worked on it, as of its last entry.
    #[must_use]
    pub const fn active_ms(&self) -> u64 {
        self.clock.used_ms(self.elapsed)
    }

    /// The run's elapsed time at its last entry.
    #[must_use]
    pub const fn elapsed(&self) -> Elapsed {
        self.elapsed
    }

    /// When its last entry was made.
    #[must_use]
    pub const fn updated_at(&self) -> Timestamp {
        self.updated_at
    }

    /// Its agents, by number: the root first.
    pub fn agents(&self) -> impl Iterator<Item = AgentStatus<'_>> {
        self.agents.iter().map(|(number, agent)| {
            let spent = self.ledger.spent(number);
            AgentStatus {
                session: self.agents.session(number),
                parent: agent.parent.map(|parent| self.agents.session(parent)),
                depth: agent.depth,
                name: &agent.name,
                goal: agent.live_brief().map(|brief| brief.goal.as_str()),
                priority: self.agents.slots.priority(number).filter(|_| agent.is_live()),
                standing: agent.standing(),
                budget: agent.live_brief().map(|brief| brief.budget).unwrap_or_default(),
                turns: self.ledger.own_turns(number),
                turns_max: agent.turns_max,
                tokens: spent.map_or(0, |spent| spent.tokens),
                cost: spent.map_or(MicroDollars(0), |spent| spent.cost),
                spawned_at: agent.spawned_at,
                worked_ms: agent.clock.used_ms(self.elapsed),
                restarts: agent.restarts,
            }
        })
    }

    /// The steps of its workflow, if it runs one; there is no root agent then.
    #[must_use]
    pub const fn flow(&self) -> Option<&StepTracker> {
        self.flow.as_ref()
    }

    /// Slots that are held: by agents that work, or that were asked to yield.
    #[must_use]
    pub fn slots_held(&self) -> usize {
        self.agents.slots.held()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.outcome.as_ref().is_some_and(Outcome::is_final)
    }

    pub(crate) fn status(&self) -> Option<ActorStatus> {
        let policy = self.policy.as_ref()?;
        Some(ActorStatus {
            goal: self.goal.clone(),
            workspace: policy.agent.workspace.clone(),
            model: policy.agent.model.name.clone(),
            outcome: self.outcome.clone(),
            started_at: self.started_at,
            updated_at: self.updated_at,
            turns: self.ledger.turns(),
            tokens: self.ledger.tokens,
            cost: self.ledger.cost,
            uncertain: self.ledger.uncertain(),
            elapsed: self.elapsed(),
        })
    }

    /// Restores from the log's first entry what a snapshot leaves out.
    pub(crate) fn complete(&mut self, first: &Entry) -> bool {
        let Entry::Lifecycle(LifecycleEntry::RunStarted(started)) = first else { return false };
        self.goal.clone_from(&started.goal);
        self.policy = Some(self.changed.as_deref().unwrap_or(&started.policy).clone());
        true
    }
}

impl Snapshots for RunState {
    fn is_due(&self) -> bool {
        let size = u64::try_from(self.agents.len().saturating_mul(ENTRIES_AN_AGENT)).unwrap_or(u64::MAX);
        self.head.0.saturating_sub(self.snapshot.0) >= size.max(snapshot::EVERY)
    }

    fn take_in(&mut self, entry: &Entry, now: DecisionTime) {
        self.apply(entry, now);
    }
}

/// One decision in progress.
struct Deciding<'a> {
    state: &'a mut RunState,
    step: StepBuilder,
    /// Fresh random bits.
    entropy: u64,
}
