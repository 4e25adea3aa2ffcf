//! `provost explain`: which limits, hooks, observers and permissions took effect in a run, and what they decided.
//!
//! All of it is summed up from the logs as they are read; only observers write no entries.

mod agent;
mod approvals;
mod block;
mod budget;
mod calls;
mod counters;
mod goal;
mod hooks;
mod limits;
mod observers;
mod page;
mod reach;
mod rules;
mod say;
mod stop_hooks;
mod terminal;
mod why_not;

use std::sync::Arc;

use anyhow::Context as _;
use provost_engine::{Actor, RunState};
use provost_event::{
    ActorKey, Entry, LifecycleEntry, ModelTrouble, Outcome, PauseReason, Record, RunId, Seq, SessionId,
    Timestamp,
};
use provost_harness::{Backend, BackendError, Clock as _, RunStatus, RunSummary, SystemClock, read_actor};
use serde::{Serialize, Serializer};

use self::agent::{Agent, AgentSums};
use self::budget::BudgetSums;
use self::limits::Limit;
use self::observers::{Observer, observers};
use self::page::page;
use self::say::{Group, Tallies};
use super::ps::with_cause;
use super::status;
use super::target::{Target, agent_of, named};
use super::{place, print};
use crate::cli::ExplainArgs;
use crate::exit::{Exit, Refusal};
use crate::names::Names;
use crate::render::{safe, terminal_width};
use provost_view::{AwaitedProvider, CurrentStatus, ProviderWait};
use provost_view::{SettingsChange, segments_of};

const READ_MAX: usize = 1_000;
/// A page leaves out the agents after this many; `RUN.N` shows each of them.
const AGENTS_MAX: usize = 12;

pub(super) async fn explain(args: ExplainArgs) -> anyhow::Result<Exit> {
    let place = place()?;
    let backend = place.open_to_read()?;
    let Target { run, agent } = Target::find(&*backend, &args.run).await?;
    let summary = backend.get(run).await?.with_context(|| format!("there is no run {run}"))?;
    let mut sums = Sums::read(&*backend, run).await?;
    let left_out = match agent {
        Some(agent) => sums.keep_only(SessionId { run, agent })?,
        None if args.json => 0,
        None => sums.keep_first(AGENTS_MAX),
    };
    let names = sums.state.policy().map(|policy| policy.observers.as_slice()).unwrap_or_default();
    let observers = observers(&place.observers(), run, &summary.status, names)?;
    let changes =
        segments_of(&*backend, run).await?.into_iter().flat_map(|segment| segment.changes).collect();
    let CurrentStatus { word: status, provider } =
        CurrentStatus::read(&*backend, (&summary, &sums.state), SystemClock.now()).await;
    let explained = Explained {
        agents_left_out: left_out,
        changes,
        awaits_provider: provider.as_ref().map(ProviderWait::view),
        status_in_words: provider
            .as_ref()
            .map_or_else(|| stopped_in_words(&summary, &status), status::in_full),
        model_trouble: trouble_of(&summary),
        ..sums.explained(&summary, observers, status)
    };
    if args.json {
        print(&format!("{}\n", serde_json::to_string(&explained)?))?;
    } else {
        print(&safe(&page(&explained, terminal_width())))?;
    }
    Ok(Exit::Done)
}

/// The model's failure that has suspended the run.
const fn trouble_of(summary: &RunSummary) -> Option<&ModelTrouble> {
    match &summary.status {
        RunStatus::Stopped(Outcome::Paused { why: PauseReason::Model(trouble) }) => Some(trouble),
        _ => None,
    }
}

/// The status with its cause, and the models that were asked before.
fn stopped_in_words(summary: &RunSummary, status: &str) -> String {
    let tried = trouble_of(summary).map(ModelTrouble::tried_in_words).unwrap_or_default();
    let outcome = match &summary.status {
        RunStatus::Stopped(outcome) => Some(outcome).filter(|_| summary.damage.is_none()),
        RunStatus::Running | RunStatus::Interrupted => None,
    };
    with_cause(outcome, status) + &tried
}

/// A run, and how all that is configured for it fared.
#[derive(Serialize)]
struct Explained<'a> {
    run: RunId,
    status: String,
    #[serde(skip)]
    status_in_words: String,
    /// The provider that it waits for, or waited for when its process was killed; absent where it doesn't.
    #[serde(skip_serializing_if = "Option::is_none")]
    awaits_provider: Option<AwaitedProvider>,
    /// The model's failure that has suspended it, with the models that were asked before.
    #[serde(skip_serializing_if = "Option::is_none")]
    model_trouble: Option<&'a ModelTrouble>,
    goal: &'a str,
    /// The last entry of the run's log that was read, and when it was made.
    entry: Seq,
    at_ms: Timestamp,
    limits: Vec<Limit>,
    agents: Vec<Agent<'a>>,
    /// The run's agents that aren't in it, since there are too many or only one was asked for.
    #[serde(skip_serializing_if = "is_none_left_out")]
    agents_left_out: usize,
    #[serde(skip)]
    names: Names,
    observers: Vec<Observer>,
    /// What replaced the settings that it was started with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changes: Vec<SettingsChange>,
    #[serde(flatten, serialize_with = "in_all")]
    tallies: Tallies,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
const fn is_none_left_out(count: &usize) -> bool {
    *count == 0
}

/// JSON has one tally for all groups.
fn in_all<S: Serializer>(tallies: &Tallies, serializer: S) -> Result<S::Ok, S::Error> {
    tallies.all.serialize(serializer)
}

/// The sums of a run's logs.
struct Sums {
    state: RunState,
    at: Timestamp,
    budget: BudgetSums,
    agents: Vec<AgentSums>,
}

impl Sums {
    async fn read(backend: &dyn Backend, run: RunId) -> anyhow::Result<Self> {
        let mut agents = Vec::new();
        for key in backend.actors(run).await? {
            agents.extend(opening(backend, key).await?);
        }
        for agent in &mut agents {
            each(backend, agent.session().into(), |record| agent.add(record)).await?;
        }
        let mut budget = BudgetSums::of(&agents);
        let mut actor = Actor::new(run.into());
        let mut at = Timestamp::default();
        let mut replayed = Ok(());
        each(backend, run.into(), |record| {
            budget.add(&record.entry);
            at = record.at;
            if replayed.is_ok() {
                replayed = actor.replay(record);
            }
        })
        .await?;
        replayed.with_context(|| format!("the log of run {run} can't be read"))?;
        match actor {
            Actor::Run(state) if state.policy().is_some() => Ok(Self { state: *state, at, budget, agents }),
            Actor::Run(_) | Actor::Session(_) => anyhow::bail!("the log of run {run} is empty"),
        }
    }

    /// Keeps the first `count` agents; returns how many are left out.
    fn keep_first(&mut self, count: usize) -> usize {
        let before = self.agents.len();
        self.agents.truncate(count);
        before - self.agents.len()
    }

    /// Leaves out all agents but one; returns how many.
    ///
    /// # Errors
    /// [`Refusal`] when it has no log.
    fn keep_only(&mut self, session: SessionId) -> Result<usize, Refusal> {
        let before = self.agents.len();
        self.agents.retain(|agent| agent.session() == session);
        if self.agents.is_empty() {
            let what =
                format!("{} of run {} hasn't begun", named(&agent_of(&self.state, session)?), session.run);
            return Err(Refusal::new(what, format!("`provost show {}` says how it stands", session.run)));
        }
        Ok(before - self.agents.len())
    }

    fn explained<'a>(
        &'a self,
        summary: &'a RunSummary,
        observers: Vec<Observer>,
        status: String,
    ) -> Explained<'a> {
        let limits = self.budget.limits(&self.state, summary.elapsed);
        let agents = self.agents.iter().map(AgentSums::agent).collect::<Vec<_>>();
        let mut tallies = Tallies::default();
        tallies.add(Group::Limits, limits.iter().map(|limit| &limit.standing));
        for (group, standings) in agents.iter().flat_map(Agent::standings) {
            tallies.add(group, standings);
        }
        tallies.add(Group::Observers, observers.iter().map(|observer| &observer.standing));
        Explained {
            run: summary.run,
            status_in_words: status.clone(),
            status,
            awaits_provider: None,
            model_trouble: None,
            goal: &summary.goal,
            entry: self.state.head(),
            at_ms: self.at,
            limits,
            agents,
            agents_left_out: 0,
            names: Names::of(&self.state),
            observers,
            changes: Vec::new(),
            tallies,
        }
    }
}

/// The sums of a session before its log; `None` for what is no session, or has no entry yet.
async fn opening(backend: &dyn Backend, key: ActorKey) -> Result<Option<AgentSums>, BackendError> {
    let ActorKey::Session(session) = key else { return Ok(None) };
    let first = backend.read(key, Seq::START, 1).await?;
    let Some(Entry::Lifecycle(LifecycleEntry::SessionStarted(started))) =
        first.first().map(|record| &record.entry)
    else {
        return Ok(None);
    };
    // The policy in force; entries about what it no longer contains don't count.
    let now = match read_actor(backend, key).await? {
        Actor::Session(state) => state.policy().cloned(),
        Actor::Run(_) => None,
    };
    let now = now.unwrap_or_else(|| started.policy.clone());
    let is_changed = now != started.policy;
    Ok(Some(AgentSums::new(session, now, is_changed)))
}

/// Calls `see` with each entry of a log.
async fn each(
    backend: &dyn Backend,
    key: ActorKey,
    mut see: impl FnMut(&Record),
) -> Result<(), BackendError> {
    let mut after = Seq::START;
    loop {
        let records: Vec<Arc<Record>> = backend.read(key, after, READ_MAX).await?;
        let Some(last) = records.last() else { return Ok(()) };
        after = last.seq;
        records.iter().for_each(|record| see(record));
    }
}
