//! Sends ended spans and measurements to the collector: the SDK's batches, encoding and retries.
//!
//! The SDK has a thread for spans and one for metrics, which need no runtime; they end when the last observer and
//! the [`Telemetry`](crate::Telemetry) they came from are gone. A third thread does the flushes, because the SDK's
//! own waits have no time limit.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{
    MetricExporter, Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider, Temporality};
use opentelemetry_sdk::resource::TelemetryResourceDetector;
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, SpanData, SpanProcessor as _};

use crate::health::{Health, Watched};
use crate::metrics::Instruments;
use crate::transport::{self, Transport, below};
use crate::{TelemetryError, TelemetryOptions};

/// Maximum spans in the queue; further ones are lost and counted.
const SPANS_MAX: usize = 1024;
/// Maximum spans in one request.
const BATCH_MAX: usize = 256;
/// The interval of sending spans, unless a batch is full before.
const SPANS_EVERY: Duration = Duration::from_secs(5);
/// The interval of sending metrics.
const METRICS_EVERY: Duration = Duration::from_secs(30);
/// Maximum pending flushes; a further one isn't waited for.
const FLUSHES_MAX: usize = 16;
/// The address passed to the SDK; the [`Transport`] uses the real one.
const NOWHERE: &str = "http://collector.invalid/";

#[derive(Debug)]
pub(crate) struct Pipeline {
    spans: Arc<BatchSpanProcessor>,
    flushes: SyncSender<SyncSender<()>>,
    pub(crate) instruments: Instruments,
    pub(crate) scope: InstrumentationScope,
    pub(crate) health: Arc<Health>,
}

impl Pipeline {
    pub(crate) fn new(options: &TelemetryOptions) -> Result<Self, TelemetryError> {
        let health = Arc::new(Health::default());
        let base = transport::address(&options.endpoint)?;
        let headers = transport::headers(&options.headers)?;
        let client = transport::client(&base, options.timeout)?;
        let wire = |signal| {
            Transport::new(client.clone(), below(&base, signal), headers.clone(), Arc::clone(&health))
        };
        let spans = Watched::new(span_exporter(wire("traces"), options.timeout)?, Arc::clone(&health));
        let metrics = Watched::new(metric_exporter(wire("metrics"), options.timeout)?, Arc::clone(&health));
        let resource = resource(&options.service_name);
        let spans = Arc::new(span_processor(spans, &resource));
        let meters = meter_provider(metrics, resource);
        let scope = InstrumentationScope::builder("provost").with_version(env!("CARGO_PKG_VERSION")).build();
        let instruments = Instruments::new(&meters.meter_with_scope(scope.clone()));
        let (flushes, wanted) = sync_channel(FLUSHES_MAX);
        let flusher = Flusher { spans: Arc::clone(&spans), meters, wanted };
        thread::Builder::new()
            .name("provost-telemetry".to_owned())
            .spawn(move || flusher.run())
            .map_err(TelemetryError::Thread)?;
        Ok(Self { spans, flushes, instruments, scope, health })
    }

    /// Queues a span; never waits.
    pub(crate) fn ended(&self, span: SpanData) {
        if self.health.admit(SPANS_MAX) {
            self.spans.on_end(span);
        }
    }

    /// Sends everything. Returns false if that takes longer than `within`; it may still succeed later.
    pub(crate) fn flush(&self, within: Duration) -> bool {
        let (done, flushed) = sync_channel(1);
        self.flushes.try_send(done).is_ok() && flushed.recv_timeout(within).is_ok()
    }
}

/// Waits for the SDK's threads, and for their end.
struct Flusher {
    spans: Arc<BatchSpanProcessor>,
    meters: SdkMeterProvider,
    wanted: Receiver<SyncSender<()>>,
}

impl Flusher {
    fn run(self) {
        while let Ok(first) = self.wanted.recv() {
            let waiting = [first].into_iter().chain(self.wanted.try_iter()).collect::<Vec<_>>();
            // Failures are counted and logged where they happen.
            let _ = self.spans.force_flush();
            let _ = self.meters.force_flush();
            for done in waiting {
                let _ = done.try_send(());
            }
        }
        let _ = self.spans.shutdown();
        let _ = self.meters.shutdown();
    }
}

fn span_exporter(wire: Transport, timeout: Duration) -> Result<SpanExporter, TelemetryError> {
    SpanExporter::builder()
        .with_http()
        .with_http_client(wire)
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(NOWHERE)
        .with_timeout(timeout)
        .build()
        .map_err(|source| TelemetryError::Exporter { signal: "spans", source })
}

fn metric_exporter(wire: Transport, timeout: Duration) -> Result<MetricExporter, TelemetryError> {
    MetricExporter::builder()
        .with_http()
        .with_http_client(wire)
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(NOWHERE)
        .with_timeout(timeout)
        .with_temporality(Temporality::Cumulative)
        .build()
        .map_err(|source| TelemetryError::Exporter { signal: "metrics", source })
}

/// Sets every value that the SDK would otherwise read from the environment.
fn span_processor(exporter: Watched<SpanExporter>, resource: &Resource) -> BatchSpanProcessor {
    let config = BatchConfigBuilder::default()
        .with_max_queue_size(SPANS_MAX)
        .with_max_export_batch_size(BATCH_MAX)
        .with_scheduled_delay(SPANS_EVERY)
        .build();
    let mut processor = BatchSpanProcessor::new(exporter, config);
    processor.set_resource(resource);
    processor
}

fn meter_provider(exporter: Watched<MetricExporter>, resource: Resource) -> SdkMeterProvider {
    let reader = PeriodicReader::builder(exporter).with_interval(METRICS_EVERY).build();
    SdkMeterProvider::builder().with_reader(reader).with_resource(resource).build()
}

/// The resource. Each process has its own counters, so each needs an id of its own.
fn resource(service_name: &str) -> Resource {
    let instance = format!("{:032x}", fastrand::u128(..));
    Resource::builder_empty()
        .with_detector(Box::new(TelemetryResourceDetector))
        .with_service_name(service_name.to_owned())
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .with_attribute(KeyValue::new("service.instance.id", instance))
        .build()
}
