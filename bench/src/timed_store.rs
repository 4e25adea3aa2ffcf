//! A store that counts another's commits and the CPU time within them, and can make them slower.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use provost_event::{ActorKey, BlobId, EffectId, Record, RunId, Seq};
use provost_harness::BackendError;
use provost_store::{Mailbox, NewEntry, OpenEffect, RunLeases, SessionStore, StoreReader, StoredRun, WakeUps};

use crate::measure::thread_cpu;

/// What the commits of a store have cost so far.
#[derive(Default)]
pub(crate) struct Spent {
    commits: AtomicUsize,
    nanoseconds: AtomicU64,
}

impl Spent {
    /// How many, and their CPU time.
    pub(crate) fn so_far(&self) -> (usize, Duration) {
        let nanoseconds = self.nanoseconds.load(Ordering::Relaxed);
        (self.commits.load(Ordering::Relaxed), Duration::from_nanos(nanoseconds))
    }
}

/// The store.
pub(crate) struct TimedStore<S> {
    store: S,
    spent: Arc<Spent>,
    wait: Duration,
}

impl<S> TimedStore<S> {
    /// Waits for `wait` at each commit, as if the disk took that much longer to sync.
    pub(crate) const fn new(store: S, spent: Arc<Spent>, wait: Duration) -> Self {
        Self { store, spent, wait }
    }
}

type Done<T> = Result<T, BackendError>;

impl<S: SessionStore> StoreReader for TimedStore<S> {
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

impl<S: SessionStore> SessionStore for TimedStore<S> {
    fn commit(&mut self) -> Done<()> {
        if !self.wait.is_zero() {
            std::thread::sleep(self.wait);
        }
        let before = thread_cpu();
        let done = self.store.commit();
        let taken = thread_cpu().saturating_sub(before).as_nanos();
        self.spent.commits.fetch_add(1, Ordering::Relaxed);
        self.spent.nanoseconds.fetch_add(u64::try_from(taken).unwrap_or(u64::MAX), Ordering::Relaxed);
        done
    }
    fn mailbox(&mut self) -> &mut dyn Mailbox {
        self.store.mailbox()
    }
    fn wake_ups(&self) -> Arc<dyn WakeUps> {
        self.store.wake_ups()
    }
    fn reader(&mut self) -> Done<Box<dyn StoreReader>> {
        self.store.reader()
    }
    fn leases(&self) -> Arc<dyn RunLeases> {
        self.store.leases()
    }
    fn begin(&mut self) -> Done<()> {
        self.store.begin()
    }
    fn rollback(&mut self) {
        self.store.rollback();
    }
    fn change_marker(&mut self) -> Done<u64> {
        self.store.change_marker()
    }
    fn append(&mut self, actor: ActorKey, expected: Seq, entries: &[NewEntry]) -> Done<()> {
        self.store.append(actor, expected, entries)
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
