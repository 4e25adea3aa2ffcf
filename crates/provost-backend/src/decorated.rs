//! A store with other transactions: for tests that fail or end at a commit, and for measurements.

use std::sync::Arc;

use provost_event::{ActorKey, BlobId, EffectId, Record, RunId, Seq};
use provost_harness::{BackendError, PlacedEntry, RunCursor, RunPosition};

use crate::{Mailbox, NewEntry, OpenEffect, RunLeases, SessionStore, StoreReader, StoredRun, WakeUps};

/// What happens around the transactions of a store. Each method stands in for that of [`SessionStore`] and calls it
/// unless overridden.
pub trait Transactions<S: SessionStore>: Send + 'static {
    /// See [`SessionStore::begin`].
    ///
    /// # Errors
    /// As there.
    fn begin(&mut self, store: &mut S) -> Result<(), BackendError> {
        store.begin()
    }

    /// See [`SessionStore::append`].
    ///
    /// # Errors
    /// As there.
    fn append(
        &mut self,
        store: &mut S,
        actor: ActorKey,
        expected: Seq,
        entries: &[NewEntry],
    ) -> Result<RunPosition, BackendError> {
        store.append(actor, expected, entries)
    }

    /// See [`SessionStore::commit`].
    ///
    /// # Errors
    /// As there.
    fn commit(&mut self, store: &mut S) -> Result<(), BackendError> {
        store.commit()
    }

    /// See [`SessionStore::rollback`].
    fn rollback(&mut self, store: &mut S) {
        store.rollback();
    }
}

/// A store whose transactions go through [`Transactions`].
#[derive(Debug)]
pub struct DecoratedStore<S, T> {
    store: S,
    transactions: T,
}

impl<S, T> DecoratedStore<S, T> {
    /// `store`, with these transactions.
    pub const fn new(store: S, transactions: T) -> Self {
        Self { store, transactions }
    }
}

impl<S: SessionStore, T: Transactions<S>> StoreReader for DecoratedStore<S, T> {
    fn read(&mut self, actor: ActorKey, after: Seq, max: usize) -> Result<Vec<Arc<Record>>, BackendError> {
        self.store.read(actor, after, max)
    }
    fn head(&mut self, actor: ActorKey) -> Result<Seq, BackendError> {
        self.store.head(actor)
    }
    fn newest_snapshot(&mut self, actor: ActorKey) -> Result<Option<Arc<Record>>, BackendError> {
        self.store.newest_snapshot(actor)
    }
    fn actors(&mut self, run: RunId) -> Result<Vec<ActorKey>, BackendError> {
        self.store.actors(run)
    }
    fn order(
        &mut self,
        run: RunId,
        after: RunPosition,
        max: usize,
    ) -> Result<Vec<PlacedEntry>, BackendError> {
        self.store.order(run, after, max)
    }
    fn run_head(&mut self, run: RunId) -> Result<RunPosition, BackendError> {
        self.store.run_head(run)
    }
    fn runs(&mut self, after: Option<RunCursor>, max: usize) -> Result<Vec<StoredRun>, BackendError> {
        self.store.runs(after, max)
    }
    fn run(&mut self, run: RunId) -> Result<Option<StoredRun>, BackendError> {
        self.store.run(run)
    }
    fn runs_with_prefix(&mut self, prefix: &str, max: usize) -> Result<Vec<StoredRun>, BackendError> {
        self.store.runs_with_prefix(prefix, max)
    }
    fn blobs(&mut self) -> Result<Vec<BlobId>, BackendError> {
        self.store.blobs()
    }
    fn get_blob(&mut self, id: &BlobId) -> Result<Option<Vec<u8>>, BackendError> {
        self.store.get_blob(id)
    }
}

impl<S: SessionStore, T: Transactions<S>> SessionStore for DecoratedStore<S, T> {
    fn reader(&mut self) -> Result<Box<dyn StoreReader>, BackendError> {
        self.store.reader()
    }
    fn leases(&self) -> Arc<dyn RunLeases> {
        self.store.leases()
    }
    fn mailbox(&mut self) -> &mut dyn Mailbox {
        self.store.mailbox()
    }
    fn wake_ups(&self) -> Arc<dyn WakeUps> {
        self.store.wake_ups()
    }
    fn begin(&mut self) -> Result<(), BackendError> {
        self.transactions.begin(&mut self.store)
    }
    fn commit(&mut self) -> Result<(), BackendError> {
        self.transactions.commit(&mut self.store)
    }
    fn rollback(&mut self) {
        self.transactions.rollback(&mut self.store);
    }
    fn settle(&mut self) -> Result<(), BackendError> {
        self.store.settle()
    }
    fn change_marker(&mut self) -> Result<u64, BackendError> {
        self.store.change_marker()
    }
    fn append(
        &mut self,
        actor: ActorKey,
        expected: Seq,
        entries: &[NewEntry],
    ) -> Result<RunPosition, BackendError> {
        self.transactions.append(&mut self.store, actor, expected, entries)
    }
    fn put_effect(&mut self, effect: &OpenEffect) -> Result<(), BackendError> {
        self.store.put_effect(effect)
    }
    fn close_effect(&mut self, id: EffectId) -> Result<(), BackendError> {
        self.store.close_effect(id)
    }
    fn request_abort(&mut self, id: EffectId) -> Result<(), BackendError> {
        self.store.request_abort(id)
    }
    fn open_effects(&mut self, run: RunId) -> Result<Vec<OpenEffect>, BackendError> {
        self.store.open_effects(run)
    }
    fn has_post(&mut self, actor: ActorKey, dedup: &str) -> Result<bool, BackendError> {
        self.store.has_post(actor, dedup)
    }
    fn mark_post(&mut self, actor: ActorKey, dedup: &str) -> Result<(), BackendError> {
        self.store.mark_post(actor, dedup)
    }
    fn put_run(&mut self, run: &StoredRun) -> Result<(), BackendError> {
        self.store.put_run(run)
    }
    fn put_blob(&mut self, id: &BlobId, body: &[u8]) -> Result<(), BackendError> {
        self.store.put_blob(id, body)
    }
    fn remove_run(&mut self, run: RunId) -> Result<(), BackendError> {
        self.store.remove_run(run)
    }
    fn remove_blobs(&mut self, names: &[BlobId]) -> Result<(), BackendError> {
        self.store.remove_blobs(names)
    }
    fn shrink(&mut self) -> Result<(), BackendError> {
        self.store.shrink()
    }
    fn owner_epoch(&mut self, run: RunId) -> Result<u64, BackendError> {
        self.store.owner_epoch(run)
    }
    fn bump_owner_epoch(&mut self, run: RunId) -> Result<u64, BackendError> {
        self.store.bump_owner_epoch(run)
    }
}
