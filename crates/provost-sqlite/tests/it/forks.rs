//! Forks in a backend: numbered on from what they refer to, stored together with the entry in the other run's log
//! or not at all, and read at the same cost however many forks are between.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures::stream::BoxStream;
use provost_backend::{EmbeddedBackend, MemoryStore, SessionStore};
use provost_engine::{Event, RunEvent, RunForkRequest};
use provost_event::{
    ActorKey, BlobId, Budget, ConversationEntry, Entry, LifecycleEntry, Record, RunId, Seq, SessionId,
};
use provost_harness::{
    Backend, BackendError, Blobs, Catalog, Executor, ForkPoint, Holder, Log, PlacedEntry, PlacedRecord,
    Posted, RunLease, RunPosition, RunQuery, RunSummary, SystemClock, Worker, read_conversation,
};
use provost_sqlite::SqliteStore;
use tokio_util::sync::CancellationToken;

use crate::failing::Failing;
use crate::support::{policy, run, start};

fn backend(store: impl SessionStore) -> EmbeddedBackend {
    EmbeddedBackend::new(store, Arc::new(SystemClock)).unwrap()
}

fn root(number: u64) -> SessionId {
    SessionId::root(run(number))
}

async fn wish(backend: &dyn Backend, from: u64) -> RunForkRequest {
    let point = ForkPoint::find(backend, root(from), None).await.unwrap();
    RunForkRequest {
        goal: "more".to_owned(),
        agent_goal: point.goal.clone(),
        policy: policy(Budget::default(), 10),
        fork: Box::new(point.into_fork()),
        worktree: None,
        baseline: None,
        text: Some(format!("after {from}")),
        by: "ann".to_owned(),
    }
}

async fn fork(backend: &dyn Backend, from: u64, to: u64) -> Result<Posted, BackendError> {
    let wish = wish(backend, from).await;
    backend.post(run(to).into(), RunEvent::Fork(Box::new(wish)).into(), None).await
}

async fn conversation(backend: &dyn Backend, session: SessionId) -> Vec<Arc<Record>> {
    let (mut records, mut after) = (Vec::<Arc<Record>>::new(), Seq::START);
    loop {
        let more = read_conversation(backend, session, after, 2).await.unwrap();
        let Some(last) = more.last() else { return records };
        after = last.seq;
        records.extend(more);
    }
}

#[tokio::test]
async fn a_fork_is_numbered_on_and_read_as_one_log_in_each_store() {
    let folder = tempfile::tempdir().unwrap();
    let on_disk = folder.path().join("provost.db");
    for backend in [backend(MemoryStore::new()), backend(SqliteStore::open(&on_disk).unwrap())] {
        backend.post(run(1).into(), start(policy(Budget::default(), 10)).into(), None).await.unwrap();
        for level in 1..6 {
            fork(&backend, level, level + 1).await.unwrap();
        }
        let records = conversation(&backend, root(6)).await;
        let numbers = records.iter().map(|record| record.seq.0).collect::<Vec<_>>();
        assert_eq!(numbers, (1..=records.len() as u64).collect::<Vec<_>>(), "no gap and no repeat");
        let said = records
            .iter()
            .filter(|record| matches!(record.entry, Entry::Conversation(ConversationEntry::UserMessage(_))))
            .count();
        assert_eq!(said, 5);
        let own = backend.read(root(6).into(), Seq::START, 99).await.unwrap();
        assert!(own.len() < records.len(), "what is referred to isn't copied");
        let Entry::Lifecycle(LifecycleEntry::SessionStarted(started)) = &own[0].entry else {
            panic!("{own:?}")
        };
        let bases = &started.fork.as_ref().unwrap().bases;
        assert_eq!(
            bases.iter().map(|base| base.session).collect::<Vec<_>>(),
            (1..6).map(root).collect::<Vec<_>>()
        );
        // Another process folds the same state as this one holds.
        assert_eq!(backend.state(root(6).into()).await.unwrap().head(), own.last().unwrap().seq);
    }
    let again = backend(SqliteStore::open(&on_disk).unwrap());
    let posted = RunEvent::Say { agent: 0, text: "still there".to_owned(), by: "ann".to_owned() };
    assert!(again.post(run(6).into(), posted.into(), None).await.unwrap().changed);
}

#[tokio::test]
async fn a_fork_that_cant_be_kept_leaves_nothing_in_either_log() {
    let store = Failing::new();
    let full = store.full.clone();
    let backend = backend(store);
    backend.post(run(1).into(), start(policy(Budget::default(), 10)).into(), None).await.unwrap();
    let before = backend.read(run(1).into(), Seq::START, 99).await.unwrap();
    let wish = wish(&backend, 1).await;
    full.store(true, Ordering::SeqCst);
    let posted = backend.post(run(2).into(), RunEvent::Fork(Box::new(wish.clone())).into(), None).await;
    assert!(posted.is_err());
    full.store(false, Ordering::SeqCst);
    assert_eq!(backend.read(run(1).into(), Seq::START, 99).await.unwrap(), before);
    assert!(backend.actors(run(2)).await.unwrap().is_empty());
    backend.post(run(2).into(), RunEvent::Fork(Box::new(wish)).into(), None).await.unwrap();
    let forked = |records: Vec<Arc<Record>>| {
        records
            .iter()
            .filter(|record| matches!(record.entry, Entry::Lifecycle(LifecycleEntry::Forked(_))))
            .count()
    };
    for number in [1, 2] {
        assert_eq!(forked(backend.read(run(number).into(), Seq::START, 99).await.unwrap()), 1);
    }
}

/// Counts the reads of a backend.
struct Counting {
    backend: EmbeddedBackend,
    reads: AtomicUsize,
    entries: AtomicUsize,
}

#[async_trait]
impl Blobs for Counting {
    async fn put_blob(&self, body: Vec<u8>) -> Result<BlobId, BackendError> {
        self.backend.put_blob(body).await
    }

    async fn get_blob(&self, id: &BlobId) -> Result<Option<Vec<u8>>, BackendError> {
        self.backend.get_blob(id).await
    }
}

#[async_trait]
impl Log for Counting {
    async fn post(&self, key: ActorKey, event: Event, dedup: Option<&str>) -> Result<Posted, BackendError> {
        self.backend.post(key, event, dedup).await
    }

    async fn read(&self, key: ActorKey, after: Seq, max: usize) -> Result<Vec<Arc<Record>>, BackendError> {
        let records = self.backend.read(key, after, max).await?;
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.entries.fetch_add(records.len(), Ordering::SeqCst);
        Ok(records)
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
impl Catalog for Counting {
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
impl Worker for Counting {
    async fn serve(
        &self,
        run: RunId,
        executor: Arc<dyn Executor>,
        stop: CancellationToken,
    ) -> Result<Box<dyn RunLease>, BackendError> {
        self.backend.serve(run, executor, stop).await
    }

    async fn holder(&self, run: RunId) -> Result<Option<Holder>, BackendError> {
        self.backend.holder(run).await
    }
}

#[tokio::test]
async fn one_entry_of_the_oldest_log_costs_the_same_after_many_forks_as_after_one() {
    let backend = backend(MemoryStore::new());
    backend.post(run(1).into(), start(policy(Budget::default(), 10)).into(), None).await.unwrap();
    for level in 1..40 {
        fork(&backend, level, level + 1).await.unwrap();
    }
    let counting = Counting { backend, reads: AtomicUsize::new(0), entries: AtomicUsize::new(0) };
    let mut costs = Vec::new();
    for level in [2, 3, 40] {
        let read = read_conversation(&counting, root(level), Seq::START, 1).await.unwrap();
        assert_eq!(read[0].actor, root(1).into());
        let cost = [&counting.reads, &counting.entries].map(|count| count.swap(0, Ordering::SeqCst));
        costs.push(cost);
    }
    assert!(costs.iter().all(|cost| *cost == costs[0]), "{costs:?}");
}
