//! What others may read of a run.

use provost_event::{
    Budget, Elapsed, Forked, MicroDollars, ModelPolicy, ModelTrouble, Outcome, Priority, ProviderAwaited,
    RunPolicy, Seq, SessionId, Timestamp,
};

use super::agents::{Agent, AgentState};
use super::{AgentNumber, Ledger, RunState, StepTracker};
use crate::ActorStatus;

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
    /// Milliseconds that it worked, by the time that the status is of; 0 for the root.
    pub worked_ms: u64,
    /// How many times it was restarted after a failure.
    pub restarts: u32,
}

impl RunState {
    /// The last entry.
    #[must_use]
    pub const fn head(&self) -> Seq {
        self.head
    }

    /// The outcome while it is suspended or after its end; absent while it is worked on.
    #[must_use]
    pub const fn outcome(&self) -> Option<&Outcome> {
        self.lifecycle.outcome()
    }

    /// The name of its phase, as in the table of [`states::run`](crate::states::run).
    #[must_use]
    pub fn phase_name(&self) -> &'static str {
        match self.outcome() {
            Some(outcome) if outcome.is_final() => "ended",
            Some(_) => "suspended",
            None if !self.policy.is_started() => "new",
            None if self.is_stopping() => "stopping",
            None => "working",
        }
    }

    /// The run's goal.
    #[must_use]
    pub fn goal(&self) -> &str {
        self.policy.goal()
    }

    /// What it has spent.
    #[must_use]
    pub const fn ledger(&self) -> &Ledger {
        self.budget.ledger()
    }

    /// What it may spend.
    #[must_use]
    pub const fn budget(&self) -> Budget {
        self.budget.limits()
    }

    /// The turn limit of its root agent, by its policy and later changes.
    #[must_use]
    pub const fn turns_max(&self) -> u32 {
        self.budget.turns_max()
    }

    /// The limits that apply once `policy` does.
    #[must_use]
    pub fn budget_under(&self, policy: &RunPolicy) -> Budget {
        self.budget.limits_under(policy, self.policy())
    }

    /// The turn limit of the root agent once `policy` applies.
    #[must_use]
    pub fn turns_max_under(&self, policy: &RunPolicy) -> u32 {
        self.budget.turns_max_under(policy, self.policy())
    }

    /// Its first entry's data; absent before that entry.
    #[must_use]
    pub const fn policy(&self) -> Option<&RunPolicy> {
        self.policy.get()
    }

    /// The model of its agents that have none of their own.
    #[must_use]
    pub fn model(&self) -> Option<&ModelPolicy> {
        self.policy.model()
    }

    /// How long outages are waited out, in milliseconds.
    #[must_use]
    pub fn outage_max_ms(&self) -> u64 {
        self.policy.outage_max_ms()
    }

    /// The provider that the run waits for, while all its working agents wait for theirs; the one that is tried
    /// first.
    #[must_use]
    pub fn awaits_provider(&self) -> Option<&ProviderAwaited> {
        let awaited = self.agents.table().iter().filter_map(|(_, agent)| agent.awaits());
        let first = awaited.min_by_key(|awaited| awaited.until);
        first.filter(|_| self.lifecycle.is_worked_on() && !self.does_more_than_wait())
    }

    /// The trouble of the provider that an agent, or else the whole run, waits for.
    pub(super) fn trouble_awaited(&self, agent: Option<AgentNumber>) -> Option<&ModelTrouble> {
        let awaited = match agent {
            Some(agent) => self.agents.table().get(agent)?.awaits(),
            None => self.awaits_provider(),
        };
        awaited.map(|awaited| &awaited.trouble)
    }

    /// Milliseconds worked on it, as of its last entry.
    #[must_use]
    pub const fn active_ms(&self) -> u64 {
        self.budget.worked_ms(self.elapsed())
    }

    /// Milliseconds worked on it by `now`, the run's elapsed time, or as of its last entry if that is later. While
    /// it is suspended, and after its end, none are added.
    #[must_use]
    pub fn worked_ms(&self, now: Elapsed) -> u64 {
        self.budget.worked_ms(now.max(self.elapsed()))
    }

    /// The run's elapsed time at its last entry.
    #[must_use]
    pub const fn elapsed(&self) -> Elapsed {
        self.lifecycle.updated().elapsed
    }

    /// When its last entry was made.
    #[must_use]
    pub const fn updated_at(&self) -> Timestamp {
        self.lifecycle.updated().at
    }

    /// Its agents, by number: the root first. As of its last entry.
    pub fn agents(&self) -> impl Iterator<Item = AgentStatus<'_>> {
        self.agents_at(self.elapsed())
    }

    /// The same by `now`, the run's elapsed time, or as of its last entry if that is later.
    pub fn agents_at(&self, now: Elapsed) -> impl Iterator<Item = AgentStatus<'_>> {
        let now = now.max(self.elapsed());
        self.agents.table().iter().map(move |(number, agent)| self.agent_status((number, agent), now))
    }

    fn agent_status<'a>(&'a self, (number, agent): (u32, &'a Agent), now: Elapsed) -> AgentStatus<'a> {
        let table = self.agents.table();
        let spent = self.ledger().spent(number).copied().unwrap_or_default();
        AgentStatus {
            session: table.session(number),
            parent: agent.parent().map(|parent| table.session(parent)),
            depth: agent.depth(),
            name: agent.name(),
            goal: agent.live_brief().map(|brief| brief.goal.as_str()),
            priority: self.agents.slots().priority(number).filter(|_| agent.is_live()),
            standing: agent.standing(),
            budget: agent.live_brief().map(|brief| brief.budget).unwrap_or_default(),
            turns: self.ledger().own_turns(number),
            turns_max: agent.turns_max(),
            tokens: spent.tokens,
            cost: spent.cost,
            spawned_at: agent.requested_at().at,
            worked_ms: agent.clock().used_ms(now),
            restarts: agent.restarts(),
        }
    }

    /// The steps of its workflow, if it runs one; there is no root agent then.
    #[must_use]
    pub const fn flow(&self) -> Option<&StepTracker> {
        self.workflow.steps()
    }

    /// Slots that are held: by agents that work, or that were asked to yield.
    #[must_use]
    pub fn slots_held(&self) -> usize {
        self.agents.slots().held()
    }

    /// The source of the fork, if it is one.
    #[must_use]
    pub const fn forked_from(&self) -> Option<&Forked> {
        self.lineage.forked_from()
    }

    /// The runs that were forked from its agents, in order.
    #[must_use]
    pub fn forks(&self) -> &[Forked] {
        self.lineage.forks()
    }

    pub(crate) fn status(&self) -> Option<ActorStatus> {
        let policy = self.policy()?;
        Some(ActorStatus {
            goal: self.goal().to_owned(),
            workspace: policy.project().to_owned(),
            model: policy.agent.model.name.clone(),
            outcome: self.outcome().cloned(),
            started_at: self.lifecycle.started_at(),
            updated_at: self.updated_at(),
            turns: self.ledger().turns(),
            tokens: self.ledger().tokens,
            cost: self.ledger().cost,
            uncertain: self.ledger().uncertain(),
            elapsed: self.elapsed(),
        })
    }
}
