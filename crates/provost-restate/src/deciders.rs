//! What the objects of one process share: the blob store, and the states of actors in memory.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use provost_engine::{Actor, Event, Now};
use provost_event::{ActorKey, Record, Seq};
use provost_harness::BackendError;

use crate::blobs::BlobStore;
use crate::engine::Names;
use crate::pages::Item;
use crate::state::OpenEffects;
use crate::wire::LogHead;

/// States in memory; above that the least recently used quarter goes.
const STATES_MAX: usize = 4096;
/// Entries read at a time.
const READ_AT_ONCE: usize = 1024;

pub(crate) struct Deciders {
    pub(crate) blobs: BlobStore,
    pub(crate) names: Names,
    pub(crate) effect_deadline: Duration,
    pub(crate) timer_lead: Duration,
    states: Mutex<States>,
}

#[derive(Default)]
struct States {
    known: HashMap<ActorKey, Known>,
    used: u64,
}

struct Known {
    actor: Actor,
    version: u64,
    used: u64,
}

impl Deciders {
    pub(crate) fn new(
        blobs: BlobStore,
        names: Names,
        effect_deadline: Duration,
        timer_lead: Duration,
    ) -> Self {
        Self { blobs, names, effect_deadline, timer_lead, states: Mutex::default() }
    }

    /// Takes the state of `key` out of memory, or restores it from its log. It is kept again when what it has decided
    /// is written.
    ///
    /// # Errors
    /// When the log can't be read.
    pub(crate) async fn take(
        &self,
        key: ActorKey,
        log: &LogHead,
        open: &OpenEffects,
    ) -> Result<Actor, BackendError> {
        let known = self.states().known.remove(&key).filter(|known| known.version == log.version);
        match known {
            Some(known) => Ok(known.actor),
            None => restore(key, log, open, &self.blobs).await,
        }
    }

    pub(crate) fn keep(&self, key: ActorKey, actor: Actor, version: u64) {
        if actor.has_ended() {
            return;
        }
        let mut states = self.states();
        states.used += 1;
        let used = states.used;
        states.known.insert(key, Known { actor, version, used });
        if states.known.len() > STATES_MAX {
            let mut all = states.known.values().map(|known| known.used).collect::<Vec<_>>();
            all.sort_unstable();
            let oldest = all.get(STATES_MAX / 4).copied().unwrap_or_default();
            states.known.retain(|_, known| known.used >= oldest);
        }
    }

    fn states(&self) -> std::sync::MutexGuard<'_, States> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state of `key` from its log, with the results that wait in it.
pub(crate) async fn restore(
    key: ActorKey,
    log: &LogHead,
    open: &OpenEffects,
    blobs: &BlobStore,
) -> Result<Actor, BackendError> {
    let mut actor = restore_snapshot(key, log, blobs).await?.unwrap_or_else(|| Actor::new(key));
    while actor.head() < log.head {
        let records = read_log(key, log, actor.head(), READ_AT_ONCE, blobs).await?;
        if records.is_empty() {
            return Err(unreadable(key, actor.head().next(), "it isn't there"));
        }
        for record in records {
            actor.replay(&record).map_err(|error| unreadable(key, record.seq, &error.to_string()))?;
        }
    }
    for held in open.values().filter_map(|open| open.held.as_ref()) {
        let event: Event = held.read(blobs).await?;
        // It was accepted before, and led to nothing but being kept.
        let now = Now { at: provost_event::Timestamp(0), elapsed: actor.elapsed(), entropy: 0 };
        let _ = actor.decide(event, now);
    }
    Ok(actor)
}

async fn restore_snapshot(
    key: ActorKey,
    log: &LogHead,
    blobs: &BlobStore,
) -> Result<Option<Actor>, BackendError> {
    let Some(at) = log.snapshot else { return Ok(None) };
    let first = read_log(key, log, Seq::START, 1, blobs).await?;
    let snapshot = read_log(key, log, Seq(at.0.saturating_sub(1)), 1, blobs).await?;
    let (Some(first), Some(snapshot)) = (first.first(), snapshot.first()) else { return Ok(None) };
    // Nothing follows an end, so no snapshot was taken there.
    Ok(Actor::restore(first, snapshot).filter(|actor| !actor.has_ended()))
}

/// Entries of a log after `after`, at most `max`.
pub(crate) async fn read_log(
    key: ActorKey,
    log: &LogHead,
    after: Seq,
    max: usize,
    blobs: &BlobStore,
) -> Result<Vec<Record>, BackendError> {
    let items = log.pages.read(after.0, max, blobs).await?;
    items
        .into_iter()
        .map(|Item(seq, line)| {
            Record::from_line(line.get()).map_err(|error| unreadable(key, Seq(seq), &error.to_string()))
        })
        .collect()
}

pub(crate) fn unreadable(actor: ActorKey, seq: Seq, message: &str) -> BackendError {
    BackendError::Unreadable { actor, seq, message: message.to_owned() }
}
