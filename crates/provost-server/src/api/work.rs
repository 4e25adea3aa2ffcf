//! Having runs worked on.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use provost_event::{RunId, SessionId};
use provost_harness::{
    ForkRun, IDEMPOTENCY_KEY_CHARS_MAX, ResumeRun, RunStarts, RunStatus, StartError, StartRun, Work,
};
use provost_view::ViewVersion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Done;
use super::document::HeaderParameter;
use super::extract::{Body, NamedRun};
use crate::app::App;
use crate::problem::Problem;

/// The header with the key under which a request counts once.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The headers of a request that makes something new.
pub(crate) const HEADERS: &[HeaderParameter] = &[HeaderParameter {
    name: IDEMPOTENCY_KEY,
    description: "The same request with the same key counts once, for a day; another request with it is refused",
    schema: key_schema,
}];

/// Spaces around a header's value are no part of it.
fn key_schema() -> Value {
    let others = IDEMPOTENCY_KEY_CHARS_MAX.saturating_sub(2);
    json!({ "type": "string", "pattern": format!("^[!-~]([ -~]{{0,{others}}}[!-~])?$") })
}

/// A run that a process works on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Started {
    /// The version of the view.
    v: ViewVersion,
    /// The run.
    #[schemars(with = "String")]
    run: RunId,
}

pub(crate) async fn start(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    Body(request): Body<StartRun>,
) -> Result<Response, Problem> {
    if let Some(objection) = request.objection() {
        return Err(Problem::unfit(objection));
    }
    create(&app, &headers, Work::Start(request)).await
}

pub(crate) async fn fork(
    State(app): State<Arc<App>>,
    NamedRun(run): NamedRun,
    headers: HeaderMap,
    Body(request): Body<ForkRun>,
) -> Result<Response, Problem> {
    let from = match request.agent {
        None => run.run.to_string(),
        Some(agent) => format!("{}.{agent}", run.run),
    };
    if let Some(folder) = request.folder.as_ref().filter(|folder| !folder.is_absolute()) {
        return Err(Problem::unfit(format!("folder: {} is no absolute path", folder.display())));
    }
    create(&app, &headers, Work::Fork { from, fork: request }).await
}

pub(crate) async fn resume(
    State(app): State<Arc<App>>,
    NamedRun(run): NamedRun,
    Body(request): Body<ResumeRun>,
) -> Result<Json<Done>, Problem> {
    if let Some(agent) = request.agent {
        if request != (ResumeRun { agent: Some(agent), ..ResumeRun::default() }) {
            return Err(Problem::unfit(
                "agent: one agent goes on as it is; what else is given is for a whole run",
            ));
        }
        return resume_agent(&app, run.run, agent).await;
    }
    if run.status == RunStatus::Running {
        return Err(Problem::conflict("a process works on it already"));
    }
    app.starts()?.work(run.run, &Work::Resume(request)).await?;
    Ok(Json(Done { v: ViewVersion, changed: true }))
}

/// One agent goes on, where the run is worked on.
async fn resume_agent(app: &App, run: RunId, agent: u32) -> Result<Json<Done>, Problem> {
    let summary = app.backend.get(run).await?;
    if !summary.is_some_and(|summary| summary.status == RunStatus::Running) {
        return Err(Problem::conflict("no process works on the run: resume the whole run, without `agent`"));
    }
    let session = SessionId { run, agent };
    let state = provost_view::run_state(&*app.backend, run).await?;
    if !state.is_some_and(|state| state.agents().any(|known| known.session == session)) {
        return Err(Problem::not_found(format!("run {run} has no agent {agent}; …/tree lists them")));
    }
    super::actions::done(app.control(run).resume(agent).await)
}

/// A new run, once for a key.
async fn create(app: &App, headers: &HeaderMap, work: Work) -> Result<Response, Problem> {
    Ok(created(app.starts()?.create(key(headers)?, &work).await?))
}

fn key(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let Some(key) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    if headers.get_all(IDEMPOTENCY_KEY).iter().count() > 1 {
        return Err(StartError::UnfitKey.into());
    }
    key.to_str().map(Some).map_err(|_| StartError::UnfitKey.into())
}

fn created(run: RunId) -> Response {
    let mut response = (StatusCode::CREATED, Json(Started { v: ViewVersion, run })).into_response();
    if let Ok(place) = HeaderValue::from_str(&format!("/v1/runs/{run}")) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    response
}

impl App {
    /// What has processes work on runs.
    fn starts(&self) -> Result<&RunStarts, Problem> {
        self.starts.as_ref().ok_or_else(|| Problem::conflict("this server starts no processes"))
    }

    /// Has a process go on with a run that waited for an answer only, which it has now.
    pub(crate) async fn take_up(&self, run: RunId) -> Result<(), Problem> {
        let summary = self.backend.get(run).await?;
        let waited = summary.is_some_and(|summary| provost_view::awaits_answer(&summary.status));
        let Some(starts) = self.starts.as_ref().filter(|_| waited) else { return Ok(()) };
        starts.work(run, &Work::Resume(ResumeRun::default())).await.map_err(|error| {
            let problem = Problem::from(error);
            let detail = format!("the answer counts, but the run doesn't go on: {}", problem.detail);
            Problem { detail, ..problem }
        })
    }
}
