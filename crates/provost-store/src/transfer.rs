//! A run as one file: a line for each record, and one for each output kept beside the log.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use provost_event::{ActorKey, BlobId, FORMAT_VERSION, FormatError, RunId, Seq, SessionId};
use provost_harness::HomeError;
use serde::{Deserialize, Serialize};

use crate::home::blob_id;

/// Why a run couldn't be exported or imported. After a failed import nothing of it is kept.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// A line isn't what it should be.
    #[error("line {line}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        #[source]
        problem: LineProblem,
    },
    /// There is no run in it.
    #[error("there is no run in it")]
    Empty,
    /// The run is there already, with another history.
    #[error("run {} is there already, and differs from entry {seq} of {actor} on", actor.run())]
    Diverges {
        /// The log.
        actor: ActorKey,
        /// The first entry that isn't the same, or that only one of them has while the other has more elsewhere.
        seq: Seq,
    },
    /// The file ends before all of an agent's log has come.
    #[error(
        "the log of agent {session} isn't in it, or not all of it: the file is cut; export the run once more"
    )]
    Cut {
        /// The agent.
        session: SessionId,
    },
    /// A fork refers to what isn't in the file, and isn't there either.
    #[error("entry {at} of {session}, which a fork goes on from, isn't in it")]
    Missing {
        /// The agent whose conversation it is.
        session: SessionId,
        /// The entry.
        at: Seq,
    },
    /// What a fork refers to isn't what it was forked from.
    #[error("the log of {session} up to entry {at} isn't what was forked: its hash is another")]
    OtherHistory {
        /// The agent whose conversation it is.
        session: SessionId,
        /// The entry.
        at: Seq,
    },
    /// The file couldn't be read or written.
    #[error("can't {attempt}")]
    File {
        /// What was attempted.
        attempt: &'static str,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
    /// The store couldn't.
    #[error(transparent)]
    Home(#[from] HomeError),
}

/// What can be wrong with one line.
#[derive(Debug, thiserror::Error)]
pub enum LineProblem {
    /// It can't be read; a last line that can't is what a cut file looks like.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// It doesn't follow what stands before it.
    #[error(transparent)]
    Order(#[from] provost_engine::ReplayError),
    /// It belongs to another run than the lines before.
    #[error("belongs to run {found}, which run {run} doesn't refer to")]
    OtherRun {
        /// The run of the lines before.
        run: RunId,
        /// The run of this line.
        found: RunId,
    },
    /// A log that belongs to no run stands in it.
    #[error("the run's own log doesn't come first: {found}")]
    NotTheRun {
        /// The log that comes first.
        found: ActorKey,
    },
    /// A kept output isn't what its name says.
    #[error("output {id} is damaged")]
    Damaged {
        /// Its name.
        id: BlobId,
    },
}

/// What an import did to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Imported {
    /// The run.
    pub run: RunId,
    /// What came of it.
    pub change: ImportChange,
}

/// What came of the import of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportChange {
    /// It wasn't there.
    New,
    /// So many entries followed those that were there.
    Extended(usize),
    /// All of it was there: nothing has changed.
    Known,
}

/// The `type` of a line that is an output and no record.
pub(crate) const BLOB: &str = "blob";

/// An output kept beside the log, as a line.
#[derive(Serialize, Deserialize)]
pub(crate) struct BlobLine {
    v: u32,
    r#type: String,
    id: BlobId,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

impl BlobLine {
    pub(crate) fn new(id: BlobId, body: Vec<u8>) -> Self {
        let (text, base64) = match String::from_utf8(body) {
            Ok(text) => (Some(text), None),
            Err(error) => (None, Some(STANDARD.encode(error.as_bytes()))),
        };
        Self { v: FORMAT_VERSION, r#type: BLOB.to_owned(), id, text, base64 }
    }

    /// The output, if it is what its name says.
    pub(crate) fn into_body(self) -> Result<(BlobId, Vec<u8>), LineProblem> {
        let Self { id, text, base64, .. } = self;
        let body = match (text, base64) {
            (Some(text), None) => Some(text.into_bytes()),
            (None, Some(base64)) => STANDARD.decode(base64).ok(),
            _ => None,
        };
        match body {
            Some(body) if blob_id(&body) == id => Ok((id, body)),
            _ => Err(LineProblem::Damaged { id }),
        }
    }
}
