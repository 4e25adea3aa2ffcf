//! A custom store: memory on a disk that fills up. It counts reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use provost_event::{ActorKey, BlobId, EffectId, Record, RunId, Seq};
use provost_harness::HomeError;
use provost_store::conformance::{check_shared_store, check_store};
use provost_store::{Claims, MemoryStore, NewEntry, OpenEffect, SessionStore, StoreReader, StoredRun};

/// Commits fail while it is full.
#[derive(Clone)]
pub(crate) struct Failing {
    inner: MemoryStore,
    pub(crate) full: Arc<AtomicBool>,
    pub(crate) records_read: Arc<AtomicUsize>,
}

impl Failing {
    pub(crate) fn new() -> Self {
        Self { inner: MemoryStore::new(), full: Arc::default(), records_read: Arc::default() }
    }
}

#[test]
fn a_store_of_somebody_elses_is_a_store() {
    check_store(Failing::new);
    check_shared_store(Failing::new, Clone::clone);
}

impl StoreReader for Failing {
    fn read(&mut self, actor: ActorKey, after: Seq, max: usize) -> Result<Vec<Arc<Record>>, HomeError> {
        let records = self.inner.read(actor, after, max)?;
        self.records_read.fetch_add(records.len(), Ordering::SeqCst);
        Ok(records)
    }
    fn head(&mut self, actor: ActorKey) -> Result<Seq, HomeError> {
        self.inner.head(actor)
    }
    fn newest_snapshot(&mut self, actor: ActorKey) -> Result<Option<Arc<Record>>, HomeError> {
        self.inner.newest_snapshot(actor)
    }
    fn actors(&mut self, run: RunId) -> Result<Vec<ActorKey>, HomeError> {
        self.inner.actors(run)
    }
    fn runs(&mut self, max: usize) -> Result<Vec<StoredRun>, HomeError> {
        self.inner.runs(max)
    }
    fn blobs(&mut self) -> Result<Vec<BlobId>, HomeError> {
        self.inner.blobs()
    }
    fn get_blob(&mut self, id: &BlobId) -> Result<Option<Vec<u8>>, HomeError> {
        self.inner.get_blob(id)
    }
}

impl SessionStore for Failing {
    fn reader(&mut self) -> Result<Box<dyn StoreReader>, HomeError> {
        Ok(Box::new(self.clone()))
    }
    fn claims(&self) -> Arc<dyn Claims> {
        self.inner.claims()
    }
    fn begin(&mut self) -> Result<(), HomeError> {
        self.inner.begin()
    }
    fn commit(&mut self) -> Result<(), HomeError> {
        if self.full.load(Ordering::SeqCst) {
            let message = "no space left".to_owned();
            return Err(HomeError::Storage { attempt: "write to the log", message, hint: None });
        }
        self.inner.commit()
    }
    fn rollback(&mut self) {
        self.inner.rollback();
    }
    fn change_marker(&mut self) -> Result<u64, HomeError> {
        self.inner.change_marker()
    }
    fn append(&mut self, actor: ActorKey, expected: Seq, entries: &[NewEntry]) -> Result<(), HomeError> {
        self.inner.append(actor, expected, entries)
    }
    fn put_effect(&mut self, effect: &OpenEffect) -> Result<(), HomeError> {
        self.inner.put_effect(effect)
    }
    fn close_effect(&mut self, id: EffectId) -> Result<(), HomeError> {
        self.inner.close_effect(id)
    }
    fn request_abort(&mut self, id: EffectId) -> Result<(), HomeError> {
        self.inner.request_abort(id)
    }
    fn open_effects(&mut self, run: RunId) -> Result<Vec<OpenEffect>, HomeError> {
        self.inner.open_effects(run)
    }
    fn has_post(&mut self, actor: ActorKey, dedup: &str) -> Result<bool, HomeError> {
        self.inner.has_post(actor, dedup)
    }
    fn mark_post(&mut self, actor: ActorKey, dedup: &str) -> Result<(), HomeError> {
        self.inner.mark_post(actor, dedup)
    }
    fn put_run(&mut self, run: &StoredRun) -> Result<(), HomeError> {
        self.inner.put_run(run)
    }
    fn put_blob(&mut self, id: &BlobId, body: &[u8]) -> Result<(), HomeError> {
        self.inner.put_blob(id, body)
    }
    fn remove_run(&mut self, run: RunId) -> Result<(), HomeError> {
        self.inner.remove_run(run)
    }
    fn remove_blobs(&mut self, names: &[BlobId]) -> Result<(), HomeError> {
        self.inner.remove_blobs(names)
    }
    fn owner_epoch(&mut self, run: RunId) -> Result<u64, HomeError> {
        self.inner.owner_epoch(run)
    }
    fn bump_owner_epoch(&mut self, run: RunId) -> Result<u64, HomeError> {
        self.inner.bump_owner_epoch(run)
    }
}
