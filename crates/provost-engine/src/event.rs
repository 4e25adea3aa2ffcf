//! Events of actors.

mod budget;
mod results;
mod run;
mod session;

use provost_event::{Elapsed, Timestamp};
use serde::{Deserialize, Serialize};

pub use budget::{LimitUse, ReserveRequest, SettleNote};
pub use results::{
    Answer, ExternalCallRequest, ExternalCallResult, FolderRules, JudgeReport, StopCheckResult,
    SubAgentReport, ToolResult, WorktreeResult,
};
pub use run::{RunEvent, RunForkRequest};
pub use session::{ForkStart, SessionEvent};

/// The time and randomness that a decision may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Now {
    /// The wall-clock time: shown, never subtracted.
    pub at: Timestamp,
    /// The run's elapsed time, which never decreases within a run.
    pub elapsed: Elapsed,
    /// Fresh random bits.
    pub entropy: u64,
}

/// An event, for the actor of its kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// For a run's actor.
    Run(RunEvent),
    /// For a session's actor.
    Session(SessionEvent),
}

impl From<RunEvent> for Event {
    fn from(event: RunEvent) -> Self {
        Self::Run(event)
    }
}

impl From<SessionEvent> for Event {
    fn from(event: SessionEvent) -> Self {
        Self::Session(event)
    }
}
