//! What passed the model gateway: the model calls that programs of external agents made themselves.
//!
//! Whether calls were answered is in the logs of their agents; what they took is what the run's log charges for them, as in
//! [`Spending`](crate::Spending).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use provost_engine::RunState;
use provost_event::{
    ActorKey, AgentPolicy, BudgetCharged, BudgetEntry, Entry, ExternalCallEnd, LifecycleEntry, Metering,
    MicroDollars, ModelEntry, Purpose, RunId, Seq,
};
use provost_harness::{Backend, BackendError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::SpendingSums;
use crate::status::READ_MAX;

/// The model calls of programs that passed the gateway.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GatewayUse {
    /// By model, the most expensive first.
    pub models: Vec<GatewayModelUse>,
    /// The sum of all.
    pub total: GatewayCalls,
}

/// The calls of one model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GatewayModelUse {
    /// The model, as `provider/model`.
    pub model: String,
    /// Its calls.
    #[serde(flatten)]
    pub calls: GatewayCalls,
}

/// Calls by how they ended, and what they took.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GatewayCalls {
    /// Calls that were forwarded.
    pub forwarded: u64,
    /// Of them, those that got a complete answer.
    pub answered: u64,
    /// Those that the provider failed.
    pub failed: u64,
    /// Those that the program gave up before the answer was complete.
    pub aborted: u64,
    /// Those whose end isn't known: Provost was interrupted while they were open.
    pub unconfirmed: u64,
    /// Those that are open.
    pub open: u64,
    /// Calls that weren't forwarded, since the budget left no useful answer, or their price isn't known.
    pub refused: u64,
    /// What was charged.
    #[serde(flatten)]
    pub spent: SpendingSums,
}

/// The sums, while logs are read.
#[derive(Debug, Default)]
pub(crate) struct GatewayUseSums {
    models: BTreeMap<String, GatewayCalls>,
    total: GatewayCalls,
}

impl GatewayUseSums {
    /// Nothing yet; `None` for an agent whose calls don't pass the gateway.
    pub(crate) fn new(policy: &AgentPolicy) -> Option<Self> {
        is_metered(policy).then(Self::default)
    }

    /// Counts an entry of an agent's log.
    pub(crate) fn add(&mut self, entry: &Entry) {
        match entry {
            Entry::Model(ModelEntry::ExternalCalled(called)) => self.count(&called.of.model, |calls| {
                calls.forwarded += 1;
                calls.open += 1;
            }),
            Entry::Model(ModelEntry::ExternalRefused(refused)) => {
                self.count(&refused.of.model, |calls| calls.refused += 1);
            }
            Entry::Model(ModelEntry::ExternalAnswered(answered)) => self.count(&answered.model, |calls| {
                calls.open = calls.open.saturating_sub(1);
                let ended = match answered.end {
                    ExternalCallEnd::Answered => &mut calls.answered,
                    ExternalCallEnd::Aborted => &mut calls.aborted,
                    ExternalCallEnd::Failed { .. } => &mut calls.failed,
                    ExternalCallEnd::Lost => &mut calls.unconfirmed,
                };
                *ended += 1;
            }),
            _ => {}
        }
    }

    /// Counts what the run's log charges for a call.
    pub(crate) fn charge(&mut self, charged: &BudgetCharged) {
        if charged.purpose == Purpose::External {
            self.count(&charged.model, |calls| calls.spent.add(charged));
        }
    }

    fn count(&mut self, model: &str, change: impl Fn(&mut GatewayCalls)) {
        change(self.models.entry(model.to_owned()).or_default());
        change(&mut self.total);
    }

    /// What they come to.
    pub(crate) fn view(&self) -> GatewayUse {
        let models =
            self.models.iter().map(|(model, calls)| GatewayModelUse { model: model.clone(), calls: *calls });
        let mut models = models.collect::<Vec<_>>();
        models.sort_by_key(|used| {
            let cost: MicroDollars = used.calls.spent.cost_micro_usd;
            Reverse((cost, used.calls.spent.tokens()))
        });
        GatewayUse { models, total: self.total }
    }
}

impl GatewayUse {
    /// The calls of all agents of a run; `None` where no agent's calls pass the gateway.
    ///
    /// # Errors
    /// When a log can't be read.
    pub(crate) async fn read(
        backend: &dyn Backend,
        run: RunId,
        state: &RunState,
    ) -> Result<Option<Self>, BackendError> {
        let policies = state.policy().into_iter().flat_map(|policy| {
            [&policy.agent].into_iter().chain(policy.agents.iter().map(|agent| &agent.agent))
        });
        if !policies.into_iter().any(is_metered) {
            return Ok(None);
        }
        let mut sums = GatewayUseSums::default();
        for key in backend.actors(run).await? {
            if is_read(backend, key).await? {
                each(backend, key, &mut sums).await?;
            }
        }
        Ok(Some(sums.view()))
    }
}

fn is_metered(policy: &AgentPolicy) -> bool {
    policy.external.as_ref().is_some_and(|program| program.metering == Metering::Gateway)
}

/// Whether a log tells of calls: the run's, and that of an agent whose calls pass the gateway.
async fn is_read(backend: &dyn Backend, key: ActorKey) -> Result<bool, BackendError> {
    let ActorKey::Session(_) = key else { return Ok(true) };
    let first = backend.read(key, Seq::START, 1).await?;
    Ok(match first.first().map(|record| &record.entry) {
        Some(Entry::Lifecycle(LifecycleEntry::SessionStarted(started))) => is_metered(&started.policy),
        _ => false,
    })
}

async fn each(backend: &dyn Backend, key: ActorKey, sums: &mut GatewayUseSums) -> Result<(), BackendError> {
    let mut after = Seq::START;
    loop {
        let records = backend.read(key, after, READ_MAX).await?;
        let Some(last) = records.last() else { return Ok(()) };
        after = last.seq;
        for record in &records {
            match &record.entry {
                Entry::Budget(BudgetEntry::Charged(charged)) => sums.charge(charged),
                entry => sums.add(entry),
            }
        }
    }
}
