//! Reading a run from a file.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;

use provost_engine::Actor;
use provost_event::{
    ActorKey, BlobId, BudgetEntry, Entry, ForkBase, FormatError, Json, LifecycleEntry, ModelEntry, Outcome,
    Record, RunId, Seq, SessionId, SessionStarted, Snapshot,
};
use provost_harness::EntryChain;
use serde::Deserialize;

use crate::job::{Import, ImportRun, Unfit};
use crate::store::NO_LAYOUT;
use crate::transfer::{
    BLOB, BlobLine, END, EndLine, Imported, LineProblem, Lost, TransferError, chain_digits,
};
use crate::{EmbeddedBackend, NewEntry, StoredRun};

/// Imports what [`export_run`](crate::export_run) wrote: all of it, or nothing. A run that was not suspended or
/// ended counts as interrupted and is recovered when it is next served. If a run exists already, entries that only
/// the file has are added; if there are none, nothing changes. Snapshots are compared with their logs: a snapshot
/// that differs is emptied, and so ignored later. Holds everything in memory. Returns the result for each run, the
/// exported one first, then those that it is a fork of.
///
/// # Errors
/// With the line's number for a line that is damaged, cut off, out of order or of a newer format;
/// [`TransferError::Diverges`] for an existing run with another history;
/// [`BackendError::Held`](provost_harness::BackendError::Held) for a run that would get more entries while a process
/// serves it.
pub async fn import_run(
    backend: &EmbeddedBackend,
    input: &mut (dyn BufRead + Send),
) -> Result<Vec<Imported>, TransferError> {
    let mut reading = ImportReader::default();
    let end = reading.lines(input, &mut |line, problem| Err(TransferError::Line { line, problem }))?;
    let Some(end) = end else {
        return Err(reading
            .last
            .map_or(TransferError::Empty, |(actor, seq)| TransferError::Incomplete { actor, seq }));
    };
    if let Some(lost) = end.lost.into_iter().next() {
        return Err(TransferError::Damaged { lost });
    }
    reading.bases.iter().try_for_each(|base| reading.as_forked(base))?;
    reading.runs.iter().try_for_each(|run| reading.as_far_as_charged(*run))?;
    take_in(backend, reading.into_import()?).await
}

/// The result of importing an incomplete file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Salvaged {
    /// The result for each run.
    pub runs: Vec<Imported>,
    /// The missing parts, in words; empty if the file was complete.
    pub lost: Vec<String>,
}

/// Imports what is left of a cut or damaged file, or of an export of a damaged store: of each log the entries up
/// to the first missing one. Such runs can be shown and forked; the rest of their logs is lost.
///
/// # Errors
/// As [`import_run`], except for problems of the file: these are errors only if it contains no run at all.
pub async fn import_incomplete(
    backend: &EmbeddedBackend,
    input: &mut (dyn BufRead + Send),
) -> Result<Salvaged, TransferError> {
    let mut reading = ImportReader::default();
    let mut lost = Vec::new();
    let end = reading.lines(input, &mut |line, problem| {
        lost.push(in_one_line(&TransferError::Line { line, problem }));
        Ok(())
    });
    match end {
        Ok(Some(end)) => lost.extend(end.lost.iter().map(Lost::to_string)),
        Ok(None) => {
            lost.extend(reading.last.map(|(actor, seq)| TransferError::Incomplete { actor, seq }.to_string()))
        }
        Err(error @ TransferError::Changed { .. }) => lost.push(error.to_string()),
        Err(error) => return Err(error),
    }
    let runs = take_in(backend, reading.into_import()?).await?;
    Ok(Salvaged { runs, lost })
}

fn in_one_line(error: &TransferError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

async fn take_in(backend: &EmbeddedBackend, import: Import) -> Result<Vec<Imported>, TransferError> {
    match backend.import(import).await? {
        Ok(imported) => Ok(imported),
        Err(Unfit::Diverges { actor, seq }) => Err(TransferError::Diverges { actor, seq }),
        Err(Unfit::Missing { session, at }) => Err(TransferError::Missing { session, at }),
    }
}

/// The reaction to an invalid line.
type OnProblem<'a> = dyn FnMut(usize, LineProblem) -> Result<(), TransferError> + Send + 'a;

#[derive(Default)]
struct ImportReader {
    /// The runs in the order of the file; the first is the exported one.
    runs: Vec<RunId>,
    logs: BTreeMap<ActorKey, Log>,
    /// The log of each entry, in the order of the file.
    order: Vec<ActorKey>,
    /// The references of forks.
    bases: Vec<ForkBase>,
    blobs: Vec<(BlobId, Vec<u8>)>,
    /// The last record.
    last: Option<(ActorKey, Seq)>,
}

struct Log {
    /// Replays every record, so that inconsistent logs are rejected.
    actor: Actor,
    chain: EntryChain,
    entries: Vec<NewEntry>,
}

/// The last line, if it matches those before it.
fn compared(end: EndLine, line: usize, hasher: &blake3::Hasher) -> Result<EndLine, TransferError> {
    let before = line.saturating_sub(1);
    if end.lines != before {
        let what = format!("{before} of {} lines are there", end.lines);
        return Err(TransferError::Changed { what });
    }
    if end.hash != hasher.finalize().to_hex().as_str() {
        return Err(TransferError::Changed { what: "its hash is another".to_owned() });
    }
    Ok(end)
}

/// The fields that distinguish a record from an output.
#[derive(Deserialize)]
struct Head {
    v: u32,
    r#type: Option<String>,
    /// The beginning of the log's hash up to this record.
    chain: Option<String>,
}

impl Log {
    /// `record`, the last one replayed. A snapshot that differs from the log's state keeps its position but not
    /// its state: a process that continues the run would trust it.
    fn without_a_false_snapshot(&self, record: Record) -> Record {
        let Entry::Lifecycle(LifecycleEntry::Snapshot(_)) = &record.entry else { return record };
        let first = self.entries.first().map(|first| &*first.record);
        let restored = first.and_then(|first| Actor::restore(first, &record));
        if restored.as_ref() == Some(&self.actor) {
            return record;
        }
        tracing::debug!(actor = %record.actor, seq = %record.seq, "a snapshot isn't what its log comes to");
        let entry = Entry::Lifecycle(LifecycleEntry::Snapshot(Snapshot {
            layout: NO_LAYOUT,
            state: Json::empty_object(),
        }));
        Record { entry, ..record }
    }
}

impl ImportReader {
    /// Reads all lines; `None` if the last one is missing.
    fn lines(
        &mut self,
        input: &mut (dyn BufRead + Send),
        on_problem: &mut OnProblem<'_>,
    ) -> Result<Option<EndLine>, TransferError> {
        let mut hasher = blake3::Hasher::new();
        let mut end = None::<EndLine>;
        let mut bytes = Vec::new();
        for line in 1.. {
            bytes.clear();
            let read = input.read_until(b'\n', &mut bytes);
            let read = read.map_err(|source| TransferError::File { attempt: "read the import", source })?;
            if read == 0 {
                break;
            }
            let is_cut = bytes.last() != Some(&b'\n');
            let found = if end.is_some() { Err(LineProblem::BehindTheEnd) } else { self.line(&bytes) };
            match found {
                Ok(Some(found)) => end = Some(compared(found, line, &hasher)?),
                Ok(None) => {}
                // The form of a cut file.
                Err(_) if is_cut => return Ok(None),
                Err(problem) => on_problem(line, problem)?,
            }
            hasher.update(&bytes);
        }
        Ok(end)
    }

    /// A line; the last one is returned.
    fn line(&mut self, bytes: &[u8]) -> Result<Option<EndLine>, LineProblem> {
        let text = std::str::from_utf8(bytes).map_err(LineProblem::Text)?;
        let head = serde_json::from_str::<Head>(text).map_err(FormatError::Malformed)?;
        FormatError::check_version(head.v)?;
        match head.r#type.as_deref() {
            Some(END) => Ok(Some(serde_json::from_str(text).map_err(FormatError::Malformed)?)),
            Some(BLOB) => {
                let line = serde_json::from_str::<BlobLine>(text).map_err(FormatError::Malformed)?;
                self.blobs.push(line.into_body()?);
                Ok(None)
            }
            _ => self.record(Record::from_line(text)?, head.chain).map(|()| None),
        }
    }

    fn record(&mut self, record: Record, digits: Option<String>) -> Result<(), LineProblem> {
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
        let bases = match &record.entry {
            Entry::Lifecycle(LifecycleEntry::SessionStarted(SessionStarted { fork: Some(fork), .. })) => {
                fork.bases.clone()
            }
            _ => Vec::new(),
        };
        let (actor, seq) = (record.actor, record.seq);
        let log = self.logs.entry(key).or_insert_with(|| Log {
            actor: Actor::new(key),
            chain: EntryChain::before(&record.entry),
            entries: Vec::new(),
        });
        let mut chain = log.chain;
        chain.add(&record);
        if digits.is_some_and(|digits| digits != chain_digits(&chain)) {
            return Err(LineProblem::OtherEntry { actor, seq });
        }
        log.actor.replay(&record)?;
        let record = log.without_a_false_snapshot(record);
        let entry = record.entry.body().map_err(FormatError::Malformed)?;
        log.chain = chain;
        self.order.push(actor);
        log.entries.push(NewEntry { record: record.into(), body: entry });
        self.bases.extend(bases);
        self.last = Some((actor, seq));
        Ok(())
    }

    fn into_import(self) -> Result<Import, TransferError> {
        let Self { runs, mut logs, mut order, bases, blobs, last: _ } = self;
        // Of a damaged first entry only the actor is known.
        logs.retain(|_, log| !log.entries.is_empty());
        let mut imports = Vec::with_capacity(runs.len());
        for run in runs {
            let status = logs.get(&ActorKey::Run(run)).and_then(|log| log.actor.status());
            // Of a damaged file only the id may be known.
            let Some(status) = status else { continue };
            let of_run = logs.extract_if(.., |key, _| key.run() == run);
            let logs = of_run.map(|(key, log)| (key, log.entries)).collect();
            let order = order.extract_if(.., |actor| actor.run() == run).collect();
            imports.push(ImportRun { run: StoredRun::new(run, status), logs, order });
        }
        if imports.is_empty() {
            return Err(TransferError::Empty);
        }
        Ok(Import { runs: imports, bases, blobs })
    }

    /// Checks whether the agents' logs reach as far as the run's own log says: in a file that was cut at the end
    /// of a line they don't.
    fn as_far_as_charged(&self, run: RunId) -> Result<(), TransferError> {
        let Some(Log { actor: Actor::Run(state), entries, .. }) = self.logs.get(&ActorKey::Run(run)) else {
            return Ok(());
        };
        let cut = |session| Err(TransferError::Cut { session });
        let root = SessionId::root(run);
        // One step starts both a run and its first agent.
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
                Entry::Budget(BudgetEntry::Reserved(entry)) => {
                    let is_beside = entry.purpose.is_beside();
                    reserved.insert((entry.session, entry.call, is_beside));
                    if !self.logs.contains_key(&entry.session.into()) {
                        return cut(entry.session);
                    }
                    continue;
                }
                Entry::Budget(BudgetEntry::Charged(entry)) => {
                    (entry.session, entry.call, entry.purpose.is_beside())
                }
                _ => continue,
            };
            let (session, _, is_beside) = charged;
            let last = calls.entry((session, is_beside)).or_insert_with(|| match is_beside {
                true => self.last_external_call(session),
                false => self.last_call(session),
            });
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
            Entry::Model(ModelEntry::Called(called)) => Some(called.call),
            _ => None,
        });
        last.unwrap_or_default()
    }

    /// The last call beside an agent's conversation; 0 for one that has made none.
    fn last_external_call(&self, session: SessionId) -> u32 {
        let log = self.logs.get(&session.into());
        let mut entries = log.into_iter().flat_map(|log| log.entries.iter().rev());
        let last = entries.find_map(|entry| match &entry.record.entry {
            Entry::Model(ModelEntry::ExternalCalled(called)) => Some(called.call),
            _ => None,
        });
        last.unwrap_or_default()
    }

    /// Checks whether the referenced entries are those that were forked, if they are in the file.
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
            Some(chain) if chain.to_string() == base.hash => Ok(()),
            _ => Err(TransferError::OtherHistory { session, at }),
        }
    }
}
