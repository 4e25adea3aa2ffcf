//! `JsonlTrace`: every event as a line of JSON in a file.

mod file;

use std::path::PathBuf;
use std::sync::Arc;

use provost_event::RunId;

use self::file::LineFile;
use crate::{Redactor, TraceError, TraceEvent, TraceSink};

/// Appends every event to a file, one JSON object a line. Several runs may share a file.
///
/// [`TraceEvent::to_json`] has the format of a line. Lines are buffered up to 64 KiB or until the queue is empty.
/// The file is created readable by its owner only; secrets found by the redactor are removed. Lines that can't be
/// written are dropped and count as a failure of the observer; later lines are tried again.
#[derive(Debug, Clone)]
pub struct JsonlTrace {
    path: PathBuf,
    redactor: Arc<Redactor>,
}

impl JsonlTrace {
    /// Writes to `path`, whose folder must exist, without secrets found by `redactor`.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, redactor: Arc<Redactor>) -> Self {
        Self { path: path.into(), redactor }
    }

    /// Creates the sink of a run, for [`Observers::with_trace`](crate::Observers::with_trace).
    pub fn sink(&self) -> impl Fn(RunId) -> Box<dyn TraceSink> + Send + Sync + use<> {
        let trace = self.clone();
        move |_| {
            let file = LineFile::new(trace.path.clone());
            Box::new(Writer { file, redactor: trace.redactor.clone() })
        }
    }
}

struct Writer {
    file: LineFile,
    redactor: Arc<Redactor>,
}

impl TraceSink for Writer {
    fn event(&mut self, event: &TraceEvent) -> Result<(), TraceError> {
        Ok(self.file.add(&self.redactor.redact_json(&event.to_json()?))?)
    }

    fn flush(&mut self) -> Result<(), TraceError> {
        Ok(self.file.flush()?)
    }
}
