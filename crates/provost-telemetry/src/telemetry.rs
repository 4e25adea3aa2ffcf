//! The telemetry of a process.

use std::fmt;
use std::sync::Arc;

use provost_event::RunId;
use provost_harness::{Observer, Redactor};

use crate::content::Sieve;
use crate::observer::RunObserver;
use crate::pipeline::Pipeline;
use crate::{TelemetryError, TelemetryOptions};

/// Exports the events of runs. Made once per process; dropping it never waits.
///
/// Spans are sent every 5 s or 256 at a time, metrics every 30 s, both also when an observer finishes. At most
/// 1024 spans are queued; what a collector doesn't accept is lost and counted, with a log line at most once a
/// minute.
pub struct Telemetry {
    shared: Arc<Shared>,
}

/// State that all observers of a process share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) pipeline: Pipeline,
    pub(crate) sieve: Sieve,
}

/// The health of the export, since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TelemetryHealth {
    /// Requests that failed after all retries.
    pub exports_failed: u64,
    /// Spans that no collector has accepted.
    pub spans_lost: u64,
}

impl Telemetry {
    /// Starts the export. It makes no connection yet: a collector that is down is no error.
    ///
    /// # Errors
    /// An invalid address or header, and errors of the system. No error shows a header's value.
    pub fn new(options: TelemetryOptions) -> Result<Self, TelemetryError> {
        let pipeline = Pipeline::new(&options)?;
        // The collector's key must not be visible in the exported data.
        let keys = options.headers.into_iter().map(|(_, value)| value);
        let sieve = Sieve::new(options.content, Redactor::new(options.secrets.into_iter().chain(keys)));
        Ok(Self { shared: Arc::new(Shared { pipeline, sieve }) })
    }

    /// An observer of one segment of `run`: from its start, or from its resumption. Pass it only the events from
    /// then on; earlier events have their spans already.
    ///
    /// It needs no runtime. Its `finish` waits at most 1.5 s for queued data to be sent.
    #[must_use]
    pub fn observer(&self, run: RunId) -> Box<dyn Observer> {
        Box::new(RunObserver::new(run, Arc::clone(&self.shared)))
    }

    /// The health of the export.
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
