//! All runs at one look: in groups by what they need, in an order that doesn't change.

mod kept;

use std::collections::BTreeMap;

use futures::{StreamExt as _, stream};
use provost_engine::{Actor, RunState};
use provost_event::{Budget, MicroDollars, Outcome, PauseReason, RunId, SessionId, Timestamp, Verification};
use provost_harness::{Backend, BackendError, RunQuery, RunStatus, RunStatusFilter, RunSummary};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::approvals::questions_with;
use crate::{
    AgentOpenings, ApprovalQuestion, CurrentStatus, RUNS_AT_ONCE, RunAgent, RunListItem, RunTree, SeenRuns,
    ViewVersion, run_state,
};

pub use kept::KeptGroups;

/// The newest runs that are read besides those that haven't ended.
const NEWEST_MAX: usize = 200;
/// A run that hasn't changed for this long is idle.
const IDLE_AFTER_MS: u64 = DAY_MS;
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// A group of runs. Their order is that in which they are shown; a run is in the first that fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunGroup {
    /// A person has to answer: an approval, a question, a password, a login.
    NeedsYou,
    /// Its agents work.
    Working,
    /// It is suspended since nothing moves it on, or its end isn't allowed.
    Stuck,
    /// It was completed within the last day.
    Finished,
    /// It failed, was aborted, has used up a budget, or its process is gone.
    Failed,
    /// It waits for its provider, or is suspended.
    Waiting,
    /// It was cancelled, or hasn't changed for a day.
    Idle,
}

impl RunGroup {
    /// All groups, in their order.
    pub const ALL: [Self; 7] =
        [Self::NeedsYou, Self::Working, Self::Stuck, Self::Finished, Self::Failed, Self::Waiting, Self::Idle];

    /// Its name for people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::NeedsYou => "Needs you",
            Self::Working => "Working",
            Self::Stuck => "Stuck",
            Self::Finished => "Finished",
            Self::Failed => "Failed",
            Self::Waiting => "Waiting",
            Self::Idle => "Idle",
        }
    }
}

/// A run in a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GroupedRun {
    /// The same as in the list of runs.
    #[serde(flatten)]
    pub item: RunListItem,
    /// Its group.
    pub group: RunGroup,
    /// Why it is suspended or has ended, in words; null otherwise.
    pub outcome_text: Option<String>,
    /// What it may use; without limits for a run that has ended.
    pub budget: Budget,
    /// Its agents, by number; empty for a run that has ended.
    pub agents: Vec<RunAgent>,
    /// The open questions, the longest wait first.
    pub asks: Vec<ApprovalQuestion>,
    /// Whether each of the root agent's last ten turns moved something that lasts, the oldest first; empty for a run that
    /// has ended.
    pub moved: Vec<bool>,
}

/// The runs of a store in their groups.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GroupedRuns {
    /// The version of the view.
    pub v: ViewVersion,
    /// The groups with at least one run, in their order.
    pub groups: Vec<RunsOfGroup>,
    /// Agents that hold a slot of a run that a process works on.
    pub agents_at_work: usize,
    /// Questions that wait for an answer.
    pub questions: usize,
}

/// The runs of one group: those that need you by their wait, working ones by their start, others the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunsOfGroup {
    /// The group.
    pub group: RunGroup,
    /// The runs; at least one.
    pub runs: Vec<GroupedRun>,
}

impl GroupedRuns {
    /// Reads them as of `now`: all that haven't ended, and the newest others. A log that can't be read keeps no run
    /// out.
    ///
    /// # Errors
    /// When the runs can't be listed.
    pub async fn read(backend: &dyn Backend, now: Timestamp) -> Result<Self, BackendError> {
        let summaries = summaries(backend).await?;
        let read = stream::iter(summaries.into_values())
            .map(|summary| async move { GroupedRun::read(backend, &summary, now).await });
        Ok(Self::of(read.buffered(RUNS_AT_ONCE).collect().await))
    }

    /// The same where a person has looked at some of the runs: of those that are finished these are idle.
    #[must_use]
    pub fn with_seen(self, seen: &dyn SeenRuns) -> Self {
        let runs = self.groups.into_iter().flat_map(|group| group.runs).map(|mut run| {
            let item = &run.item;
            if run.group == RunGroup::Finished && seen.has_seen(item.run, item.updated_at_ms) {
                run.group = RunGroup::Idle;
            }
            run
        });
        Self::of(runs.collect())
    }

    /// All runs, in the order in which they are shown.
    pub fn runs(&self) -> impl Iterator<Item = &GroupedRun> {
        self.groups.iter().flat_map(|group| &group.runs)
    }

    /// What the runs have cost that changed on the day of `now` (UTC).
    #[must_use]
    pub fn spent_today(&self, now: Timestamp) -> MicroDollars {
        let is_of_today = |run: &&GroupedRun| now.0 / DAY_MS == run.item.updated_at_ms.0 / DAY_MS;
        let spent = self.runs().filter(is_of_today).map(|run| run.item.cost_micro_usd.0);
        MicroDollars(spent.fold(0, u64::saturating_add))
    }

    fn of(runs: Vec<GroupedRun>) -> Self {
        let at_work = |run: &&GroupedRun| run.item.outcome.is_none() && run.item.status != "interrupted";
        let agents = runs.iter().filter(at_work).flat_map(|run| &run.agents);
        let agents_at_work = agents.filter(|agent| agent.state.holds_slot()).count();
        let questions = runs.iter().map(|run| run.asks.len()).sum();
        let mut by_group = BTreeMap::<RunGroup, Vec<GroupedRun>>::new();
        for run in runs {
            by_group.entry(run.group).or_default().push(run);
        }
        let groups = by_group.into_iter().map(|(group, mut runs)| {
            runs.sort_by_key(|run| run.place());
            RunsOfGroup { group, runs }
        });
        Self { v: ViewVersion, groups: groups.collect(), agents_at_work, questions }
    }
}

/// The runs that are shown: all that haven't ended, and the newest others.
async fn summaries(backend: &dyn Backend) -> Result<BTreeMap<RunId, RunSummary>, BackendError> {
    let not_ended = backend.list(RunQuery::with_status(RunStatusFilter::NotEnded)).await?;
    let newest = backend.list(RunQuery::newest(NEWEST_MAX)).await?;
    Ok(not_ended.into_iter().chain(newest).map(|run| (run.run, run)).collect())
}

impl GroupedRun {
    /// The same at another time, when nothing was written since.
    fn at(mut self, summary: &RunSummary, now: Timestamp) -> Self {
        self.item.elapsed_ms = summary.elapsed;
        self.group = group_of(&self.item, now);
        self
    }

    /// Reads one as of `now`.
    pub async fn read(backend: &dyn Backend, summary: &RunSummary, now: Timestamp) -> Self {
        let is_over = matches!(&summary.status, RunStatus::Stopped(outcome) if outcome.is_final());
        let outcome_text = match &summary.status {
            RunStatus::Stopped(outcome) => Some(outcome.to_string()),
            RunStatus::Running | RunStatus::Interrupted => None,
        };
        let state = if is_over { None } else { run_state(backend, summary.run).await.unwrap_or_default() };
        let Some(state) = state else {
            let word = crate::status_word(summary, &[], None);
            let item = RunListItem::new(summary, &[], &CurrentStatus { word, provider: None });
            let group = group_of(&item, now);
            return Self {
                item,
                group,
                outcome_text,
                budget: Budget::default(),
                agents: Vec::new(),
                asks: Vec::new(),
                moved: Vec::new(),
            };
        };
        Self::of_state(backend, (summary, &state), outcome_text, now).await
    }

    async fn of_state(
        backend: &dyn Backend,
        (summary, state): (&RunSummary, &RunState),
        outcome_text: Option<String>,
        now: Timestamp,
    ) -> Self {
        let mut asks = questions_with(backend, (summary, state)).await;
        let current = CurrentStatus::with_questions(backend, (summary, state), &asks, now).await;
        let tree = RunTree::new((summary, state), &AgentOpenings::new(), &asks, now);
        let item = RunListItem::new(summary, &asks, &current).with_state(state);
        asks.sort_by_key(|question| question.since);
        let group = group_of(&item, now);
        let moved = moved(backend, summary.run).await.unwrap_or_default();
        Self { item, group, outcome_text, budget: state.budget(), agents: tree.agents, asks, moved }
    }

    /// What sorts it within its group.
    fn place(&self) -> (u64, RunId) {
        let newest_first = |at: Timestamp| u64::MAX - at.0;
        let at = match self.group {
            RunGroup::NeedsYou => self.asks.first().map_or(self.item.updated_at_ms.0, |ask| ask.since.0),
            RunGroup::Working => self.item.started_at_ms.0,
            RunGroup::Stuck | RunGroup::Finished | RunGroup::Failed | RunGroup::Waiting | RunGroup::Idle => {
                newest_first(self.item.updated_at_ms)
            }
        };
        (at, self.item.run)
    }
}

impl RunGroup {
    /// The group of a run, as of `now`.
    #[must_use]
    pub fn of(run: &RunListItem, now: Timestamp) -> Self {
        group_of(run, now)
    }
}

/// Which of the root agent's last turns moved something.
async fn moved(backend: &dyn Backend, run: RunId) -> Result<Vec<bool>, BackendError> {
    let root = backend.state(SessionId::root(run).into()).await?;
    let Actor::Session(session) = root else { return Ok(Vec::new()) };
    Ok(session.progress().map(|progress| progress.moved).unwrap_or_default())
}

/// Whether it was suspended since nothing moved it on.
const fn is_stuck(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Paused {
            why: PauseReason::Stuck { .. }
                | PauseReason::RepeatedCall { .. }
                | PauseReason::ToolFailures { .. }
        }
    )
}

fn group_of(run: &RunListItem, now: Timestamp) -> RunGroup {
    let is_old = now.since_ms(run.updated_at_ms) > IDLE_AFTER_MS;
    if !run.approvals.is_empty() || run.status.starts_with("needs ") {
        return RunGroup::NeedsYou;
    }
    if run.damage.is_some() {
        return RunGroup::Failed;
    }
    match &run.outcome {
        None if run.status == "interrupted" => RunGroup::Failed,
        None if run.awaits_provider.is_some() => RunGroup::Waiting,
        None => RunGroup::Working,
        Some(outcome) if is_stuck(outcome) => RunGroup::Stuck,
        Some(Outcome::Blocked { .. }) => RunGroup::Stuck,
        Some(outcome) if outcome.is_final() && is_old => RunGroup::Idle,
        Some(Outcome::Completed { .. }) => RunGroup::Finished,
        Some(Outcome::Failed { .. } | Outcome::Aborted { .. } | Outcome::BudgetExhausted(_)) => {
            RunGroup::Failed
        }
        Some(Outcome::Cancelled { .. }) => RunGroup::Idle,
        Some(Outcome::Paused { .. }) => RunGroup::Waiting,
    }
}

/// The state of a run or agent by its shape: the same on the page and in the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StateMark {
    /// A person has to act.
    NeedsYou,
    /// It works.
    Working,
    /// Nothing moves it on.
    Stuck,
    /// Its end wasn't allowed.
    Blocked,
    /// It was completed.
    Finished,
    /// It failed, or a budget or hook ended it.
    Failed,
    /// It waits for something that comes by itself.
    Waiting,
    /// It is suspended until it is resumed.
    Paused,
    /// Its work is over, and nothing is to be done.
    Idle,
}

impl StateMark {
    /// The word that says the same.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::NeedsYou => "needs you",
            Self::Working => "working",
            Self::Stuck => "stuck",
            Self::Blocked => "blocked",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Waiting => "waiting",
            Self::Paused => "paused",
            Self::Idle => "idle",
        }
    }

    /// That of a run in a group.
    #[must_use]
    pub const fn of_run(run: &GroupedRun) -> Self {
        match (run.group, &run.item.outcome) {
            (RunGroup::NeedsYou, _) => Self::NeedsYou,
            (RunGroup::Working, _) => Self::Working,
            (RunGroup::Stuck, Some(Outcome::Blocked { .. })) => Self::Blocked,
            (RunGroup::Stuck, _) => Self::Stuck,
            (RunGroup::Finished, _) => Self::Finished,
            (RunGroup::Failed, _) => Self::Failed,
            (RunGroup::Waiting, None) => Self::Waiting,
            (RunGroup::Waiting, Some(_)) => Self::Paused,
            (RunGroup::Idle, _) => Self::Idle,
        }
    }

    /// That of an agent.
    #[must_use]
    pub fn of_agent(agent: &RunAgent) -> Self {
        use crate::RunAgentState as State;
        match &agent.state {
            State::Asks => Self::NeedsYou,
            State::Working | State::Yields { .. } => Self::Working,
            State::Queued | State::Restarts { .. } => Self::Waiting,
            State::Preempted { .. } => Self::Paused,
            State::Interrupted => Self::Failed,
            State::Suspended { outcome } | State::Done { outcome } => match outcome {
                Outcome::Completed { .. } => Self::Finished,
                Outcome::Blocked { .. } => Self::Blocked,
                outcome if is_stuck(outcome) => Self::Stuck,
                Outcome::Paused { .. } => Self::Paused,
                Outcome::Cancelled { .. } => Self::Idle,
                Outcome::Failed { .. } | Outcome::Aborted { .. } | Outcome::BudgetExhausted(_) => {
                    Self::Failed
                }
            },
        }
    }
}

impl GroupedRun {
    /// What it does or why it does nothing, in a few words.
    #[must_use]
    pub fn phase(&self) -> String {
        match (&self.item.outcome, self.asks.len()) {
            (_, 1) => "needs approval".to_owned(),
            (_, count) if count > 1 => format!("{count} approvals"),
            (Some(Outcome::Completed { verification: Verification::Passed, .. }), _) => "verified".to_owned(),
            (Some(Outcome::Completed { .. }), _) => "finished".to_owned(),
            (Some(Outcome::Aborted { hook, .. }), _) => format!("aborted by {hook}"),
            (Some(outcome), _) if is_stuck(outcome) => "stuck".to_owned(),
            (Some(Outcome::BudgetExhausted(_)), _) => "budget used up".to_owned(),
            _ if self.group == RunGroup::Working && self.item.status == "running" => "working".to_owned(),
            _ => self.item.status.clone(),
        }
    }
}
