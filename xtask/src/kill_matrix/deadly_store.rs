//! The real store, with transactions at which the process may be killed.

use std::sync::{Arc, Mutex, PoisonError};

use provost_event::{ActorKey, BlobId, EffectId, Record, RunId, Seq};
use provost_harness::BackendError;
use provost_store::{
    Mailbox, NewEntry, OpenEffect, RunLeases, SessionStore, SqliteStore, StoreReader, StoredRun, WakeUps,
};

use super::fault::Fault;

/// The kinds of the entries that each transaction has kept, in order.
pub(super) type Kept = Arc<Mutex<Vec<Vec<String>>>>;

/// The kind of entry that a snapshot is.
pub(super) const SNAPSHOT: &str = "snapshot";

/// The store.
pub(super) struct DeadlyStore {
    store: SqliteStore,
    fault: Arc<Fault>,
    kept: Kept,
    now: Vec<String>,
}

impl DeadlyStore {
    pub(super) fn new(store: SqliteStore, fault: Arc<Fault>, kept: Kept) -> Self {
        Self { store, fault, kept, now: Vec::new() }
    }
}

type Done<T> = Result<T, BackendError>;

impl StoreReader for DeadlyStore {
    fn read(&mut self, actor: ActorKey, after: Seq, max: usize) -> Done<Vec<Arc<Record>>> {
        self.store.read(actor, after, max)
    }
    fn head(&mut self, actor: ActorKey) -> Done<Seq> {
        self.store.head(actor)
    }
    fn newest_snapshot(&mut self, actor: ActorKey) -> Done<Option<Arc<Record>>> {
        self.store.newest_snapshot(actor)
    }
    fn actors(&mut self, run: RunId) -> Done<Vec<ActorKey>> {
        self.store.actors(run)
    }
    fn runs(&mut self, max: usize) -> Done<Vec<StoredRun>> {
        self.store.runs(max)
    }
    fn blobs(&mut self) -> Done<Vec<BlobId>> {
        self.store.blobs()
    }
    fn get_blob(&mut self, id: &BlobId) -> Done<Option<Vec<u8>>> {
        self.store.get_blob(id)
    }
}

impl SessionStore for DeadlyStore {
    fn commit(&mut self) -> Done<()> {
        let fault = Arc::clone(&self.fault);
        let has_snapshot = self.now.iter().any(|kind| kind == SNAPSHOT);
        let done = fault.commit(|| match has_snapshot {
            true => fault.snapshot(|| self.store.commit()),
            false => self.store.commit(),
        });
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).push(std::mem::take(&mut self.now));
        done
    }
    fn append(&mut self, actor: ActorKey, expected: Seq, entries: &[NewEntry]) -> Done<()> {
        self.now.extend(entries.iter().map(|entry| entry.record.entry.kind().to_owned()));
        self.store.append(actor, expected, entries)
    }
    fn rollback(&mut self) {
        self.now.clear();
        self.store.rollback();
    }
    fn reader(&mut self) -> Done<Box<dyn StoreReader>> {
        self.store.reader()
    }
    fn mailbox(&mut self) -> &mut dyn Mailbox {
        self.store.mailbox()
    }
    fn wake_ups(&self) -> Arc<dyn WakeUps> {
        self.store.wake_ups()
    }
    fn leases(&self) -> Arc<dyn RunLeases> {
        self.store.leases()
    }
    fn begin(&mut self) -> Done<()> {
        self.store.begin()
    }
    fn change_marker(&mut self) -> Done<u64> {
        self.store.change_marker()
    }
    fn put_effect(&mut self, effect: &OpenEffect) -> Done<()> {
        self.store.put_effect(effect)
    }
    fn close_effect(&mut self, id: EffectId) -> Done<()> {
        self.store.close_effect(id)
    }
    fn request_abort(&mut self, id: EffectId) -> Done<()> {
        self.store.request_abort(id)
    }
    fn open_effects(&mut self, run: RunId) -> Done<Vec<OpenEffect>> {
        self.store.open_effects(run)
    }
    fn has_post(&mut self, actor: ActorKey, dedup: &str) -> Done<bool> {
        self.store.has_post(actor, dedup)
    }
    fn mark_post(&mut self, actor: ActorKey, dedup: &str) -> Done<()> {
        self.store.mark_post(actor, dedup)
    }
    fn put_run(&mut self, run: &StoredRun) -> Done<()> {
        self.store.put_run(run)
    }
    fn put_blob(&mut self, id: &BlobId, body: &[u8]) -> Done<()> {
        self.store.put_blob(id, body)
    }
    fn remove_run(&mut self, run: RunId) -> Done<()> {
        self.store.remove_run(run)
    }
    fn remove_blobs(&mut self, names: &[BlobId]) -> Done<()> {
        self.store.remove_blobs(names)
    }
    fn settle(&mut self) -> Done<()> {
        self.store.settle()
    }
    fn shrink(&mut self) -> Done<()> {
        self.store.shrink()
    }
    fn owner_epoch(&mut self, run: RunId) -> Done<u64> {
        self.store.owner_epoch(run)
    }
    fn bump_owner_epoch(&mut self, run: RunId) -> Done<u64> {
        self.store.bump_owner_epoch(run)
    }
}
