//! A provider's endpoint: a pooled client, and errors that say what to check.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use provost_event::{ErrorClass, ModelFailure, TroubleCause, Usage};
use provost_harness::Clock;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Body, Client, Response, Url, redirect};

use crate::failure::{
    ErrorDetails, ReadError, cause_of, causes, class_of, one_line, request_id, retry_after_ms, says_daily,
    shorten, stalled, wait_said,
};
use crate::key::Key;
use crate::sent::Sent;
use crate::stream::EventStream;
use crate::stream_timeouts::StreamTimeouts;
use crate::{ModelLimits, ResolveError};

/// A dead HTTP/2 connection is detected by an unanswered ping, so that no retry uses it.
const PING_EVERY: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// An idle connection is closed before common load balancers close it.
const IDLE_MAX: Duration = Duration::from_secs(55);
/// Characters to show of an error that isn't in the provider's format, such as a proxy's page.
const FOREIGN_CHARS_MAX: usize = 200;
/// Maximum bytes of a list of models; some providers have hundreds.
const LISTING_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The parameters of an endpoint.
pub(crate) struct EndpointSpec<'a> {
    pub(crate) base_url: &'a str,
    pub(crate) key: Key,
    /// The environment variable of the key, if the provider needs one.
    pub(crate) key_env: Option<String>,
    /// The headers of every request, including the key.
    pub(crate) headers: HeaderMap,
    pub(crate) read_error: ReadError,
    pub(crate) limits: ModelLimits,
    pub(crate) clock: Arc<dyn Clock>,
}

/// A request that failed before a stream.
pub(crate) struct Refused {
    pub(crate) failure: ModelFailure,
    /// The response's body, as far as it was read; may be empty.
    pub(crate) body: String,
}

impl From<ModelFailure> for Refused {
    fn from(failure: ModelFailure) -> Self {
        Self { failure, body: String::new() }
    }
}

impl From<Refused> for ModelFailure {
    fn from(refused: Refused) -> Self {
        refused.failure
    }
}

/// The target of requests.
pub(crate) struct Endpoint {
    client: Client,
    base: Url,
    key: Key,
    key_env: Option<String>,
    headers: HeaderMap,
    read_error: ReadError,
    limits: ModelLimits,
    clock: Arc<dyn Clock>,
}

impl Endpoint {
    pub(crate) fn new(spec: EndpointSpec<'_>) -> Result<Self, ResolveError> {
        let base = address(spec.base_url)?;
        let client = client_for(&base, spec.limits)?;
        let EndpointSpec { key, key_env, mut headers, read_error, limits, clock, .. } = spec;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(Self { client, base, key, key_env, headers, read_error, limits, clock })
    }

    /// Host and port, for display.
    pub(crate) fn place(&self) -> String {
        let host = self.base.host_str().unwrap_or_default();
        self.base.port_or_known_default().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// The base address of requests.
    pub(crate) const fn base(&self) -> &Url {
        &self.base
    }

    /// Sends `body` to `url` and returns the stream of the answer.
    pub(crate) async fn post(&self, url: Url, body: Sent, times: u32) -> Result<EventStream, Refused> {
        let patience = StreamTimeouts::since(self.clock.monotonic(), self.limits, times);
        let sent = body.flag();
        let request = self.client.post(url).headers(self.headers.clone()).body(Body::wrap(body));
        let (due, stall) = patience.due();
        let response = tokio::select! {
            biased;
            response = request.send() => response.map_err(|error| self.unreachable(&error))?,
            () = self.clock.sleep_until(due) => return Err(stalled(stall).into()),
        };
        if response.status().is_success() && is_stream(&response) {
            return Ok(EventStream::new(response, patience, self.limits, Arc::clone(&self.clock)));
        }
        if !response.status().is_success() {
            // The status alone says that nothing was answered, before the rest of the response is read.
            sent.store(false, Ordering::Relaxed);
        }
        Err(self.refused(response).await)
    }

    /// The text at `url`, at most `LISTING_BYTES_MAX` bytes.
    pub(crate) async fn get(&self, url: Url) -> Result<String, ModelFailure> {
        let limit = Duration::from_millis(self.limits.first_event_ms);
        let fetched = async {
            let request = self.client.get(url).headers(self.headers.clone());
            let mut response = request.send().await.map_err(|error| self.unreachable(&error))?;
            if response.status().is_success() {
                return Ok(text_of(&mut response, LISTING_BYTES_MAX).await);
            }
            Err(self.presentable(self.refused(response).await.into(), Usage::default()))
        };
        tokio::select! {
            biased;
            text = fetched => text,
            () = self.clock.sleep(limit) => Err(stalled((ErrorClass::Silent, "nothing came", self.limits.first_event_ms))),
        }
    }

    /// `failure` for display: without the key, shortened, with the usage.
    pub(crate) fn presentable(&self, mut failure: ModelFailure, usage: Usage) -> ModelFailure {
        failure.message = shorten(&self.key.scrub(&failure.message), self.limits.message_chars_max);
        failure.request_id = failure.request_id.map(|id| self.key.scrub(&id));
        failure.usage = usage;
        failure
    }

    /// Reads a response that isn't an event stream to its end, so that the connection can be reused.
    async fn refused(&self, mut response: Response) -> Refused {
        let status = response.status().as_u16();
        let headers = std::mem::take(response.headers_mut());
        let body = tokio::select! {
            body = text_of(&mut response, self.limits.error_body_bytes_max) => body,
            () = self.clock.sleep(Duration::from_millis(self.limits.gap_ms)) => String::new(),
        };
        let body = self.key.scrub(&body);
        let said = (self.read_error)(&body).unwrap_or_else(|| foreign(status, &headers, &body));
        let is_daily = says_daily(&said.message);
        let class = match class_of(status, said.class) {
            ErrorClass::RateLimited if is_daily => ErrorClass::QuotaUsedUp,
            class => class,
        };
        let asked_ms = retry_after_ms(&headers, self.clock.now()).or(said.retry_after_ms);
        let hint = match (class.cause(), &self.key_env) {
            (TroubleCause::Key, Some(key_env)) => format!("the key comes from {key_env}"),
            _ => String::new(),
        };
        let failure = ModelFailure {
            class,
            hint,
            status: Some(status),
            retry_after_ms: asked_ms.or_else(|| is_daily.then(|| wait_said(&said.message))),
            message: said.message,
            request_id: said.request_id.or_else(|| request_id(&headers)),
            usage: Usage::default(),
        };
        Refused { failure, body }
    }

    fn unreachable(&self, error: &reqwest::Error) -> ModelFailure {
        let place = self.place();
        let cause = cause_of(error);
        let message = match trouble(error, self.base.scheme() == "https") {
            Trouble::Timeout => {
                let s = self.limits.connect_ms / 1000;
                format!(
                    "no connection to {place} within {s} s; check the network, a firewall, and the proxy variables"
                )
            }
            Trouble::Refused => {
                format!(
                    "{place} refuses connections; check that a server listens there, the base URL's host and port, and the proxy variables"
                )
            }
            Trouble::Name => {
                format!("no address is known for {place}; check the base URL's spelling and the network")
            }
            Trouble::Tls => {
                format!(
                    "no trusted TLS connection to {place}: {cause}; check https or http in the base URL, and a company's certificate authority (SSL_CERT_FILE)"
                )
            }
            Trouble::Broken => format!("the connection to {place} broke before an answer began: {cause}"),
        };
        ModelFailure::new(ErrorClass::Transport, message)
    }
}

/// The client for one provider. No redirect is followed: it would carry the key to another host.
pub(crate) fn client_for(base: &Url, limits: ModelLimits) -> Result<Client, ResolveError> {
    let mut builder = Client::builder()
        .redirect(redirect::Policy::none())
        .connect_timeout(Duration::from_millis(limits.connect_ms))
        .pool_idle_timeout(IDLE_MAX)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(PING_EVERY)
        .http2_keep_alive_timeout(PING_TIMEOUT);
    if is_loopback(base) {
        builder = builder.no_proxy();
        // Reading the platform's certificates takes tens of milliseconds.
        builder = builder.tls_built_in_root_certs(base.scheme() == "https");
    }
    builder.build().map_err(ResolveError::Client)
}

enum Trouble {
    Timeout,
    Refused,
    Name,
    Tls,
    Broken,
}

fn trouble(error: &reqwest::Error, is_tls: bool) -> Trouble {
    let io_kind = causes(error).find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    let says = |words: &str| causes(error).any(|cause| cause.to_string().contains(words));
    if error.is_timeout() || io_kind == Some(io::ErrorKind::TimedOut) {
        Trouble::Timeout
    } else if io_kind == Some(io::ErrorKind::ConnectionRefused) {
        Trouble::Refused
    } else if says("dns error") {
        Trouble::Name
    } else if is_tls && error.is_connect() {
        Trouble::Tls
    } else {
        Trouble::Broken
    }
}

fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream"))
}

async fn text_of(response: &mut Response, bytes_max: usize) -> String {
    let mut body = Vec::new();
    // A body that breaks off is used as far as it came.
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() >= bytes_max {
            body.truncate(bytes_max);
            break;
        }
    }
    String::from_utf8_lossy(&body).into_owned()
}

/// The origin of a redirect's target, without parts that may be secret.
fn origin(place: &str) -> String {
    match Url::parse(place) {
        Ok(url) => url.origin().ascii_serialization(),
        Err(_) => "another path of the same host".to_owned(),
    }
}

/// An error that isn't in the provider's format: a proxy's, a gateway's, another program's.
fn foreign(status: u16, headers: &HeaderMap, body: &str) -> ErrorDetails {
    let place = headers.get("location").and_then(|value| value.to_str().ok());
    let excerpt = shorten(&one_line(body), FOREIGN_CHARS_MAX);
    let message = match (status, place) {
        (200..=299, _) => format!("HTTP {status}, but no stream of events: {excerpt}"),
        (300..=399, Some(place)) => {
            format!("HTTP {status}: requests are sent on to {}; the key isn't sent there", origin(place))
        }
        _ if excerpt.is_empty() => format!("HTTP {status} without a message"),
        _ => format!("HTTP {status}: {excerpt}"),
    };
    ErrorDetails { message, ..ErrorDetails::default() }
}

/// `base` with `segments` appended to its path, after removing `version` from its end.
pub(crate) fn below<'a>(base: &Url, version: &str, segments: impl IntoIterator<Item = &'a str>) -> Url {
    let mut url = base.clone();
    let path = base.path().trim_end_matches('/');
    url.set_path(path.strip_suffix(version).unwrap_or(path));
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(segments);
    }
    url
}

pub(crate) fn address(base_url: &str) -> Result<Url, ResolveError> {
    let bad = |why: &'static str| ResolveError::Address { base_url: without_userinfo(base_url), why };
    let base = Url::parse(base_url.trim()).map_err(|_| bad("it isn't a URL"))?;
    if !matches!(base.scheme(), "http" | "https") {
        return Err(bad("it doesn't begin with http:// or https://"));
    }
    if base.query().is_some() || base.fragment().is_some() {
        return Err(bad("it has a query or a fragment"));
    }
    Ok(base)
}

/// The address without a user and password before its host.
fn without_userinfo(base_url: &str) -> String {
    match (base_url.find("://"), base_url.rfind('@')) {
        (Some(scheme), Some(at)) if scheme < at => {
            let (scheme, host) = (base_url.get(..scheme), base_url.get(at + 1..));
            format!("{}://{}", scheme.unwrap_or_default(), host.unwrap_or_default())
        }
        _ => base_url.to_owned(),
    }
}

/// Loopback addresses use no proxy.
fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
