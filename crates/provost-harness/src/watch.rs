//! The callback of an embedded harness.

use std::sync::Arc;

use provost_event::{Delta, Record, SessionId, ToolFinished, ToolStarted, TurnEnded};

/// Gets the events of a run as they happen. Every method does nothing unless overridden.
///
/// Calls come from the harness's tasks and must return quickly. A panic in one is caught and logged; the run
/// continues.
pub trait HarnessCallback: Send + Sync {
    /// A piece of an answer that isn't committed yet, after the entry of its model call; or the end of what a running
    /// tool call has printed so far, at most ten times a second.
    fn on_delta(&self, delta: &Delta) {
        let _ = delta;
    }

    /// An entry was committed. Called for every entry of the session and of its run, including those of the
    /// methods below.
    fn on_record(&self, record: &Arc<Record>) {
        let _ = record;
    }

    /// A tool call is about to run.
    fn on_tool_start(&self, session: SessionId, started: &ToolStarted) {
        let _ = (session, started);
    }

    /// A tool call has its result.
    fn on_tool_end(&self, session: SessionId, finished: &ToolFinished) {
        let _ = (session, finished);
    }

    /// A turn is complete.
    fn on_turn_end(&self, session: SessionId, ended: &TurnEnded) {
        let _ = (session, ended);
    }
}

/// Ignores all events.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCallback;

impl HarnessCallback for NoCallback {}
