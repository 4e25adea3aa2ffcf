//! The list of runs.

use std::path::PathBuf;

use provost_engine::{RunState, StepStatus};
use provost_event::{EffectId, Elapsed, Metering, MicroDollars, Outcome, RunId, Timestamp, Verification};
use provost_harness::{Backend, RunStatus, RunSummary, ServiceRecord, ServiceState};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::approvals::questions_with;
use crate::{ApprovalQuestion, AwaitedProvider, CurrentStatus, ProviderWait, ViewVersion, run_state};

/// A run in the list of runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunListItem {
    /// The version of the view.
    pub v: ViewVersion,
    /// Its id.
    pub run: RunId,
    /// In a word or two: `running`, `waits` (for its provider), `suspended`, `interrupted`, `damaged`, `needs approval`,
    /// what its program needs (`needs input`, `needs a password`, `needs a login`, `stalled`), or the outcome
    /// (`completed`, `failed`, `paused`, …); with `, needs approval` where it also waits for an answer.
    pub status: String,
    /// Why it is suspended or has ended; null while it is running or interrupted.
    pub outcome: Option<Outcome>,
    /// The provider that it waits for, or waited for when its process was killed; absent where it doesn't.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaits_provider: Option<AwaitedProvider>,
    /// `passed`, `none` or `ignored`; null where it isn't completed.
    pub verification: Option<String>,
    /// Its goal.
    pub goal: String,
    /// The folder that it was started in: its root agent's workspace, unless its files are in a remote repository.
    pub workspace: PathBuf,
    /// Its root agent's model.
    pub model: String,
    /// When it was started.
    pub started_at_ms: Timestamp,
    /// When it last changed.
    pub updated_at_ms: Timestamp,
    /// How long processes have held it, as far as they have noted.
    pub elapsed_ms: Elapsed,
    /// Turns of all its agents.
    pub turns: u32,
    /// Tokens of all kinds.
    pub tokens: u64,
    /// The cost, as far as prices are known.
    pub cost_micro_usd: MicroDollars,
    /// `partial` where money is limited, and a program among its agents calls models past the gateway: what that costs isn't
    /// known, and the limit doesn't bind it. Absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money: Option<String>,
    /// The tokens of `tokens` that no provider has reported: estimated, or lost to a crash.
    pub uncertain_tokens: u64,
    /// The same of `cost_micro_usd`.
    pub uncertain_cost_micro_usd: MicroDollars,
    /// Tokens reserved for model calls without a report yet: not included in `tokens`. 0 for a run that has ended.
    pub reserved_tokens: u64,
    /// The open questions, by their names.
    pub approvals: Vec<EffectId>,
    /// The names of its services that run; absent where none does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<String>,
    /// The steps of its workflow by status; absent without a workflow, and for one that has passed all its steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_counts: Option<StepCounts>,
    /// The damage of its log: then the other members show the state before it. Absent if none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
}

/// What `money` says of a run that its limit binds only in part.
const PARTIAL: &str = "partial";

/// Whether money is limited, and doesn't bind a program among the run's agents: it calls models past the gateway.
#[must_use]
pub fn is_money_partial(state: &RunState) -> bool {
    let agents = state
        .policy()
        .into_iter()
        .flat_map(|policy| [&policy.agent].into_iter().chain(policy.agents.iter().map(|agent| &agent.agent)));
    let mut programs = agents.filter_map(|agent| agent.external.as_ref());
    state.budget().money.is_some() && programs.any(|program| program.metering == Metering::Unmetered)
}

/// The steps of a workflow by status. Those that are neither done nor failed nor skipped are at work or yet to begin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepCounts {
    /// All steps.
    pub all: u32,
    /// Those that are done.
    pub done: u32,
    /// Those that have failed, or wait for a decision on their failure.
    pub failed: u32,
    /// Those that were skipped.
    pub skipped: u32,
}

impl StepCounts {
    /// Those of a run; `None` without a workflow.
    #[must_use]
    pub fn of(state: &RunState) -> Option<Self> {
        let mut counts = Self::default();
        for (_, status) in state.flow()?.iter() {
            counts.all += 1;
            match status {
                StepStatus::Done => counts.done += 1,
                StepStatus::Failed(_) | StepStatus::Asks(_) => counts.failed += 1,
                StepStatus::Skipped => counts.skipped += 1,
                StepStatus::Waiting | StepStatus::Ready | StepStatus::AtWork(_) | StepStatus::Later(_) => {}
            }
        }
        Some(counts)
    }
}

/// A run in a list, with what only its logs tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedRun {
    /// For programs.
    pub item: RunListItem,
    /// The provider that it waits for, if it does.
    pub provider: Option<ProviderWait>,
}

impl ListedRun {
    /// Reads what the list of runs doesn't have, as of `now`. A log that can't be read doesn't keep a run out of the
    /// list.
    pub async fn read(backend: &dyn Backend, run: &RunSummary, now: Timestamp) -> Self {
        // The list has all that is shown of a run that ended, except for what became of a workflow's steps.
        let is_external = crate::status::is_external(run);
        let is_told = !is_external
            && matches!(&run.status, RunStatus::Stopped(outcome) if outcome.is_final() && outcome.verdict_not_passed().is_none());
        let state = if is_told { None } else { run_state(backend, run.run).await.unwrap_or_default() };
        let open = match &state {
            Some(state) => questions_with(backend, (run, state)).await,
            None => Vec::new(),
        };
        let status = match &state {
            Some(state) => CurrentStatus::with_questions(backend, (run, state), &open, now).await,
            None => CurrentStatus {
                word: crate::status_word(run, &open, crate::terminal_wait(backend, run).await),
                provider: None,
            },
        };
        let item = RunListItem::new(run, &open, &status);
        let item = match &state {
            Some(state) => item.with_state(state),
            None => item,
        };
        Self { item, provider: status.provider }
    }
}

impl RunListItem {
    /// A run with these open questions and this status, without what only its own log tells
    /// ([`RunListItem::with_state`]).
    #[must_use]
    pub fn new(run: &RunSummary, open: &[ApprovalQuestion], status: &CurrentStatus) -> Self {
        let outcome = match &run.status {
            RunStatus::Stopped(outcome) => Some(outcome),
            RunStatus::Running | RunStatus::Interrupted => None,
        };
        Self {
            v: ViewVersion,
            run: run.run,
            status: status.word.clone(),
            outcome: outcome.cloned(),
            awaits_provider: status.provider.as_ref().map(ProviderWait::view),
            verification: outcome.and_then(Outcome::verification).map(Verification::word).map(str::to_owned),
            goal: run.goal.clone(),
            workspace: run.workspace.clone(),
            model: run.model.clone(),
            started_at_ms: run.started_at,
            updated_at_ms: run.updated_at,
            elapsed_ms: run.elapsed,
            turns: run.turns,
            tokens: run.tokens,
            cost_micro_usd: run.cost,
            money: None,
            uncertain_tokens: run.uncertain.tokens,
            uncertain_cost_micro_usd: run.uncertain.cost,
            reserved_tokens: 0,
            approvals: open.iter().map(ApprovalQuestion::id).collect(),
            services: Vec::new(),
            step_counts: None,
            damage: run.damage.clone(),
        }
    }

    /// The same, with those of `services` that run.
    #[must_use]
    pub fn with_services(self, services: &[ServiceRecord]) -> Self {
        let runs = |service: &&ServiceRecord| {
            service.session.run == self.run && service.state() == ServiceState::Running
        };
        let services = services.iter().filter(runs).map(|service| service.name.clone()).collect();
        Self { services, ..self }
    }

    /// The same, with what the run's own log tells.
    #[must_use]
    pub fn with_state(self, state: &RunState) -> Self {
        let ledger = state.ledger();
        let uncertain = ledger.uncertain();
        Self {
            uncertain_tokens: uncertain.tokens,
            uncertain_cost_micro_usd: uncertain.cost,
            reserved_tokens: ledger.run().tokens_set_aside,
            step_counts: StepCounts::of(state),
            money: is_money_partial(state).then(|| PARTIAL.to_owned()),
            ..self
        }
    }
}
