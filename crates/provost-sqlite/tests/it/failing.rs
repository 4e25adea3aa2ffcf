//! A custom store: memory on a disk that fills up. It counts reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use provost_backend::conformance::{check_shared_store, check_store};
use provost_backend::{
    Mailbox, MemoryStore, NewEntry, OpenEffect, RunLeases, SessionStore, StoreReader, StoredRun, WakeUps,
};
use provost_event::{ActorKey, BlobId, EffectId, Record, RunId, Seq};
use provost_harness::{BackendError, PlacedEntry, RunCursor, RunPosition};

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
fn a_store_of_an_embedder_is_a_store() {
    check_store(Failing::new);
    check_shared_store(Failing::new, Clone::clone);
}

impl StoreReader for Failing {
    fn read(&mut self, actor: ActorKey, after: Seq, max: usize) -> Result<Vec<Arc<Record>>, BackendError> {
        let records = self.inner.read(actor, after, max)?;
        self.records_read.fetch_add(records.len(), Ordering::SeqCst);
        Ok(records)
    }
    fn head(&mut self, actor: ActorKey) -> Result<Seq, BackendError> {
        self.inner.head(actor)
    }
    fn newest_snapshot(&mut self, actor: ActorKey) -> Result<Option<Arc<Record>>, BackendError> {
        self.inner.newest_snapshot(actor)
    }
    fn actors(&mut self, run: RunId) -> Result<Vec<ActorKey>, BackendError> {
        self.inner.actors(run)
    }
    fn order(
        &mut self,
        run: RunId,
        after: RunPosition,
        max: usize,
    ) -> Result<Vec<PlacedEntry>, BackendError> {
        self.inner.order(run, after, max)
    }
    fn run_head(&mut self, run: RunId) -> Result<RunPosition, BackendError> {
        self.inner.run_head(run)
    }
    fn runs(&mut self, after: Option<RunCursor>, max: usize) -> Result<Vec<StoredRun>, BackendError> {
        self.inner.runs(after, max)
    }

    fn run(&mut self, run: RunId) -> Result<Option<StoredRun>, BackendError> {
        self.inner.run(run)
    }

    fn runs_with_prefix(&mut self, prefix: &str, max: usize) -> Result<Vec<StoredRun>, BackendError> {
        self.inner.runs_with_prefix(prefix, max)
    }
    fn blobs(&mut self) -> Result<Vec<BlobId>, BackendError> {
        self.inner.blobs()
    }
    fn get_blob(&mut self, id: &BlobId) -> Result<Option<Vec<u8>>, BackendError> {
        self.inner.get_blob(id)
    }
}

impl SessionStore for Failing {
    fn reader(&mut self) -> Result<Box<dyn StoreReader>, BackendError> {
        Ok(Box::new(self.clone()))
    }
    fn mailbox(&mut self) -> &mut dyn Mailbox {
        self.inner.mailbox()
    }
    fn wake_ups(&self) -> Arc<dyn WakeUps> {
        self.inner.wake_ups()
    }
    fn leases(&self) -> Arc<dyn RunLeases> {
        self.inner.leases()
    }
    fn begin(&mut self) -> Result<(), BackendError> {
        self.inner.begin()
    }
    fn commit(&mut self) -> Result<(), BackendError> {
        if self.full.load(Ordering::SeqCst) {
            let message = "no space left".to_owned();
            return Err(BackendError::Storage { attempt: "write to the log", message, hint: None });
        }
        self.inner.commit()
    }
    fn rollback(&mut self) {
        self.inner.rollback();
    }
    fn change_marker(&mut self) -> Result<u64, BackendError> {
        self.inner.change_marker()
    }
    fn append(
        &mut self,
        actor: ActorKey,
        expected: Seq,
        entries: &[NewEntry],
    ) -> Result<RunPosition, BackendError> {
        self.inner.append(actor, expected, entries)
    }
    fn put_effect(&mut self, effect: &OpenEffect) -> Result<(), BackendError> {
        self.inner.put_effect(effect)
    }
    fn close_effect(&mut self, id: EffectId) -> Result<(), BackendError> {
        self.inner.close_effect(id)
    }
    fn request_abort(&mut self, id: EffectId) -> Result<(), BackendError> {
        self.inner.request_abort(id)
    }
    fn open_effects(&mut self, run: RunId) -> Result<Vec<OpenEffect>, BackendError> {
        self.inner.open_effects(run)
    }
    fn has_post(&mut self, actor: ActorKey, dedup: &str) -> Result<bool, BackendError> {
        self.inner.has_post(actor, dedup)
    }
    fn mark_post(&mut self, actor: ActorKey, dedup: &str) -> Result<(), BackendError> {
        self.inner.mark_post(actor, dedup)
    }
    fn put_run(&mut self, run: &StoredRun) -> Result<(), BackendError> {
        self.inner.put_run(run)
    }
    fn put_blob(&mut self, id: &BlobId, body: &[u8]) -> Result<(), BackendError> {
        self.inner.put_blob(id, body)
    }
    fn remove_run(&mut self, run: RunId) -> Result<(), BackendError> {
        self.inner.remove_run(run)
    }
    fn remove_blobs(&mut self, names: &[BlobId]) -> Result<(), BackendError> {
        self.inner.remove_blobs(names)
    }
    fn owner_epoch(&mut self, run: RunId) -> Result<u64, BackendError> {
        self.inner.owner_epoch(run)
    }
    fn bump_owner_epoch(&mut self, run: RunId) -> Result<u64, BackendError> {
        self.inner.bump_owner_epoch(run)
    }
}
