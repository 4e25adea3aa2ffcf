//! An engine's backend as those see it who start, follow and steer runs, and leave the work to workers.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use provost_engine::{Actor, Event};
use provost_event::{ActorKey, BlobId, Record, RunId, Seq};
use provost_harness::{
    Backend, BackendError, Blobs, Catalog, Executor, Holder, Log, PlacedEntry, PlacedRecord, Posted,
    RunLease, RunPosition, RunQuery, RunSummary, Unheld, Worker,
};
use tokio_util::sync::CancellationToken;

use super::route::Route;

/// The backend of a process that performs no effects.
pub(super) struct Follower {
    pub(super) engine: Arc<dyn Backend>,
    /// The ways to it.
    pub(super) _routes: Vec<Route>,
}

#[async_trait]
impl Blobs for Follower {
    async fn put_blob(&self, body: Vec<u8>) -> Result<BlobId, BackendError> {
        self.engine.put_blob(body).await
    }

    async fn get_blob(&self, id: &BlobId) -> Result<Option<Vec<u8>>, BackendError> {
        self.engine.get_blob(id).await
    }
}

#[async_trait]
impl Log for Follower {
    async fn post(&self, key: ActorKey, event: Event, dedup: Option<&str>) -> Result<Posted, BackendError> {
        self.engine.post(key, event, dedup).await
    }

    async fn read(&self, key: ActorKey, after: Seq, max: usize) -> Result<Vec<Arc<Record>>, BackendError> {
        self.engine.read(key, after, max).await
    }

    async fn newest_snapshot(&self, key: ActorKey) -> Result<Option<Arc<Record>>, BackendError> {
        self.engine.newest_snapshot(key).await
    }

    async fn state(&self, key: ActorKey) -> Result<Actor, BackendError> {
        self.engine.state(key).await
    }

    async fn actors(&self, run: RunId) -> Result<Vec<ActorKey>, BackendError> {
        self.engine.actors(run).await
    }

    fn subscribe(&self, key: ActorKey, after: Seq) -> BoxStream<'static, Result<Arc<Record>, BackendError>> {
        self.engine.subscribe(key, after)
    }

    async fn order(
        &self,
        run: RunId,
        after: RunPosition,
        max: usize,
    ) -> Result<Vec<PlacedEntry>, BackendError> {
        self.engine.order(run, after, max).await
    }

    async fn run_head(&self, run: RunId) -> Result<RunPosition, BackendError> {
        self.engine.run_head(run).await
    }

    fn subscribe_run(
        &self,
        run: RunId,
        after: RunPosition,
    ) -> BoxStream<'static, Result<PlacedRecord, BackendError>> {
        self.engine.subscribe_run(run, after)
    }
}

#[async_trait]
impl Catalog for Follower {
    async fn list(&self, query: RunQuery) -> Result<Vec<RunSummary>, BackendError> {
        self.engine.list(query).await
    }

    async fn get(&self, run: RunId) -> Result<Option<RunSummary>, BackendError> {
        self.engine.get(run).await
    }

    async fn find(&self, prefix: &str, max: usize) -> Result<Vec<RunSummary>, BackendError> {
        self.engine.find(prefix, max).await
    }

    fn changes(&self) -> BoxStream<'static, ()> {
        self.engine.changes()
    }
}

#[async_trait]
impl Worker for Follower {
    async fn serve(
        &self,
        run: RunId,
        _executor: Arc<dyn Executor>,
        _stop: CancellationToken,
    ) -> Result<Box<dyn RunLease>, BackendError> {
        Ok(Box::new(Followed { run }))
    }

    fn performs_here(&self) -> bool {
        false
    }

    async fn holder(&self, run: RunId) -> Result<Option<Holder>, BackendError> {
        self.engine.holder(run).await
    }

    async fn recover_unheld(&self, run: RunId) -> Result<(), BackendError> {
        self.engine.recover_unheld(run).await
    }

    async fn unheld(&self, run: RunId) -> Result<Option<Unheld>, BackendError> {
        self.engine.unheld(run).await
    }
}

/// Stands for a lease that a worker has.
struct Followed {
    run: RunId,
}

#[async_trait]
impl RunLease for Followed {
    fn run(&self) -> RunId {
        self.run
    }

    async fn failed(&self) -> BackendError {
        std::future::pending().await
    }

    async fn release(self: Box<Self>) {}
}
