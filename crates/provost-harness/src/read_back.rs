//! Restores an actor's state from its log: from the newest snapshot and the entries after it, or from all of it.

use provost_engine::Actor;
use provost_event::{ActorKey, Seq};

use crate::{BackendError, Log};

/// Entries read at a time.
const READ_MAX: usize = 1_000;

/// The current state of `key` by its log; the actor before its first entry if the log is empty. If the log has a
/// snapshot, its first entry, the newest snapshot and later entries are read. An unusable snapshot is ignored:
/// then, and if the backend finds none, the whole log is read.
///
/// # Errors
/// When the log can't be read or is invalid.
pub(crate) async fn state(backend: &(impl Log + ?Sized), key: ActorKey) -> Result<Actor, BackendError> {
    let mut actor = restore(backend, key).await?.unwrap_or_else(|| Actor::new(key));
    catch_up(backend, key, &mut actor).await?;
    Ok(actor)
}

/// The state from the newest snapshot, if there is a usable one.
async fn restore(backend: &(impl Log + ?Sized), key: ActorKey) -> Result<Option<Actor>, BackendError> {
    let Some(snapshot) = backend.newest_snapshot(key).await? else { return Ok(None) };
    let first = backend.read(key, Seq::START, 1).await?;
    let restored = first.first().and_then(|first| Actor::restore(first, &snapshot));
    // Nothing follows an end, so no snapshot was taken there.
    let restored = restored.filter(|actor| !actor.has_ended());
    if restored.is_none() {
        tracing::debug!(actor = %key, seq = %snapshot.seq, "a snapshot can't be used: it is passed over");
    }
    Ok(restored)
}

/// Folds in later entries of the log of `key`.
///
/// # Errors
/// When the log can't be read, or later entries don't continue the state.
pub(crate) async fn catch_up(
    backend: &(impl Log + ?Sized),
    key: ActorKey,
    actor: &mut Actor,
) -> Result<(), BackendError> {
    loop {
        let records = backend.read(key, actor.head(), READ_MAX).await?;
        if records.is_empty() {
            return Ok(());
        }
        for record in records {
            actor.replay(&record).map_err(|error| BackendError::Unreadable {
                actor: key,
                seq: record.seq,
                message: error.to_string(),
            })?;
        }
    }
}
