//! A run with all its agents.

use provost_engine::RunState;
use provost_event::{
    Budget, Forked, Outcome, PauseReason, RunId, SessionId, SpawnBudget, Timestamp, Verdict,
};
use provost_harness::{Backend, BackendError, RunStatus, RunSummary, ServiceRecord, Unheld};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agents::{AgentContext, agents_of};
use crate::steps::steps_of;
use crate::{
    AgentGoal, AgentOpenings, AgentsRead, Approval, ApprovalQuestion, CurrentStatus, GatewayUse, RunAgent,
    RunFacts, RunListItem, Segment, ServiceView, WorkflowStep, agent_openings, questions_of, run_state,
    segments_of,
};

/// A run with all that is known of it. The lines of `show -f --json` have neither `gateway`, `goals`, `segments`
/// and `pruned_forks` nor what [`RunFacts`] has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunDetails {
    /// The same as in the list of runs.
    #[serde(flatten)]
    pub item: RunListItem,
    /// Why it is suspended or has ended, in words; null otherwise.
    pub outcome_text: Option<String>,
    /// Who works on it, in words; absent where no process does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<String>,
    /// Why no worker of the engine works on it, or why the last one gave it up; absent without an engine, where one
    /// works on it, and where it was suspended or has ended for another reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unheld: Option<String>,
    /// The root agent's own verdict; null without one.
    pub verdict: Option<Verdict>,
    /// What it may use.
    pub budget: Budget,
    /// How long it was worked on, as far as the process that holds it has noted.
    pub active_ms: u64,
    /// The open questions, in full.
    pub waits_for: Vec<Approval>,
    /// Its slots for agents.
    pub slots: RunSlots,
    /// Its agents and the steps of its workflow.
    #[serde(flatten)]
    pub tree: RunTree,
    /// From a start or resume to its outcome each, with what was spent in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<Segment>,
    /// What it is a fork of; absent where it is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<Forked>,
    /// Its services, those that have ended too, as far as they are remembered; absent where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept_services: Vec<ServiceView>,
    /// The runs that were forked from it; absent where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forks: Vec<Forked>,
    /// Those of them that aren't in the store any more; absent where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pruned_forks: Vec<RunId>,
    /// What judges verify, of all agents that have a goal; absent where none has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goals: Vec<AgentGoal>,
    /// The model calls of programs that passed the gateway; absent where no agent's calls pass it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<GatewayUse>,
    /// What the root agent's log tells.
    #[serde(flatten)]
    pub facts: Option<RunFacts>,
}

/// The slots of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunSlots {
    /// Those in use.
    pub held: usize,
    /// How many there are, and how they are given.
    #[serde(flatten)]
    pub budget: SpawnBudget,
}

/// The agents of a run, and the steps that its topmost agents do.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunTree {
    /// The agents, by number.
    pub agents: Vec<RunAgent>,
    /// The steps of its workflow, in the order in which they were written; absent where it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<WorkflowStep>,
}

impl RunTree {
    /// Whether there is more than the one agent that a run begins with.
    #[must_use]
    pub fn has_others(&self) -> bool {
        !self.steps.is_empty() || self.agents.iter().any(|agent| agent.agent > 0)
    }

    /// The tree of the run with this summary and these open questions, as of `now`.
    #[must_use]
    pub fn new(
        (summary, state): (&RunSummary, &RunState),
        openings: &AgentOpenings,
        open: &[ApprovalQuestion],
        now: Timestamp,
    ) -> Self {
        let is_interrupted = summary.status == RunStatus::Interrupted;
        let agents =
            agents_of(state, &AgentContext { openings, open, is_interrupted, elapsed: summary.elapsed });
        let now = matches!(summary.status, RunStatus::Running).then_some(now);
        let steps = steps_of(state, &agents, now);
        Self { agents, steps }
    }
}

impl RunDetails {
    /// The goal of the root agent that judges verify; `None` without one, or where goals weren't read.
    #[must_use]
    pub fn root_goal(&self) -> Option<&AgentGoal> {
        self.goals.iter().find(|goal| goal.agent == 0)
    }

    /// Reads a run with all that its logs tell, as of `now`; `None` if there is no such run, or its log is empty.
    ///
    /// # Errors
    /// When a log can't be read.
    pub async fn read(
        backend: &dyn Backend,
        run: RunId,
        which: AgentsRead,
        now: Timestamp,
    ) -> Result<Option<Self>, BackendError> {
        let Some(summary) = backend.get(run).await? else { return Ok(None) };
        let Some(state) = run_state(backend, run).await? else { return Ok(None) };
        let open = questions_of(backend, &summary).await?;
        let current = CurrentStatus::with_questions(backend, (&summary, &state), &open, now).await;
        let openings = agent_openings(backend, &state, which).await?;
        let tree = RunTree::new((&summary, &state), &openings, &open, now);
        let details = Self::new((&summary, &state), &open, &current, tree);
        Ok(Some(details.with_logs(backend, &state, which).await?))
    }

    /// A run with these open questions, this status and this tree, without what only other logs tell
    /// ([`RunDetails::with_logs`]).
    #[must_use]
    pub fn new(
        (summary, state): (&RunSummary, &RunState),
        open: &[ApprovalQuestion],
        current: &CurrentStatus,
        tree: RunTree,
    ) -> Self {
        let budget = state.policy().map(|policy| policy.spawn).unwrap_or_default();
        Self {
            item: RunListItem::new(summary, open, current).with_state(state),
            waits_for: open
                .iter()
                .map(|question| Approval::new(summary, question.clone(), &current.word))
                .collect(),
            outcome_text: state.outcome().map(Outcome::to_string),
            held_by: None,
            unheld: None,
            verdict: match state.outcome() {
                Some(Outcome::Completed { verdict, .. }) => *verdict,
                _ => None,
            },
            budget: state.budget(),
            active_ms: state.worked_ms(summary.elapsed),
            slots: RunSlots { held: state.slots_held(), budget },
            tree,
            segments: Vec::new(),
            forked_from: state.forked_from().cloned(),
            kept_services: Vec::new(),
            forks: state.forks().to_vec(),
            pruned_forks: Vec::new(),
            goals: Vec::new(),
            gateway: None,
            facts: None,
        }
    }

    /// The same, with those of `services` that are the run's.
    #[must_use]
    pub fn with_services(self, services: &[ServiceRecord]) -> Self {
        let own = services.iter().filter(|service| service.session.run == self.item.run);
        let kept_services = own.map(ServiceView::new).collect();
        Self { item: self.item.with_services(services), kept_services, ..self }
    }

    /// The same, with what the run's log and its agents' logs tell: goals of all agents, or of the root alone.
    ///
    /// # Errors
    /// When a log can't be read.
    pub async fn with_logs(
        self,
        backend: &dyn Backend,
        state: &RunState,
        read: AgentsRead,
    ) -> Result<Self, BackendError> {
        let run = self.item.run;
        let goals = match read {
            AgentsRead::All => AgentGoal::all(backend, state).await?,
            AgentsRead::Shown => AgentGoal::read(backend, SessionId::root(run)).await?.into_iter().collect(),
        };
        let mut facts = RunFacts::read(backend, run, state).await?;
        if self.item.status == "interrupted" {
            facts.lose_program();
        }
        let (held_by, unheld) = holder_of(backend, run, state.outcome()).await?;
        Ok(Self {
            held_by,
            unheld,
            segments: segments_of(backend, run).await?,
            pruned_forks: pruned_forks(backend, state).await?,
            goals,
            gateway: GatewayUse::read(backend, run, state).await?,
            facts: Some(facts),
            ..self
        })
    }
}

/// Who works on a run, and why no worker of the engine does, both in words.
async fn holder_of(
    backend: &dyn Backend,
    run: RunId,
    outcome: Option<&Outcome>,
) -> Result<(Option<String>, Option<String>), BackendError> {
    match outcome {
        None => {}
        Some(Outcome::Paused { why: PauseReason::CrashLoop { .. } }) => {
            return Ok((None, backend.unheld(run).await?.and_then(|unheld| unheld.failed)));
        }
        Some(_) => return Ok((None, None)),
    }
    if let Some(holder) = backend.holder(run).await? {
        return Ok((Some(holder.by), None));
    }
    let unheld = backend.unheld(run).await?.map(|Unheld { label, failed }| match (failed, label) {
        (Some(failed), _) => failed,
        (None, Some(label)) => format!("it waits for a worker that serves `{label}`"),
        (None, None) => "it waits for a worker".to_owned(),
    });
    Ok((None, unheld))
}

/// The forks of a run that aren't in the store any more.
async fn pruned_forks(backend: &dyn Backend, state: &RunState) -> Result<Vec<RunId>, BackendError> {
    let mut pruned = Vec::new();
    for fork in state.forks() {
        if backend.get(fork.to).await?.is_none() {
            pruned.push(fork.to);
        }
    }
    Ok(pruned)
}
