//! Reading a run from a file.

use std::collections::BTreeMap;
use std::io::BufRead;

use provost_engine::Actor;
use provost_event::{ActorKey, BlobId, Entry, FORMAT_VERSION, FormatError, Json, Record, RunId, Snapshot};
use serde::Deserialize;

use crate::job::Import;
use crate::transfer::{BLOB, BlobLine, LineProblem, TransferError};
use crate::{LocalHome, NewEntry, StoredRun};

/// Takes in what [`export_run`](crate::export_run) wrote: all of it, or nothing. A run that was not at rest counts
/// as interrupted and is recovered when it is next served. Snapshots are compared with their logs: one that isn't what
/// its log comes to is emptied, and so passed over later. Holds the whole run in memory.
///
/// # Errors
/// With the line's number for one that is damaged, cut off, out of order or of a newer format;
/// [`TransferError::Exists`] for a run that is there already.
pub async fn import_run(home: &LocalHome, input: &mut (dyn BufRead + Send)) -> Result<RunId, TransferError> {
    let import = read(input)?;
    let run = import.run.run;
    if home.import(import).await? { Ok(run) } else { Err(TransferError::Exists { run }) }
}

fn read(input: &mut (dyn BufRead + Send)) -> Result<Import, TransferError> {
    let mut reading = Reading::default();
    for (line, text) in (1..).zip(input.lines()) {
        let text = text.map_err(|source| TransferError::File { attempt: "read the import", source })?;
        reading.line(&text).map_err(|problem| TransferError::Line { line, problem })?;
    }
    reading.finish()
}

/// The layout of a snapshot that nobody can use.
const NO_LAYOUT: u32 = 0;

#[derive(Default)]
struct Reading {
    run: Option<RunId>,
    logs: BTreeMap<ActorKey, Log>,
    blobs: Vec<(BlobId, Vec<u8>)>,
}

struct Log {
    /// Replays every record, so that what is kept is known to make sense.
    actor: Actor,
    entries: Vec<NewEntry>,
}

/// What tells a record from an output.
#[derive(Deserialize)]
struct Head {
    v: u32,
    r#type: Option<String>,
}

impl Log {
    /// `record`, the last one replayed. A snapshot that isn't what the log comes to keeps its place but not its state:
    /// whoever goes on with the run would take its word for what happened.
    fn without_a_false_snapshot(&self, record: Record) -> Record {
        let Entry::Snapshot(_) = &record.entry else { return record };
        let first = self.entries.first().map(|first| &*first.record);
        let restored = first.and_then(|first| Actor::restore(first, &record));
        if restored.as_ref() == Some(&self.actor) {
            return record;
        }
        tracing::debug!(actor = %record.actor, seq = %record.seq, "a snapshot isn't what its log comes to");
        let entry = Entry::Snapshot(Snapshot { layout: NO_LAYOUT, state: Json::empty_object() });
        Record { entry, ..record }
    }
}

impl Reading {
    fn line(&mut self, text: &str) -> Result<(), LineProblem> {
        let head = serde_json::from_str::<Head>(text).map_err(FormatError::Malformed)?;
        if head.v > FORMAT_VERSION {
            return Err(FormatError::Newer { needs: head.v }.into());
        }
        if head.r#type.as_deref() == Some(BLOB) {
            let line = serde_json::from_str::<BlobLine>(text).map_err(FormatError::Malformed)?;
            self.blobs.push(line.into_body()?);
            return Ok(());
        }
        self.record(Record::from_line(text)?)
    }

    fn record(&mut self, record: Record) -> Result<(), LineProblem> {
        let (key, found) = (record.actor, record.actor.run());
        let run = *self.run.get_or_insert(found);
        if run != found {
            return Err(LineProblem::OtherRun { run, found });
        }
        if self.logs.is_empty() && key != ActorKey::Run(run) {
            return Err(LineProblem::NotTheRun { found: key });
        }
        let log = self.logs.entry(key).or_insert_with(|| Log { actor: Actor::new(key), entries: Vec::new() });
        log.actor.replay(&record)?;
        let record = log.without_a_false_snapshot(record);
        let entry = record.entry.body().map_err(FormatError::Malformed)?;
        log.entries.push(NewEntry { record: record.into(), body: entry });
        Ok(())
    }

    fn finish(self) -> Result<Import, TransferError> {
        let run = self.run.ok_or(TransferError::Empty)?;
        let status = self.logs.get(&ActorKey::Run(run)).and_then(|log| log.actor.status());
        let status = status.ok_or(TransferError::Empty)?;
        let logs = self.logs.into_iter().map(|(key, log)| (key, log.entries)).collect();
        Ok(Import { run: StoredRun::new(run, status), logs, blobs: self.blobs })
    }
}
