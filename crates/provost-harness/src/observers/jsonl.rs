//! `JsonlTrace`: every event as a line of JSON in a file.

mod file;
mod spans;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use provost_event::{ActorKey, Delta, Record, RunId};

use self::file::LineFile;
use self::spans::Spans;
use crate::{Observed, ObservedBody, Observer, ObserverError, Redactor};

/// Writes every event to a file, one JSON object a line, behind what is there. Several runs may share a file.
///
/// A line has `ts_ms` (milliseconds since 1970), `event` (such as `TOOL_START`), `run`, `session` (absent for what
/// happens to the run as a whole), `chain` (`chain_id`, which is the run's; `parent`, the agent that asked for this
/// one, and `depth`, 0 for the root), `span` and `parent_span` (names of what the event belongs to and of what
/// that belongs to), and then either `seq` and `entry` (`type` and the entry's own fields, as the log has them)
/// or `delta` (`kind` and `bytes`: the text follows with the answer). A line with the event `LOST` says how many
/// events before the next line are missing.
///
/// Lines are held back until 64 KiB have come together or nothing waits. The file is made readable by its owner
/// only; secrets that the redactor finds are taken out. What can't be written is dropped and counts as a failure of
/// the observer; the next lines are tried again.
#[derive(Debug, Clone)]
pub struct JsonlTrace {
    path: PathBuf,
    redactor: Arc<Redactor>,
}

impl JsonlTrace {
    /// Writes to `path`, whose folder must be there, without what `redactor` takes for a secret.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, redactor: Arc<Redactor>) -> Self {
        Self { path: path.into(), redactor }
    }

    /// Makes the observer of a run, for [`Observers::with`](crate::Observers::with).
    pub fn observer(&self) -> impl Fn(RunId) -> Box<dyn Observer> + Send + Sync + use<> {
        let trace = self.clone();
        move |run| {
            Box::new(Writer {
                run,
                file: LineFile::new(trace.path.clone()),
                redactor: trace.redactor.clone(),
                spans: Spans::new(run),
            })
        }
    }
}

struct Writer {
    run: RunId,
    file: LineFile,
    redactor: Arc<Redactor>,
    spans: Spans,
}

impl Writer {
    fn line(&mut self, event: &Observed) -> Result<String, serde_json::Error> {
        let place = self.spans.place(event);
        let mut line =
            format!(r#"{{"ts_ms":{},"event":"{}","run":"{}""#, event.at.0, event.kind.name(), self.run);
        // Writing to a String can't fail.
        if let ActorKey::Session(session) = event.actor {
            let _ = write!(line, r#","session":"{session}""#);
        }
        let parent = serde_json::to_string(&place.parent)?;
        let _ = write!(
            line,
            r#","chain":{{"chain_id":"{}","parent":{parent},"depth":{}}},"span":{}"#,
            self.run,
            place.depth,
            serde_json::to_string(&place.span)?
        );
        if let Some(parent) = &place.parent_span {
            let _ = write!(line, r#","parent_span":{}"#, serde_json::to_string(parent)?);
        }
        line.push_str(&match &event.body {
            ObservedBody::Entry(record) => entry(record)?,
            ObservedBody::Delta(delta) => piece(delta)?,
        });
        line.push('}');
        Ok(line)
    }

    fn write(&mut self, line: &str) -> Result<(), ObserverError> {
        // JSON kept as it came may have line ends, which in JSON can only stand between tokens.
        let line = line.replace(['\n', '\r'], " ");
        Ok(self.file.add(&self.redactor.redact_json(&line))?)
    }
}

#[async_trait]
impl Observer for Writer {
    async fn observe(&mut self, event: &Arc<Observed>) -> Result<(), ObserverError> {
        let line = self.line(event)?;
        self.write(&line)
    }

    async fn lost(&mut self, count: u64) {
        let line = format!(r#"{{"event":"LOST","run":"{}","count":{count}}}"#, self.run);
        // If it can't be written, neither can the next line, which says so.
        let _ = self.write(&line);
    }

    async fn idle(&mut self) -> Result<(), ObserverError> {
        Ok(self.file.flush()?)
    }

    async fn finish(&mut self) -> Result<(), ObserverError> {
        Ok(self.file.flush()?)
    }
}

fn entry(record: &Record) -> Result<String, serde_json::Error> {
    let body = record.entry.body()?;
    let fields = body.strip_prefix('{').filter(|fields| *fields != "}");
    let fields = fields.map_or_else(|| "}".to_owned(), |fields| format!(",{fields}"));
    Ok(format!(r#","seq":{},"entry":{{"type":"{}"{fields}"#, record.seq, record.entry.kind()))
}

/// Without its text: a secret may be cut between two pieces, where nobody would find it.
fn piece(delta: &Delta) -> Result<String, serde_json::Error> {
    let kind = serde_json::to_string(&delta.kind)?;
    Ok(format!(r#","delta":{{"kind":{kind},"bytes":{}}}"#, delta.text.len()))
}
