//! The agents of a run as `show` gathers them: status and usage, with limits.

use std::collections::HashMap;

use provost_engine::{Actor, AgentState, AgentStatus, RunState};
use provost_event::{
    Budget, Elapsed, Entry, GoalState, LifecycleEntry, Limits, MicroDollars, Outcome, Priority, Record, Seq,
    SessionId, SpawnBudget, Timestamp,
};
use provost_harness::{Backend, BackendError, read_actor};
use serde::Serialize;

use provost_view::ApprovalQuestion;

/// Of more agents than these, those whose work is over are shown without their goals, unless all are asked for.
const READ_MAX: usize = 200;

/// Facts from an agent's own first entry.
#[derive(Debug, Clone, Default)]
pub(super) struct Opening {
    goal: String,
    turns_max: u32,
    model: String,
    /// The state of its goal that judges verify, if it has one.
    pub(super) goal_state: Option<GoalState>,
}

impl Opening {
    /// The facts of an agent's first log entry; `None` for any other entry.
    pub(super) fn of(record: &Record) -> Option<Self> {
        let Entry::Lifecycle(LifecycleEntry::SessionStarted(started)) = &record.entry else { return None };
        Some(Self {
            goal: started.goal.clone(),
            turns_max: started.policy.limits.turns_max,
            model: started.policy.model.name.clone(),
            goal_state: started.policy.goal.as_ref().map(|_| GoalState::Running),
        })
    }

    /// With its goal as it stands now.
    async fn up_to_date(self, backend: &dyn Backend, session: SessionId) -> Result<Self, BackendError> {
        if self.goal_state.is_none() {
            return Ok(self);
        }
        let goal_state = goal_state(&read_actor(backend, session.into()).await?);
        Ok(Self { goal_state, ..self })
    }
}

/// The state of an agent's goal, if it has one.
pub(super) fn goal_state(agent: &Actor) -> Option<GoalState> {
    match agent {
        Actor::Session(state) => state.goal().map(|goal| goal.state),
        Actor::Run(_) => None,
    }
}

/// The openings of agents, by number.
pub(super) type Openings = HashMap<u32, Opening>;

/// Which agents' openings are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// Those that matter at first sight.
    Shown,
    All,
}

/// Reads the first entries of a run's agents, and the states of their goals.
///
/// # Errors
/// When a log can't be read.
pub(super) async fn openings(
    backend: &dyn Backend,
    state: &RunState,
    which: Which,
) -> Result<Openings, BackendError> {
    let has_all = which == Which::All || state.agents().count() <= READ_MAX;
    let mut found = Openings::new();
    for agent in state.agents() {
        let wanted = match agent.standing {
            AgentState::Queued => false,
            AgentState::Finished(_) => has_all,
            _ => true,
        };
        if wanted {
            let first = backend.read(agent.session.into(), Seq::START, 1).await?;
            if let Some(opening) = first.first().and_then(|record| Opening::of(record)) {
                found.insert(agent.session.agent, opening.up_to_date(backend, agent.session).await?);
            }
        }
    }
    Ok(found)
}

/// The status of an agent, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    Queued,
    Working,
    /// It was at work when the run's process was killed; none holds the run now.
    Interrupted,
    /// One of its calls needs approval.
    Asks,
    Yields(Option<u32>),
    Preempted(Option<u32>),
    /// It has failed, and is restarted.
    Restarts {
        attempt: u32,
        attempts_max: u32,
        failed: Outcome,
    },
    Suspended(Outcome),
    Done(Outcome),
}

impl State {
    /// In one word, for programs and for counting.
    pub(super) const fn word(&self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Working => "working",
            Self::Interrupted => "interrupted",
            Self::Asks => "needs approval",
            Self::Yields(_) => "yielding",
            Self::Preempted(_) => "preempted",
            Self::Restarts { .. } => "waiting to restart",
            Self::Suspended(_) => "suspended",
            Self::Done(_) => "done",
        }
    }

    /// The agent that it yields its slot to, or has yielded it to.
    pub(super) const fn to(&self) -> Option<u32> {
        match self {
            Self::Yields(to) | Self::Preempted(to) => *to,
            Self::Queued
            | Self::Working
            | Self::Interrupted
            | Self::Asks
            | Self::Restarts { .. }
            | Self::Suspended(_)
            | Self::Done(_) => None,
        }
    }

    pub(super) const fn outcome(&self) -> Option<&Outcome> {
        match self {
            Self::Restarts { failed: outcome, .. } | Self::Suspended(outcome) | Self::Done(outcome) => {
                Some(outcome)
            }
            Self::Queued
            | Self::Working
            | Self::Interrupted
            | Self::Asks
            | Self::Yields(_)
            | Self::Preempted(_) => None,
        }
    }
}

/// One agent, as it is drawn.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) session: SessionId,
    pub(super) parent: Option<u32>,
    pub(super) depth: u32,
    pub(super) name: String,
    pub(super) goal: String,
    pub(super) model: String,
    pub(super) state: State,
    /// The state of its goal that judges verify, if it has one.
    pub(super) goal_state: Option<GoalState>,
    pub(super) priority: Option<Priority>,
    pub(super) turns: u32,
    pub(super) turns_max: Option<u32>,
    pub(super) tokens: u64,
    /// `None` where the price of what it used isn't known.
    pub(super) cost: Option<MicroDollars>,
    pub(super) budget: Budget,
    pub(super) worked_ms: u64,
    /// How often it was restarted after a failure.
    pub(super) restarts: u32,
    pub(super) spawned_at: Timestamp,
    /// The open questions that it waits for, by name.
    pub(super) asks: Vec<String>,
}

impl Node {
    pub(super) const fn number(&self) -> u32 {
        self.session.agent
    }

    pub(super) const fn is_done(&self) -> bool {
        matches!(self.state, State::Done(_))
    }
}

/// What is known besides the run's own log.
pub(super) struct AgentContext<'a> {
    pub(super) openings: &'a Openings,
    pub(super) open: &'a [ApprovalQuestion],
    /// Whether the run has no outcome and no process holds it.
    pub(super) is_interrupted: bool,
    /// The run's elapsed time by now, as far as it is known.
    pub(super) elapsed: Elapsed,
}

/// The agents of a run, by number.
pub(super) fn nodes(state: &RunState, around: &AgentContext<'_>) -> Vec<Node> {
    state.agents_at(around.elapsed).map(|agent| node(state, &agent, around)).collect()
}

fn node(run: &RunState, agent: &AgentStatus<'_>, around: &AgentContext<'_>) -> Node {
    let number = agent.session.agent;
    let is_root = number == 0 && agent.parent.is_none();
    let opening = around.openings.get(&number);
    let asks = around.open.iter().filter(|question| question.session == agent.session);
    let asks = asks.map(ApprovalQuestion::short_id).collect::<Vec<_>>();
    let state = match stands(&agent.standing, !asks.is_empty()) {
        State::Working | State::Yields(_) if around.is_interrupted => State::Interrupted,
        state => state,
    };
    let worked_ms = if is_root { run.worked_ms(around.elapsed) } else { agent.worked_ms };
    let is_priced = run.policy().is_none_or(|policy| policy.agent.model.price.is_some());
    let of_its_policy =
        if is_root { Some(run.turns_max()) } else { opening.map(|opening| opening.turns_max) };
    let turns_max = agent.turns_max.or(of_its_policy);
    let turns_max = turns_max.filter(|most| *most != Limits::TURNS_UNLIMITED);
    Node {
        session: agent.session,
        parent: agent.parent.map(|parent| parent.agent),
        depth: agent.depth,
        name: if is_root { "root".to_owned() } else { agent.name.to_owned() },
        goal: agent.goal.map(str::to_owned).or(opening.map(|it| it.goal.clone())).unwrap_or_default(),
        model: opening.map(|opening| opening.model.clone()).unwrap_or_default(),
        state,
        goal_state: opening.and_then(|opening| opening.goal_state),
        priority: agent.priority,
        turns: agent.turns,
        turns_max,
        tokens: agent.tokens,
        cost: (is_priced || agent.cost.0 > 0 || agent.tokens == 0).then_some(agent.cost),
        budget: agent.budget,
        worked_ms,
        restarts: agent.restarts,
        spawned_at: agent.spawned_at,
        asks,
    }
}

fn stands(standing: &AgentState, asks: bool) -> State {
    let number = |to: &Option<SessionId>| to.map(|to| to.agent);
    match standing {
        AgentState::Queued => State::Queued,
        AgentState::Working if asks => State::Asks,
        AgentState::Working => State::Working,
        AgentState::Yielding { to } => State::Yields(number(to)),
        AgentState::Preempted { to } => State::Preempted(number(to)),
        AgentState::AwaitsRestart { attempt, attempts_max, failed, .. } => {
            State::Restarts { attempt: *attempt, attempts_max: *attempts_max, failed: failed.clone() }
        }
        AgentState::Suspended(outcome) => State::Suspended(outcome.clone()),
        AgentState::Finished(outcome) => State::Done(outcome.clone()),
    }
}

/// The slots of a run, for programs.
#[derive(Serialize)]
pub(super) struct Slots {
    held: usize,
    #[serde(flatten)]
    budget: SpawnBudget,
}

impl Slots {
    pub(super) fn of(state: &RunState) -> Self {
        let budget = state.policy().map(|policy| policy.spawn).unwrap_or_default();
        Self { held: state.slots_held(), budget }
    }
}

/// An agent for programs.
#[derive(Serialize)]
pub(super) struct AgentJson<'a> {
    agent: u32,
    session: SessionId,
    parent: Option<u32>,
    depth: u32,
    name: &'a str,
    goal: &'a str,
    model: &'a str,
    state: &'static str,
    /// The agent that it yields its slot to, or has yielded it to.
    #[serde(skip_serializing_if = "Option::is_none")]
    yields_to: Option<u32>,
    /// The state of its goal that judges verify; absent where it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    goal_state: Option<GoalState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'a Outcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome_text: Option<String>,
    priority: Option<Priority>,
    turns: u32,
    turns_max: Option<u32>,
    tokens: u64,
    cost_micro_usd: Option<MicroDollars>,
    budget: Budget,
    worked_ms: u64,
    /// How often it was restarted after a failure; absent if never.
    #[serde(skip_serializing_if = "Option::is_none")]
    restarts: Option<u32>,
    spawned_at_ms: Timestamp,
    approvals: &'a [String],
}

impl<'a> AgentJson<'a> {
    pub(super) fn of(node: &'a Node) -> Self {
        Self {
            agent: node.number(),
            session: node.session,
            parent: node.parent,
            depth: node.depth,
            name: &node.name,
            goal: &node.goal,
            model: &node.model,
            state: node.state.word(),
            yields_to: node.state.to(),
            goal_state: node.goal_state,
            outcome: node.state.outcome(),
            outcome_text: node.state.outcome().map(Outcome::to_string),
            priority: node.priority,
            turns: node.turns,
            turns_max: node.turns_max,
            tokens: node.tokens,
            cost_micro_usd: node.cost,
            budget: node.budget,
            worked_ms: node.worked_ms,
            restarts: Some(node.restarts).filter(|restarts| *restarts > 0),
            spawned_at_ms: node.spawned_at,
            approvals: &node.asks,
        }
    }
}
