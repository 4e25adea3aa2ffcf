//! The entries of a run as they are committed.

use std::io;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use provost_view::LogEntry;

use crate::ClientError;
use crate::wire::Connection;

/// Bytes of one event; a longer one ends the stream.
const EVENT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// An entry, and its place in the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamedEntry {
    /// What a stream goes on behind, also one of another connection or server.
    pub id: String,
    /// The entry.
    pub entry: LogEntry,
}

/// A stream of entries. It is closed when it is dropped.
pub struct Entries {
    body: Incoming,
    held: Vec<u8>,
    _connection: Connection,
}

impl Entries {
    pub(crate) const fn new(connection: Connection, body: Incoming) -> Self {
        Self { body, held: Vec::new(), _connection: connection }
    }

    /// Waits for the next entry. `None` when the server ends; go on behind the last id then.
    ///
    /// # Errors
    /// [`ClientError`] when an event isn't understood, or the server reports that the log can't be read.
    ///
    /// # Cancellation
    /// Nothing is lost.
    pub async fn next(&mut self) -> Result<Option<StreamedEntry>, ClientError> {
        loop {
            if let Some(end) = self.held.windows(2).position(|pair| pair == b"\n\n") {
                let event = self.held.drain(..end + 2).collect::<Vec<_>>();
                match read(&event)? {
                    Some(entry) => return Ok(Some(entry)),
                    None => continue,
                }
            }
            match self.body.frame().await {
                // A server that was killed is one that has ended.
                None | Some(Err(_)) => return Ok(None),
                Some(Ok(frame)) => {
                    self.held.extend(frame.data_ref().map(AsRef::as_ref).unwrap_or_default() as &[u8])
                }
            }
            if self.held.len() > EVENT_BYTES_MAX {
                let source = io::Error::new(io::ErrorKind::InvalidData, "an event is too long");
                return Err(ClientError::Unreachable { at: "the stream".to_owned(), source });
            }
        }
    }
}

/// An event; `None` for a comment.
fn read(event: &[u8]) -> Result<Option<StreamedEntry>, ClientError> {
    let text = String::from_utf8_lossy(event);
    let mut id = String::new();
    let mut data = String::new();
    let mut is_problem = false;
    for line in text.lines() {
        match line.split_once(": ") {
            Some(("id", value)) => value.clone_into(&mut id),
            Some(("data", value)) => data.push_str(value),
            Some(("event", value)) => is_problem = value == "problem",
            _ => {}
        }
    }
    if is_problem {
        return Err(ClientError::Refused { status: 500, detail: data });
    }
    if data.is_empty() {
        return Ok(None);
    }
    let entry = serde_json::from_str(&data).map_err(|source| ClientError::Foreign { source })?;
    Ok(Some(StreamedEntry { id, entry }))
}
