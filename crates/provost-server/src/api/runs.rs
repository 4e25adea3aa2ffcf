//! Looking at runs.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use provost_event::{ActorKey, RunId, Seq, SessionId, Timestamp};
use provost_harness::{
    Redactor, RunCursor, RunFilter, RunQuery, RunStatusFilter, WorkspaceDiffQuery, workspace_diff,
};
use provost_view::explain::{ExplainedAgents, RunExplanation};
use provost_view::{
    AgentGoal, AgentTimeline, AgentsRead, ConversationView, GroupedRuns, ListedRun, LogEntry, RunChanges,
    RunDetails, RunListItem, RunTree, SpendCurve, Spending, SpendingGroup, SpendingQuery, ViewVersion,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::NoParameters;
use super::extract::{NamedRun, Parameters};
use crate::app::App;
use crate::problem::Problem;

/// Runs and entries in one answer.
const LIST_MAX: usize = 1_000;
const LIST_DEFAULT: usize = 100;

/// Which runs to list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListParameters {
    /// Only runs with this kind of status.
    status: Option<ListedStatus>,
    /// Only runs whose root agent works in exactly this folder.
    workspace: Option<PathBuf>,
    /// At most this many, 1 to 1000.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
    /// Only runs after this place: `next_cursor` of the answer before.
    #[schemars(regex(pattern = r"^[0-9]{1,15}-[0-9a-hjkmnp-tv-z]{12}$"))]
    cursor: Option<String>,
}

/// A kind of status.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ListedStatus {
    /// A process works on it.
    Running,
    /// It is running, interrupted or suspended.
    NotEnded,
}

/// Runs, and where the list goes on.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RunsPage {
    /// The version of the view.
    v: ViewVersion,
    /// The runs, the newest first.
    runs: Vec<RunListItem>,
    /// What to ask for next; null at the end of the list.
    next_cursor: Option<String>,
}

pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Parameters(asked): Parameters<ListParameters>,
) -> Result<Json<RunsPage>, Problem> {
    let max = limit(asked.limit)?;
    let status = match asked.status {
        None => RunStatusFilter::Any,
        Some(ListedStatus::Running) => RunStatusFilter::Running,
        Some(ListedStatus::NotEnded) => RunStatusFilter::NotEnded,
    };
    let after = asked.cursor.as_deref().map(cursor).transpose()?;
    let filter = RunFilter { status, workspace: asked.workspace };
    let found = app.backend.list(RunQuery { filter, after, max }).await?;
    let next = found.last().filter(|_| found.len() == max).map(|run| {
        let RunCursor { started_at, run } = run.cursor();
        format!("{}-{run}", started_at.0)
    });
    let mut runs = Vec::with_capacity(found.len());
    for run in &found {
        runs.push(ListedRun::read(&*app.backend, run, app.now()).await.item);
    }
    Ok(Json(RunsPage { v: ViewVersion, runs, next_cursor: next }))
}

fn limit(asked: Option<usize>) -> Result<usize, Problem> {
    match asked.unwrap_or(LIST_DEFAULT) {
        limit @ 1..=LIST_MAX => Ok(limit),
        other => Err(Problem::bad_request(format!("limit: {other} isn't between 1 and {LIST_MAX}"))),
    }
}

fn cursor(text: &str) -> Result<RunCursor, Problem> {
    let parsed = text.split_once('-').and_then(|(at, run)| {
        Some(RunCursor { started_at: Timestamp(at.parse().ok()?), run: run.parse::<RunId>().ok()? })
    });
    parsed.ok_or_else(|| Problem::bad_request("cursor: take it from `next_cursor` of an answer"))
}

pub(crate) async fn groups(
    State(app): State<Arc<App>>,
    Parameters(NoParameters {}): Parameters<NoParameters>,
) -> Result<Json<GroupedRuns>, Problem> {
    Ok(Json(app.groups().await?))
}

pub(crate) async fn details(
    State(app): State<Arc<App>>,
    NamedRun(run): NamedRun,
) -> Result<Json<RunDetails>, Problem> {
    let details = RunDetails::read(&*app.backend, run.run, AgentsRead::All, app.now()).await?;
    Ok(Json(details.ok_or_else(|| empty(run.run))?))
}

pub(crate) async fn tree(
    State(app): State<Arc<App>>,
    NamedRun(run): NamedRun,
) -> Result<Json<RunTree>, Problem> {
    let details = RunDetails::read(&*app.backend, run.run, AgentsRead::All, app.now()).await?;
    Ok(Json(details.ok_or_else(|| empty(run.run))?.tree))
}

pub(crate) async fn goal(
    State(app): State<Arc<App>>,
    NamedRun(run): NamedRun,
    Parameters(asked): Parameters<AgentParameters>,
) -> Result<Json<AgentGoal>, Problem> {
    let session = SessionId { run: run.run, agent: asked.agent };
    let goal = AgentGoal::read(&*app.backend, session).await?;
    goal.map(Json)
        .ok_or_else(|| Problem::not_found(format!("agent {session} has no goal that judges verify")))
}

fn empty(run: RunId) -> Problem {
    Problem::conflict(format!("the log of run {run} is empty"))
}

/// Which entries to read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EntriesParameters {
    /// The log of this agent; the run's own if absent.
    agent: Option<u32>,
    /// Only entries after this one.
    after: Option<u64>,
    /// At most this many, 1 to 1000.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
}

/// Entries, and where the log goes on.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct EntriesPage {
    /// The version of the view.
    v: ViewVersion,
    /// The entries, in order.
    entries: Vec<LogEntry>,
    /// The last of them: `after` of the next request. Null where there are none.
    last: Option<u64>,
}

pub(crate) async fn entries(
    State(app): State<Arc<App>>,
    NamedRun(run): NamedRun,
    Parameters(asked): Parameters<EntriesParameters>,
) -> Result<Json<EntriesPage>, Problem> {
    let key = match asked.agent {
        None => ActorKey::Run(run.run),
        Some(agent) => ActorKey::Session(SessionId { run: run.run, agent }),
    };
    let records = app.backend.read(key, Seq(asked.after.unwrap_or_default()), limit(asked.limit)?).await?;
    let last = records.last().map(|record| record.seq.0);
    let entries = records.iter().map(|record| LogEntry(record.as_ref().clone())).collect();
    Ok(Json(EntriesPage { v: ViewVersion, entries, last }))
}

/// Of which agent.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentParameters {
    /// The agent's number; the root if absent.
    #[serde(default)]
    pub(crate) agent: u32,
}

/// Of which agent, and how much.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TimelineParameters {
    /// The agent's number; the root if absent.
    #[serde(default)]
    agent: u32,
    /// At most this many things, the last ones, 1 to 1000.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
}

pub(crate) async fn timeline(
    State(app): State<Arc<App>>,
    NamedRun(run): NamedRun,
    Parameters(asked): Parameters<TimelineParameters>,
) -> Result<Json<AgentTimeline>, Problem> {
    let session = SessionId { run: run.run, agent: asked.agent };
    Ok(Json(AgentTimeline::read(&*app.backend, session, limit(asked.limit)?).await?))
}

pub(crate) async fn conversation(
    State(app): State<Arc<App>>,
    NamedRun(run): NamedRun,
    Parameters(asked): Parameters<AgentParameters>,
) -> Result<Json<ConversationView>, Problem> {
    let session = SessionId { run: run.run, agent: asked.agent };
    let view = ConversationView::read(&*app.backend, session).await?;
    view.map(Json).ok_or_else(|| Problem::not_found(format!("agent {session} has no log")))
}

pub(crate) async fn spend(
    State(app): State<Arc<App>>,
    NamedRun(run): NamedRun,
) -> Result<Json<Spending>, Problem> {
    let query = SpendingQuery {
        run: Some(run.run),
        agent: None,
        since: None,
        by: vec![SpendingGroup::Agent, SpendingGroup::Model],
        zone: jiff::tz::TimeZone::UTC,
    };
    Ok(Json(provost_view::SpendingReport::read(&*app.backend, query).await?.spending))
}

pub(crate) async fn spend_curve(
    State(app): State<Arc<App>>,
    NamedRun(run): NamedRun,
) -> Result<Json<SpendCurve>, Problem> {
    Ok(Json(SpendCurve::read(&*app.backend, run.run, &run.model).await?))
}

pub(crate) async fn explain(
    State(app): State<Arc<App>>,
    NamedRun(run): NamedRun,
) -> Result<Json<RunExplanation>, Problem> {
    let explained = RunExplanation::read(&*app.backend, &run, ExplainedAgents::All, &[], app.now()).await?;
    Ok(Json(explained.ok_or_else(|| empty(run.run))?.0))
}

pub(crate) async fn changes(
    State(app): State<Arc<App>>,
    NamedRun(run): NamedRun,
    Parameters(asked): Parameters<AgentParameters>,
) -> Result<Json<RunChanges>, Problem> {
    changes_of(&app, SessionId { run: run.run, agent: asked.agent }).await.map(Json)
}

/// What was changed in the workspace of an agent.
pub(crate) async fn changes_of(app: &App, session: SessionId) -> Result<RunChanges, Problem> {
    let query = WorkspaceDiffQuery { paths: Vec::new(), has_patches: true };
    let (redactor, stop) = (Arc::new(Redactor::default()), CancellationToken::new());
    let _stops = stop.clone().drop_guard();
    let diff = workspace_diff(&*app.backend, session, &query, &redactor, &stop).await;
    let diff = diff.map_err(|error| Problem::conflict(error.to_string()))?;
    Ok(RunChanges::new(session.run, session.agent, diff))
}
