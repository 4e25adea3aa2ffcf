//! Forks: a run whose conversation begins with that of another, by reference.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{RunId, Seq, SessionId, Snapshot};

/// A run was forked from an agent's conversation. Stands in the logs of both runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forked {
    /// The agent whose conversation it is.
    pub from: SessionId,
    /// The last entry of that log which the fork has.
    pub at: Seq,
    /// The hash of the chain of entries up to there.
    pub hash: String,
    /// The run that begins with it.
    pub to: RunId,
}

/// Where a session's conversation begins: with entries of other logs. The session's own entries are numbered on from
/// the last of them, so that a number means the same entry in the fork and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionFork {
    /// The logs that the entries are in, the oldest first. A fork of a fork names all of them, so that none has to be
    /// followed through the others. Never empty.
    pub bases: Vec<ForkBase>,
    /// The folder that the last of these sessions worked in.
    pub workspace: PathBuf,
    /// The id that Provost's own words to that agent carry: the fork's carry it too, so that its conversation begins alike.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reminder_id: String,
    /// What that session came to at the entry. Where its layout isn't known, sizes are estimated anew.
    pub state: Snapshot,
}

/// A piece of a log that a fork's conversation begins with: from the end of the piece before, or from the log's first
/// entry, through `through`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkBase {
    /// Whose log.
    pub session: SessionId,
    /// Its last entry that belongs to the conversation.
    pub through: Seq,
    /// The hash of the chain of all entries up to there, those of the bases before included.
    pub hash: String,
}

impl SessionFork {
    /// The last entry that isn't the session's own.
    #[must_use]
    pub fn through(&self) -> Seq {
        self.bases.last().map_or(Seq::START, |base| base.through)
    }

    /// The piece that has the entry `seq`; `None` for an entry of the session's own.
    #[must_use]
    pub fn base_of(&self, seq: Seq) -> Option<&ForkBase> {
        self.bases.iter().find(|base| seq <= base.through)
    }
}
