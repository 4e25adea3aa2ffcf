//! Reading the entries of all logs of a run in the order in which they were committed.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use provost_event::{ActorKey, Record, RunId, Seq};

use crate::{BackendError, Log, PlacedEntry, PlacedRecord, RunPosition};

/// The entries of `run` after `after`, of all its logs, in the order of [`Log::order`]; empty at the end. Returns
/// at most `max`; those before an unreadable one come first.
///
/// # Errors
/// When the order or the next entry can't be read.
pub async fn read_run(
    backend: &(impl Log + ?Sized),
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
            let Some(part) = parts.get_mut(&actor) else { continue };
            // A log that is read up to its damage only is shorter.
            let part: &mut VecDeque<Arc<Record>> = part;
            if part.is_empty() && failure.is_some() {
                break;
            }
            // More than one where the order lacks an entry of the log.
            while let Some(record) = part.pop_front_if(|record| record.seq <= seq) {
                placed.push(PlacedRecord { position, record });
            }
        }
        match failure {
            Some(error) if placed.is_empty() => return Err(error),
            _ if !placed.is_empty() => return Ok(placed),
            _ => {}
        }
    }
}

/// Of consecutive places, the part of each log that they are in.
pub fn log_parts(places: &[PlacedEntry]) -> BTreeMap<ActorKey, LogPart> {
    let mut parts = BTreeMap::new();
    for place in places {
        let before = Seq(place.seq.0.saturating_sub(1));
        parts.entry(place.actor).or_insert(LogPart { after: before, last: place.seq }).last = place.seq;
    }
    parts
}

/// Consecutive entries of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogPart {
    /// The entry before them.
    pub after: Seq,
    /// The last of them.
    pub last: Seq,
}

/// As many of them as can be read, and why there are no more.
async fn read_part(
    backend: &(impl Log + ?Sized),
    actor: ActorKey,
    part: LogPart,
) -> (VecDeque<Arc<Record>>, Option<BackendError>) {
    let mut records = VecDeque::new();
    let mut after = part.after;
    while after < part.last {
        let wanted = usize::try_from(part.last.0 - after.0).unwrap_or(usize::MAX);
        match backend.read(actor, after, wanted).await {
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
