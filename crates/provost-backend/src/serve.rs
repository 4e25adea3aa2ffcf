//! RunLease a run: its lease, and the task that has its effects performed.

mod task;

use std::sync::Arc;

use async_trait::async_trait;
use provost_event::RunId;
use provost_harness::{BackendError, Executor, RunLease};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::job::{Job, Server};
use crate::{EmbeddedBackend, HeldLease};
use task::{Performing, Task};

/// Maximum queued orders for a server; a server further behind gets all open effects instead.
const ORDERS_MAX: usize = 64;

/// Acquires the lease on `run` and has its effects performed until the guard is dropped or `stop` fires.
pub(crate) async fn serve(
    backend: EmbeddedBackend,
    run: RunId,
    executor: Arc<dyn Executor>,
    stop: CancellationToken,
) -> Result<Box<dyn RunLease>, BackendError> {
    let leases = backend.leases();
    let claimed = tokio::task::spawn_blocking(move || leases.claim(run)).await;
    let lease = claimed.map_err(|_| BackendError::Closed)??;
    let failure = watch::Sender::new(None);
    let stop = stop.child_token();
    let (reply, taken_over) = oneshot::channel();
    let work =
        work(backend, Work { run, executor, failure: failure.clone(), stop: stop.clone(), lease }, reply);
    // A separate task from before the take-over: however this future ends, the task gives up the run.
    let guard = Guard { run, failure, stop: Some(stop.drop_guard()), task: Some(tokio::spawn(work)) };
    taken_over.await.map_err(|_| BackendError::Closed)??;
    Ok(Box::new(guard))
}

struct Work {
    run: RunId,
    executor: Arc<dyn Executor>,
    failure: watch::Sender<Option<BackendError>>,
    stop: CancellationToken,
    lease: HeldLease,
}

async fn work(backend: EmbeddedBackend, work: Work, taken_over: oneshot::Sender<Result<(), BackendError>>) {
    let Work { run, executor, failure, stop, lease } = work;
    let (sender, orders) = mpsc::channel(ORDERS_MAX);
    let server = Server { orders: sender, failure: failure.clone() };
    let epoch = match backend.ask(|reply| Job::TakeOver { run, server, reply }).await {
        Ok(epoch) => epoch,
        Err(error) => {
            drop(lease);
            let _ = taken_over.send(Err(error));
            return;
        }
    };
    let _ = taken_over.send(Ok(()));
    let mut task =
        Task::new(Performing { backend: backend.clone(), executor, epoch }, orders, failure.subscribe());
    let failed = task.work(&stop).await;
    task.end().await;
    // Only now: until here posts of this process were under way.
    let _ = backend.ask(|reply| Job::GiveUp { run, epoch, reply }).await;
    drop(lease);
    if let Some(error) = failed {
        tracing::error!(%run, %error, "the run can't be worked on any more");
        failure.send_replace(Some(error));
    }
}

/// The guard of a served run.
struct Guard {
    run: RunId,
    failure: watch::Sender<Option<BackendError>>,
    stop: Option<DropGuard>,
    task: Option<JoinHandle<()>>,
}

#[async_trait]
impl RunLease for Guard {
    fn run(&self) -> RunId {
        self.run
    }

    async fn failed(&self) -> BackendError {
        task::failed(&mut self.failure.subscribe()).await
    }

    async fn release(mut self: Box<Self>) {
        self.stop = None;
        if let Some(task) = self.task.take() {
            // It can only have panicked; then none of it runs any more either.
            let _ = task.await;
        }
    }
}
