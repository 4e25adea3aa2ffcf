//! Writing a run to a file.

use std::collections::BTreeSet;
use std::io::Write;

use provost_event::{ActorKey, BlobId, Entry, FormatError, RunId, Seq};
use provost_harness::{Home, HomeError};

use crate::transfer::{BlobLine, LineProblem, TransferError};

/// Records read at a time.
const AT_ONCE: usize = 256;

/// Writes `run` to `out`, a line for each record (the run's own log first, then its sessions'), then one for each
/// output and picture that is kept beside them; those that are gone are left out. Returns the number of lines.
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
    let mut exporting = Exporting { home, out, lines: 0, blobs: BTreeSet::new() };
    for actor in actors {
        exporting.log(actor).await?;
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
                self.blobs.extend(record.entry.images().into_iter().map(|image| image.blob.clone()));
            }
        }
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

const fn unwritten(source: std::io::Error) -> TransferError {
    TransferError::File { attempt: "write the export", source }
}
