//! How observers fared: they write no log entries, so the process that holds a run keeps this beside the store.

use std::fs::File;
use std::io::{BufRead as _, BufReader, ErrorKind};
use std::path::Path;

use anyhow::Context as _;
use provost_event::RunId;
use provost_view::explain::ObserverSegment;

/// What was kept of the observers of the run `run`, in its file in `folder`. A line that can't be read doesn't count.
///
/// # Errors
/// When the file is there and can't be read.
pub(super) fn observer_segments(folder: &Path, run: RunId) -> anyhow::Result<Vec<ObserverSegment>> {
    let path = folder.join(format!("{run}.jsonl"));
    let mut segments = Vec::new();
    match File::open(&path) {
        Ok(file) => {
            for line in BufReader::new(file).split(b'\n') {
                let line = line.with_context(|| format!("can't read {}", path.display()))?;
                segments.extend(serde_json::from_slice::<ObserverSegment>(&line));
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| format!("can't read {}", path.display())),
    }
    Ok(segments)
}
