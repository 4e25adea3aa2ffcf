//! What handlers take from requests; whatever doesn't fit becomes a problem.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use provost_event::RunId;
use provost_harness::RunSummary;
use serde::de::DeserializeOwned;

use super::BODY_BYTES_MAX;
use crate::app::App;
use crate::problem::Problem;

/// How long a client may take for a body.
const BODY_MAX: Duration = Duration::from_secs(10);

/// The parameters of the query.
pub(crate) struct Parameters<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<Arc<App>> for Parameters<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> Result<Self, Problem> {
        let query = Query::<T>::try_from_uri(&parts.uri);
        query.map(|Query(value)| Self(value)).map_err(|error| Problem::bad_request(error.body_text()))
    }
}

/// The run in the path.
pub(crate) struct NamedRun(pub(crate) RunSummary);

#[derive(serde::Deserialize)]
struct RunInPath {
    run: String,
}

impl FromRequestParts<Arc<App>> for NamedRun {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let named = Path::<RunInPath>::from_request_parts(parts, app).await;
        let Path(RunInPath { run }) = named.map_err(|error| Problem::not_found(error.body_text()))?;
        let none = || Problem::not_found(format!("there is no run {run}; /v1/runs lists them"));
        let id = run.parse::<RunId>().map_err(|_| none())?;
        Ok(Self(app.backend.get(id).await?.ok_or_else(none)?))
    }
}

/// A body of JSON, and nothing else: no form of a page can send it.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &Arc<App>) -> Result<Self, Problem> {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            let why = "the body must be JSON, with the header `Content-Type: application/json`";
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
        }
        let read = axum::body::to_bytes(request.into_body(), BODY_BYTES_MAX);
        let late = || Problem::new(StatusCode::REQUEST_TIMEOUT, "the body didn't come within 10 s");
        let bytes = tokio::time::timeout(BODY_MAX, read).await.map_err(|_| late())?;
        let long = || format!("the body is longer than {BODY_BYTES_MAX} bytes, or broke off");
        let bytes = bytes.map_err(|_| Problem::new(StatusCode::PAYLOAD_TOO_LARGE, long()))?;
        let value =
            serde_json::from_slice(&bytes).map_err(|error| Problem::bad_request(error.to_string()))?;
        Ok(Self(value))
    }
}
