//! Reading a run from a file.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;

use provost_engine::Actor;
use provost_event::{
    ActorKey, BlobId, Entry, FORMAT_VERSION, ForkBase, FormatError, Json, Outcome, Record, RunId, SessionId,
    SessionStarted, Snapshot,
};
use provost_harness::EntryChain;
use serde::Deserialize;

use crate::job::{Import, ImportRun, Unfit};
use crate::transfer::{BLOB, BlobLine, Imported, LineProblem, TransferError};
use crate::{LocalHome, NewEntry, StoredRun};

/// Takes in what [`export_run`](crate::export_run) wrote: all of it, or nothing. A run that was not at rest counts
/// as interrupted and is recovered when it is next served. Of a run that is there already, what the file has more of is
/// added; where it has the same or less, nothing changes. Snapshots are compared with their logs: one that isn't what
/// its log comes to is emptied, and so passed over later. Holds everything in memory. Returns what came of each run, the
/// exported one first, then those that it is a fork of.
///
/// # Errors
/// With the line's number for one that is damaged, cut off, out of order or of a newer format;
/// [`TransferError::Diverges`] for a run that is there already with another history; [`HomeError::Held`](provost_harness::HomeError::Held) for one that
/// would get more entries while somebody works on it.
pub async fn import_run(
    home: &LocalHome,
    input: &mut (dyn BufRead + Send),
) -> Result<Vec<Imported>, TransferError> {
    match home.import(read(input)?).await? {
        Ok(imported) => Ok(imported),
        Err(Unfit::Diverges { actor, seq }) => Err(TransferError::Diverges { actor, seq }),
        Err(Unfit::Missing { session, at }) => Err(TransferError::Missing { session, at }),
    }
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
    /// The runs in the order of the file; the first is the exported one.
    runs: Vec<RunId>,
    logs: BTreeMap<ActorKey, Log>,
    /// What forks go on from.
    bases: Vec<ForkBase>,
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
        if !self.runs.contains(&found) {
            if key != ActorKey::Run(found) && self.runs.is_empty() {
                return Err(LineProblem::NotTheRun { found: key });
            }
            if let Some(run) = self.runs.first()
                && !self.bases.iter().any(|base| base.session.run == found)
            {
                return Err(LineProblem::OtherRun { run: *run, found });
            }
            if key != ActorKey::Run(found) {
                return Err(LineProblem::NotTheRun { found: key });
            }
            self.runs.push(found);
        }
        if let Entry::SessionStarted(SessionStarted { fork: Some(fork), .. }) = &record.entry {
            self.bases.extend(fork.bases.iter().cloned());
        }
        let log = self.logs.entry(key).or_insert_with(|| Log { actor: Actor::new(key), entries: Vec::new() });
        log.actor.replay(&record)?;
        let record = log.without_a_false_snapshot(record);
        let entry = record.entry.body().map_err(FormatError::Malformed)?;
        log.entries.push(NewEntry { record: record.into(), body: entry });
        Ok(())
    }

    fn finish(self) -> Result<Import, TransferError> {
        self.bases.iter().try_for_each(|base| self.as_forked(base))?;
        self.runs.iter().try_for_each(|run| self.as_far_as_charged(*run))?;
        let Self { runs, mut logs, bases, blobs } = self;
        let mut imports = Vec::with_capacity(runs.len());
        for run in runs {
            let status = logs.get(&ActorKey::Run(run)).and_then(|log| log.actor.status());
            let status = status.ok_or(TransferError::Empty)?;
            let of_run = logs.extract_if(.., |key, _| key.run() == run);
            let logs = of_run.map(|(key, log)| (key, log.entries)).collect();
            imports.push(ImportRun { run: StoredRun::new(run, status), logs });
        }
        if imports.is_empty() {
            return Err(TransferError::Empty);
        }
        Ok(Import { runs: imports, bases, blobs })
    }

    /// Looks whether the logs of the agents reach as far as the run's own log tells of them: in a file that was cut at the
    /// end of a line they don't.
    fn as_far_as_charged(&self, run: RunId) -> Result<(), TransferError> {
        let Some(Log { actor: Actor::Run(state), entries }) = self.logs.get(&ActorKey::Run(run)) else {
            return Ok(());
        };
        let cut = |session| Err(TransferError::Cut { session });
        let root = SessionId::root(run);
        // What begins a run begins its first agent too, in one step.
        if self.runs.first() == Some(&run) && state.flow().is_none() && !self.logs.contains_key(&root.into())
        {
            return cut(root);
        }
        if let Some(Log { actor: Actor::Session(session), .. }) = self.logs.get(&root.into())
            && state.outcome().is_some_and(Outcome::is_final)
            && !session.has_ended()
        {
            return cut(root);
        }
        let mut reserved = BTreeSet::new();
        let mut calls = BTreeMap::new();
        for entry in entries {
            let charged = match &entry.record.entry {
                Entry::BudgetReserved(entry) => {
                    reserved.insert((entry.session, entry.call));
                    if !self.logs.contains_key(&entry.session.into()) {
                        return cut(entry.session);
                    }
                    continue;
                }
                Entry::BudgetCharged(entry) => (entry.session, entry.call),
                _ => continue,
            };
            let last = calls.entry(charged.0).or_insert_with(|| self.last_call(charged.0));
            if reserved.contains(&charged) && *last < charged.1 {
                return cut(charged.0);
            }
        }
        Ok(())
    }

    /// The last model call of an agent; 0 for one that has made none.
    fn last_call(&self, session: SessionId) -> u32 {
        let log = self.logs.get(&session.into());
        let mut entries = log.into_iter().flat_map(|log| log.entries.iter().rev());
        let last = entries.find_map(|entry| match &entry.record.entry {
            Entry::ModelCalled(called) => Some(called.call),
            _ => None,
        });
        last.unwrap_or_default()
    }

    /// Looks whether what a fork goes on from is what was forked, if it is in the file.
    fn as_forked(&self, base: &ForkBase) -> Result<(), TransferError> {
        let session = base.session;
        let at = base.through;
        let Some(log) = self.logs.get(&session.into()) else { return Ok(()) };
        let mut chain = None::<EntryChain>;
        for entry in log.entries.iter().filter(|entry| entry.record.seq <= at) {
            chain.get_or_insert_with(|| EntryChain::before(&entry.record.entry)).add(&entry.record);
        }
        match chain {
            _ if log.actor.head() < at => Err(TransferError::Missing { session, at }),
            Some(chain) if chain.as_str() == base.hash => Ok(()),
            _ => Err(TransferError::OtherHistory { session, at }),
        }
    }
}
