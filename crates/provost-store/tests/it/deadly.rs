//! The real store, whose process dies at one of its commits, as by `kill -9`.

use std::str::FromStr;
use std::sync::Arc;

use provost_event::{ActorKey, BlobId, EffectId, Record, RunId, Seq};
use provost_harness::BackendError;
use provost_store::{
    Mailbox, NewEntry, OpenEffect, RunLeases, SessionStore, SqliteStore, StoreReader, StoredRun, WakeUps,
};

/// Before or after the commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Before,
    After,
}

/// Where the process dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeathPoint {
    /// The number of the commit, from 1.
    pub(crate) commit: usize,
    pub(crate) side: Side,
}

impl std::fmt::Display for DeathPoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} {}", self.side, self.commit)
    }
}

impl FromStr for DeathPoint {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (side, commit) = text.split_once(' ').unwrap_or_default();
        let side = if side == "Before" { Side::Before } else { Side::After };
        Ok(Self { commit: commit.parse()?, side })
    }
}

pub(crate) struct Deadly {
    store: SqliteStore,
    at: Option<DeathPoint>,
    commits: usize,
}

impl Deadly {
    pub(crate) const fn new(store: SqliteStore, at: Option<DeathPoint>) -> Self {
        Self { store, at, commits: 0 }
    }
}

type Done<T> = Result<T, BackendError>;

impl StoreReader for Deadly {
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

impl SessionStore for Deadly {
    fn commit(&mut self) -> Done<()> {
        self.commits += 1;
        let at = |side| self.at == Some(DeathPoint { commit: self.commits, side });
        if at(Side::Before) {
            std::process::abort();
        }
        self.store.commit()?;
        if at(Side::After) {
            std::process::abort();
        }
        Ok(())
    }
    fn append(&mut self, actor: ActorKey, expected: Seq, entries: &[NewEntry]) -> Done<()> {
        self.store.append(actor, expected, entries)
    }
    fn rollback(&mut self) {
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
