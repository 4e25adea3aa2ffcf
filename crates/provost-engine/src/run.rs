//! The run's actor: its agents, the budget of all of them, and how the run as a whole stands.

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
    Budget, Elapsed, Entry, Forked, MicroDollars, ModelPolicy, Outcome, Priority, RunId, RunPolicy, Seq,
    SessionId, Timestamp,
};

use serde::{Deserialize, Serialize};

pub use agent::AgentStanding;
pub use brief::{SPAWN_TOOL, agent_tool, judged_spawn_tool, spawn_tool, told_of_goal};
pub use flow::{Attempt, FlowProblem, StepNumber, StepStanding, StepTracker, StepWait, check_flow};
pub use ledger::{ExecutionTracker, LAST_WORDS_TOKENS, Ledger, Refusal, USEFUL_OUTPUT_TOKENS, Uncertain};
pub(crate) use orchestrate::DELIVERED;
pub use spawn::{Acquired, AgentNumber, SlotMove, SpawnTracker, Then};

use crate::ActorStatus;
use crate::moment::Moment;
use crate::retry::RetryTracker;
use crate::snapshot::{self, Snapshots};
use crate::step::StepBuilder;
use agents::Agents;
use clock::WorkClock;

/// Between two snapshots there are so many entries for each agent, if that makes more than usual: all of them together
/// stay smaller than the log.
const ENTRIES_AN_AGENT: usize = 4;

/// One agent of a run, as the run knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentStatus<'a> {
    /// Its session.
    pub session: SessionId,
    /// The agent that asked for it, if one did.
    pub parent: Option<SessionId>,
    /// How many stand above it.
    pub depth: u32,
    /// What it is called; empty for the root.
    pub name: &'a str,
    /// What it is to reach; absent for the root, and once its work is over.
    pub goal: Option<&'a str>,
    /// How urgent its work is; absent once it is over.
    pub priority: Option<Priority>,
    /// How it stands.
    pub standing: AgentStanding,
    /// What it and those below it may spend of the run's budget.
    pub budget: Budget,
    /// Turns that it took itself.
    pub turns: u32,
    /// Turns that it may have taken in all, where it was asked again; absent where its policy says so.
    pub turns_max: Option<u32>,
    /// Tokens charged for it and those below it.
    pub tokens: u64,
    /// Money charged for it and those below it, as far as prices are known.
    pub cost: MicroDollars,
    /// When it was asked for.
    pub spawned_at: Timestamp,
    /// Milliseconds that it worked, as of the run's last entry; 0 for the root.
    pub worked_ms: u64,
    /// How often it was restarted after a failure.
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
    /// It was told to come to this, and all its agents with it.
    stopping: Option<Outcome>,
    started_at: Timestamp,
    updated_at: Timestamp,
    elapsed: Elapsed,
    clock: WorkClock,
    agents: Agents,
    /// Its steps, if it goes through a flow and has no root agent.
    flow: Option<StepTracker>,
    /// The restarts that its agents have had in a row.
    #[serde(default)]
    retries: RetryTracker,
    /// Who had it go on last.
    resumed_by: String,
    /// The model that somebody named later than the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<Box<ModelPolicy>>,
    /// The goal and the policy that somebody has put in place of those it was started with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changed: Option<Box<RunPolicy>>,
    /// How long outages are waited out, where somebody has said so later than the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outage_max_ms: Option<u64>,
    /// What it is a fork of, and the runs that were forked from its agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    forked_from: Option<Forked>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    forks: Vec<Forked>,
    /// The entry that set the timer, while one runs, and when it is due.
    timer: Option<(Seq, Elapsed)>,
    /// The last entry that is a snapshot.
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

    /// How it rests or ended; absent while it is worked on.
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

    /// Turns that its root agent may take, by its policy and what was changed since.
    #[must_use]
    pub const fn turns_max(&self) -> u32 {
        self.turns_max
    }

    /// What it was given; absent before its first entry.
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

    /// The steps of its flow, if it goes through one; then none of its agents is a root.
    #[must_use]
    pub const fn flow(&self) -> Option<&StepTracker> {
        self.flow.as_ref()
    }

    /// Slots that are held: agents that work, or that shall make way.
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

    /// Takes from the log's first entry what a snapshot leaves out.
    pub(crate) fn complete(&mut self, first: &Entry) -> bool {
        let Entry::RunStarted(started) = first else { return false };
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

    fn take_in(&mut self, entry: &Entry, now: Moment) {
        self.apply(entry, now);
    }
}

/// One decision in the making.
struct Deciding<'a> {
    state: &'a mut RunState,
    step: StepBuilder,
    /// Fresh random bits.
    entropy: u64,
}
