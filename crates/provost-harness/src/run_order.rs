//! Reading the entries of all logs of a run in the order in which they were committed.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use provost_event::{ActorKey, Record, RunId, Seq};

use crate::{Backend, BackendError, PlacedEntry, PlacedRecord, RunPosition};

/// The entries of `run` after `after`, of all its logs, in the order of [`Backend::order`]; empty at the end. Returns
/// at most `max`; those before an unreadable one come first.
///
/// # Errors
/// When the order or the next entry can't be read.
pub async fn read_run(
    backend: &(impl Backend + ?Sized),
    run: RunId,
    mut after: RunPosition,
    max: usize,
) -> Result<Vec<PlacedRecord>, BackendError> {
    loop {
        let places = backend.order(run, after, max).await?;
        let Some(last) = places.last() else { return Ok(Vec::new()) };
        after = last.position;
        let (mut parts, mut failure) = (HashMap::new(), None);
        for (actor, part) in log_parts(&places) {
            let (records, error) = read_part(backend, actor, part).await;
            parts.insert(actor, records);
            failure = failure.or(error);
        }
        let mut placed = Vec::with_capacity(places.len());
        for PlacedEntry { position, actor, seq } in places {
            let part: Option<&mut VecDeque<Arc<Record>>> = parts.get_mut(&actor);
            match part.and_then(|part| part.pop_front_if(|record| record.seq == seq)) {
                Some(record) => placed.push(PlacedRecord { position, record }),
                None if failure.is_some() => break,
                // A log that is read up to its damage only.
                None => {}
            }
        }
        match failure {
            Some(error) if placed.is_empty() => return Err(error),
            _ if !placed.is_empty() => return Ok(placed),
            _ => {}
        }
    }
}

/// Of consecutive places, the entries of each log: the number of the one before the first, and how many there are.
pub fn log_parts(places: &[PlacedEntry]) -> BTreeMap<ActorKey, LogPart> {
    let mut parts = BTreeMap::new();
    for place in places {
        let before = Seq(place.seq.0.saturating_sub(1));
        parts.entry(place.actor).or_insert(LogPart { after: before, count: 0 }).count += 1;
    }
    parts
}

/// Consecutive entries of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogPart {
    /// The entry before them.
    pub after: Seq,
    /// How many they are.
    pub count: usize,
}

/// As many of them as can be read, and why there are no more.
async fn read_part(
    backend: &(impl Backend + ?Sized),
    actor: ActorKey,
    part: LogPart,
) -> (VecDeque<Arc<Record>>, Option<BackendError>) {
    let mut records = VecDeque::with_capacity(part.count);
    let mut after = part.after;
    while records.len() < part.count {
        match backend.read(actor, after, part.count - records.len()).await {
            Ok(more) => match more.last() {
                Some(last) => {
                    after = last.seq;
                    records.extend(more);
                }
                None => break,
            },
            Err(error) => return (records, Some(error)),
        }
    }
    (records, None)
}
