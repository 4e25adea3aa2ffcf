//! Waiting for a run.

use std::time::Duration;

use futures::StreamExt as _;
use provost_event::RunId;
use provost_harness::{Backend, BackendError, RunStatus};
use provost_view::RunListItem;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::calls::item;

/// How long a call may wait: clients give up after a minute.
pub(crate) const SECONDS_MAX: u64 = 55;
/// How often it is looked whether a run's process is gone: nothing tells of that.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Waits until the status of a run is another than `known`, or it isn't worked on; `None` if there is no such run.
///
/// # Errors
/// When it can't be read.
pub(crate) async fn wait(
    backend: &dyn Backend,
    run: RunId,
    known: &str,
    seconds: u64,
) -> Result<Option<RunListItem>, BackendError> {
    let limit = Duration::from_secs(seconds.min(SECONDS_MAX));
    let mut records = backend.subscribe_run(run, backend.run_head(run).await?);
    let Some((mut now, is_running)) = look(backend, run).await? else { return Ok(None) };
    if !is_running || now.status != known {
        return Ok(Some(now));
    }
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let changes = async {
        loop {
            tokio::select! {
                record = records.next() => drop(record.transpose()?),
                _ = looks.tick() => {}
            }
            let Some((seen, is_running)) = look(backend, run).await? else { return Ok(()) };
            let is_over = !is_running || seen.status != known;
            now = seen;
            if is_over {
                return Ok(());
            }
        }
    };
    // At the limit the status is what it was.
    timeout(limit, changes).await.unwrap_or(Ok::<_, BackendError>(()))?;
    Ok(Some(now))
}

async fn look(backend: &dyn Backend, run: RunId) -> Result<Option<(RunListItem, bool)>, BackendError> {
    let Some(summary) = backend.get(run).await? else { return Ok(None) };
    let is_running = summary.status == RunStatus::Running;
    Ok(Some((item(backend, &summary).await, is_running)))
}
