//! The embedded home, checked as any home is.

use std::sync::Arc;

use async_trait::async_trait;
use provost_harness::conformance::{HomeMaker, check_home};
use provost_harness::{Clock, Home};
use provost_store::{LocalHome, MemoryStore, SqliteStore};
use tempfile::TempDir;

struct InMemory;

#[async_trait]
impl HomeMaker for InMemory {
    type Place = MemoryStoreAt;

    async fn place(&self) -> MemoryStoreAt {
        MemoryStoreAt(std::sync::Mutex::new(MemoryStore::new()))
    }

    async fn open(&self, place: &MemoryStoreAt, clock: Arc<dyn Clock>) -> Arc<dyn Home> {
        Arc::new(LocalHome::new(place.0.lock().unwrap().clone(), clock).unwrap())
    }
}

struct MemoryStoreAt(std::sync::Mutex<MemoryStore>);

struct OnDisk;

#[async_trait]
impl HomeMaker for OnDisk {
    type Place = TempDir;

    async fn place(&self) -> TempDir {
        TempDir::new().unwrap()
    }

    async fn open(&self, folder: &TempDir, clock: Arc<dyn Clock>) -> Arc<dyn Home> {
        let store = SqliteStore::open(folder.path().join("provost.db")).unwrap();
        Arc::new(LocalHome::new(store, clock).unwrap())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_home_in_memory_is_a_home() {
    check_home(&InMemory).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_home_on_disk_is_a_home() {
    check_home(&OnDisk).await;
}

#[tokio::test]
async fn a_home_on_a_single_threaded_runtime_is_a_home() {
    check_home(&OnDisk).await;
}
