//! The options of telemetry, and their errors.

use std::fmt;
use std::time::Duration;

use secrecy::SecretString;

/// Where and how spans and metrics are sent.
pub struct TelemetryOptions {
    /// The collector's base address, such as `http://127.0.0.1:4318`; `/v1/traces` and `/v1/metrics` are below it.
    pub endpoint: String,
    /// Headers of every request, such as a key. The values are never shown.
    pub headers: Vec<(String, SecretString)>,
    /// `service.name`. Default `provost`.
    pub service_name: String,
    /// Whether content is exported. Default [`Content::Off`].
    pub content: Content,
    /// The time limit of one request. Default 5 s. A retryable request is repeated at most 3 times, if the repeat
    /// begins within this time; so a batch is given up after at most twice this time.
    pub timeout: Duration,
    /// Values that are removed from everything that is sent, besides what looks like a secret. Values of less than
    /// 8 characters are ignored.
    pub secrets: Vec<SecretString>,
}

impl TelemetryOptions {
    /// The defaults, for the collector at `endpoint`.
    pub fn new(endpoint: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            headers: Vec::new(),
            service_name: "provost".to_owned(),
            content: Content::Off,
            timeout: Duration::from_secs(5),
            secrets: Vec::new(),
        }
    }
}

impl fmt::Debug for TelemetryOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TelemetryOptions")
            .field("endpoint", &without_userinfo(&self.endpoint))
            .field("headers", &self.headers.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("service_name", &self.service_name)
            .field("content", &self.content)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// Whether prompts, answers, arguments and results are exported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Content {
    /// No: only names, counts, times and outcomes.
    #[default]
    Off,
    /// Yes, without secrets, at most 16 KiB per attribute. Of a model call's input only the part since the
    /// previous call.
    On,
}

/// Why telemetry can't be started.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The address is invalid.
    #[error("the telemetry endpoint `{endpoint}` is no address: {why}")]
    Endpoint {
        /// The address, without user and password.
        endpoint: String,
        /// What is wrong.
        why: &'static str,
    },
    /// A header can't be sent.
    #[error("the telemetry header `{name}` can't be sent: its {part} has characters that no header may have")]
    Header {
        /// The header's name.
        name: String,
        /// `name` or `value`.
        part: &'static str,
    },
    /// The HTTP client can't be made.
    #[error("no HTTP client for telemetry")]
    Client(#[source] reqwest::Error),
    /// The exporter of spans or metrics can't be made.
    #[error("no exporter of {signal}")]
    Exporter {
        /// `spans` or `metrics`.
        signal: &'static str,
        /// The cause.
        #[source]
        source: opentelemetry_otlp::ExporterBuildError,
    },
    /// The thread that flushes can't be started.
    #[error("no thread for telemetry")]
    Thread(#[source] std::io::Error),
}

/// The address without a user and password before its host.
pub(crate) fn without_userinfo(address: &str) -> String {
    match (address.find("://"), address.rfind('@')) {
        (Some(scheme), Some(at)) if scheme < at => {
            let (scheme, host) = (address.get(..scheme), address.get(at + 1..));
            format!("{}://{}", scheme.unwrap_or_default(), host.unwrap_or_default())
        }
        _ => address.to_owned(),
    }
}
