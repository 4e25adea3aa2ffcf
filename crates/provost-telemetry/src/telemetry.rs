//! Telemetry of a process.

use std::fmt;
use std::sync::Arc;

use provost_event::RunId;
use provost_harness::{Observer, Redactor};

use crate::content::Sieve;
use crate::observer::RunObserver;
use crate::pipeline::Pipeline;
use crate::{TelemetryError, TelemetryOptions};

/// Exports what happens to runs. Made once in a process; dropping it never waits.
///
/// Spans are sent every 5 s or 256 at a time, metrics every 30 s, both also when an observer finishes. At most 1024
/// spans wait; what a collector doesn't take in is lost and counted, and in the log once a minute.
pub struct Telemetry {
    shared: Arc<Shared>,
}

/// What all observers of a process use.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) pipeline: Pipeline,
    pub(crate) sieve: Sieve,
}

/// How exporting goes, since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TelemetryHealth {
    /// Requests that were given up, after all attempts.
    pub exports_failed: u64,
    /// Spans that no collector has taken in.
    pub spans_lost: u64,
}

impl Telemetry {
    /// Begins to export. No connection is made yet: a collector that is down is no error.
    ///
    /// # Errors
    /// An address or a header that makes no sense, and what the system refuses. No error shows a header's value.
    pub fn new(options: TelemetryOptions) -> Result<Self, TelemetryError> {
        let pipeline = Pipeline::new(&options)?;
        // A key of the collector's isn't for the collector's readers.
        let keys = options.headers.into_iter().map(|(_, value)| value);
        let sieve = Sieve::new(options.content, Redactor::new(options.secrets.into_iter().chain(keys)));
        Ok(Self { shared: Arc::new(Shared { pipeline, sieve }) })
    }

    /// An observer of one stretch of `run`: from its start, or from where it goes on. It must be told only what
    /// happens from then on; what an earlier observer was told has its spans already.
    ///
    /// It needs no runtime. Its `finish` waits 1.5 s at most for what is there to be sent.
    #[must_use]
    pub fn observer(&self, run: RunId) -> Box<dyn Observer> {
        Box::new(RunObserver::new(run, Arc::clone(&self.shared)))
    }

    /// How exporting goes.
    #[must_use]
    pub fn health(&self) -> TelemetryHealth {
        let health = &self.shared.pipeline.health;
        TelemetryHealth { exports_failed: health.failed(), spans_lost: health.lost() }
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telemetry").field("health", &self.health()).finish_non_exhaustive()
    }
}
