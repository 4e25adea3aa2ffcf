//! Reading the groups again and again: what hasn't changed isn't read twice.

use std::collections::BTreeMap;

use futures::{StreamExt as _, stream};
use provost_event::{RunId, Timestamp};
use provost_harness::{Backend, BackendError, RunPosition, RunStatus, RunSummary};

use super::{GroupedRun, GroupedRuns, summaries};
use crate::RUNS_AT_ONCE;

/// Reads the groups of runs, and keeps what it has read of each until its log grows.
#[derive(Debug, Default)]
pub struct KeptGroups {
    runs: BTreeMap<RunId, KeptRun>,
}

#[derive(Debug)]
struct KeptRun {
    summary: RunSummary,
    head: RunPosition,
    grouped: GroupedRun,
}

impl KeptGroups {
    /// The groups as of `now`, as [`GroupedRuns::read`] reads them: of runs whose logs are as they were only the
    /// group is found again, unless they wait for a provider.
    ///
    /// # Errors
    /// When the runs can't be listed.
    pub async fn read(&mut self, backend: &dyn Backend, now: Timestamp) -> Result<GroupedRuns, BackendError> {
        let summaries = summaries(backend).await?;
        let mut before = std::mem::take(&mut self.runs);
        let read = stream::iter(summaries).map(|(run, summary)| {
            let before = before.remove(&run);
            async move { (run, KeptRun::read(backend, before, summary, now).await) }
        });
        self.runs = read.buffered(RUNS_AT_ONCE).collect().await;
        Ok(GroupedRuns::of(self.runs.values().map(|kept| kept.grouped.clone()).collect()))
    }
}

impl KeptRun {
    async fn read(backend: &dyn Backend, before: Option<Self>, summary: RunSummary, now: Timestamp) -> Self {
        let is_over = matches!(&summary.status, RunStatus::Stopped(outcome) if outcome.is_final());
        // The logs of one that has ended don't grow without its summary.
        let head = if is_over {
            RunPosition::START
        } else {
            backend.run_head(summary.run).await.unwrap_or(RunPosition::START)
        };
        let may_stay = |kept: &Self| {
            kept.head == head
                && is_same(&kept.summary, &summary)
                && kept.grouped.item.awaits_provider.is_none()
        };
        let grouped = match before.filter(may_stay) {
            Some(kept) => kept.grouped.at(&summary, now),
            None => GroupedRun::read(backend, &summary, now).await,
        };
        Self { summary, head, grouped }
    }
}

/// Whether nothing differs but the time.
fn is_same(before: &RunSummary, now: &RunSummary) -> bool {
    RunSummary { elapsed: now.elapsed, ..before.clone() } == *now
}
