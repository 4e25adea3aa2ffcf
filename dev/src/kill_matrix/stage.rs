//! A process that works on the run: starts or resumes it, until it is suspended or ended.

use std::path::Path;
use std::sync::{Arc, PoisonError};

use anyhow::{Context as _, Result};
use provost_backend::EmbeddedBackend;
use provost_engine::Actor;
use provost_event::{Budget, Entry, LifecycleEntry, Record, ResumeCause, RunPolicy, Seq, SessionId};
use provost_external::{Drivers, DriversOptions};
use provost_harness::{
    AgentHarness, Backend, ForkPoint, ForkRequest, HarnessCallback, HarnessDeps, HarnessError, Model, Models,
    SystemClock,
};
use provost_hooks::{ProgramHooks, ProgramHooksOptions};
use provost_restate::RunningWorker;
use provost_sqlite::SqliteStore;
use tokio_util::sync::CancellationToken;

use super::deadly_store::{Deadly, Kept};
use super::deadly_worker::DeadlyWorker;
use super::fault::{Fault, Point};
use super::files::{Files, FinalState, append};
use super::model::Play;
use super::scenario::{FORK, GOAL, JUDGE, MODEL, ROOT, RUN, Scenario, waits_for_consent};
use super::tools::tool_registry;

/// Entries read at a time.
const READ_MAX: usize = 10_000;

/// Works on the run in `folder` until it is suspended or ended, or until this process is at `point`.
pub(super) fn perform(scenario: &'static Scenario, folder: &Path, point: Option<Point>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(work(scenario, Files::new(folder)?, point))
}

async fn work(scenario: &'static Scenario, files: Files, point: Option<Point>) -> Result<()> {
    // A killed process may have left half a line.
    append(&files.shown(), "")?;
    let (fault, kept) = (Arc::new(Fault::at(point)), Kept::default());
    let (backend, worker) = backend(&files, &fault, &kept).await?;
    let tools = tool_registry(&files, &fault);
    let policy = scenario.run_policy(files.workspace(), tools.specs());
    let window_tokens = policy.agent.model.window_tokens;
    let model: Arc<dyn Model> =
        Arc::new(Play { scenario, files: files.clone(), fault: Arc::clone(&fault), window_tokens });
    let models = Models::new().with(MODEL, Arc::clone(&model)).with(JUDGE, model);
    let programs = ProgramHooks::new(ProgramHooksOptions {
        clock: Arc::new(SystemClock),
        spill: None,
        header_env: std::collections::HashMap::new(),
        redactor: Arc::default(),
        extra_env: Vec::new(),
    });
    let drivers = Drivers::new(DriversOptions {
        folder: files.folder().join("terminals"),
        records: true,
        env: vec![("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())],
        passed: Vec::new(),
        profiles: Vec::new(),
        gateway: None,
        masked: Arc::default(),
        private: Arc::default(),
        streams: None,
    });
    let harness = AgentHarness::new(HarnessDeps {
        external: Arc::new(drivers),
        hook_programs: Arc::new(programs),
        callback: Arc::new(RecordWriter(files.clone())),
        ..HarnessDeps::new(Arc::clone(&backend), models, tools)
    });
    let mut run = match harness.open(RUN).await {
        Err(HarnessError::UnknownRun(_)) => harness.start(RUN, GOAL, policy).await?,
        opened => opened?,
    };
    let cancel = CancellationToken::new();
    let outcome = loop {
        let outcome = run.run(&cancel).await?;
        let (asked, text, consents) = look(&*backend, ROOT).await?;
        let turns = scenario.turns_after(&outcome, asked);
        if turns.is_none() && !(waits_for_consent(&outcome) && consents == 0) {
            break (outcome, text);
        }
        run.resume("the matrix", Budget::default(), turns).await?;
    };
    let (outcome, mut text) = outcome;
    if scenario.forks {
        let said =
            forked(&harness, &backend, &files, scenario.run_policy(files.workspace(), Vec::new())).await?;
        text.push_str(&said);
    }
    run.release().await;
    if let Some(worker) = worker {
        worker.stop().await;
    }
    let commits = kept.lock().unwrap_or_else(PoisonError::into_inner).clone();
    files.keep_final_state(&FinalState { outcome, text, commits, effects: fault.effects(), answers: 0 })
}

/// The backend at whose points this process may be killed.
async fn backend(
    files: &Files,
    fault: &Arc<Fault>,
    kept: &Kept,
) -> Result<(Arc<dyn Backend>, Option<RunningWorker>)> {
    let fault = Arc::clone(fault);
    let kept = Arc::clone(kept);
    match files.engine()? {
        Some(engine) => {
            let (backend, worker) = engine.hold(files).await?;
            Ok((Arc::new(DeadlyWorker { backend, fault, kept }), Some(worker)))
        }
        None => {
            let store = Deadly::store(SqliteStore::open(files.database())?, fault, kept);
            Ok((Arc::new(EmbeddedBackend::new(store, Arc::new(SystemClock))?), None))
        }
    }
}

/// Makes the fork of the ended run, or goes on with it; returns what it said last. Until it is made, the origin
/// doesn't name it.
async fn forked(
    harness: &AgentHarness,
    backend: &Arc<dyn Backend>,
    files: &Files,
    policy: RunPolicy,
) -> Result<String> {
    let Actor::Run(origin) = backend.state(RUN.into()).await? else { anyhow::bail!("no run") };
    let is_named = origin.forks().iter().any(|forked| forked.to == FORK);
    let opened = harness.open(FORK).await;
    if opened.is_ok() != is_named {
        files.complain(&format!("the fork is there: {}, named by its origin: {is_named}", opened.is_ok()));
    }
    let mut run = match opened {
        Err(HarnessError::UnknownRun(_)) => {
            let point = ForkPoint::find(&**backend, ROOT, None).await?;
            let policy = RunPolicy { agent: point.policy.clone(), ..policy };
            let (goal, by) = (GOAL.to_owned(), "the matrix".to_owned());
            let text = Some("And what else?".to_owned());
            harness.fork(FORK, ForkRequest { point, goal, policy, worktree: None, text, by }).await?
        }
        opened => opened?,
    };
    let outcome = run.run(&CancellationToken::new()).await?;
    let (_, text, _) = look(&**backend, SessionId::root(FORK)).await?;
    Ok(format!("; the fork: {outcome}: {text}"))
}

/// How often the run was resumed, the agent's final answer, and the open approval requests.
async fn look(backend: &dyn Backend, session: SessionId) -> Result<(usize, String, usize)> {
    let log = backend.read(session.into(), Seq::START, READ_MAX).await?;
    let is_asked = |record: &Arc<Record>| match &record.entry {
        Entry::Lifecycle(LifecycleEntry::Resumed(resumed)) => {
            matches!(resumed.cause, ResumeCause::Asked { .. })
        }
        _ => false,
    };
    let asked = log.iter().filter(|record| is_asked(record)).count();
    match backend.state(session.into()).await? {
        Actor::Session(state) => Ok((asked, state.last_text().to_owned(), state.approvals().count())),
        Actor::Run(_) => None.context("the root is a session"),
    }
}

/// Records what a subscriber got.
struct RecordWriter(Files);

impl HarnessCallback for RecordWriter {
    fn on_record(&self, record: &Arc<Record>) {
        if let Ok(line) = record.to_line() {
            let _ = append(&self.0.shown(), &line);
        }
    }
}
