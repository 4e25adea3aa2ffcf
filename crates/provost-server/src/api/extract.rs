//! What handlers take from requests; whatever doesn't fit becomes a problem.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use provost_event::RunId;
use provost_harness::RunSummary;
use serde::de::DeserializeOwned;
use serde_json::Value;

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
        let value = object(value).map_err(Problem::bad_request)?;
        let value = serde_json::from_value(value);
        Ok(Self(value.map_err(|error| Problem::bad_request(error.to_string()))?))
    }
}

/// An object, with whole numbers as such, also where they were written with a fraction of zero. Types would be read from
/// a list of their members too, which no schema says.
fn object(value: Value) -> Result<Value, &'static str> {
    match value {
        Value::Object(members) => {
            Ok(Value::Object(members.into_iter().map(|(name, value)| (name, whole(value))).collect()))
        }
        _ => Err("the body must be an object"),
    }
}

fn whole(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let text =
                number.as_f64().filter(|number| number.fract() == 0.0).map(|number| format!("{number:.0}"));
            let exact = text.and_then(|text| text.parse::<u64>().ok());
            exact.map_or(Value::Number(number), Value::from)
        }
        Value::Array(items) => Value::Array(items.into_iter().map(whole).collect()),
        Value::Object(members) => {
            Value::Object(members.into_iter().map(|(name, value)| (name, whole(value))).collect())
        }
        other => other,
    }
}
