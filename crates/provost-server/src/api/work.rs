//! Having runs worked on.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use provost_event::{RunId, SessionId};
use provost_harness::RunStatus;
use provost_view::ViewVersion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Done;
use super::extract::{Body, NamedRun};
use crate::app::App;
use crate::kept_keys::{HeldKey, KeptKey};
use crate::problem::Problem;
use crate::work::{ForkRun, NotStarted, ResumeRun, StartRun, Work};

/// The header with the key under which a request counts once.
pub(crate) const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// Characters of a key.
const KEY_CHARS_MAX: usize = 255;

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
    let unfit = |why: String| Err(Problem::unfit(why));
    if request.goal.trim().is_empty() {
        return unfit("goal: is empty".to_owned());
    }
    if !request.folder.is_absolute() || !request.folder.is_dir() {
        return unfit(format!("folder: {} is no absolute path of a folder", request.folder.display()));
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
    app.work(run.run, &Work::Resume(request)).await?;
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
    let Some(key) = key(headers)? else {
        let run = new_id()?;
        app.work(run, &work).await?;
        return Ok(created(run));
    };
    let busy = || Problem::conflict("another request with this Idempotency-Key is being fulfilled");
    let held = app.keys.hold(key).ok_or_else(busy)?;
    let run = claim(app, &held, &work)?;
    if app.backend.get(run).await?.is_some() {
        return Ok(created(run));
    }
    let result = app.work(run, &work).await;
    // A process of a server that was killed may have been faster.
    if result.is_err() && app.backend.get(run).await?.is_none() {
        held.forget();
        result?;
    }
    Ok(created(run))
}

/// The run of a key: the one that it had, or a new one, which it has from now on.
fn claim(app: &App, held: &HeldKey<'_>, work: &Work) -> Result<RunId, Problem> {
    let now = app.now();
    let request = serde_json::to_vec(work).unwrap_or_default();
    let request = blake3::hash(&request).to_hex().to_string();
    if let Some(known) = held.known(now) {
        return if known.request == request {
            Ok(known.run)
        } else {
            Err(Problem::unfit("this Idempotency-Key came with another request before; take a new one"))
        };
    }
    let run = new_id()?;
    let cant = |error| Problem::too_many(format!("the Idempotency-Key can't be kept: {error}"));
    held.keep(&KeptKey { request, run, at: now }).map_err(cant)?;
    Ok(run)
}

fn key(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let Some(key) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let unfit = || {
        Problem::bad_request(format!(
            "Idempotency-Key: 1 to {KEY_CHARS_MAX} visible characters of ASCII, and no others"
        ))
    };
    let key = key.to_str().map_err(|_| unfit())?;
    if key.is_empty() || key.len() > KEY_CHARS_MAX || headers.get_all(IDEMPOTENCY_KEY).iter().count() > 1 {
        return Err(unfit());
    }
    Ok(Some(key))
}

fn new_id() -> Result<RunId, Problem> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| {
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("the system gives no random numbers: {error}"),
        )
    })?;
    Ok(RunId::from_entropy(u64::from_le_bytes(bytes)))
}

fn created(run: RunId) -> Response {
    let mut response = (StatusCode::CREATED, Json(Started { v: ViewVersion, run })).into_response();
    if let Ok(place) = HeaderValue::from_str(&format!("/v1/runs/{run}")) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    response
}

impl App {
    /// Has a process go on with a run that waited for an answer only, which it has now.
    pub(crate) async fn take_up(&self, run: RunId) -> Result<(), Problem> {
        let summary = self.backend.get(run).await?;
        let waited = summary.is_some_and(|summary| provost_view::awaits_answer(&summary.status));
        if !waited || self.work.is_none() {
            return Ok(());
        }
        let work = Work::Resume(ResumeRun::default());
        self.work(run, &work).await.map_err(|problem| Problem {
            detail: format!("the answer counts, but the run doesn't go on: {}", problem.detail),
            ..problem
        })
    }

    /// Has a process work on a run.
    async fn work(&self, run: RunId, work: &Work) -> Result<(), Problem> {
        let Some(starter) = &self.work else {
            return Err(Problem::conflict("this server starts no processes"));
        };
        let _held = self.starts.acquire().await.map_err(|_| Problem::too_many("the server ends"))?;
        starter.start(run, work).await.map_err(|error| match error {
            NotStarted::Refused(why) => Problem::unfit(why),
            NotStarted::Failed(why) => Problem::conflict(why),
        })
    }
}
