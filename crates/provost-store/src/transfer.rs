//! A run as one file: a line for each record, and one for each output kept beside the log.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use provost_event::{ActorKey, BlobId, FORMAT_VERSION, FormatError, Record, RunId, Seq, SessionId};
use provost_harness::{EntryChain, HomeError};
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
    /// The file ends before its last line.
    #[error("the file is cut: it ends after entry {seq} of {actor}; export the run once more")]
    Incomplete {
        /// The log of the last entry in it.
        actor: ActorKey,
        /// That entry.
        seq: Seq,
    },
    /// The file isn't what was written.
    #[error("the file isn't what was exported: {what}; export the run once more")]
    Changed {
        /// What is different.
        what: String,
    },
    /// What was exported was damaged already.
    #[error("the export is incomplete: {lost}")]
    Damaged {
        /// What is missing; the first of it.
        lost: Lost,
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
    /// It isn't text.
    #[error("isn't text")]
    Text(#[source] std::str::Utf8Error),
    /// It isn't what was written.
    #[error("entry {seq} of {actor} isn't what was exported")]
    OtherEntry {
        /// Whose log.
        actor: ActorKey,
        /// The entry.
        seq: Seq,
    },
    /// Something follows the last line.
    #[error("follows what was the last line of an export")]
    BehindTheEnd,
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

/// What an export has to do without.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Lost {
    /// An entry that can't be read, and all of its log behind it.
    Entries {
        /// Whose log.
        actor: ActorKey,
        /// The entry.
        from: Seq,
        /// What is wrong with it.
        why: String,
    },
    /// An output or picture that is kept beside the log.
    Output {
        /// Its name.
        output: BlobId,
        /// What is wrong with it.
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

/// Digits of the chain's hash that an exported entry has with it.
const CHAIN_DIGITS: usize = 16;

/// A record as a line of an export, with the beginning of its log's hash up to it.
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

/// The last line: what the lines before it are.
#[derive(Serialize, Deserialize)]
pub(crate) struct EndLine {
    v: u32,
    r#type: String,
    pub(crate) lines: usize,
    /// Of all bytes before this line.
    pub(crate) hash: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) lost: Vec<Lost>,
}

impl EndLine {
    pub(crate) fn new(lines: usize, hash: String, lost: Vec<Lost>) -> Self {
        Self { v: FORMAT_VERSION, r#type: END.to_owned(), lines, hash, lost }
    }
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
