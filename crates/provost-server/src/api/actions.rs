//! Acting on runs.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use provost_event::Priority;
use provost_harness::BackendError;
use provost_view::ViewVersion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Done;
use super::extract::{Body, NamedRun};
use crate::app::App;
use crate::problem::Problem;

/// A message.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Say {
    /// The agent's number; the root if absent.
    #[serde(default)]
    agent: u32,
    /// The message; not empty.
    #[schemars(length(min = 1))]
    text: String,
}

/// A run or one of its agents.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WholeOrAgent {
    /// The agent's number; the whole run if absent.
    agent: Option<u32>,
}

/// An agent.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OneAgent {
    /// The agent's number; the root if absent.
    #[serde(default)]
    agent: u32,
}

/// A link that signs one browser in, once, within ten minutes.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct IssuedLink {
    /// The version of the view.
    v: ViewVersion,
    /// The whole address.
    link: String,
}

/// Nothing more.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NothingMore {}

pub(crate) async fn link(
    State(app): State<Arc<App>>,
    Body(NothingMore {}): Body<NothingMore>,
) -> Result<Json<IssuedLink>, Problem> {
    let code = app.access.issue_link().map_err(|error| {
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("the system gives no random numbers: {error}"),
        )
    })?;
    Ok(Json(IssuedLink { v: ViewVersion, link: app.link(&code).expose().to_owned() }))
}

/// A new priority.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reprioritize {
    /// The agent's number; the root if absent.
    #[serde(default)]
    agent: u32,
    /// Its priority for a slot.
    priority: Priority,
}

pub(crate) async fn say(
    State(app): State<Arc<App>>,
    NamedRun(run): NamedRun,
    Body(body): Body<Say>,
) -> Result<Json<Done>, Problem> {
    if body.text.trim().is_empty() {
        return Err(Problem::unfit("text: is empty"));
    }
    done(app.control(run.run).say(body.agent, body.text).await)
}

pub(crate) async fn pause(
    State(app): State<Arc<App>>,
    NamedRun(run): NamedRun,
    Body(body): Body<WholeOrAgent>,
) -> Result<Json<Done>, Problem> {
    done(app.control(run.run).pause(body.agent).await)
}

pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    NamedRun(run): NamedRun,
    Body(body): Body<WholeOrAgent>,
) -> Result<Json<Done>, Problem> {
    done(app.control(run.run).cancel(body.agent).await)
}

pub(crate) async fn reprioritize(
    State(app): State<Arc<App>>,
    NamedRun(run): NamedRun,
    Body(body): Body<Reprioritize>,
) -> Result<Json<Done>, Problem> {
    done(app.control(run.run).reprioritize(body.agent, body.priority).await)
}

pub(crate) async fn clear_goal(
    State(app): State<Arc<App>>,
    NamedRun(run): NamedRun,
    Body(body): Body<OneAgent>,
) -> Result<Json<Done>, Problem> {
    done(app.control(run.run).clear_goal(body.agent).await)
}

pub(crate) fn done(result: Result<bool, BackendError>) -> Result<Json<Done>, Problem> {
    match result? {
        true => Ok(Json(Done { v: ViewVersion, changed: true })),
        false => Err(Problem::conflict(
            "nothing has changed: it doesn't fit the state of the run or agent any more",
        )),
    }
}
