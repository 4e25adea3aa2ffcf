//! How an actor stands, read back from its log: from the newest snapshot in it and what follows, or from all of it.

use provost_engine::Actor;
use provost_event::{ActorKey, Seq};

use crate::{Home, HomeError};

/// Entries read at a time.
const READ_MAX: usize = 1_000;

/// How `key` stands by its log as it is now; the actor before its first entry if it has none. Where the log has a
/// snapshot, its first entry, the newest snapshot and what follows are read. A snapshot that can't be used is passed
/// over: then, and where the home finds none, the whole log is read.
///
/// # Errors
/// When the log can't be read, or isn't one.
pub async fn read_actor(home: &dyn Home, key: ActorKey) -> Result<Actor, HomeError> {
    let mut actor = restore(home, key).await?.unwrap_or_else(|| Actor::new(key));
    catch_up(home, key, &mut actor).await?;
    Ok(actor)
}

/// The actor as the newest snapshot has it, if there is one that can be used.
async fn restore(home: &dyn Home, key: ActorKey) -> Result<Option<Actor>, HomeError> {
    let Some(snapshot) = home.newest_snapshot(key).await? else { return Ok(None) };
    let first = home.read(key, Seq::START, 1).await?;
    let restored = first.first().and_then(|first| Actor::restore(first, &snapshot));
    // Nothing follows an end, so none was taken of one.
    let restored = restored.filter(|actor| !actor.has_ended());
    if restored.is_none() {
        tracing::debug!(actor = %key, seq = %snapshot.seq, "a snapshot can't be used: it is passed over");
    }
    Ok(restored)
}

/// Folds in what came to the log of `key` since.
///
/// # Errors
/// When the log can't be read, or what came doesn't follow on what is there.
pub(crate) async fn catch_up(home: &dyn Home, key: ActorKey, actor: &mut Actor) -> Result<(), HomeError> {
    loop {
        let records = home.read(key, actor.head(), READ_MAX).await?;
        if records.is_empty() {
            return Ok(());
        }
        for record in records {
            actor.replay(&record).map_err(|error| HomeError::Unreadable {
                actor: key,
                seq: record.seq,
                message: error.to_string(),
            })?;
        }
    }
}
