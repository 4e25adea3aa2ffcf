//! Sends the requests of one signal to the collector.

use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use opentelemetry_http::{HttpClient, HttpError, Request, Response};
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, StatusCode, Url, redirect};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::runtime::Builder;

use crate::TelemetryError;
use crate::health::Health;
use crate::options::without_userinfo;

/// Maximum bytes to read of a response; a collector's has a few dozen.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Sends the requests of one signal. The SDK calls it on plain threads without a runtime: each request has a small
/// runtime of its own, which lives as long as the request. So nothing here outlives its timeout, the observers'
/// threads are never needed for it, and connections aren't kept.
pub(crate) struct Transport {
    client: Client,
    url: Url,
    headers: HeaderMap,
    health: Arc<Health>,
}

impl Transport {
    pub(crate) fn new(client: Client, url: Url, headers: HeaderMap, health: Arc<Health>) -> Self {
        Self { client, url, headers, health }
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        // Only the SDK's own headers: it would add others from the environment.
        let (parts, body) = request.into_parts();
        let mut headers = self.headers.clone();
        for name in [CONTENT_TYPE, CONTENT_ENCODING] {
            if let Some(value) = parts.headers.get(&name) {
                headers.insert(name, value.clone());
            }
        }
        let answer = self.client.post(self.url.clone()).headers(headers).body(body).send().await;
        let mut answer = answer.map_err(|error| self.failed(error))?;
        let (status, is_page) = (answer.status(), is_page(answer.headers()));
        let retry_after = answer.headers().get(RETRY_AFTER).cloned();
        let mut body = BytesMut::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| self.failed(error))? {
            body.extend_from_slice(&chunk);
            if body.len() >= ANSWER_BYTES_MAX {
                break;
            }
        }
        let status = self.judged(status, is_page);
        let mut answer = Response::new(body.freeze());
        *answer.status_mut() = status;
        if let Some(value) = retry_after {
            answer.headers_mut().insert(RETRY_AFTER, value);
        }
        Ok(answer)
    }

    /// A page that is served for every address is no collector's response, whatever its status.
    fn judged(&self, status: StatusCode, is_page: bool) -> StatusCode {
        if status.is_success() && is_page {
            self.health
                .trouble("a web page answered; check that the endpoint speaks OTLP over HTTP".to_owned());
            return StatusCode::BAD_REQUEST;
        }
        if !status.is_success() {
            self.health.trouble(format!("the collector answered HTTP {}", status.as_u16()));
        }
        status
    }

    fn failed(&self, error: reqwest::Error) -> HttpError {
        let words = if error.is_timeout() {
            "the collector didn't answer in time".to_owned()
        } else {
            // The address may hold a password.
            format!("no connection to the collector: {}", innermost(&error.without_url()))
        };
        self.health.trouble(words.clone());
        words.into()
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport").finish_non_exhaustive()
    }
}

#[async_trait]
impl HttpClient for Transport {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let answer = runtime.block_on(self.send(request));
        // Otherwise this would wait for a name lookup in progress.
        runtime.shutdown_background();
        answer
    }
}

/// A client for requests to `base` with this time limit.
pub(crate) fn client(base: &Url, timeout: Duration) -> Result<Client, TelemetryError> {
    let mut builder = Client::builder()
        .timeout(timeout)
        .connect_timeout(timeout)
        // A redirect would carry the headers to another host.
        .redirect(redirect::Policy::none())
        // A kept connection would outlive the runtime it lives on.
        .pool_max_idle_per_host(0)
        .tcp_nodelay(true);
    if is_loopback(base) {
        builder = builder.no_proxy().tls_built_in_root_certs(base.scheme() == "https");
    }
    builder.build().map_err(TelemetryError::Client)
}

pub(crate) fn address(endpoint: &str) -> Result<Url, TelemetryError> {
    let bad = |why: &'static str| TelemetryError::Endpoint { endpoint: without_userinfo(endpoint), why };
    let base = Url::parse(endpoint.trim()).map_err(|_| bad("it isn't a URL"))?;
    if !matches!(base.scheme(), "http" | "https") {
        return Err(bad("it doesn't begin with http:// or https://"));
    }
    if base.query().is_some() || base.fragment().is_some() {
        return Err(bad("it has a query or a fragment"));
    }
    Ok(base)
}

/// `base` with `v1/SIGNAL` appended to its path.
pub(crate) fn below(base: &Url, signal: &str) -> Url {
    let mut url = base.clone();
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(["v1", signal]);
    }
    url
}

pub(crate) fn headers(wanted: &[(String, SecretString)]) -> Result<HeaderMap, TelemetryError> {
    let mut headers = HeaderMap::new();
    for (name, value) in wanted {
        let bad = |part| TelemetryError::Header { name: name.clone(), part };
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad("name"))?;
        let mut value = HeaderValue::from_str(value.expose_secret().trim()).map_err(|_| bad("value"))?;
        value.set_sensitive(true);
        headers.append(key, value);
    }
    Ok(headers)
}

fn is_page(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with("text/html"))
}

pub(crate) fn innermost(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// Loopback addresses use no proxy.
fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
