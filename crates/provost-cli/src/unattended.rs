//! A process that works on a run for a server, or for a person's terminal that is its client: it says in one line
//! whether it does, and nothing after that.

use std::sync::OnceLock;

use provost_event::RunId;
use serde::{Deserialize, Serialize};

use crate::output;

/// The new run that this process was started for.
static UNATTENDED: OnceLock<RunId> = OnceLock::new();

/// What such a process says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Said {
    /// It works on the run.
    Begun,
    /// The request can't be fulfilled as it is.
    Refused(String),
    /// It failed.
    Failed(String),
}

/// Bytes of a reason: the line must fit what its reader takes.
const REASON_BYTES_MAX: usize = 2_000;

impl Said {
    /// Says it, once: what is written later is left out.
    pub(crate) fn say(self) {
        let cut = |text: String| {
            let end = text.floor_char_boundary(REASON_BYTES_MAX);
            text.get(..end).unwrap_or_default().to_owned()
        };
        let said = match self {
            Self::Begun => Self::Begun,
            Self::Refused(why) => Self::Refused(cut(why)),
            Self::Failed(why) => Self::Failed(cut(why)),
        };
        let line = serde_json::to_string(&said).unwrap_or_default();
        // The process that waits for it may have been killed.
        let _ = output::write(format!("{line}\n").as_bytes());
        output::silence();
        output::give_up_errors();
    }
}

/// Whether this process works for another one, and has no terminal.
pub(crate) fn is_in_background() -> bool {
    UNATTENDED.get().is_some()
}

/// This process works for another one, and a run that it starts gets this id.
pub(crate) fn work_for(run: RunId) {
    let _ = UNATTENDED.set(run);
}

/// Whether this process works for a server.
pub(crate) fn works_for_server() -> bool {
    UNATTENDED.get().is_some()
}

/// The id of a run that is started now.
pub(crate) fn new_run() -> RunId {
    UNATTENDED.get().copied().unwrap_or_else(|| RunId::from_entropy(fastrand::u64(..)))
}

/// Says, where another process waits for it, that the run is worked on.
pub(crate) fn begun() {
    if UNATTENDED.get().is_some() && !output::is_silent() {
        Said::Begun.say();
    }
}
