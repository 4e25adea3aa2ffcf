//! Which limits, hooks, observers and permissions took effect in a run, and what they decided.
//!
//! All of it is summed up from the logs as they are read; only observers write no entries.

mod agent;
mod approvals;
mod budget;
mod calls;
mod counters;
mod goal;
mod hooks;
mod limits;
mod mcp;
mod observers;
mod reach;
mod rules;
mod say;
mod stop_hooks;
mod terminal;
mod why_not;

use std::sync::Arc;

use provost_engine::{Actor, RunState};
use provost_event::{
    ActorKey, BudgetEntry, Entry, LifecycleEntry, ModelTrouble, Outcome, PauseReason, Record, RunId, Seq,
    Timestamp,
};
use provost_harness::{Backend, BackendError, RunStatus, RunSummary};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::agent::AgentSums;
use self::budget::BudgetSums;
use self::mcp::McpSums;
use self::observers::observers;
use crate::status::READ_MAX;
use crate::{
    AwaitedProvider, CurrentStatus, ProviderWait, SettingsChange, ViewVersion, run_state, segments_of,
};

pub use self::agent::{AgentExplanation, HookExplanation, PermissionsExplanation};
pub use self::approvals::{ApprovalCounts, OutsideCall};
pub use self::goal::{GoalChecks, GoalExplanation, JudgeAnswers, JudgeExplanation};
pub use self::hooks::HookCounts;
pub use self::limits::{LimitUnit, LimitUse, ReservedUse};
pub use self::mcp::{McpExplanation, McpToolUse};
pub use self::observers::{ObserverExplanation, ObserverSegment};
pub use self::rules::{DefaultRuleUse, GrantUse, PatternKind, PatternUse, PermissionCounts};
pub use self::say::{Durations, ItemGroup, RuleUse, Tally, UseState};
pub use self::stop_hooks::{StopHookCounts, StopHookExplanation};
pub use self::terminal::{NotedEvent, TerminalExplanation};

/// A run, and whether all that is configured for it took effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunExplanation {
    /// The version of the view.
    pub v: ViewVersion,
    /// The run.
    pub run: RunId,
    /// Its status, in the word that the list of runs has.
    pub status: String,
    /// The provider that it waits for, or waited for when its process was killed; absent where it doesn't.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaits_provider: Option<AwaitedProvider>,
    /// The model's failure that has suspended it, with the models that were asked before; absent for other reasons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_trouble: Option<ModelTrouble>,
    /// What the run is to do.
    pub goal: String,
    /// The last entry of the run's log that was read.
    pub entry: Seq,
    /// When that was made.
    pub at_ms: Timestamp,
    /// The limits of the run.
    pub limits: Vec<LimitUse>,
    /// Its agents that have begun, by number; one where one was asked for.
    pub agents: Vec<AgentExplanation>,
    /// The run's agents that aren't in `agents`, since there are too many or only one was asked for; absent for none.
    #[serde(default, skip_serializing_if = "is_none_left_out")]
    pub agents_left_out: usize,
    /// The MCP servers that the run's agents had tools of, of all agents; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp: Vec<McpExplanation>,
    /// The observers that the run names.
    pub observers: Vec<ObserverExplanation>,
    /// What replaced the settings that it was started with; absent if nothing did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<SettingsChange>,
    /// The items of all groups together.
    #[serde(flatten)]
    pub tally: Tally,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
const fn is_none_left_out(count: &usize) -> bool {
    *count == 0
}

/// Which agents are explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExplainedAgents {
    /// All.
    All,
    /// The first ones, this number at most.
    First(usize),
    /// One; none if it has no log.
    One(u32),
}

impl RunExplanation {
    /// Explains a run as of `now`; `None` if its log is empty. `kept` is what was noted of its observers.
    ///
    /// # Errors
    /// When a log can't be read.
    pub async fn read(
        backend: &dyn Backend,
        summary: &RunSummary,
        agents: ExplainedAgents,
        kept: &[ObserverSegment],
        now: Timestamp,
    ) -> Result<Option<(Self, CurrentStatus)>, BackendError> {
        let run = summary.run;
        let Some(mut sums) = Sums::read(backend, run).await? else { return Ok(None) };
        let agents_left_out = sums.keep(agents);
        let names = sums.state.policy().map(|policy| policy.observers.as_slice()).unwrap_or_default();
        let segments = segments_of(backend, run).await?;
        let current = CurrentStatus::read(backend, (summary, &sums.state), now).await;
        let explained = Self {
            v: ViewVersion,
            run,
            status: current.word.clone(),
            awaits_provider: current.provider.as_ref().map(ProviderWait::view),
            model_trouble: trouble_of(summary).cloned(),
            goal: summary.goal.clone(),
            entry: sums.state.head(),
            at_ms: sums.at,
            limits: sums.budget.limits(&sums.state, summary.elapsed),
            agents: sums.agents.iter().map(AgentSums::agent).collect(),
            agents_left_out,
            mcp: sums.mcp.servers(),
            observers: observers(names, kept, &summary.status),
            changes: segments.into_iter().flat_map(|segment| segment.changes).collect(),
            tally: Tally::default(),
        };
        let mut tally = Tally::default();
        explained.uses().into_iter().flat_map(|(_, uses)| uses).for_each(|used| tally.add(used));
        Ok(Some((Self { tally, ..explained }, current)))
    }

    /// Whether what is configured took effect, by group; a group may be there more than once.
    #[must_use]
    pub fn uses(&self) -> Vec<(ItemGroup, Vec<&RuleUse>)> {
        let limits = self.limits.iter().map(|limit| &limit.standing).collect();
        let observers = self.observers.iter().map(|observer| &observer.standing).collect();
        let mut uses = vec![(ItemGroup::Limits, limits)];
        uses.extend(self.agents.iter().flat_map(AgentExplanation::uses));
        uses.push((ItemGroup::Observers, observers));
        uses
    }
}

/// The model's failure that has suspended the run.
const fn trouble_of(summary: &RunSummary) -> Option<&ModelTrouble> {
    match &summary.status {
        RunStatus::Stopped(Outcome::Paused { why: PauseReason::Model(trouble) }) => Some(trouble),
        _ => None,
    }
}

/// The sums of a run's logs.
struct Sums {
    state: Box<RunState>,
    at: Timestamp,
    budget: BudgetSums,
    agents: Vec<AgentSums>,
    mcp: McpSums,
}

impl Sums {
    async fn read(backend: &dyn Backend, run: RunId) -> Result<Option<Self>, BackendError> {
        let mut agents = Vec::new();
        for key in backend.actors(run).await? {
            agents.extend(opening(backend, key).await?);
        }
        let mut mcp = McpSums::default();
        for agent in &mut agents {
            let session = agent.session();
            let see = |record: &Record| {
                agent.add(record);
                mcp.add(session, &record.entry);
            };
            each(backend, session.into(), see).await?;
        }
        let mut budget = BudgetSums::of(&agents);
        let mut at = Timestamp::default();
        each(backend, run.into(), |record| {
            budget.add(&record.entry);
            if let Entry::Budget(BudgetEntry::Charged(charged)) = &record.entry {
                let of_call = agents.iter_mut().filter(|agent| agent.session() == charged.session);
                of_call.for_each(|agent| agent.charge(charged));
            }
            at = record.at;
        })
        .await?;
        let state = run_state(backend, run).await?;
        Ok(state.map(|state| Self { state, at, budget, agents, mcp }))
    }

    /// Keeps these agents; returns how many are left out.
    fn keep(&mut self, agents: ExplainedAgents) -> usize {
        let before = self.agents.len();
        match agents {
            ExplainedAgents::All => {}
            ExplainedAgents::First(count) => self.agents.truncate(count),
            ExplainedAgents::One(number) => self.agents.retain(|agent| agent.session().agent == number),
        }
        before - self.agents.len()
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
    let now = match backend.state(key).await? {
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
