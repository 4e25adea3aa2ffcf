//! Snapshots: what a log comes to, written into it now and then, so that reading it back costs no more for a long one.

use provost_event::{Entry, Json, Snapshot};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Step;
use crate::moment::Moment;

/// Entries between two snapshots, at least.
pub(crate) const EVERY: u64 = 1_000;
/// The layout of states. It changes whenever one of their fields or an entry's meaning does; a snapshot of another
/// layout is passed over.
const LAYOUT: u32 = 11;

/// The layout of what nobody can read.
const NO_LAYOUT: u32 = 0;

/// A state that snapshots are taken of.
pub(crate) trait Snapshots: Serialize {
    /// Whether enough has happened since the last one.
    fn is_due(&self) -> bool;

    /// Folds in an entry.
    fn take_in(&mut self, entry: &Entry, now: Moment);
}

/// `step` with a snapshot of `state` behind it, if one is due. A step without entries never gets one.
pub(crate) fn taken(state: &mut impl Snapshots, mut step: Step, now: Moment) -> Step {
    if step.entries.is_empty() || !state.is_due() {
        return step;
    }
    // A state that has no JSON form would only make the log longer to read.
    if let Ok(json) = Json::of(state) {
        let entry = Entry::Snapshot(Snapshot { layout: LAYOUT, state: json });
        state.take_in(&entry, now);
        step.entries.push(entry);
    }
    step
}

/// What `state` is at this moment, to be kept where it isn't written into its own log.
pub(crate) fn of(state: &impl Serialize) -> Snapshot {
    match Json::of(state) {
        Ok(state) => Snapshot { layout: LAYOUT, state },
        Err(_) => Snapshot { layout: NO_LAYOUT, state: Json::empty_object() },
    }
}

/// The state that a snapshot holds; `None` if its layout isn't this program's.
pub(crate) fn state_of<T: DeserializeOwned>(snapshot: &Snapshot) -> Option<T> {
    if snapshot.layout != LAYOUT {
        return None;
    }
    snapshot.state.read().ok()
}
