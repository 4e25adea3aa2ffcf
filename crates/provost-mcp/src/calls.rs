//! What each tool does.

use std::path::PathBuf;
use std::sync::Arc;

use provost_event::{RunId, Timestamp};
use provost_harness::{
    Backend, BackendError, Clock as _, Control, RunCursor, RunFilter, RunQuery, RunStarts, RunStatus,
    RunStatusFilter, RunSummary, StartError, StartRun, SystemClock, Work, final_text,
};
use provost_view::{ListedRun, RunListItem, SpendingGroup, SpendingQuery, SpendingReport, ViewVersion, safe};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::McpServerOptions;
use crate::tools::{FOLDER, KEY, List, OneRun, RunTool, Say, Wait, WholeOrAgent};
use crate::wait::wait;

/// Runs in one list.
const LIST_MAX: usize = 100;
/// Runs that are named where the beginning of an id fits several.
const NAMED_MAX: usize = 5;

/// What the calls of a client work with.
pub(crate) struct Calls {
    backend: Arc<dyn Backend>,
    by: String,
    starts: RunStarts,
    folder: PathBuf,
}

/// Why a call wasn't fulfilled, for a model.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    #[error("{0}")]
    Unfit(String),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Backend(#[from] BackendError),
}

/// A run that a process works on.
#[derive(Debug, Serialize)]
struct Started {
    v: ViewVersion,
    run: RunId,
}

/// A request that has changed something.
#[derive(Debug, Serialize)]
struct Done {
    v: ViewVersion,
    changed: bool,
}

/// How a run ended.
#[derive(Debug, Serialize)]
struct RunResult {
    #[serde(flatten)]
    item: RunListItem,
    /// Why it is suspended or has ended, in words; null otherwise.
    outcome_text: Option<String>,
    /// The agent's last message; null if there is none.
    text: Option<String>,
}

/// Runs, and where the list goes on.
#[derive(Debug, Serialize)]
struct RunsPage {
    v: ViewVersion,
    runs: Vec<RunListItem>,
    next_cursor: Option<String>,
}

/// A run with what the list of runs tells of it.
pub(crate) async fn item(backend: &dyn Backend, run: &RunSummary) -> RunListItem {
    ListedRun::read(backend, run, SystemClock.now()).await.item
}

impl Calls {
    pub(crate) fn new(options: McpServerOptions) -> Self {
        let McpServerOptions { backend, by, starts, folder } = options;
        Self { backend, by, starts, folder }
    }

    /// Does what a tool is called for.
    ///
    /// # Errors
    /// Why it wasn't done.
    pub(crate) async fn call(
        &self,
        tool: RunTool,
        arguments: Map<String, Value>,
    ) -> Result<Value, CallError> {
        match tool {
            RunTool::Start => self.start(arguments).await,
            RunTool::Wait => {
                let Wait { run, known_status, seconds } = read(arguments)?;
                let found = self.named(&run).await?;
                let seen = wait(&*self.backend, found.run, &known_status, seconds).await?;
                view(&seen.ok_or_else(|| no_run(&run))?)
            }
            RunTool::Status => {
                let OneRun { run } = read(arguments)?;
                view(&item(&*self.backend, &self.named(&run).await?).await)
            }
            RunTool::Result => {
                let OneRun { run } = read(arguments)?;
                self.result(&self.named(&run).await?).await
            }
            RunTool::Say => self.say(read(arguments)?).await,
            RunTool::Pause => {
                let WholeOrAgent { run, agent } = read(arguments)?;
                let run = self.named(&run).await?;
                let is_worked_on = !matches!(run.status, RunStatus::Stopped(_));
                done(&run, is_worked_on && self.control(&run).pause(agent).await?)
            }
            RunTool::Cancel => {
                let WholeOrAgent { run, agent } = read(arguments)?;
                let run = self.named(&run).await?;
                let changed = self.control(&run).cancel(agent).await?;
                done(&run, changed)
            }
            RunTool::Cost => {
                let OneRun { run } = read(arguments)?;
                self.cost(self.named(&run).await?.run).await
            }
            RunTool::List => self.list(read(arguments)?).await,
        }
    }

    fn control(&self, run: &RunSummary) -> Control {
        Control::new(self.backend.clone(), run.run, &self.by)
    }

    /// The run with this id, or the only one whose id begins so.
    async fn named(&self, name: &str) -> Result<RunSummary, CallError> {
        let mut found = self.backend.find(name.trim(), NAMED_MAX).await?;
        match (found.pop(), found.is_empty()) {
            (None, _) => Err(no_run(name)),
            (Some(run), true) => Ok(run),
            (Some(last), false) => {
                let names = found.iter().chain([&last]).map(|run| run.run.to_string()).collect::<Vec<_>>();
                let names = names.join(", ");
                Err(CallError::Unfit(format!("run: {} begins the ids of several: {names}", safe(name))))
            }
        }
    }

    async fn start(&self, mut arguments: Map<String, Value>) -> Result<Value, CallError> {
        let key = match arguments.remove(KEY) {
            None | Some(Value::Null) => None,
            Some(Value::String(key)) => Some(key),
            Some(_) => return Err(CallError::Unfit(format!("{KEY}: a text is expected"))),
        };
        if arguments.get(FOLDER).is_none_or(Value::is_null) {
            arguments.insert(FOLDER.to_owned(), self.folder.to_string_lossy().into_owned().into());
        }
        let start: StartRun = read(arguments)?;
        if let Some(objection) = start.objection() {
            return Err(CallError::Unfit(objection));
        }
        let run = self.starts.create(key.as_deref(), &Work::Start(start)).await?;
        view(&Started { v: ViewVersion, run })
    }

    async fn result(&self, run: &RunSummary) -> Result<Value, CallError> {
        let text = final_text(&*self.backend, run.run).await?;
        let outcome_text = match &run.status {
            RunStatus::Stopped(outcome) => Some(outcome.to_string()),
            RunStatus::Running | RunStatus::Interrupted => None,
        };
        let text = Some(safe(&text)).filter(|text| !text.is_empty());
        view(&RunResult { item: item(&*self.backend, run).await, outcome_text, text })
    }

    async fn say(&self, said: Say) -> Result<Value, CallError> {
        let Say { run, text, agent } = said;
        if text.trim().is_empty() {
            return Err(CallError::Unfit("text: is empty".to_owned()));
        }
        let run = self.named(&run).await?;
        let changed = self.control(&run).say(agent, text).await?;
        done(&run, changed)
    }

    async fn cost(&self, run: RunId) -> Result<Value, CallError> {
        let query = SpendingQuery {
            run: Some(run),
            agent: None,
            since: None,
            by: vec![SpendingGroup::Agent, SpendingGroup::Model],
            zone: jiff::tz::TimeZone::UTC,
        };
        view(&SpendingReport::read(&*self.backend, query).await?.spending)
    }

    async fn list(&self, asked: List) -> Result<Value, CallError> {
        let List { running, folder, limit, cursor: after } = asked;
        let status = if running { RunStatusFilter::Running } else { RunStatusFilter::Any };
        let filter = RunFilter { status, workspace: folder };
        let max = limit.clamp(1, LIST_MAX);
        let after = after.as_deref().map(cursor).transpose()?;
        let found = self.backend.list(RunQuery { filter, after, max }).await?;
        let last = found.last().filter(|_| found.len() == max);
        let next_cursor = last.map(|run| format!("{}-{}", run.started_at.0, run.run));
        let mut runs = Vec::with_capacity(found.len());
        for run in &found {
            runs.push(item(&*self.backend, run).await);
        }
        view(&RunsPage { v: ViewVersion, runs, next_cursor })
    }
}

fn read<T: DeserializeOwned>(arguments: Map<String, Value>) -> Result<T, CallError> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| CallError::Unfit(error.to_string()))
}

fn view(view: &impl Serialize) -> Result<Value, CallError> {
    serde_json::to_value(view).map_err(|error| CallError::Unfit(error.to_string()))
}

fn done(run: &RunSummary, changed: bool) -> Result<Value, CallError> {
    if changed {
        return view(&Done { v: ViewVersion, changed });
    }
    let why = match &run.status {
        RunStatus::Stopped(outcome) => format!("run {} isn't worked on: {outcome}", run.run),
        RunStatus::Running | RunStatus::Interrupted => {
            format!("nothing has changed: it doesn't fit the state of run {} or of that agent", run.run)
        }
    };
    Err(CallError::Unfit(why))
}

fn no_run(name: &str) -> CallError {
    CallError::Unfit(format!("run: there is no run {}; run_list lists them", safe(name)))
}

fn cursor(text: &str) -> Result<RunCursor, CallError> {
    let parsed = text.split_once('-').and_then(|(at, run)| {
        Some(RunCursor { started_at: Timestamp(at.parse().ok()?), run: run.parse().ok()? })
    });
    parsed.ok_or_else(|| CallError::Unfit("cursor: take it from `next_cursor` of an answer".to_owned()))
}
