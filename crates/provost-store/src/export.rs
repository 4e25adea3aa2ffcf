//! Writing a run to a file.

use std::collections::BTreeSet;
use std::io::Write;

use provost_event::{ActorKey, BlobId, Entry, ForkBase, FormatError, RunId, Seq, SessionId, SessionStarted};
use provost_harness::{EntryChain, Home, HomeError};

use crate::transfer::{BlobLine, LineProblem, TransferError};

/// Records read at a time.
const AT_ONCE: usize = 256;

/// Writes `run` to `out`, a line for each record (the run's own log first, then its sessions'); then likewise the runs that
/// its conversation comes from, where it is a fork; then a line for each output and picture that is kept beside them;
/// those that are gone are left out. Returns the number of lines.
///
/// What is still being written to may come out a little newer at its end than at its beginning.
///
/// # Errors
/// [`HomeError::Unknown`] for a run that isn't there; else when it can't be read, or `out` not written.
pub async fn export_run(
    home: &dyn Home,
    run: RunId,
    out: &mut (dyn Write + Send),
) -> Result<usize, TransferError> {
    let actors = home.actors(run).await?;
    if actors.is_empty() {
        return Err(HomeError::Unknown { what: format!("run {run}") }.into());
    }
    let mut exporting = Exporting {
        home,
        out,
        lines: 0,
        blobs: BTreeSet::new(),
        runs: BTreeSet::from([run]),
        bases: Vec::new(),
        next: 0,
    };
    for actor in actors {
        exporting.log(actor).await?;
    }
    while let Some(base) = exporting.next_base() {
        exporting.base(base).await?;
    }
    exporting.blobs().await?;
    exporting.out.flush().map_err(unwritten)?;
    Ok(exporting.lines)
}

struct Exporting<'a> {
    home: &'a dyn Home,
    out: &'a mut (dyn Write + Send),
    lines: usize,
    blobs: BTreeSet<BlobId>,
    /// The runs that are written already.
    runs: BTreeSet<RunId>,
    /// What forks refer to, and the first of it that wasn't looked at.
    bases: Vec<ForkBase>,
    next: usize,
}

impl Exporting<'_> {
    async fn log(&mut self, actor: ActorKey) -> Result<(), TransferError> {
        let mut after = Seq::START;
        loop {
            let records = self.home.read(actor, after, AT_ONCE).await?;
            let Some(last) = records.last() else { return Ok(()) };
            after = last.seq;
            for record in &records {
                self.line(record.to_line())?;
                if let Entry::ToolFinished(finished) = &record.entry {
                    self.blobs.extend(finished.whole.clone());
                }
                if let Entry::SessionStarted(SessionStarted { fork: Some(fork), .. }) = &record.entry {
                    self.bases.extend(fork.bases.iter().cloned());
                }
                self.blobs.extend(record.entry.images().into_iter().map(|image| image.blob.clone()));
            }
        }
    }

    fn next_base(&mut self) -> Option<ForkBase> {
        let base = self.bases.get(self.next).cloned();
        self.next = self.next.saturating_add(1);
        base
    }

    /// The run that a fork refers to, unless it is written already. What it refers to must be as it was.
    async fn base(&mut self, base: ForkBase) -> Result<(), TransferError> {
        let ForkBase { session, through, hash } = base;
        let chain = chain_through(self.home, session, through).await?;
        match chain {
            None => return Err(TransferError::Missing { session, at: through }),
            Some(chain) if chain.as_str() != hash => {
                return Err(TransferError::OtherHistory { session, at: through });
            }
            Some(_) => {}
        }
        if self.runs.insert(session.run) {
            for actor in self.home.actors(session.run).await? {
                self.log(actor).await?;
            }
        }
        Ok(())
    }

    async fn blobs(&mut self) -> Result<(), TransferError> {
        for id in std::mem::take(&mut self.blobs) {
            if let Some(body) = self.home.get_blob(&id).await? {
                self.line(serde_json::to_string(&BlobLine::new(id, body)))?;
            }
        }
        Ok(())
    }

    fn line(&mut self, line: Result<String, serde_json::Error>) -> Result<(), TransferError> {
        self.lines += 1;
        let line = line.map_err(|error| TransferError::Line {
            line: self.lines,
            problem: LineProblem::Format(FormatError::Malformed(error)),
        })?;
        writeln!(self.out, "{line}").map_err(unwritten)
    }
}

/// The chain of a log's entries up to `through`; `None` where the log isn't that long.
async fn chain_through(
    home: &dyn Home,
    session: SessionId,
    through: Seq,
) -> Result<Option<EntryChain>, TransferError> {
    let (mut chain, mut after) = (None::<EntryChain>, Seq::START);
    loop {
        let records = home.read(session.into(), after, AT_ONCE).await?;
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
