//! What handlers take from requests; whatever doesn't fit becomes a problem.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use provost_event::{RunId, Seq, SessionId};
use provost_harness::RunSummary;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::BODY_BYTES_MAX;
use crate::app::App;
use crate::problem::Problem;

/// Where it is described what fits.
const DESCRIBED: &str = "/v1/openapi.json describes it";
/// How long a client may take for a body.
const BODY_MAX: Duration = Duration::from_secs(10);

/// The parameters of the query.
pub(crate) struct Parameters<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<Arc<App>> for Parameters<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> Result<Self, Problem> {
        let query = Query::<T>::try_from_uri(&parts.uri);
        query.map(|Query(value)| Self(value)).map_err(|error| {
            let text = error.body_text();
            let said = text.rsplit_once("query string: ").map_or(text.as_str(), |(_, said)| said);
            let (member, said) = said.split_once(": ").unwrap_or(("", said));
            Problem::bad_request(format!("{}; {DESCRIBED}", unfit(member, said)))
        })
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
        let Path(RunInPath { run }) = named.map_err(|_| Problem::not_found("there is no such run"))?;
        let none = || Problem::not_found(format!("there is no run {run}; /v1/runs lists them"));
        let id = run.parse::<RunId>().map_err(|_| none())?;
        Ok(Self(app.backend.get(id).await?.ok_or_else(none)?))
    }
}

/// The question in the path: an agent of the run, and the entry of its log.
pub(crate) struct NamedQuestion {
    pub(crate) session: SessionId,
    pub(crate) asked: Seq,
}

#[derive(serde::Deserialize)]
struct QuestionInPath {
    agent: String,
    asked: String,
}

impl FromRequestParts<Arc<App>> for NamedQuestion {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let NamedRun(run) = NamedRun::from_request_parts(parts, app).await?;
        let none = || Problem::not_found("there is no such question; /v1/approvals lists those that wait");
        let Path(named) = Path::<QuestionInPath>::from_request_parts(parts, app).await.map_err(|_| none())?;
        let agent = named.agent.parse().map_err(|_| none())?;
        let asked = named.asked.parse().map_err(|_| none())?;
        Ok(Self { session: SessionId { run: run.run, agent }, asked: Seq(asked) })
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
        let value = serde_json::from_slice(&bytes)
            .map_err(|error| Problem::bad_request(format!("the body isn't JSON: {error}")))?;
        let value = object(value).map_err(Problem::bad_request)?;
        let value = serde_path_to_error::deserialize(value);
        Ok(Self(value.map_err(|error| {
            let why = unfit(&error.path().to_string(), &error.inner().to_string());
            Problem::bad_request(format!("{why}; {DESCRIBED}"))
        })?))
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

/// Why a member doesn't fit, in words; `said` is what the reader of its type says.
fn unfit(member: &str, said: &str) -> String {
    // A reader within another one puts the place in front.
    const SAYS: [&str; 5] =
        ["invalid type", "invalid value", "unknown field", "unknown variant", "missing field"];
    if let Some((inner, rest)) = said.split_once(": ")
        && SAYS.iter().any(|says| rest.starts_with(says))
    {
        return unfit(&format!("{member}.{inner}"), rest);
    }
    let named = said.split('`').nth(1).unwrap_or_default();
    let place = |name: &str| match member {
        "" | "." => name.to_owned(),
        member if member == name || member.ends_with(&format!(".{name}")) => member.to_owned(),
        member => format!("{member}.{name}"),
    };
    let expected = said.split_once(", expected ").map(|(_, expected)| expected);
    if said.starts_with("missing field") {
        return format!("{}: is missing", place(named));
    }
    if said.starts_with("unknown field") {
        let known = expected.map_or_else(|| "nothing".to_owned(), |known| known.replace("one of ", ""));
        return format!("{}: there is no such member, but {known}", place(named));
    }
    let at = if matches!(member, "" | ".") { String::new() } else { format!("{member}: ") };
    match (said.split_once(": "), expected) {
        (_, Some(known)) if said.starts_with("unknown variant") => format!("{at}`{named}` isn't {known}"),
        (Some(("invalid type" | "invalid value", rest)), Some(wanted)) => {
            let given = rest.split_once(", expected ").map_or(rest, |(given, _)| given);
            format!("{at}{given} is given, and {wanted} is wanted")
        }
        _ if said.starts_with("invalid digit") => format!("{at}a whole number is wanted"),
        _ => format!("{at}{said}"),
    }
}

#[cfg(test)]
mod tests {
    use super::unfit;

    #[test]
    fn what_does_not_fit_is_named_with_what_would() {
        let cases = [
            ("limits.usd", "invalid type: integer `5`, expected a string"),
            ("limits", "usd: invalid type: integer `5`, expected a string"),
            ("limits", "unknown field `usdd`, expected one of `usd`, `tokens`"),
            ("limits.usdd", "unknown field `usdd`, expected `usd` or `tokens`"),
            (".", "missing field `goal`"),
            ("scope", "unknown variant `ever`, expected one of `once`, `run`, `always`"),
            ("limit", "invalid digit found in string"),
        ];
        let said = cases.map(|(member, said)| unfit(member, said));
        assert_eq!(
            said,
            [
                "limits.usd: integer `5` is given, and a string is wanted",
                "limits.usd: integer `5` is given, and a string is wanted",
                "limits.usdd: there is no such member, but `usd`, `tokens`",
                "limits.usdd: there is no such member, but `usd` or `tokens`",
                "goal: is missing",
                "scope: `ever` isn't one of `once`, `run`, `always`",
                "limit: a whole number is wanted",
            ]
        );
    }
}
