//! Forks in a backend: numbered on from what they refer to, stored together with the entry in the other run's log
//! or not at all, and read at the same cost however many forks are between.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures::stream::BoxStream;
use provost_engine::{Event, ForkWish, RunEvent};
use provost_event::{ActorKey, BlobId, Budget, Entry, Record, RunId, Seq, SessionId};
use provost_harness::{
    Blobs, Executor, ForkPoint, Home, HomeError, Posted, RunQuery, RunSummary, Serving, SystemClock,
    read_actor, read_conversation,
};
use provost_store::{LocalHome, MemoryStore, SessionStore, SqliteStore};
use tokio_util::sync::CancellationToken;

use crate::failing::Failing;
use crate::support::{policy, run, start};

fn home(store: impl SessionStore) -> LocalHome {
    LocalHome::new(store, Arc::new(SystemClock)).unwrap()
}

fn root(number: u64) -> SessionId {
    SessionId::root(run(number))
}

async fn wish(home: &dyn Home, from: u64) -> ForkWish {
    let point = ForkPoint::find(home, root(from), None).await.unwrap();
    ForkWish {
        goal: "more".to_owned(),
        agent_goal: point.goal.clone(),
        policy: policy(Budget::default(), 10),
        fork: Box::new(point.into_fork()),
        worktree: None,
        text: Some(format!("after {from}")),
        by: "ann".to_owned(),
    }
}

async fn fork(home: &dyn Home, from: u64, to: u64) -> Result<Posted, HomeError> {
    let wish = wish(home, from).await;
    home.post(run(to).into(), RunEvent::Fork(Box::new(wish)).into(), None).await
}

async fn conversation(home: &dyn Home, session: SessionId) -> Vec<Arc<Record>> {
    let (mut records, mut after) = (Vec::<Arc<Record>>::new(), Seq::START);
    loop {
        let more = read_conversation(home, session, after, 2).await.unwrap();
        let Some(last) = more.last() else { return records };
        after = last.seq;
        records.extend(more);
    }
}

#[tokio::test]
async fn a_fork_is_numbered_on_and_read_as_one_log_in_each_store() {
    let folder = tempfile::tempdir().unwrap();
    let on_disk = folder.path().join("provost.db");
    for home in [home(MemoryStore::new()), home(SqliteStore::open(&on_disk).unwrap())] {
        home.post(run(1).into(), start(policy(Budget::default(), 10)).into(), None).await.unwrap();
        for level in 1..6 {
            fork(&home, level, level + 1).await.unwrap();
        }
        let records = conversation(&home, root(6)).await;
        let numbers = records.iter().map(|record| record.seq.0).collect::<Vec<_>>();
        assert_eq!(numbers, (1..=records.len() as u64).collect::<Vec<_>>(), "no gap and no repeat");
        let said = records.iter().filter(|record| matches!(record.entry, Entry::UserMessage(_))).count();
        assert_eq!(said, 5);
        let own = home.read(root(6).into(), Seq::START, 99).await.unwrap();
        assert!(own.len() < records.len(), "what is referred to isn't copied");
        let Entry::SessionStarted(started) = &own[0].entry else { panic!("{own:?}") };
        let bases = &started.fork.as_ref().unwrap().bases;
        assert_eq!(
            bases.iter().map(|base| base.session).collect::<Vec<_>>(),
            (1..6).map(root).collect::<Vec<_>>()
        );
        // Another process folds the same state as this one holds.
        assert_eq!(read_actor(&home, root(6).into()).await.unwrap().head(), own.last().unwrap().seq);
    }
    let again = home(SqliteStore::open(&on_disk).unwrap());
    let posted = RunEvent::Say { agent: 0, text: "still there".to_owned(), by: "ann".to_owned() };
    assert!(again.post(run(6).into(), posted.into(), None).await.unwrap().changed);
}

#[tokio::test]
async fn a_fork_that_cant_be_kept_leaves_nothing_in_either_log() {
    let store = Failing::new();
    let full = store.full.clone();
    let home = home(store);
    home.post(run(1).into(), start(policy(Budget::default(), 10)).into(), None).await.unwrap();
    let before = home.read(run(1).into(), Seq::START, 99).await.unwrap();
    let wish = wish(&home, 1).await;
    full.store(true, Ordering::SeqCst);
    let posted = home.post(run(2).into(), RunEvent::Fork(Box::new(wish.clone())).into(), None).await;
    assert!(posted.is_err());
    full.store(false, Ordering::SeqCst);
    assert_eq!(home.read(run(1).into(), Seq::START, 99).await.unwrap(), before);
    assert!(home.actors(run(2)).await.unwrap().is_empty());
    home.post(run(2).into(), RunEvent::Fork(Box::new(wish)).into(), None).await.unwrap();
    let forked = |records: Vec<Arc<Record>>| {
        records.iter().filter(|record| matches!(record.entry, Entry::Forked(_))).count()
    };
    for number in [1, 2] {
        assert_eq!(forked(home.read(run(number).into(), Seq::START, 99).await.unwrap()), 1);
    }
}

/// Counts the reads of a backend.
struct Counting {
    home: LocalHome,
    reads: AtomicUsize,
    entries: AtomicUsize,
}

#[async_trait]
impl Blobs for Counting {
    async fn put_blob(&self, body: Vec<u8>) -> Result<BlobId, HomeError> {
        self.home.put_blob(body).await
    }

    async fn get_blob(&self, id: &BlobId) -> Result<Option<Vec<u8>>, HomeError> {
        self.home.get_blob(id).await
    }
}

#[async_trait]
impl Home for Counting {
    async fn post(&self, key: ActorKey, event: Event, dedup: Option<&str>) -> Result<Posted, HomeError> {
        self.home.post(key, event, dedup).await
    }

    async fn read(&self, key: ActorKey, after: Seq, max: usize) -> Result<Vec<Arc<Record>>, HomeError> {
        let records = self.home.read(key, after, max).await?;
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.entries.fetch_add(records.len(), Ordering::SeqCst);
        Ok(records)
    }

    async fn list(&self, query: RunQuery) -> Result<Vec<RunSummary>, HomeError> {
        self.home.list(query).await
    }

    async fn actors(&self, run: RunId) -> Result<Vec<ActorKey>, HomeError> {
        self.home.actors(run).await
    }

    fn subscribe(&self, key: ActorKey, after: Seq) -> BoxStream<'static, Result<Arc<Record>, HomeError>> {
        self.home.subscribe(key, after)
    }

    async fn serve(
        &self,
        run: RunId,
        executor: Arc<dyn Executor>,
        stop: CancellationToken,
    ) -> Result<Box<dyn Serving>, HomeError> {
        self.home.serve(run, executor, stop).await
    }
}

#[tokio::test]
async fn one_entry_of_the_oldest_log_costs_the_same_after_many_forks_as_after_one() {
    let home = home(MemoryStore::new());
    home.post(run(1).into(), start(policy(Budget::default(), 10)).into(), None).await.unwrap();
    for level in 1..40 {
        fork(&home, level, level + 1).await.unwrap();
    }
    let counting = Counting { home, reads: AtomicUsize::new(0), entries: AtomicUsize::new(0) };
    let mut costs = Vec::new();
    for level in [2, 3, 40] {
        let read = read_conversation(&counting, root(level), Seq::START, 1).await.unwrap();
        assert_eq!(read[0].actor, root(1).into());
        let cost = [&counting.reads, &counting.entries].map(|count| count.swap(0, Ordering::SeqCst));
        costs.push(cost);
    }
    assert!(costs.iter().all(|cost| *cost == costs[0]), "{costs:?}");
}
