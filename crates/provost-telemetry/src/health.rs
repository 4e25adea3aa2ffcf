//! The health of the export: counts, and a rate-limited warning.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::Temporality;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};

use std::sync::Arc;

/// The least interval between warnings about a collector.
const WARN_EVERY: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(crate) struct Health {
    /// Spans given to the SDK and not yet taken for sending.
    waiting: AtomicUsize,
    failed: AtomicU64,
    lost: AtomicU64,
    trouble: Mutex<Trouble>,
}

#[derive(Debug, Default)]
struct Trouble {
    /// The last error, as the transport reported it.
    words: Option<String>,
    warned: Option<Instant>,
    unsaid: u64,
}

impl Health {
    /// Takes one of `most` places for waiting spans; if there is none the span is lost.
    pub(crate) fn admit(&self, most: usize) -> bool {
        let more = |waiting: usize| (waiting < most).then(|| waiting.saturating_add(1));
        let admitted = self.waiting.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok();
        if !admitted {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        admitted
    }

    pub(crate) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Keeps an error until it is known whether a retry helped.
    pub(crate) fn trouble(&self, words: String) {
        if let Ok(mut trouble) = self.trouble.lock() {
            trouble.words = Some(words);
        }
    }

    fn taken(&self, spans: usize) {
        let fewer = |waiting: usize| Some(waiting.saturating_sub(spans));
        let _ = self.waiting.fetch_update(Ordering::AcqRel, Ordering::Acquire, fewer);
    }

    fn note(&self, signal: &'static str, result: &OTelSdkResult, spans: usize) {
        let Err(error) = result else { return };
        self.failed.fetch_add(1, Ordering::Relaxed);
        self.lost.fetch_add(u64::try_from(spans).unwrap_or(u64::MAX), Ordering::Relaxed);
        let Ok(mut trouble) = self.trouble.lock() else { return };
        let why = trouble.words.take().unwrap_or_else(|| error.to_string());
        if trouble.warned.is_some_and(|last| last.elapsed() < WARN_EVERY) {
            trouble.unsaid = trouble.unsaid.saturating_add(1);
            return;
        }
        let unsaid = std::mem::take(&mut trouble.unsaid);
        trouble.warned = Some(Instant::now());
        drop(trouble);
        tracing::warn!(signal, why, unsaid, "telemetry could not be exported");
    }
}

/// An exporter that counts failures. Its debug output leaves out the inner exporter, which may hold secrets.
pub(crate) struct Watched<E> {
    exporter: E,
    health: Arc<Health>,
}

impl<E> Watched<E> {
    pub(crate) const fn new(exporter: E, health: Arc<Health>) -> Self {
        Self { exporter, health }
    }
}

impl<E> fmt::Debug for Watched<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").finish_non_exhaustive()
    }
}

impl<E: SpanExporter> SpanExporter for Watched<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        self.health.taken(spans);
        let result = self.exporter.export(batch).await;
        self.health.note("spans", &result, spans);
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

impl<E: PushMetricExporter> PushMetricExporter for Watched<E> {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        let result = self.exporter.export(metrics).await;
        self.health.note("metrics", &result, 0);
        result
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn temporality(&self) -> Temporality {
        self.exporter.temporality()
    }
}
