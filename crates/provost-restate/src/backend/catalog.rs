//! The list of runs: which ones, by the index; how each stands, by its own object.

use std::collections::{BTreeSet, HashMap};

use async_trait::async_trait;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use provost_event::RunId;
use provost_harness::{BackendError, Catalog, RunQuery, RunStatus, RunStatusFilter, RunSummary};

use super::{RestateBackend, lives};
use crate::api::Target;
use crate::engine::{ACTIVE_KEY, INDEX_KEY};
use crate::wire::{IndexEntry, IndexPhase, IndexQuery, RunRow, RunStanding, WorkerStanding};

/// Runs whose objects are read at the same time.
const READ_AT_ONCE: usize = 16;
/// Runs asked of the index at a time.
const PAGE_MAX: usize = 500;

impl RestateBackend {
    async fn indexed(&self, query: &IndexQuery) -> Result<Vec<IndexEntry>, BackendError> {
        let service = self.inner.names.index();
        let is_active = query.phases.iter().eq([&IndexPhase::Active]);
        let key = Some(if is_active { ACTIVE_KEY } else { INDEX_KEY });
        self.api().read(Target { service: &service, key, handler: "list" }, query).await
    }

    /// How the workers stand that hold any of these runs.
    async fn workers_of<'a>(
        &self,
        entries: impl Iterator<Item = &'a IndexEntry>,
    ) -> Result<HashMap<String, WorkerStanding>, BackendError> {
        let names = entries.filter_map(|entry| Some(entry.owner.as_ref()?.worker.clone()));
        let names = names.collect::<BTreeSet<_>>();
        let read = stream::iter(names).map(|name| async {
            let standing = self.worker_standing(&name).await?;
            Ok::<_, BackendError>((name, standing))
        });
        read.buffered(READ_AT_ONCE).try_collect().await
    }

    async fn summaries(&self, entries: Vec<IndexEntry>) -> Result<Vec<RunSummary>, BackendError> {
        let workers = self.workers_of(entries.iter()).await?;
        let runs = entries.iter().map(|entry| entry.run).collect::<Vec<_>>();
        let read = stream::iter(runs).map(|run| self.standing_of(run));
        let standings: Vec<RunStanding> = read.buffered(READ_AT_ONCE).try_collect().await?;
        Ok(standings.into_iter().filter_map(|standing| summary(standing, &workers)).collect())
    }

    /// Active runs that no living process works on and that this worker may take: those that were started first.
    /// None if this process is no worker.
    ///
    /// # Errors
    /// When the index can't be read.
    pub async fn waiting_runs(&self, max: usize) -> Result<Vec<RunId>, BackendError> {
        let Some(identity) = self.identity() else { return Ok(Vec::new()) };
        if self.inner.leases.is_draining() {
            return Ok(Vec::new());
        }
        let phases = BTreeSet::from([IndexPhase::Active]);
        let mut entries =
            self.indexed(&IndexQuery { phases, max: usize::MAX, ..IndexQuery::default() }).await?;
        entries.retain(|entry| entry.label.as_ref().is_none_or(|label| identity.serves.contains(label)));
        entries.retain(|entry| self.inner.leases.get(entry.run).is_none());
        let workers = self.workers_of(entries.iter()).await?;
        entries.retain(|entry| match &entry.owner {
            None => true,
            // It has no lease on it: its release was lost.
            Some(owner) if *owner == identity.owner => true,
            Some(owner) => !workers.get(&owner.worker).is_some_and(|standing| lives(owner, standing)),
        });
        Ok(entries.into_iter().rev().map(|entry| entry.run).take(max).collect())
    }
}

/// A run as a list shows it; `None` before it has started.
fn summary(standing: RunStanding, workers: &HashMap<String, WorkerStanding>) -> Option<RunSummary> {
    let RunStanding { row, owner, elapsed: known, .. } = standing;
    let RunRow {
        run,
        goal,
        workspace,
        model,
        outcome,
        started_at,
        updated_at,
        turns,
        tokens,
        cost,
        uncertain,
        elapsed,
    } = row?;
    let is_held =
        owner.is_some_and(|owner| workers.get(&owner.worker).is_some_and(|standing| lives(&owner, standing)));
    let elapsed = if outcome.is_some() { elapsed } else { elapsed.max(known) };
    let status = match outcome {
        Some(outcome) => RunStatus::Stopped(outcome),
        None if is_held => RunStatus::Running,
        None => RunStatus::Interrupted,
    };
    Some(RunSummary {
        run,
        goal,
        workspace,
        model,
        status,
        started_at,
        updated_at,
        turns,
        tokens,
        cost,
        uncertain,
        elapsed,
        damage: None,
    })
}

#[async_trait]
impl Catalog for RestateBackend {
    async fn list(&self, query: RunQuery) -> Result<Vec<RunSummary>, BackendError> {
        let RunQuery { filter, mut after, max } = query;
        let phases = match filter.status {
            RunStatusFilter::Any => BTreeSet::new(),
            RunStatusFilter::Running => BTreeSet::from([IndexPhase::Active]),
            RunStatusFilter::NotEnded => BTreeSet::from([IndexPhase::Active, IndexPhase::Suspended]),
        };
        let mut found = Vec::new();
        while found.len() < max {
            let asked = IndexQuery {
                after: after.map(|after| (after.started_at, after.run)),
                phases: phases.clone(),
                workspace: filter.workspace.clone(),
                prefix: None,
                max: max.min(PAGE_MAX),
            };
            let entries = self.indexed(&asked).await?;
            let is_last = entries.len() < asked.max;
            after = entries
                .last()
                .map(|entry| provost_harness::RunCursor { started_at: entry.started_at, run: entry.run });
            let runs = self.summaries(entries).await?.into_iter().filter(|run| filter.matches(run));
            found.extend(runs.take(max - found.len()));
            if is_last {
                break;
            }
        }
        Ok(found)
    }

    async fn get(&self, run: RunId) -> Result<Option<RunSummary>, BackendError> {
        let standing = self.standing_of(run).await?;
        let mut workers = HashMap::new();
        if let Some(owner) = &standing.owner {
            workers.insert(owner.worker.clone(), self.worker_standing(&owner.worker).await?);
        }
        Ok(summary(standing, &workers))
    }

    async fn find(&self, prefix: &str, max: usize) -> Result<Vec<RunSummary>, BackendError> {
        if prefix.is_empty() {
            return Ok(Vec::new());
        }
        let prefix = Some(prefix.to_owned());
        let entries = self.indexed(&IndexQuery { prefix, max, ..IndexQuery::default() }).await?;
        self.summaries(entries).await
    }
}
