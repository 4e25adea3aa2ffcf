//! Answers on their way back to the program, and what is kept of them.

use axum::body::Body;
use axum::http::header::{HeaderMap, HeaderValue};
use axum::http::{Response, StatusCode};
use futures::StreamExt as _;
use provost_event::BlobId;
use provost_llm::Upstream;
use tokio::sync::OwnedSemaphorePermit;

use crate::gateway::Shared;

/// Headers of one connection.
const NOT_PASSED: [&str; 6] =
    ["connection", "keep-alive", "proxy-authenticate", "trailer", "transfer-encoding", "upgrade"];

/// The head of an answer.
pub(crate) struct Head {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
}

impl Head {
    /// Without headers that repeat the key.
    pub(crate) fn of(response: &reqwest::Response, provider: Option<&Upstream>) -> Self {
        let has_key = |value: &HeaderValue| match (provider, value.to_str()) {
            (Some(provider), Ok(text)) => provider.scrub(text) != text,
            _ => false,
        };
        let kept = response
            .headers()
            .iter()
            .filter(|(name, value)| !NOT_PASSED.contains(&name.as_str()) && !has_key(value));
        let headers = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
        Self { status: response.status(), headers }
    }

    pub(crate) fn with(self, body: Body) -> Response<Body> {
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }
}

/// An answer that is passed on without the key; its request counts as open until its end.
pub(crate) fn passed_on(
    response: reqwest::Response,
    upstream: &Upstream,
    room: OwnedSemaphorePermit,
) -> Response<Body> {
    let head = Head::of(&response, Some(upstream));
    let begun = (response.bytes_stream(), Some(upstream.key_filter()), room);
    let stream = futures::stream::unfold(begun, async |(mut body, filter, room)| {
        let mut filter = filter?;
        let (piece, filter) = match body.next().await {
            Some(Ok(piece)) => (Ok(filter.push(piece)), Some(filter)),
            Some(Err(error)) => (Err(error), None),
            None => (Ok(filter.rest()), None),
        };
        Some((piece, (body, filter, room)))
    });
    head.with(Body::from_stream(stream))
}

/// Records a body without secrets, where bodies are recorded.
pub(crate) async fn record(shared: &Shared, body: &[u8]) -> Option<BlobId> {
    if !shared.options.records || body.is_empty() {
        return None;
    }
    let stored = shared.options.backend.put_blob(scrubbed(shared, body).into_bytes()).await;
    stored.inspect_err(|error| tracing::warn!(%error, "a body couldn't be recorded")).ok()
}

/// A body without secrets.
pub(crate) fn scrubbed(shared: &Shared, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let redactor = &shared.options.redactor;
    let is_json = text.trim_start().starts_with(['{', '[']);
    let text = if is_json { redactor.redact_json(&text) } else { redactor.redact(&text) };
    text.into_owned()
}
