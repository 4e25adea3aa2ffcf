//! The journal passes the suites that Provost's own stores and backends pass.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use journal_backend::JournalStore;
use provost_backend::conformance::{
    BackendMaker, StuckHolder, check_backend, check_shared_store, check_store,
};
use provost_backend::{EmbeddedBackend, HeldLease, SessionStore as _};
use provost_event::RunId;
use provost_harness::{Backend, Clock};
use tempfile::TempDir;

struct Journals;

#[async_trait]
impl BackendMaker for Journals {
    type StoreLocation = TempDir;

    async fn place(&self) -> TempDir {
        TempDir::new().unwrap()
    }

    async fn open(&self, folder: &TempDir, clock: Arc<dyn Clock>) -> Arc<dyn Backend> {
        let store = JournalStore::open(folder.path()).unwrap();
        Arc::new(EmbeddedBackend::new(store, clock).unwrap())
    }

    async fn hold(&self, folder: &TempDir, run: RunId) -> Option<Box<dyn StuckHolder>> {
        let store = JournalStore::open(folder.path()).unwrap();
        let lease = store.leases().claim(run).unwrap();
        Some(Box::new(Stuck { store, run, _lease: lease }))
    }
}

/// Has the lease, and decides nothing.
struct Stuck {
    store: JournalStore,
    run: RunId,
    _lease: HeldLease,
}

#[async_trait]
impl StuckHolder for Stuck {
    async fn wait_for_posts(&mut self, count: usize) {
        while self.store.mailbox().waiting_requests(self.run, count).unwrap().len() < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[test]
fn a_journal_is_a_store() {
    let folders = std::cell::RefCell::new(Vec::new());
    check_store(|| {
        let folder = TempDir::new().unwrap();
        let store = JournalStore::open(folder.path()).unwrap();
        folders.borrow_mut().push(folder);
        store
    });
}

#[test]
fn a_journal_is_a_store_that_many_share() {
    check_shared_store(|| TempDir::new().unwrap(), |folder| JournalStore::open(folder.path()).unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backend_over_a_journal_is_a_backend() {
    check_backend(&Journals).await;
}

#[test]
fn what_a_killed_writer_left_of_a_line_is_passed_over_and_removed() {
    let folder = TempDir::new().unwrap();
    let run = RunId::from_entropy(1);
    let bump = |store: &mut JournalStore| {
        store.begin().unwrap();
        store.bump_owner_epoch(run).unwrap();
        store.commit().unwrap();
    };
    let mut store = JournalStore::open(folder.path()).unwrap();
    bump(&mut store);
    let journal = folder.path().join("journal.jsonl");
    let whole = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(&journal, format!("{whole}{}", &whole[..whole.len() / 2])).unwrap();
    assert_eq!(JournalStore::open(folder.path()).unwrap().owner_epoch(run).unwrap(), 1);
    bump(&mut store);
    assert_eq!(JournalStore::open(folder.path()).unwrap().owner_epoch(run).unwrap(), 2);
    // A line without its end is on disk: it may have been acknowledged.
    let whole = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(&journal, whole.trim_end()).unwrap();
    assert_eq!(JournalStore::open(folder.path()).unwrap().owner_epoch(run).unwrap(), 2);
}
