//! The embedded backend, checked as any backend is.

use std::sync::Arc;

use async_trait::async_trait;
use provost_backend::conformance::{BackendMaker, StuckHolder, check_backend};
use provost_backend::{DecoratedStore, EmbeddedBackend, HeldLease, MemoryStore, SessionStore, Transactions};
use provost_engine::{Effect, Event};
use provost_event::{Budget, EffectId, RunId, Seq};
use provost_harness::{Backend, BackendError, Clock, Log as _, Worker as _};
use provost_sqlite::SqliteStore;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::support::{asks_for_tools, policy, run, soon, start, tool_done};

struct InMemory;

#[async_trait]
impl BackendMaker for InMemory {
    type StoreLocation = MemoryStoreAt;

    async fn place(&self) -> MemoryStoreAt {
        MemoryStoreAt(std::sync::Mutex::new(MemoryStore::new()))
    }

    async fn open(&self, place: &MemoryStoreAt, clock: Arc<dyn Clock>) -> Arc<dyn Backend> {
        Arc::new(EmbeddedBackend::new(place.0.lock().unwrap().clone(), clock).unwrap())
    }

    async fn hold(&self, place: &MemoryStoreAt, run: RunId) -> Option<Box<dyn StuckHolder>> {
        Some(Box::new(Stuck::of(place.0.lock().unwrap().clone(), run)))
    }
}

struct MemoryStoreAt(std::sync::Mutex<MemoryStore>);

struct OnDisk;

#[async_trait]
impl BackendMaker for OnDisk {
    type StoreLocation = TempDir;

    async fn place(&self) -> TempDir {
        TempDir::new().unwrap()
    }

    async fn open(&self, folder: &TempDir, clock: Arc<dyn Clock>) -> Arc<dyn Backend> {
        let store = SqliteStore::open(folder.path().join("provost.db")).unwrap();
        Arc::new(EmbeddedBackend::new(store, clock).unwrap())
    }

    async fn hold(&self, folder: &TempDir, run: RunId) -> Option<Box<dyn StuckHolder>> {
        let store = SqliteStore::open(folder.path().join("provost.db")).unwrap();
        Some(Box::new(Stuck::of(store, run)))
    }
}

/// On disk, where no socket can be made: all writers poll.
struct WithoutSockets;

#[async_trait]
impl BackendMaker for WithoutSockets {
    type StoreLocation = TempDir;

    async fn place(&self) -> TempDir {
        let folder = TempDir::new().unwrap();
        std::fs::write(folder.path().join("wake"), "in the way of a folder").unwrap();
        folder
    }

    async fn open(&self, folder: &TempDir, clock: Arc<dyn Clock>) -> Arc<dyn Backend> {
        OnDisk.open(folder, clock).await
    }

    async fn hold(&self, folder: &TempDir, run: RunId) -> Option<Box<dyn StuckHolder>> {
        OnDisk.hold(folder, run).await
    }
}

#[tokio::test]
async fn a_backend_without_sockets_passes_the_conformance_suite() {
    check_backend(&WithoutSockets).await;
}

/// A store whose commits are visible to readers for a while before its writer knows that they are done.
struct SlowToReturn;

impl<S: SessionStore> Transactions<S> for SlowToReturn {
    fn commit(&mut self, store: &mut S) -> Result<(), BackendError> {
        store.commit()?;
        std::thread::sleep(std::time::Duration::from_millis(10));
        Ok(())
    }
}

struct Slow;

#[async_trait]
impl BackendMaker for Slow {
    type StoreLocation = MemoryStoreAt;

    async fn place(&self) -> MemoryStoreAt {
        InMemory.place().await
    }

    async fn open(&self, place: &MemoryStoreAt, clock: Arc<dyn Clock>) -> Arc<dyn Backend> {
        let store = DecoratedStore::new(place.0.lock().unwrap().clone(), SlowToReturn);
        Arc::new(EmbeddedBackend::new(store, clock).unwrap())
    }

    async fn hold(&self, place: &MemoryStoreAt, run: RunId) -> Option<Box<dyn StuckHolder>> {
        InMemory.hold(place, run).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backend_whose_commits_are_seen_before_they_return_passes_the_conformance_suite() {
    check_backend(&Slow).await;
}

/// Has the lease, and leaves the mailbox alone.
struct Stuck<S> {
    store: S,
    run: RunId,
    _lease: HeldLease,
}

impl<S: SessionStore> Stuck<S> {
    fn of(store: S, run: RunId) -> Self {
        let lease = store.leases().claim(run).unwrap();
        Self { store, run, _lease: lease }
    }
}

#[async_trait]
impl<S: SessionStore> StuckHolder for Stuck<S> {
    async fn wait_for_posts(&mut self, count: usize) {
        while self.store.mailbox().waiting_requests(self.run, 10).unwrap().len() < count {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backend_in_memory_passes_the_conformance_suite() {
    check_backend(&InMemory).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backend_on_disk_passes_the_conformance_suite() {
    check_backend(&OnDisk).await;
}

#[tokio::test]
async fn a_backend_on_a_single_threaded_runtime_passes_the_conformance_suite() {
    check_backend(&OnDisk).await;
}

/// Blocks the thread of its runtime at the first tool until it is released.
struct Stubborn {
    go_on: std::sync::Mutex<std::sync::mpsc::Receiver<()>>,
    begun: tokio::sync::mpsc::UnboundedSender<provost_event::EffectId>,
}

#[async_trait]
impl provost_harness::Executor for Stubborn {
    async fn run(&self, id: EffectId, effect: Effect, _: CancellationToken) -> Event {
        self.begun.send(id).unwrap();
        if let Effect::RunTool(_) = effect {
            self.go_on.lock().unwrap().recv().unwrap();
        }
        std::future::pending().await
    }
}

/// More changes than its queue holds arrive while a server can't take them: it gets all open effects instead.
#[test]
fn a_server_that_falls_behind_loses_no_effect() {
    const TOOLS: u64 = 200;
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let backend = EmbeddedBackend::new(MemoryStore::new(), Arc::new(provost_harness::SystemClock)).unwrap();
    let (sender, go_on) = std::sync::mpsc::channel();
    let (begun, mut begins) = tokio::sync::mpsc::unbounded_channel();
    let stubborn = Arc::new(Stubborn { go_on: go_on.into(), begun });
    let serving_backend = backend.clone();
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let server = std::thread::spawn(move || {
        runtime().block_on(async {
            let guard = serving_backend.serve(run(1), stubborn, CancellationToken::new()).await.unwrap();
            let event = start(policy(Budget::default(), 10));
            serving_backend.post(run(1).into(), event.into(), None).await.unwrap();
            stopped.cancelled().await;
            guard.release().await;
        });
    });
    runtime().block_on(async {
        let model_call = soon(begins.recv()).await.unwrap();
        backend.post(model_call.actor, asks_for_tools(model_call.seq, 200), None).await.unwrap();
        let first = soon(begins.recv()).await.unwrap();
        for seq in 0..TOOLS {
            let seq = Seq(first.seq.0 + seq);
            assert!(backend.post(model_call.actor, tool_done(seq, None), None).await.unwrap().changed);
        }
        (0..TOOLS).for_each(|_| sender.send(()).unwrap());
        let next = async {
            loop {
                let id = begins.recv().await.unwrap();
                if id.seq.0 >= first.seq.0 + TOOLS {
                    return;
                }
            }
        };
        soon(next).await;
        stop.cancel();
    });
    server.join().unwrap();
}
