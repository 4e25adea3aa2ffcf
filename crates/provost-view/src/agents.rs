//! The agents of a run: status and usage, with limits.

use std::collections::HashMap;

use provost_engine::{Actor, AgentState, AgentStatus, RunState};
use provost_event::{
    Budget, Elapsed, Entry, GoalState, LifecycleEntry, Limits, MicroDollars, Outcome, Priority, Record, Seq,
    SessionId, Timestamp,
};
use provost_harness::{Backend, BackendError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ApprovalQuestion;

/// Of more agents than these, those whose work is over are shown without their goals, unless all are asked for.
const ENDED_READ_MAX: usize = 200;

/// Facts from an agent's own first entry, which the run's log doesn't have.
#[derive(Debug, Clone, Default)]
pub struct AgentOpening {
    goal: String,
    turns_max: u32,
    model: String,
    /// The state of its goal that judges verify, if it has one.
    pub goal_state: Option<GoalState>,
}

impl AgentOpening {
    /// The facts of an agent's first log entry; `None` for any other entry.
    #[must_use]
    pub fn of(record: &Record) -> Option<Self> {
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
        let goal_state = goal_state_of(&backend.state(session.into()).await?);
        Ok(Self { goal_state, ..self })
    }
}

/// The state of an agent's goal, if it has one.
#[must_use]
pub fn goal_state_of(agent: &Actor) -> Option<GoalState> {
    match agent {
        Actor::Session(state) => state.goal().map(|goal| goal.state),
        Actor::Run(_) => None,
    }
}

/// The openings of agents, by number.
pub type AgentOpenings = HashMap<u32, AgentOpening>;

/// AgentsRead agents' openings are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentsRead {
    /// Those that matter at first sight.
    Shown,
    /// Those of all agents.
    All,
}

/// Reads the first entries of a run's agents, and the states of their goals.
///
/// # Errors
/// When a log can't be read.
pub async fn agent_openings(
    backend: &dyn Backend,
    state: &RunState,
    which: AgentsRead,
) -> Result<AgentOpenings, BackendError> {
    let has_all = which == AgentsRead::All || state.agents().count() <= ENDED_READ_MAX;
    let mut found = AgentOpenings::new();
    for agent in state.agents() {
        let wanted = match agent.standing {
            AgentState::Queued => false,
            AgentState::Finished(_) => has_all,
            _ => true,
        };
        if wanted {
            let first = backend.read(agent.session.into(), Seq::START, 1).await?;
            if let Some(opening) = first.first().and_then(|record| AgentOpening::of(record)) {
                found.insert(agent.session.agent, opening.up_to_date(backend, agent.session).await?);
            }
        }
    }
    Ok(found)
}

/// The status of an agent, as the member `state` has it, with what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state")]
pub enum RunAgentState {
    /// It waits for a slot.
    #[serde(rename = "queued")]
    Queued,
    /// It works, or waits for its sub-agents.
    #[serde(rename = "working")]
    Working,
    /// It was at work when the run's process was killed; none holds the run now.
    #[serde(rename = "interrupted")]
    Interrupted,
    /// One of its calls needs approval.
    #[serde(rename = "needs approval")]
    Asks,
    /// It works until its next check, and then yields its slot.
    #[serde(rename = "yielding")]
    Yields {
        /// The agent that gets the slot; absent if none is determined.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        yields_to: Option<u32>,
    },
    /// It has yielded its slot.
    #[serde(rename = "preempted")]
    Preempted {
        /// The agent that got the slot; absent if none is determined.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        yields_to: Option<u32>,
    },
    /// It has failed, and is restarted.
    #[serde(rename = "waiting to restart")]
    Restarts {
        /// The number of this restart in a row, from 1.
        attempt: u32,
        /// Maximum restarts in a row.
        attempts_max: u32,
        /// The failure.
        outcome: Outcome,
    },
    /// It is suspended until a person acts.
    #[serde(rename = "suspended")]
    Suspended {
        /// Why.
        outcome: Outcome,
    },
    /// Its work is over.
    #[serde(rename = "done")]
    Done {
        /// How it ended.
        outcome: Outcome,
    },
}

impl RunAgentState {
    /// In one word, as the member `state` has it.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Working => "working",
            Self::Interrupted => "interrupted",
            Self::Asks => "needs approval",
            Self::Yields { .. } => "yielding",
            Self::Preempted { .. } => "preempted",
            Self::Restarts { .. } => "waiting to restart",
            Self::Suspended { .. } => "suspended",
            Self::Done { .. } => "done",
        }
    }

    /// Whether the agent has one of the run's slots.
    #[must_use]
    pub const fn holds_slot(&self) -> bool {
        matches!(self, Self::Working | Self::Asks | Self::Yields { .. })
    }

    /// The agent that it yields its slot to, or has yielded it to.
    #[must_use]
    pub const fn to(&self) -> Option<u32> {
        match self {
            Self::Yields { yields_to } | Self::Preempted { yields_to } => *yields_to,
            Self::Queued
            | Self::Working
            | Self::Interrupted
            | Self::Asks
            | Self::Restarts { .. }
            | Self::Suspended { .. }
            | Self::Done { .. } => None,
        }
    }

    /// Why it is suspended, has failed or has ended.
    #[must_use]
    pub const fn outcome(&self) -> Option<&Outcome> {
        match self {
            Self::Restarts { outcome, .. } | Self::Suspended { outcome } | Self::Done { outcome } => {
                Some(outcome)
            }
            Self::Queued
            | Self::Working
            | Self::Interrupted
            | Self::Asks
            | Self::Yields { .. }
            | Self::Preempted { .. } => None,
        }
    }
}

/// An agent of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunAgent {
    /// Its number; 0 is the root.
    pub agent: u32,
    /// Its session.
    pub session: SessionId,
    /// The number of the agent that started it; null if none did.
    pub parent: Option<u32>,
    /// How many agents are above it.
    pub depth: u32,
    /// Its name: `root` for the root.
    pub name: String,
    /// What it is to do.
    pub goal: String,
    /// Its model; empty before it has begun.
    pub model: String,
    /// Its status.
    #[serde(flatten)]
    pub state: RunAgentState,
    /// The outcome in words; absent where its state has no outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome_text: Option<String>,
    /// The state of its goal that judges verify; absent where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal_state: Option<GoalState>,
    /// Its priority for a slot; null once its work is over.
    pub priority: Option<Priority>,
    /// Turns that it took itself.
    pub turns: u32,
    /// Maximum of `turns`; null if unlimited or not known yet.
    pub turns_max: Option<u32>,
    /// Tokens charged for it and the agents below it.
    pub tokens: u64,
    /// Their cost; null where their price isn't known.
    #[serde(rename = "cost_micro_usd")]
    pub cost: Option<MicroDollars>,
    /// The part of the run's budget for it and the agents below it.
    pub budget: Budget,
    /// How long it has worked.
    pub worked_ms: u64,
    /// How often it was restarted after a failure; absent if never.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub restarts: u32,
    /// When it was requested.
    #[serde(rename = "spawned_at_ms")]
    pub spawned_at: Timestamp,
    /// The open questions that it waits for, by their short names.
    #[serde(rename = "approvals")]
    pub asks: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl RunAgent {
    /// Its number.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.agent
    }

    /// Whether its work is over.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        matches!(self.state, RunAgentState::Done { .. })
    }
}

/// What is known besides the run's own log.
pub(crate) struct AgentContext<'a> {
    pub openings: &'a AgentOpenings,
    pub open: &'a [ApprovalQuestion],
    /// Whether the run has no outcome and no process holds it.
    pub is_interrupted: bool,
    /// The run's elapsed time by now, as far as it is known.
    pub elapsed: Elapsed,
}

/// The agents of a run, by number.
pub(crate) fn agents_of(state: &RunState, around: &AgentContext<'_>) -> Vec<RunAgent> {
    state.agents_at(around.elapsed).map(|agent| agent_of(state, &agent, around)).collect()
}

fn agent_of(run: &RunState, agent: &AgentStatus<'_>, around: &AgentContext<'_>) -> RunAgent {
    let number = agent.session.agent;
    let is_root = number == 0 && agent.parent.is_none();
    let opening = around.openings.get(&number);
    let asks = around.open.iter().filter(|question| question.session == agent.session);
    let asks = asks.map(ApprovalQuestion::short_id).collect::<Vec<_>>();
    let state = match stands(&agent.standing, !asks.is_empty()) {
        RunAgentState::Working | RunAgentState::Yields { .. } if around.is_interrupted => {
            RunAgentState::Interrupted
        }
        state => state,
    };
    let worked_ms = if is_root { run.worked_ms(around.elapsed) } else { agent.worked_ms };
    let is_priced = run.policy().is_none_or(|policy| policy.agent.model.price.is_some());
    let of_its_policy =
        if is_root { Some(run.turns_max()) } else { opening.map(|opening| opening.turns_max) };
    let turns_max = agent.turns_max.or(of_its_policy);
    let turns_max = turns_max.filter(|most| *most != Limits::TURNS_UNLIMITED);
    RunAgent {
        agent: number,
        session: agent.session,
        parent: agent.parent.map(|parent| parent.agent),
        depth: agent.depth,
        name: if is_root { "root".to_owned() } else { agent.name.to_owned() },
        goal: agent.goal.map(str::to_owned).or(opening.map(|it| it.goal.clone())).unwrap_or_default(),
        model: opening.map(|opening| opening.model.clone()).unwrap_or_default(),
        outcome_text: state.outcome().map(Outcome::to_string),
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

fn stands(standing: &AgentState, asks: bool) -> RunAgentState {
    let number = |to: &Option<SessionId>| to.map(|to| to.agent);
    match standing {
        AgentState::Queued => RunAgentState::Queued,
        AgentState::Working if asks => RunAgentState::Asks,
        AgentState::Working => RunAgentState::Working,
        AgentState::Yielding { to } => RunAgentState::Yields { yields_to: number(to) },
        AgentState::Preempted { to } => RunAgentState::Preempted { yields_to: number(to) },
        AgentState::AwaitsRestart { attempt, attempts_max, failed, .. } => RunAgentState::Restarts {
            attempt: *attempt,
            attempts_max: *attempts_max,
            outcome: failed.clone(),
        },
        AgentState::Suspended(outcome) => RunAgentState::Suspended { outcome: outcome.clone() },
        AgentState::Finished(outcome) => RunAgentState::Done { outcome: outcome.clone() },
    }
}
