//! A run as one file: a line for each record, and one for each output stored beside the log.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use provost_event::{ActorKey, BlobId, FORMAT_VERSION, FormatError, Record, RunId, Seq, SessionId};
use provost_harness::{BackendError, EntryChain};
use serde::{Deserialize, Serialize};

use crate::embedded::blob_id;

/// Why a run couldn't be exported or imported. After a failed import nothing of it is stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// A line is invalid.
    #[error("line {line}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// The problem.
        #[source]
        problem: LineProblem,
    },
    /// The file contains no run.
    #[error("there is no run in it")]
    Empty,
    /// The run exists already, with another history.
    #[error("run {} is there already, and differs from entry {seq} of {actor} on", actor.run())]
    Diverges {
        /// The log.
        actor: ActorKey,
        /// The first entry that differs, or that only one of them has while the other has more elsewhere.
        seq: Seq,
    },
    /// The file ends before all of an agent's log.
    #[error(
        "the log of agent {session} isn't in it, or not all of it: the file is cut; export the run once more"
    )]
    Cut {
        /// The agent.
        session: SessionId,
    },
    /// The file ends before its last line.
    #[error("the file is cut: it ends after entry {seq} of {actor}; export the run once more")]
    Incomplete {
        /// The log of its last entry.
        actor: ActorKey,
        /// That entry.
        seq: Seq,
    },
    /// The file was changed after the export.
    #[error("the file isn't what was exported: {what}; export the run once more")]
    Changed {
        /// The difference.
        what: String,
    },
    /// The exported data was damaged already.
    #[error("the export is incomplete: {lost}")]
    Damaged {
        /// The first missing part.
        lost: Lost,
    },
    /// A fork refers to entries that are neither in the file nor in the store.
    #[error("entry {at} of {session}, which a fork goes on from, isn't in it")]
    Missing {
        /// The agent whose conversation was forked.
        session: SessionId,
        /// The entry.
        at: Seq,
    },
    /// The entries that a fork refers to differ from those that were forked.
    #[error("the log of {session} up to entry {at} isn't what was forked: its hash is another")]
    OtherHistory {
        /// The agent whose conversation was forked.
        session: SessionId,
        /// The entry.
        at: Seq,
    },
    /// The file couldn't be read or written.
    #[error("can't {attempt}")]
    File {
        /// What was attempted.
        attempt: &'static str,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The store failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

/// The problem of a line.
#[derive(Debug, thiserror::Error)]
pub enum LineProblem {
    /// It can't be parsed; if it is the last line, the file looks cut.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// It doesn't follow the previous lines.
    #[error(transparent)]
    Order(#[from] provost_engine::ReplayError),
    /// It belongs to another run than the previous lines.
    #[error("belongs to run {found}, which run {run} doesn't refer to")]
    OtherRun {
        /// The run of the previous lines.
        run: RunId,
        /// The run of this line.
        found: RunId,
    },
    /// The run's own log isn't the first one.
    #[error("the run's own log doesn't come first: {found}")]
    NotTheRun {
        /// The first log.
        found: ActorKey,
    },
    /// It isn't UTF-8.
    #[error("isn't text")]
    Text(#[source] std::str::Utf8Error),
    /// It was changed after the export.
    #[error("entry {seq} of {actor} isn't what was exported")]
    OtherEntry {
        /// The actor of the log.
        actor: ActorKey,
        /// The entry.
        seq: Seq,
    },
    /// Something follows the last line.
    #[error("follows what was the last line of an export")]
    BehindTheEnd,
    /// A stored output doesn't match its id.
    #[error("output {id} is damaged")]
    Damaged {
        /// Its id.
        id: BlobId,
    },
}

/// The result of an import for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Imported {
    /// The run.
    pub run: RunId,
    /// The change.
    pub change: ImportChange,
}

/// The change that an import made to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportChange {
    /// It was new.
    New,
    /// This many entries were added to existing ones.
    Extended(usize),
    /// All of it existed: nothing has changed.
    Known,
}

/// Data missing from an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Lost {
    /// An unreadable entry, and all of its log after it.
    Entries {
        /// The actor of the log.
        actor: ActorKey,
        /// The entry.
        from: Seq,
        /// The problem.
        why: String,
    },
    /// An output or picture stored beside the log.
    Output {
        /// Its id.
        output: BlobId,
        /// The problem.
        why: String,
    },
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entries { actor, from, why } => write!(f, "{actor} from entry {from} on: {why}"),
            Self::Output { output, why } => write!(f, "output {}: {why}", output.0),
        }
    }
}

/// Digits of the chain's hash in an exported entry.
const CHAIN_DIGITS: usize = 16;

/// A record as a line of an export, with the first digits of its log's hash up to it.
pub(crate) fn chained_line(record: &Record, chain: &EntryChain) -> Result<String, serde_json::Error> {
    let mut line = record.to_line()?;
    // An object: it ends with a brace.
    line.pop();
    line.push_str(",\"chain\":\"");
    line.push_str(&chain_digits(chain));
    line.push_str("\"}");
    Ok(line)
}

pub(crate) fn chain_digits(chain: &EntryChain) -> String {
    chain.to_string().chars().take(CHAIN_DIGITS).collect()
}

/// The `type` of the last line.
pub(crate) const END: &str = "end";

/// The last line: number and hash of the previous lines.
#[derive(Serialize, Deserialize)]
pub(crate) struct EndLine {
    v: u32,
    r#type: String,
    pub(crate) lines: usize,
    /// Hash of all bytes before this line.
    pub(crate) hash: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) lost: Vec<Lost>,
}

impl EndLine {
    pub(crate) fn new(lines: usize, hash: String, lost: Vec<Lost>) -> Self {
        Self { v: FORMAT_VERSION, r#type: END.to_owned(), lines, hash, lost }
    }
}

/// The `type` of an output's line.
pub(crate) const BLOB: &str = "blob";

/// An output stored beside the log, as a line.
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

    /// The output, if it matches its id.
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
