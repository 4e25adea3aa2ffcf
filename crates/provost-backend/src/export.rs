//! Writing a run to a file.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io::Write;
use std::sync::Arc;

use provost_event::{
    ActorKey, BlobId, Entry, ForkBase, FormatError, LifecycleEntry, Record, RunId, Seq, SessionId,
    SessionStarted,
};
use provost_harness::{BackendError, EntryChain, Log, RunPosition, log_parts};

use crate::prune::outputs_of;
use crate::transfer::{BlobLine, EndLine, LineProblem, Lost, TransferError, chained_line};

/// Records read at a time.
const AT_ONCE: usize = 256;

/// The result of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// Lines written.
    pub lines: usize,
    /// Damaged parts, which the export lacks. [`import_run`](crate::import_run) refuses such a file;
    /// [`import_incomplete`](crate::import_incomplete) accepts it.
    pub lost: Vec<Lost>,
}

/// Writes `run` to `out`, a line for each record, those of all its logs in the order in which they were committed; then likewise the
/// runs that it is a fork of; then a line for each output and picture stored beside them; and a last line with the
/// number and the hash of all lines, without which the file is incomplete. Damaged or missing parts are left out
/// (of a log, everything from there on), and the last line lists them.
///
/// For a run that is still being written, the end of the export may be newer than its beginning.
///
/// # Errors
/// [`BackendError::Unknown`] for an unknown run; otherwise when nothing of it can be read, or `out` can't be written.
pub async fn export_run(
    backend: &dyn Log,
    run: RunId,
    out: &mut (dyn Write + Send),
) -> Result<Exported, TransferError> {
    if backend.actors(run).await?.is_empty() {
        return Err(BackendError::Unknown { what: format!("run {run}") }.into());
    }
    let mut exporting = Exporting {
        backend,
        out,
        lines: 0,
        hasher: blake3::Hasher::new(),
        lost: Vec::new(),
        blobs: BTreeSet::new(),
        runs: BTreeSet::from([run]),
        bases: Vec::new(),
        next: 0,
    };
    exporting.run(run).await?;
    while let Some(base) = exporting.next_base() {
        exporting.base(base).await?;
    }
    exporting.blobs().await?;
    exporting.end()
}

/// A log, as far as it is read.
#[derive(Default)]
struct LogExport {
    after: Seq,
    /// Read and not written yet.
    read: VecDeque<Arc<Record>>,
    chain: Option<EntryChain>,
    /// There is no more of it, or no more can be read.
    is_over: bool,
}

struct Exporting<'a> {
    backend: &'a dyn Log,
    out: &'a mut (dyn Write + Send),
    lines: usize,
    /// Of all lines.
    hasher: blake3::Hasher,
    lost: Vec<Lost>,
    blobs: BTreeSet<BlobId>,
    /// The runs that are written already.
    runs: BTreeSet<RunId>,
    /// The references of forks, and the index of the first unprocessed one.
    bases: Vec<ForkBase>,
    next: usize,
}

impl Exporting<'_> {
    /// The logs of a run in the order of its entries, each up to its first unreadable one.
    async fn run(&mut self, run: RunId) -> Result<(), TransferError> {
        let mut logs = HashMap::<ActorKey, LogExport>::new();
        let mut after = RunPosition::START;
        loop {
            let places = self.backend.order(run, after, AT_ONCE).await?;
            let Some(last) = places.last() else { break };
            after = last.position;
            for (actor, part) in log_parts(&places) {
                let log = logs.entry(actor).or_default();
                self.read(actor, log, part.last).await?;
            }
            for place in places {
                let Some(log) = logs.get_mut(&place.actor) else { continue };
                while let Some(record) = log.read.pop_front_if(|record| record.seq <= place.seq) {
                    self.record(&record, &mut log.chain)?;
                }
            }
        }
        // What was written meanwhile, and whether each log ends where the store says it does.
        for actor in self.backend.actors(run).await? {
            let log = logs.entry(actor).or_default();
            while !log.is_over {
                self.read(actor, log, Seq(log.after.0.saturating_add(AT_ONCE as u64))).await?;
                for record in std::mem::take(&mut log.read) {
                    self.record(&record, &mut log.chain)?;
                }
            }
        }
        Ok(())
    }

    /// Reads a log on up to `last`, or what can be read of that.
    async fn read(&mut self, actor: ActorKey, log: &mut LogExport, last: Seq) -> Result<(), TransferError> {
        while !log.is_over && log.after < last {
            let wanted = usize::try_from(last.0 - log.after.0).unwrap_or(usize::MAX);
            match self.backend.read(actor, log.after, wanted).await {
                Ok(records) => match records.last() {
                    Some(last) => {
                        log.after = last.seq;
                        log.read.extend(records);
                    }
                    None => log.is_over = true,
                },
                Err(error) => {
                    log.is_over = true;
                    self.lose(actor, log.after.next(), error)?;
                }
            }
        }
        Ok(())
    }

    fn record(&mut self, record: &Record, chain: &mut Option<EntryChain>) -> Result<(), TransferError> {
        let chain = chain.get_or_insert_with(|| EntryChain::before(&record.entry));
        chain.add(record);
        self.line(chained_line(record, chain))?;
        if let Entry::Lifecycle(LifecycleEntry::SessionStarted(SessionStarted { fork: Some(fork), .. })) =
            &record.entry
        {
            self.bases.extend(fork.bases.iter().cloned());
        }
        self.blobs.extend(outputs_of(&record.entry));
        Ok(())
    }

    /// Records the unreadable part of a log.
    fn lose(&mut self, actor: ActorKey, next: Seq, error: BackendError) -> Result<(), TransferError> {
        let (from, why) = match error {
            BackendError::Unreadable { actor: of, seq, message } if of == actor => (seq, message),
            BackendError::Unreadable { .. } | BackendError::Storage { .. } => (next, error.to_string()),
            error => return Err(error.into()),
        };
        self.lost.push(Lost::Entries { actor, from, why });
        Ok(())
    }

    fn next_base(&mut self) -> Option<ForkBase> {
        let base = self.bases.get(self.next).cloned();
        self.next = self.next.saturating_add(1);
        base
    }

    /// The run that a fork refers to, unless it is written already. The referenced entries must be unchanged.
    async fn base(&mut self, base: ForkBase) -> Result<(), TransferError> {
        let ForkBase { session, through, hash } = base;
        match chain_through(self.backend, session, through).await {
            Ok(None) => return Err(TransferError::Missing { session, at: through }),
            Ok(Some(chain)) if chain.to_string() != hash => {
                return Err(TransferError::OtherHistory { session, at: through });
            }
            Ok(Some(_)) => {}
            // The readable part is written, and the rest recorded.
            Err(TransferError::Backend(BackendError::Unreadable { .. })) => {}
            Err(error) => return Err(error),
        }
        if self.runs.insert(session.run) {
            self.run(session.run).await?;
        }
        Ok(())
    }

    async fn blobs(&mut self) -> Result<(), TransferError> {
        for id in std::mem::take(&mut self.blobs) {
            let why = match self.backend.get_blob(&id).await {
                Ok(Some(body)) => {
                    self.line(serde_json::to_string(&BlobLine::new(id, body)))?;
                    continue;
                }
                Ok(None) => "it is missing".to_owned(),
                Err(BackendError::Storage { message, .. }) => message,
                Err(error) => return Err(error.into()),
            };
            self.lost.push(Lost::Output { output: id, why });
        }
        Ok(())
    }

    fn end(mut self) -> Result<Exported, TransferError> {
        let end = EndLine::new(self.lines, self.hasher.finalize().to_hex().to_string(), self.lost.clone());
        self.line(serde_json::to_string(&end))?;
        self.out.flush().map_err(unwritten)?;
        Ok(Exported { lines: self.lines, lost: self.lost })
    }

    fn line(&mut self, line: Result<String, serde_json::Error>) -> Result<(), TransferError> {
        self.lines += 1;
        let mut line = line.map_err(|error| TransferError::Line {
            line: self.lines,
            problem: LineProblem::Format(FormatError::Malformed(error)),
        })?;
        line.push('\n');
        self.hasher.update(line.as_bytes());
        self.out.write_all(line.as_bytes()).map_err(unwritten)
    }
}

/// The chain of a log's entries up to `through`; `None` if the log is shorter.
async fn chain_through(
    backend: &dyn Log,
    session: SessionId,
    through: Seq,
) -> Result<Option<EntryChain>, TransferError> {
    let (mut chain, mut after) = (None::<EntryChain>, Seq::START);
    loop {
        let records = backend.read(session.into(), after, AT_ONCE).await?;
        let Some(last) = records.last() else { return Ok(None) };
        after = last.seq;
        for record in records.iter().filter(|record| record.seq <= through) {
            chain.get_or_insert_with(|| EntryChain::before(&record.entry)).add(record);
        }
        if after >= through {
            return Ok(chain);
        }
    }
}

const fn unwritten(source: std::io::Error) -> TransferError {
    TransferError::File { attempt: "write the export", source }
}
