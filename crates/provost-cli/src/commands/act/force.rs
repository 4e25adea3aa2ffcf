//! `provost cancel --force`: ends the process that holds a run.

use std::time::Duration;

use anyhow::{Context as _, bail};
use provost_event::RunId;
use provost_harness::{Backend, Holder, RunQuery, RunStatusFilter};

use crate::exit::Refusal;
use crate::output::tell;

/// How long the system may take to release what an ended process held, in steps.
const RELEASED_STEPS: usize = 200;
const RELEASED_STEP: Duration = Duration::from_millis(10);

/// Ends the process that holds `run`, with all that it has started; does nothing if no process does.
///
/// # Errors
/// [`Refusal`] when it can't be verified which process that is; also when it can't be ended.
pub(super) async fn end_holder(backend: &dyn Backend, run: RunId) -> anyhow::Result<()> {
    let Some(holder) = backend.holder(run).await? else { return Ok(()) };
    let by = &holder.by;
    let Some(process) = holder.process.filter(|process| process.exists()) else {
        let what = format!("{by} holds run {run}, and it can't be verified which process that is now");
        return Err(Refusal::new(what, format!("end it yourself, then: provost cancel {run}")).into());
    };
    let others = others_held(backend, run, &holder).await?;
    let ended = tokio::task::spawn_blocking(move || process.end_tree()).await;
    if !ended.context("can't end the process")? {
        bail!("{by} holds run {run}, and it could not be ended with all that it has started");
    }
    for _ in 0..RELEASED_STEPS {
        if backend.holder(run).await?.is_none_or(|now| now != holder) {
            tell(&format!("ended {by}, with all that it had started"));
            for other in others {
                tell(&format!("it worked on run {other} too; that goes on with: provost resume {other}"));
            }
            return Ok(());
        }
        tokio::time::sleep(RELEASED_STEP).await;
    }
    bail!("{by} has ended, and something that it has started still holds run {run}");
}

/// The other runs that the process holds.
async fn others_held(backend: &dyn Backend, run: RunId, holder: &Holder) -> anyhow::Result<Vec<RunId>> {
    let running = backend.list(RunQuery::with_status(RunStatusFilter::Running)).await?;
    let mut others = Vec::new();
    for other in running.into_iter().map(|other| other.run).filter(|other| *other != run) {
        if backend.holder(other).await?.is_some_and(|now| now.process == holder.process) {
            others.push(other);
        }
    }
    Ok(others)
}
