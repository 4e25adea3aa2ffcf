//! Removing ended runs, with the data stored for them alone.

use std::collections::BTreeSet;

use provost_event::{
    ActorKey, BlobId, Entry, LifecycleEntry, RunId, Seq, SessionId, SessionStarted, Timestamp, ToolEntry,
};
use provost_harness::{BackendError, Catalog as _, Log as _, RunQuery, RunStatus, RunSummary};

use crate::EmbeddedBackend;
use crate::job::Job;

/// Entries read at a time.
const READ_MAX: usize = 1_000;

/// Which runs to remove. All given conditions must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PruneRequest {
    /// Only runs without changes since then.
    pub idle_since: Option<Timestamp>,
    /// All but this many of the newest runs.
    pub keep: Option<usize>,
    /// Also runs that could be resumed (suspended, interrupted, a used-up budget).
    pub suspended: bool,
}

/// Why a matching run is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptBecause {
    /// A process serves it.
    WorkedOn,
    /// It is suspended or interrupted.
    MayGoOn,
    /// This run's conversation begins with its entries.
    Forked(RunId),
    /// Its log is damaged: the rest of it may be needed.
    Damaged,
}

/// The runs to remove, and the matching runs that are kept.
#[derive(Debug, Clone, Default)]
pub struct PrunePlan {
    /// The runs to remove, the newest first.
    pub remove: Vec<RunSummary>,
    /// The runs that match the request and are kept.
    pub kept: Vec<(RunSummary, KeptBecause)>,
}

/// The result of a removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pruned {
    /// The runs.
    pub runs: Vec<RunId>,
    /// The number of removed outputs and pictures beside the logs, which no other run refers to.
    pub outputs: usize,
    /// Why possibly unused outputs are kept, if so.
    pub outputs_stay: Option<String>,
    /// Why the space isn't returned to the system yet, if so; later writes use it.
    pub space_stays: Option<String>,
}

/// Plans a removal. Changes nothing.
///
/// # Errors
/// When the runs can't be listed.
pub async fn plan_prune(backend: &EmbeddedBackend, request: PruneRequest) -> Result<PrunePlan, BackendError> {
    let listed = backend.list(RunQuery::newest(usize::MAX)).await?;
    let mut plan = PrunePlan::default();
    let mut stay = Vec::new();
    for (place, run) in listed.into_iter().enumerate() {
        let is_old = request.idle_since.is_none_or(|since| run.updated_at < since);
        let is_spare = request.keep.is_none_or(|keep| place >= keep);
        match because(&run, request) {
            _ if !is_old || !is_spare => stay.push(run.run),
            Some(because) => {
                stay.push(run.run);
                plan.kept.push((run, because));
            }
            None => plan.remove.push(run),
        }
    }
    // The runs that a kept run is a fork of are kept too, and so on.
    while let Some(fork) = stay.pop() {
        for base in bases(backend, fork).await? {
            if let Some(place) = plan.remove.iter().position(|run| run.run == base) {
                let run = plan.remove.remove(place);
                stay.push(base);
                plan.kept.push((run, KeptBecause::Forked(fork)));
            }
        }
    }
    Ok(plan)
}

fn because(run: &RunSummary, request: PruneRequest) -> Option<KeptBecause> {
    if run.damage.is_some() {
        return Some(KeptBecause::Damaged);
    }
    match &run.status {
        RunStatus::Running => Some(KeptBecause::WorkedOn),
        RunStatus::Interrupted if !request.suspended => Some(KeptBecause::MayGoOn),
        RunStatus::Stopped(outcome) if !outcome.is_final() && !request.suspended => {
            Some(KeptBecause::MayGoOn)
        }
        RunStatus::Interrupted | RunStatus::Stopped(_) => None,
    }
}

/// The runs whose entries the conversation of `fork` begins with.
async fn bases(backend: &EmbeddedBackend, fork: RunId) -> Result<BTreeSet<RunId>, BackendError> {
    let first = backend.read(SessionId::root(fork).into(), Seq::START, 1).await?;
    let Some(first) = first.first() else { return Ok(BTreeSet::new()) };
    let Entry::Lifecycle(LifecycleEntry::SessionStarted(SessionStarted { fork: Some(fork), .. })) =
        &first.entry
    else {
        return Ok(BTreeSet::new());
    };
    Ok(fork.bases.iter().map(|base| base.session.run).collect())
}

/// Removes what was planned: each run completely or not at all. Runs that are served by now are kept. Then removes
/// the outputs that no run refers to any more and returns the space, if no run is served.
///
/// # Errors
/// When the store can't be read or written; the runs removed before stay removed.
pub async fn prune(backend: &EmbeddedBackend, plan: PrunePlan) -> Result<Pruned, BackendError> {
    let mut pruned = Pruned { runs: Vec::new(), outputs: 0, outputs_stay: None, space_stays: None };
    for run in plan.remove {
        let run = run.run;
        match backend.ask(|reply| Job::Remove { run, reply }).await {
            Ok(()) => pruned.runs.push(run),
            Err(BackendError::Held { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    if pruned.runs.is_empty() {
        return Ok(pruned);
    }
    if let Some(run) = worked_on(backend).await? {
        let why = format!("run {run} is being worked on");
        pruned.outputs_stay = Some(why.clone());
        pruned.space_stays = Some(why);
        return Ok(pruned);
    }
    match unused_outputs(backend).await {
        Ok(names) => {
            pruned.outputs = names.len();
            backend.ask(|reply| Job::RemoveBlobs { names, reply }).await?;
        }
        Err(error @ (BackendError::Unreadable { .. } | BackendError::Storage { .. })) => {
            pruned.outputs_stay = Some(error.to_string());
        }
        Err(error) => return Err(error),
    }
    if let Err(error) = backend.ask(|reply| Job::Shrink { reply }).await {
        pruned.space_stays = Some(error.to_string());
    }
    Ok(pruned)
}

async fn worked_on(backend: &EmbeddedBackend) -> Result<Option<RunId>, BackendError> {
    let listed = backend.list(RunQuery::newest(usize::MAX)).await?;
    let leases = backend.leases();
    for run in listed {
        // Suspended runs too: a process that has just acquired the lease is about to continue the run.
        if run.status == RunStatus::Running || leases.is_claimed(run.run)? {
            return Ok(Some(run.run));
        }
    }
    Ok(None)
}

/// The outputs that no log refers to. Outputs added during this search count as referenced.
async fn unused_outputs(backend: &EmbeddedBackend) -> Result<Vec<BlobId>, BackendError> {
    let mut names = backend.blobs().await?.into_iter().collect::<BTreeSet<_>>();
    for run in backend.list(RunQuery::newest(usize::MAX)).await? {
        for actor in backend.actors(run.run).await? {
            forget_used(backend, actor, &mut names).await?;
        }
    }
    Ok(names.into_iter().collect())
}

async fn forget_used(
    backend: &EmbeddedBackend,
    actor: ActorKey,
    names: &mut BTreeSet<BlobId>,
) -> Result<(), BackendError> {
    let mut after = Seq::START;
    loop {
        let records = backend.read(actor, after, READ_MAX).await?;
        let Some(last) = records.last() else { return Ok(()) };
        after = last.seq;
        for output in records.iter().flat_map(|record| outputs_of(&record.entry)) {
            names.remove(&output);
        }
    }
}

/// The bodies that an entry refers to: outputs, pictures, a workspace's files.
#[must_use]
pub fn outputs_of(entry: &Entry) -> Vec<BlobId> {
    let whole = match entry {
        Entry::Tool(ToolEntry::Finished(finished)) => finished.whole.clone(),
        Entry::Lifecycle(LifecycleEntry::RunStarted(started)) => {
            started.baseline.as_ref().and_then(|baseline| baseline.pack.clone())
        }
        _ => None,
    };
    whole.into_iter().chain(entry.images().into_iter().map(|image| image.blob.clone())).collect()
}
