//! In-memory actor states: folds of logs, kept while their runs are served.

use std::collections::hash_map::Entry;

use foldhash::HashMap;
use provost_engine::Actor;
use provost_event::{ActorKey, RunId, Seq};
use provost_harness::BackendError;

use crate::SessionStore;

/// Maximum cached states; above that, the least recently used ones of unserved runs are evicted.
const STATES_MAX: usize = 4096;
/// States that remain after an eviction.
const STATES_KEPT: usize = 3072;
/// Records read at a time while folding.
const FOLD_AT_ONCE: usize = 1024;

/// The states.
#[derive(Default)]
pub(crate) struct Cache {
    states: HashMap<ActorKey, Cached>,
    /// Incremented whenever another process may have written.
    generation: u64,
    used: u64,
    /// States at which the next eviction runs.
    max: Max,
}

/// Starts at the named limit.
struct Max(usize);

impl Default for Max {
    fn default() -> Self {
        Self(STATES_MAX)
    }
}

struct Cached {
    actor: Actor,
    generation: u64,
    used: u64,
}

impl Cache {
    /// From here on every state is compared with its log before its next use.
    pub(crate) const fn distrust(&mut self) {
        self.generation += 1;
    }

    /// The state of `key` by its log.
    ///
    /// # Errors
    /// When the log can't be read or is inconsistent; nothing is cached then.
    pub(crate) fn get(
        &mut self,
        key: ActorKey,
        store: &mut dyn SessionStore,
    ) -> Result<&mut Actor, BackendError> {
        self.used += 1;
        let (generation, used) = (self.generation, self.used);
        let cached = match self.states.entry(key) {
            Entry::Vacant(place) => place.insert(Cached { actor: read_back(key, store)?, generation, used }),
            Entry::Occupied(mut place) => {
                if place.get().generation != generation
                    && let Err(error) = catch_up(&mut place.get_mut().actor, key, store)
                {
                    place.remove();
                    return Err(error);
                }
                place.into_mut()
            }
        };
        cached.generation = generation;
        cached.used = used;
        Ok(&mut cached.actor)
    }

    /// Drops the state of `key`, which differs from its log.
    pub(crate) fn forget(&mut self, key: ActorKey) {
        self.states.remove(&key);
    }

    /// Drops the state of `key` if it is final, and others if there are too many. A state of a served run stays:
    /// it may hold results that its log doesn't have yet.
    pub(crate) fn tidy(&mut self, key: ActorKey, is_worked_on: impl Fn(RunId) -> bool) {
        if self.states.get(&key).is_some_and(|cached| cached.actor.has_ended()) {
            self.states.remove(&key);
        }
        if self.states.len() > self.max.0 {
            let mut used = self.states.values().map(|cached| cached.used).collect::<Vec<_>>();
            used.sort_unstable();
            let oldest = used.get(used.len() - STATES_KEPT).copied().unwrap_or_default();
            self.states.retain(|key, cached| cached.used >= oldest || is_worked_on(key.run()));
            // If most runs are served, the next eviction waits until it pays off.
            self.max.0 = STATES_MAX.max(self.states.len() + STATES_MAX - STATES_KEPT);
        }
    }
}

/// The state of `key` from its log: the newest snapshot and the entries after it, or else all entries.
fn read_back(key: ActorKey, store: &mut dyn SessionStore) -> Result<Actor, BackendError> {
    let mut actor = restore(key, store)?.unwrap_or_else(|| Actor::new(key));
    catch_up(&mut actor, key, store)?;
    Ok(actor)
}

/// The state from the newest snapshot, if there is a usable one.
fn restore(key: ActorKey, store: &mut dyn SessionStore) -> Result<Option<Actor>, BackendError> {
    let Some(snapshot) = store.newest_snapshot(key)? else { return Ok(None) };
    let first = store.read(key, Seq::START, 1)?;
    let restored = first.first().and_then(|first| Actor::restore(first, &snapshot));
    // Nothing follows an end, so no snapshot was taken there.
    let restored = restored.filter(|actor| !actor.has_ended());
    if restored.is_none() {
        tracing::debug!(actor = %key, seq = %snapshot.seq, "a snapshot can't be used: it is passed over");
    }
    Ok(restored)
}

/// Folds in the entries that `actor` hasn't seen.
fn catch_up(actor: &mut Actor, key: ActorKey, store: &mut dyn SessionStore) -> Result<(), BackendError> {
    let head = store.head(key)?;
    while actor.head() < head {
        let records = store.read(key, actor.head(), FOLD_AT_ONCE)?;
        if records.is_empty() {
            return Err(unreadable(key, actor.head().next(), "it isn't there"));
        }
        for record in &records {
            actor.replay(record).map_err(|error| unreadable(key, record.seq, &error.to_string()))?;
        }
    }
    if actor.head() > head {
        return Err(unreadable(key, head.next(), "it was there and is gone"));
    }
    Ok(())
}

fn unreadable(actor: ActorKey, seq: Seq, message: &str) -> BackendError {
    BackendError::Unreadable { actor, seq, message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use provost_event::Outcome;

    use super::*;
    use crate::MemoryStore;

    fn key(number: usize) -> ActorKey {
        RunId::from_entropy(number as u64).into()
    }

    #[test]
    fn states_are_bounded_but_those_worked_on_stay() {
        let (mut cache, mut store) = (Cache::default(), MemoryStore::new());
        let worked_on = |run: RunId| run < RunId::from_entropy(100);
        for number in 0..3 * STATES_MAX {
            cache.get(key(number), &mut store).unwrap();
            cache.tidy(key(number), worked_on);
            assert!(cache.states.len() <= STATES_MAX + 100, "{}", cache.states.len());
        }
        assert!((0..100).all(|number| cache.states.contains_key(&key(number))));
        assert!(cache.states.contains_key(&key(3 * STATES_MAX - 1)), "the last one used is there");
    }

    #[test]
    fn many_that_are_worked_on_all_stay() {
        let (mut cache, mut store) = (Cache::default(), MemoryStore::new());
        for number in 0..2 * STATES_MAX {
            cache.get(key(number), &mut store).unwrap();
            cache.tidy(key(number), |_| true);
        }
        assert_eq!(cache.states.len(), 2 * STATES_MAX);
    }

    #[test]
    fn what_has_ended_goes_at_once() {
        let (mut cache, mut store) = (Cache::default(), MemoryStore::new());
        let actor = key(1);
        let ended = provost_event::Ended { outcome: Outcome::Cancelled { by: "ann".to_owned() } };
        let record = provost_event::Record {
            actor,
            seq: Seq(1),
            at: provost_event::Timestamp(1),
            elapsed: provost_event::Elapsed(1),
            entry: ended.into(),
        };
        store.begin().unwrap();
        store.append(actor, Seq::START, &[crate::NewEntry::new(record).unwrap()]).unwrap();
        store.commit().unwrap();
        cache.get(actor, &mut store).unwrap();
        cache.tidy(actor, |_| true);
        assert!(cache.states.is_empty());
    }
}
