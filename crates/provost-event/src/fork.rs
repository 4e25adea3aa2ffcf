//! Forks: a run whose conversation begins with that of another, by reference.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{RunId, Seq, SessionId, Snapshot};

/// A run was forked from an agent's conversation. Appears in the logs of both runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Forked {
    /// The agent whose conversation was forked.
    pub from: SessionId,
    /// The last entry of that log that the fork includes.
    pub at: Seq,
    /// The hash of the chain of entries up to there.
    pub hash: String,
    /// The new run.
    pub to: RunId,
}

/// The start of a session's conversation: entries of other logs. The session's own entries continue their numbers,
/// so that a number means the same entry in the fork and in its source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionFork {
    /// The logs that contain the entries, the oldest first. A fork of a fork lists all of them, so that no chain
    /// of references has to be followed. Never empty.
    pub bases: Vec<ForkBase>,
    /// The workspace of the last of these sessions.
    pub workspace: PathBuf,
    /// The id in Provost's messages to that agent: the fork uses it too, so that both conversations begin alike.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reminder_id: String,
    /// The state of that session at the entry. If its layout is unknown, sizes are estimated anew.
    pub state: Snapshot,
}

/// A part of a log that a fork's conversation begins with: from the end of the previous part, or from the log's
/// first entry, through `through`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForkBase {
    /// The session of the log.
    pub session: SessionId,
    /// Its last entry that belongs to the conversation.
    pub through: Seq,
    /// The hash of the chain of all entries up to there, including earlier parts.
    pub hash: String,
}

impl SessionFork {
    /// The last entry that isn't the session's own.
    #[must_use]
    pub fn through(&self) -> Seq {
        self.bases.last().map_or(Seq::START, |base| base.through)
    }

    /// The part with the entry `seq`; `None` for an entry of the session's own.
    #[must_use]
    pub fn base_of(&self, seq: Seq) -> Option<&ForkBase> {
        self.bases.iter().find(|base| seq <= base.through)
    }
}
