//! Snapshots: a log's state, written into the log at intervals, so that a long log takes no longer to read.

use provost_event::{Entry, Json, LifecycleEntry, Snapshot};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Decision;
use crate::decision_time::DecisionTime;

/// Minimum number of entries between two snapshots.
pub(crate) const EVERY: u64 = 1_000;
/// The version of the states' layout. It changes with each change of a state's fields or of an entry's meaning; a
/// snapshot with another layout is ignored.
const LAYOUT: u32 = 22;

/// The layout of a state that can't be read back.
const NO_LAYOUT: u32 = 0;

/// A state with snapshots.
pub(crate) trait Snapshots: Serialize {
    /// Whether enough has happened since the last snapshot.
    fn is_due(&self) -> bool;

    /// Folds in an entry.
    fn take_in(&mut self, entry: &Entry, now: DecisionTime);
}

/// Appends a snapshot of `state` to `step`, if one is due. A step without entries never gets one.
pub(crate) fn taken(state: &mut impl Snapshots, mut step: Decision, now: DecisionTime) -> Decision {
    if step.entries.is_empty() || !state.is_due() {
        return step;
    }
    // A state without a JSON form gets no snapshot.
    if let Ok(json) = Json::of(state) {
        let entry = Entry::Lifecycle(LifecycleEntry::Snapshot(Snapshot { layout: LAYOUT, state: json }));
        state.take_in(&entry, now);
        step.entries.push(entry);
    }
    step
}

/// A snapshot of `state`, to be stored outside its own log.
pub(crate) fn of(state: &impl Serialize) -> Snapshot {
    match Json::of(state) {
        Ok(state) => Snapshot { layout: LAYOUT, state },
        Err(_) => Snapshot { layout: NO_LAYOUT, state: Json::empty_object() },
    }
}

/// The state in a snapshot; `None` if its layout isn't this program's.
pub(crate) fn state_of<T: DeserializeOwned>(snapshot: &Snapshot) -> Option<T> {
    if snapshot.layout != LAYOUT {
        return None;
    }
    snapshot.state.read().ok()
}
