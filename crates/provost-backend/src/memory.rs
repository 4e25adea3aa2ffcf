//! A store in memory, for tests: clones share one place, as processes share a database.

mod mailbox;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use provost_event::{ActorKey, BlobId, EffectId, Entry, LifecycleEntry, Record, RunId, Seq};
use provost_harness::{BackendError, PlacedEntry, RunCursor, RunPosition};

use crate::store::log_begins;
use crate::{
    LocalLeases, LocalWakeUps, Mailbox, NewEntry, OpenEffect, RunLeases, SessionStore, StoreReader,
    StoredRun, WakeUps,
};

/// Keeps everything in memory. A clone acts like another process with the same database.
pub struct MemoryStore {
    place: Arc<SharedMemory>,
    undo: Vec<Undo>,
    writing: bool,
    commits: u64,
}

/// Undoes one write.
type Undo = Box<dyn FnOnce(&mut Data) + Send>;

#[derive(Default)]
struct SharedMemory {
    data: Mutex<Data>,
    free: Condvar,
    leases: LocalLeases,
    wake_ups: LocalWakeUps,
}

#[derive(Default)]
struct Data {
    /// Whether a transaction is open; readers wait for its end.
    writing: bool,
    commits: u64,
    logs: HashMap<ActorKey, Vec<Arc<Record>>>,
    orders: HashMap<RunId, Vec<PlacedEntry>>,
    /// Records ever appended.
    appended: u64,
    effects: BTreeMap<RunId, BTreeMap<EffectId, OpenEffect>>,
    posts: BTreeSet<(ActorKey, String)>,
    runs: HashMap<RunId, StoredRun>,
    epochs: HashMap<RunId, u64>,
    blobs: HashMap<BlobId, Vec<u8>>,
    requests: mailbox::Requests,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::at(Arc::default())
    }

    const fn at(place: Arc<SharedMemory>) -> Self {
        Self { place, undo: Vec::new(), writing: false, commits: 0 }
    }

    fn look(&self) -> MutexGuard<'_, Data> {
        if self.writing { self.place.lock() } else { self.place.lock_free() }
    }

    fn write<T>(&mut self, write: impl FnOnce(&mut Data) -> (T, Option<Undo>)) -> T {
        let (result, undo) = write(&mut self.place.lock());
        self.undo.extend(undo);
        result
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl Clone for MemoryStore {
    fn clone(&self) -> Self {
        Self::at(Arc::clone(&self.place))
    }
}

impl Drop for MemoryStore {
    fn drop(&mut self) {
        self.rollback();
    }
}

impl SharedMemory {
    fn lock(&self) -> MutexGuard<'_, Data> {
        self.data.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_free(&self) -> MutexGuard<'_, Data> {
        self.free.wait_while(self.lock(), |data| data.writing).unwrap_or_else(PoisonError::into_inner)
    }
}

impl Data {
    fn log(&self, actor: ActorKey) -> &[Arc<Record>] {
        self.logs.get(&actor).map_or(&[], Vec::as_slice)
    }

    fn head(&self, actor: ActorKey) -> Seq {
        self.log(actor).last().map_or(Seq::START, |record| record.seq)
    }

    fn effects(&mut self, id: EffectId) -> &mut BTreeMap<EffectId, OpenEffect> {
        self.effects.entry(id.actor.run()).or_default()
    }

    fn set_effect(&mut self, id: EffectId, effect: Option<OpenEffect>) -> Option<OpenEffect> {
        let of_run = self.effects(id);
        let before = match effect {
            Some(effect) => of_run.insert(id, effect),
            None => of_run.remove(&id),
        };
        if of_run.is_empty() {
            self.effects.remove(&id.actor.run());
        }
        before
    }
}

impl StoreReader for MemoryStore {
    fn read(&mut self, actor: ActorKey, after: Seq, max: usize) -> Result<Vec<Arc<Record>>, BackendError> {
        let data = self.look();
        let log = data.log(actor);
        let start = log.partition_point(|record| record.seq <= after);
        Ok(log.iter().skip(start).take(max).cloned().collect())
    }

    fn head(&mut self, actor: ActorKey) -> Result<Seq, BackendError> {
        Ok(self.look().head(actor))
    }

    fn newest_snapshot(&mut self, actor: ActorKey) -> Result<Option<Arc<Record>>, BackendError> {
        let is_snapshot =
            |record: &&Arc<Record>| matches!(record.entry, Entry::Lifecycle(LifecycleEntry::Snapshot(_)));
        Ok(self.look().log(actor).iter().rev().find(is_snapshot).cloned())
    }

    fn actors(&mut self, run: RunId) -> Result<Vec<ActorKey>, BackendError> {
        let mut actors = self.look().logs.keys().filter(|key| key.run() == run).copied().collect::<Vec<_>>();
        actors.sort_unstable();
        Ok(actors)
    }

    fn order(
        &mut self,
        run: RunId,
        after: RunPosition,
        max: usize,
    ) -> Result<Vec<PlacedEntry>, BackendError> {
        let data = self.look();
        let order = data.orders.get(&run).map_or(&[][..], Vec::as_slice);
        let start = order.partition_point(|place| place.position <= after);
        Ok(order.iter().skip(start).take(max).copied().collect())
    }

    fn run_head(&mut self, run: RunId) -> Result<RunPosition, BackendError> {
        let data = self.look();
        let last = data.orders.get(&run).and_then(|order| order.last());
        Ok(last.map_or(RunPosition::START, |last| last.position))
    }

    fn runs(&mut self, after: Option<RunCursor>, max: usize) -> Result<Vec<StoredRun>, BackendError> {
        let data = self.look();
        let mut runs = data.runs.values().collect::<Vec<_>>();
        runs.retain(|run| after.is_none_or(|after| run.cursor() < after));
        runs.sort_unstable_by_key(|run| std::cmp::Reverse(run.cursor()));
        Ok(runs.into_iter().take(max).cloned().collect())
    }

    fn run(&mut self, run: RunId) -> Result<Option<StoredRun>, BackendError> {
        Ok(self.look().runs.get(&run).cloned())
    }

    fn runs_with_prefix(&mut self, prefix: &str, max: usize) -> Result<Vec<StoredRun>, BackendError> {
        let data = self.look();
        let fits = |run: &&RunId| !prefix.is_empty() && run.to_string().starts_with(prefix);
        let fitting = data.runs.keys().filter(fits).collect::<BTreeSet<_>>();
        Ok(fitting.into_iter().take(max).filter_map(|run| data.runs.get(run)).cloned().collect())
    }

    fn blobs(&mut self) -> Result<Vec<BlobId>, BackendError> {
        Ok(self.look().blobs.keys().cloned().collect())
    }

    fn get_blob(&mut self, id: &BlobId) -> Result<Option<Vec<u8>>, BackendError> {
        Ok(self.look().blobs.get(id).cloned())
    }
}

impl SessionStore for MemoryStore {
    fn reader(&mut self) -> Result<Box<dyn StoreReader>, BackendError> {
        Ok(Box::new(self.clone()))
    }

    fn leases(&self) -> Arc<dyn RunLeases> {
        Arc::new(self.place.leases.clone())
    }

    fn mailbox(&mut self) -> &mut dyn Mailbox {
        self
    }

    fn wake_ups(&self) -> Arc<dyn WakeUps> {
        Arc::new(self.place.wake_ups.clone())
    }

    fn begin(&mut self) -> Result<(), BackendError> {
        self.place.lock_free().writing = true;
        self.writing = true;
        Ok(())
    }

    fn commit(&mut self) -> Result<(), BackendError> {
        let mut data = self.place.lock();
        if !self.undo.is_empty() {
            data.commits += 1;
            self.commits += 1;
        }
        data.writing = false;
        drop(data);
        self.undo.clear();
        self.writing = false;
        self.place.free.notify_all();
        Ok(())
    }

    fn rollback(&mut self) {
        if !std::mem::take(&mut self.writing) {
            return;
        }
        let mut data = self.place.lock();
        for undo in self.undo.drain(..).rev() {
            undo(&mut data);
        }
        data.writing = false;
        drop(data);
        self.place.free.notify_all();
    }

    fn change_marker(&mut self) -> Result<u64, BackendError> {
        Ok(self.look().commits - self.commits)
    }

    fn append(
        &mut self,
        actor: ActorKey,
        expected: Seq,
        entries: &[NewEntry],
    ) -> Result<RunPosition, BackendError> {
        self.write(|data| {
            let before = data.log(actor).is_empty().then(|| log_begins(entries));
            if before.unwrap_or_else(|| data.head(actor)) != expected {
                return (Err(BackendError::Conflict { actor }), None);
            }
            if entries.is_empty() {
                return (Ok(RunPosition(data.appended)), None);
            }
            let log = data.logs.entry(actor).or_default();
            let before = log.len();
            log.extend(entries.iter().map(|entry| Arc::clone(&entry.record)));
            let order = data.orders.entry(actor.run()).or_default();
            let placed_before = order.len();
            for entry in entries {
                data.appended += 1;
                order.push(PlacedEntry {
                    position: RunPosition(data.appended),
                    actor,
                    seq: entry.record.seq,
                });
            }
            let undo: Undo = Box::new(move |data| {
                if let Some(log) = data.logs.get_mut(&actor) {
                    log.truncate(before);
                }
                if before == 0 {
                    data.logs.remove(&actor);
                }
                if let Some(order) = data.orders.get_mut(&actor.run()) {
                    order.truncate(placed_before);
                }
            });
            (Ok(RunPosition(data.appended)), Some(undo))
        })
    }

    fn put_effect(&mut self, effect: &OpenEffect) -> Result<(), BackendError> {
        let (id, effect) = (effect.id, effect.clone());
        self.write(|data| {
            let before = data.set_effect(id, Some(effect));
            ((), Some(Box::new(move |data| drop(data.set_effect(id, before)))))
        });
        Ok(())
    }

    fn close_effect(&mut self, id: EffectId) -> Result<(), BackendError> {
        self.write(|data| {
            let before = data.set_effect(id, None);
            ((), Some(Box::new(move |data| drop(data.set_effect(id, before)))))
        });
        Ok(())
    }

    fn request_abort(&mut self, id: EffectId) -> Result<(), BackendError> {
        let before = self.look().effects.get(&id.actor.run()).and_then(|of_run| of_run.get(&id)).cloned();
        match before {
            Some(effect) => self.put_effect(&OpenEffect { abort: true, ..effect }),
            None => Ok(()),
        }
    }

    fn open_effects(&mut self, run: RunId) -> Result<Vec<OpenEffect>, BackendError> {
        let data = self.look();
        Ok(data.effects.get(&run).map(|of_run| of_run.values().cloned().collect()).unwrap_or_default())
    }

    fn has_post(&mut self, actor: ActorKey, dedup: &str) -> Result<bool, BackendError> {
        Ok(self.look().posts.contains(&(actor, dedup.to_owned())))
    }

    fn mark_post(&mut self, actor: ActorKey, dedup: &str) -> Result<(), BackendError> {
        let post = (actor, dedup.to_owned());
        self.write(|data| {
            let is_new = data.posts.insert(post.clone());
            let undo: Undo = Box::new(move |data| {
                data.posts.remove(&post);
            });
            ((), is_new.then_some(undo))
        });
        Ok(())
    }

    fn put_run(&mut self, run: &StoredRun) -> Result<(), BackendError> {
        let (key, run) = (run.run, run.clone());
        self.write(|data| {
            let before = data.runs.insert(key, run);
            ((), Some(Box::new(move |data| set(&mut data.runs, key, before))))
        });
        Ok(())
    }

    fn put_blob(&mut self, id: &BlobId, body: &[u8]) -> Result<(), BackendError> {
        let (id, body) = (id.clone(), body.to_owned());
        self.write(|data| {
            let before = data.blobs.insert(id.clone(), body);
            ((), Some(Box::new(move |data| set(&mut data.blobs, id, before))))
        });
        Ok(())
    }

    fn remove_run(&mut self, run: RunId) -> Result<(), BackendError> {
        self.write(|data| {
            let logs = data.logs.extract_if(|key, _| key.run() == run).collect::<Vec<_>>();
            let posts = data.posts.extract_if(.., |(key, _)| key.run() == run).collect::<Vec<_>>();
            let effects = data.effects.remove(&run);
            let row = data.runs.remove(&run);
            let epoch = data.epochs.remove(&run);
            let order = data.orders.remove(&run);
            let requests = data.requests.remove_run(run);
            let undo: Undo = Box::new(move |data| {
                data.logs.extend(logs);
                data.posts.extend(posts);
                data.effects.extend(effects.map(|effects| (run, effects)));
                data.runs.extend(row.map(|row| (run, row)));
                data.epochs.extend(epoch.map(|epoch| (run, epoch)));
                data.orders.extend(order.map(|order| (run, order)));
                data.requests.put_back(requests);
            });
            ((), Some(undo))
        });
        Ok(())
    }

    fn remove_blobs(&mut self, names: &[BlobId]) -> Result<(), BackendError> {
        self.write(|data| {
            let removed = data.blobs.extract_if(|name, _| names.contains(name)).collect::<Vec<_>>();
            let undo: Undo = Box::new(move |data| data.blobs.extend(removed));
            ((), Some(undo))
        });
        Ok(())
    }

    fn owner_epoch(&mut self, run: RunId) -> Result<u64, BackendError> {
        Ok(self.look().epochs.get(&run).copied().unwrap_or_default())
    }

    fn bump_owner_epoch(&mut self, run: RunId) -> Result<u64, BackendError> {
        Ok(self.write(|data| {
            let before = data.epochs.get(&run).copied();
            let epoch = before.unwrap_or_default() + 1;
            data.epochs.insert(run, epoch);
            (epoch, Some(Box::new(move |data| set(&mut data.epochs, run, before))))
        }))
    }
}

fn set<K: Eq + std::hash::Hash, V>(map: &mut HashMap<K, V>, key: K, value: Option<V>) {
    match value {
        Some(value) => drop(map.insert(key, value)),
        None => drop(map.remove(&key)),
    }
}
