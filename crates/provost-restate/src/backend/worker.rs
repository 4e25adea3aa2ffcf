//! Holding runs, and serving as a worker.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use provost_event::{EffectId, RunId};
use provost_harness::{BackendError, Executor, Holder, RunLease, Unheld, Worker};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Identity, RestateBackend};
use crate::api::Target;
use crate::engine::run_key;
use crate::lease::{Lease, LeaseTools};
use crate::wire::{ClaimRequest, Claimed, Failed, Owner, RecoverRequest, Release, Reply, RunStanding};

impl RestateBackend {
    pub(crate) fn identity(&self) -> Option<Identity> {
        self.inner.worker.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_identity(&self, identity: Option<Identity>) {
        *self.inner.worker.write().unwrap_or_else(PoisonError::into_inner) = identity;
    }

    /// Claims `run`, unless a living process holds it.
    async fn claim(&self, run: RunId, by: Owner) -> Result<Claimed, BackendError> {
        // What it would lead to couldn't be recorded.
        self.inner.blobs.check().await?;
        let standing = self.standing_of(run).await?;
        let over = match &standing.owner {
            // A hold of this process without a lease: its release, or the answer to its claim, was lost.
            Some(owner) if *owner == by => Some(standing.epoch),
            Some(owner) if self.is_alive(owner).await? => return Err(held(run, owner)),
            Some(_) => Some(standing.epoch),
            None => None,
        };
        let request = ClaimRequest { by, over, at: self.inner.clock.now(), entropy: fastrand::u64(..) };
        let (service, key) = (self.inner.names.run(), run_key(run));
        let target = Target { service: &service, key: Some(&key), handler: "claim" };
        match self.inner.api.call::<Reply<Claimed>>(target, &request).await? {
            Reply::Done(claimed) => Ok(claimed),
            Reply::Held(owner) => Err(held(run, &owner)),
            Reply::Failed(failure) => Err(failure.into()),
            Reply::Lost => Err(BackendError::Conflict { actor: run.into() }),
        }
    }

    async fn release(&self, lease: &Lease, begun: Vec<EffectId>) {
        let (Some(epoch), Some(elapsed)) = (lease.epoch(), lease.elapsed()) else { return };
        let (service, key) = (self.inner.names.run(), run_key(lease.run));
        let target = Target { service: &service, key: Some(&key), handler: "release" };
        let released: Result<Reply<()>, _> =
            self.inner.api.call(target, &Release { epoch, elapsed, begun }).await;
        if let Err(error) = released {
            tracing::warn!(run = %lease.run, %error, "the run can't be released: it is free when this worker is gone");
        }
    }

    /// Has the run's object tell why this worker can't work on `run`. Best effort: it is for people only.
    pub async fn tell_failed(&self, run: RunId, why: String) {
        let Some(Identity { owner, .. }) = self.identity() else { return };
        let (service, key) = (self.inner.names.run(), run_key(run));
        let target = Target { service: &service, key: Some(&key), handler: "fail" };
        let told = self.inner.api.call_for_nothing(target, &Failed { worker: owner.worker, why }).await;
        if let Err(error) = told {
            tracing::warn!(%run, %error, "the engine isn't told why the run isn't worked on");
        }
    }

    /// Holds the run of `lease` until it is stopped or fails.
    async fn hold(self, lease: Arc<Lease>, by: Owner, answer: oneshot::Sender<Result<(), BackendError>>) {
        match self.claim(lease.run, by).await {
            Ok(Claimed { epoch, elapsed }) => {
                lease.claimed(epoch, elapsed);
                // From now on it is told of what is new, and asks once for what it wasn't told.
                self.inner.feeds.wake(lease.run);
                let _ = answer.send(Ok(()));
                tokio::select! {
                    error = lease.failed() => {
                        tracing::debug!(run = %lease.run, %error, "the run can't be worked on any more");
                    }
                    () = lease.stop.cancelled() => {}
                }
                // A stop may be the answer to the failure, and be seen first.
                let failed = lease.failure();
                let begun = lease.end().await;
                // Told while it is held, so that the next holder's claim ends it. Of one that another worker has by
                // now there is nothing to tell.
                if let Some(error) = failed.filter(|error| !matches!(error, BackendError::Conflict { .. })) {
                    self.tell_failed(lease.run, error.to_string()).await;
                }
                self.release(&lease, begun).await;
                self.inner.leases.remove(&lease);
                self.inner.feeds.wake(lease.run);
            }
            Err(error) => {
                lease.stop.cancel();
                self.inner.leases.remove(&lease);
                let _ = answer.send(Err(error));
            }
        }
    }
}

fn held(run: RunId, by: &Owner) -> BackendError {
    BackendError::Held { run, by: words(by) }
}

fn words(owner: &Owner) -> String {
    format!("worker {} (process {})", owner.worker, owner.instance)
}

#[async_trait]
impl Worker for RestateBackend {
    async fn serve(
        &self,
        run: RunId,
        executor: Arc<dyn Executor>,
        stop: CancellationToken,
    ) -> Result<Box<dyn RunLease>, BackendError> {
        let Some(Identity { owner, .. }) = self.identity() else {
            return Err(BackendError::Storage {
                attempt: "hold a run",
                message: "this process is no worker of the cluster".to_owned(),
                hint: Some("workers hold the cluster's runs: start one with `provost worker`"),
            });
        };
        let tools = LeaseTools {
            api: self.inner.api.clone(),
            blobs: self.inner.blobs.clone(),
            names: self.inner.names.clone(),
            clock: Arc::clone(&self.inner.clock),
            instance: owner.instance.clone(),
        };
        let stop = stop.child_token();
        let lease = Arc::new(Lease::new(run, executor, stop.clone(), tools));
        if !self.inner.leases.add(&lease) {
            return Err(held(run, &owner));
        }
        let (answer, answered) = oneshot::channel();
        // A task of its own from before the claim: however this future ends, it gives up the run.
        let task = tokio::spawn(self.clone().hold(Arc::clone(&lease), owner, answer));
        let guard = Guard { lease, stop: Some(stop.drop_guard()), task: Some(task) };
        answered.await.map_err(|_| BackendError::Closed)??;
        Ok(Box::new(guard))
    }

    async fn holder(&self, run: RunId) -> Result<Option<Holder>, BackendError> {
        match self.standing_of(run).await?.owner {
            Some(owner) if self.is_alive(&owner).await? => {
                Ok(Some(Holder { by: words(&owner), process: None }))
            }
            _ => Ok(None),
        }
    }

    async fn recover_unheld(&self, run: RunId) -> Result<(), BackendError> {
        let standing = self.standing_of(run).await?;
        let over = match &standing.owner {
            Some(owner) if self.is_alive(owner).await? => return Ok(()),
            Some(_) => Some(standing.epoch),
            None => None,
        };
        let request = RecoverRequest { over, at: self.inner.clock.now(), entropy: fastrand::u64(..) };
        let (service, key) = (self.inner.names.run(), run_key(run));
        let target = Target { service: &service, key: Some(&key), handler: "recover" };
        match self.inner.api.call::<Reply<()>>(target, &request).await? {
            // A worker has just taken it.
            Reply::Done(()) | Reply::Held(_) | Reply::Lost => Ok(()),
            Reply::Failed(failure) => Err(failure.into()),
        }
    }

    async fn unheld(&self, run: RunId) -> Result<Option<Unheld>, BackendError> {
        let RunStanding { label, failed, .. } = self.standing_of(run).await?;
        let failed = failed.map(|Failed { worker, why }| format!("worker {worker} can't work on it: {why}"));
        Ok(Some(Unheld { label, failed }))
    }
}

/// The guard of a run that this process holds.
struct Guard {
    lease: Arc<Lease>,
    stop: Option<DropGuard>,
    task: Option<JoinHandle<()>>,
}

#[async_trait]
impl RunLease for Guard {
    fn run(&self) -> RunId {
        self.lease.run
    }

    async fn failed(&self) -> BackendError {
        self.lease.failed().await
    }

    async fn release(mut self: Box<Self>) {
        self.stop = None;
        if let Some(task) = self.task.take() {
            // It can only have panicked; then none of it runs any more either.
            let _ = task.await;
        }
    }
}

/// How long the effects of a leaving worker are waited for at a time.
const LOOKS_EVERY: Duration = Duration::from_millis(20);

impl RestateBackend {
    /// Begins no further effect, and waits until those in progress have ended, at most `within`. Returns how many
    /// have not.
    pub(crate) async fn drained(&self, within: Duration) -> usize {
        self.inner.leases.drain();
        let idle = async {
            while self.inner.leases.running() > 0 {
                tokio::time::sleep(LOOKS_EVERY).await;
            }
        };
        let _ = tokio::time::timeout(within, idle).await;
        self.inner.leases.running()
    }
}
