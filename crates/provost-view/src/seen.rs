//! Which runs a person has looked at since they ended.

use provost_event::{RunId, Timestamp};

/// Keeps which runs a person has looked at, for every face: what was looked at on a page isn't new in a terminal.
pub trait SeenRuns: Send + Sync {
    /// Whether the run was looked at as it was when it last changed.
    fn has_seen(&self, run: RunId, changed_at: Timestamp) -> bool;

    /// The run was looked at as it was when it last changed. What can't be kept is new again later.
    fn look_at(&self, run: RunId, changed_at: Timestamp);
}
