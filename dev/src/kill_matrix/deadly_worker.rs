//! A worker that may be killed before and after each of its posts and each effect: what a transaction is to a store.

use std::sync::{Arc, PoisonError};

use async_trait::async_trait;
use futures::stream::BoxStream;
use provost_engine::{Effect, Event};
use provost_event::{ActorKey, BlobId, EffectId, Record, RunId, Seq};
use provost_harness::{
    BackendError, Blobs, Catalog, Executor, Holder, Log, PlacedEntry, PlacedRecord, Posted, RunLease,
    RunPosition, RunQuery, RunSummary, Unheld, Worker,
};
use provost_restate::RestateBackend;
use tokio_util::sync::CancellationToken;

use super::deadly_store::Kept;
use super::fault::Fault;

/// The backend of the worker.
pub(super) struct DeadlyWorker {
    pub(super) backend: RestateBackend,
    pub(super) fault: Arc<Fault>,
    pub(super) kept: Kept,
}

/// What performs its effects.
struct DeadlyExecutor {
    executor: Arc<dyn Executor>,
    fault: Arc<Fault>,
    kept: Kept,
}

async fn around<T>(fault: &Fault, kept: &Kept, act: impl Future<Output = T>) -> T {
    let done = fault.around_commit(act).await;
    // Which entries it led to is decided elsewhere.
    kept.lock().unwrap_or_else(PoisonError::into_inner).push(Vec::new());
    done
}

#[async_trait]
impl Executor for DeadlyExecutor {
    async fn run(&self, id: EffectId, effect: Effect, cancel: CancellationToken) -> Event {
        around(&self.fault, &self.kept, self.executor.run(id, effect, cancel)).await
    }
}

#[async_trait]
impl Log for DeadlyWorker {
    async fn post(&self, key: ActorKey, event: Event, dedup: Option<&str>) -> Result<Posted, BackendError> {
        around(&self.fault, &self.kept, self.backend.post(key, event, dedup)).await
    }

    async fn read(&self, key: ActorKey, after: Seq, max: usize) -> Result<Vec<Arc<Record>>, BackendError> {
        self.backend.read(key, after, max).await
    }

    async fn newest_snapshot(&self, key: ActorKey) -> Result<Option<Arc<Record>>, BackendError> {
        self.backend.newest_snapshot(key).await
    }

    async fn actors(&self, run: RunId) -> Result<Vec<ActorKey>, BackendError> {
        self.backend.actors(run).await
    }

    fn subscribe(&self, key: ActorKey, after: Seq) -> BoxStream<'static, Result<Arc<Record>, BackendError>> {
        self.backend.subscribe(key, after)
    }

    async fn order(
        &self,
        run: RunId,
        after: RunPosition,
        max: usize,
    ) -> Result<Vec<PlacedEntry>, BackendError> {
        self.backend.order(run, after, max).await
    }

    async fn run_head(&self, run: RunId) -> Result<RunPosition, BackendError> {
        self.backend.run_head(run).await
    }

    fn subscribe_run(
        &self,
        run: RunId,
        after: RunPosition,
    ) -> BoxStream<'static, Result<PlacedRecord, BackendError>> {
        self.backend.subscribe_run(run, after)
    }
}

#[async_trait]
impl Blobs for DeadlyWorker {
    async fn put_blob(&self, body: Vec<u8>) -> Result<BlobId, BackendError> {
        self.backend.put_blob(body).await
    }

    async fn get_blob(&self, id: &BlobId) -> Result<Option<Vec<u8>>, BackendError> {
        self.backend.get_blob(id).await
    }
}

#[async_trait]
impl Catalog for DeadlyWorker {
    async fn list(&self, query: RunQuery) -> Result<Vec<RunSummary>, BackendError> {
        self.backend.list(query).await
    }

    async fn get(&self, run: RunId) -> Result<Option<RunSummary>, BackendError> {
        self.backend.get(run).await
    }

    async fn find(&self, prefix: &str, max: usize) -> Result<Vec<RunSummary>, BackendError> {
        self.backend.find(prefix, max).await
    }
}

#[async_trait]
impl Worker for DeadlyWorker {
    async fn serve(
        &self,
        run: RunId,
        executor: Arc<dyn Executor>,
        stop: CancellationToken,
    ) -> Result<Box<dyn RunLease>, BackendError> {
        let fault = Arc::clone(&self.fault);
        let executor = DeadlyExecutor { executor, fault, kept: Arc::clone(&self.kept) };
        self.backend.serve(run, Arc::new(executor), stop).await
    }

    async fn holder(&self, run: RunId) -> Result<Option<Holder>, BackendError> {
        self.backend.holder(run).await
    }

    async fn recover_unheld(&self, run: RunId) -> Result<(), BackendError> {
        self.backend.recover_unheld(run).await
    }

    async fn unheld(&self, run: RunId) -> Result<Option<Unheld>, BackendError> {
        self.backend.unheld(run).await
    }
}
