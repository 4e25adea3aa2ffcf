//! The decisions on one post and on the messages it causes, in memory, before anything is written.

use std::collections::VecDeque;

use provost_engine::{EffectRequest, Event, Now};
use provost_event::{ActorKey, Elapsed, Record, Seq};
use provost_harness::BackendError;

use crate::cache::Cache;
use crate::{NewEntry, SessionStore};

/// Maximum messages caused by one post; more than that is a loop between actors. All of a run's agents may get a
/// message at once.
const MESSAGES_MAX: usize = 1_000_000;

/// The change of one actor in one step.
pub(crate) struct Change {
    pub(crate) actor: ActorKey,
    pub(crate) before: Seq,
    pub(crate) entries: Vec<NewEntry>,
    pub(crate) effects: Vec<EffectRequest>,
    pub(crate) closed: Vec<Seq>,
    pub(crate) aborts: Vec<Seq>,
}

/// The result of a post.
pub(crate) struct Decided {
    pub(crate) changes: Vec<Change>,
    pub(crate) head: Seq,
    pub(crate) changed: bool,
    /// The run's elapsed time, as far as these actors know.
    pub(crate) elapsed: Elapsed,
}

/// Has `key` decide on `event`, and the actors that get messages on those. Each step is a change of its own, so
/// that a backend without transactions may store them one by one.
///
/// # Errors
/// When a log can't be read; the states are unchanged then.
pub(crate) fn decide(
    cache: &mut Cache,
    store: &mut dyn SessionStore,
    (key, event): (ActorKey, Event),
    now: Now,
) -> Result<Decided, BackendError> {
    let mut changes = Vec::new();
    match chain(cache, store, (key, event), now, &mut changes) {
        Ok(Chained { changed, elapsed }) => {
            let head = cache.get(key, store)?.head();
            Ok(Decided { changes, head, changed, elapsed })
        }
        Err(error) => {
            changes.iter().for_each(|change| cache.forget(change.actor));
            Err(error)
        }
    }
}

/// The result of a chain of steps, besides their changes.
struct Chained {
    /// Whether the first actor accepted the post.
    changed: bool,
    elapsed: Elapsed,
}

fn chain(
    cache: &mut Cache,
    store: &mut dyn SessionStore,
    post: (ActorKey, Event),
    mut now: Now,
    changes: &mut Vec<Change>,
) -> Result<Chained, BackendError> {
    let mut first_changed = None;
    let mut waiting = VecDeque::from([post]);
    let mut steps = 0;
    while let Some((actor, event)) = waiting.pop_front() {
        steps += 1;
        if steps > MESSAGES_MAX {
            return Err(endless(actor));
        }
        let state = cache.get(actor, store)?;
        // If no clock of this process has measured it, it is at least what these actors know.
        now.elapsed = now.elapsed.max(state.elapsed());
        let step = state.decide(event, now);
        // A fork's log begins after the entries it refers to, not at the previous head.
        let before = Seq(state.head().0.saturating_sub(step.entries.len() as u64));
        let changed = !step.is_empty();
        first_changed.get_or_insert(changed);
        if !changed {
            continue;
        }
        changes.push(Change {
            actor,
            before,
            entries: Vec::with_capacity(step.entries.len()),
            effects: step.effects,
            // One that has its result isn't performed any more, like one that is over.
            closed: step.closed.into_iter().chain(step.held.into_iter().map(|held| held.seq)).collect(),
            aborts: step.aborts,
        });
        if let Some(change) = changes.last_mut() {
            number(change, step.entries, now)?;
        }
        waiting.extend(step.messages.into_iter().map(|message| (message.to, message.event)));
    }
    Ok(Chained { changed: first_changed.unwrap_or(false), elapsed: now.elapsed })
}

fn number(change: &mut Change, entries: Vec<provost_event::Entry>, now: Now) -> Result<(), BackendError> {
    let mut seq = change.before;
    for entry in entries {
        seq = seq.next();
        change.entries.push(NewEntry::new(Record {
            actor: change.actor,
            seq,
            at: now.at,
            elapsed: now.elapsed,
            entry,
        })?);
    }
    Ok(())
}

fn endless(actor: ActorKey) -> BackendError {
    BackendError::Storage {
        attempt: "decide",
        message: format!("{actor} and others answer each other without end"),
        hint: None,
    }
}
