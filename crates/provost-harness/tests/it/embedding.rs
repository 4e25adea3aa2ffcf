//! The harness from an embedding program's view: real backend, real loop, scripted answers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use provost_backend::{EmbeddedBackend, MemoryStore};
use provost_engine::RunEvent;
use provost_event::{
    Access, AgentPolicy, Budget, Entry, GateEntry, Json, LifecycleEntry, ModelPolicy, Outcome, Record, RunId,
    RunPolicy, Seq, SessionId, StepMode, StopHookPolicy, StopHookVerdict, ToolEntry, ToolFinished, ToolSpec,
    ToolStatus, ToolSubject,
};
use provost_harness::{
    AgentHarness, BackendError, Blobs, HarnessCallback, HarnessDeps, HarnessError, Log as _, Models,
    StopHookContext, StopHookHandler, SystemClock, Tool, ToolContext, ToolOutput, ToolRegistry, TurnState,
};
use provost_llm::ScriptedModel;
use tokio::sync::Barrier;
use tokio_util::sync::CancellationToken;

const RUN: RunId = RunId::from_entropy(9);

/// A tool from a function.
pub(crate) struct Made<F>(ToolSpec, F);

#[async_trait]
impl<F, R> Tool for Made<F>
where
    F: Fn(Json, ToolContext) -> R + Send + Sync,
    R: Future<Output = ToolOutput> + Send,
{
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, input: &Json, context: &ToolContext) -> ToolOutput {
        self.1(input.clone(), context.clone()).await
    }
}

pub(crate) fn made<F, R>(name: &str, access: Access, does: F) -> Made<F>
where
    F: Fn(Json, ToolContext) -> R + Send + Sync,
    R: Future<Output = ToolOutput> + Send,
{
    let spec = ToolSpec {
        name: name.into(),
        description: String::new(),
        input_schema: Json::empty_object(),
        access,
        subject: ToolSubject::Opaque,
        aliases: Vec::new(),
        forms: Vec::new(),
        freeform: None,
        summary_field: None,
        idempotent: false,
        timeout_ms: 300,
        output_bytes_max: 100,
    };
    Made(spec, does)
}

#[derive(Default)]
struct Seen {
    records: Mutex<Vec<Arc<Record>>>,
    deltas: Mutex<String>,
    tools: AtomicUsize,
    panics: bool,
}

impl HarnessCallback for Seen {
    fn on_record(&self, record: &Arc<Record>) {
        self.records.lock().expect("seen").push(record.clone());
        assert!(!self.panics, "a callback that panics");
    }

    fn on_delta(&self, delta: &provost_event::Delta) {
        self.deltas.lock().expect("seen").push_str(&delta.text);
        assert!(!self.panics, "a callback that panics");
    }

    fn on_tool_end(&self, _: SessionId, _: &ToolFinished) {
        self.tools.fetch_add(1, Ordering::SeqCst);
    }
}

struct Scene {
    store: MemoryStore,
    script: String,
    tools: ToolRegistry,
    hooks: Vec<Arc<dyn StopHookHandler>>,
    seen: Arc<Seen>,
    step_mode: StepMode,
    workspace: tempfile::TempDir,
}

impl Scene {
    fn new(script: &str) -> Self {
        Self {
            store: MemoryStore::new(),
            script: script.to_owned(),
            tools: ToolRegistry::new(),
            hooks: Vec::new(),
            seen: Arc::default(),
            step_mode: StepMode::Free,
            workspace: tempfile::tempdir().expect("a folder"),
        }
    }

    fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools = self.tools.with(tool);
        self
    }

    /// A harness in a separate process, as far as the store can tell.
    fn harness(&self) -> (AgentHarness, Arc<EmbeddedBackend>) {
        let clock = Arc::new(SystemClock);
        let backend = Arc::new(EmbeddedBackend::new(self.store.clone(), clock.clone()).expect("a backend"));
        let model = ScriptedModel::parse(&self.script, "script").expect("a script");
        let harness = AgentHarness::new(HarnessDeps {
            stop_hooks: self.hooks.clone(),
            callback: self.seen.clone(),
            clock,
            ..HarnessDeps::new(
                backend.clone(),
                Models::new().with("script:test", Arc::new(model)),
                self.tools.clone(),
            )
        });
        (harness, backend)
    }

    fn policy(&self) -> RunPolicy {
        let hook = |hook: &Arc<dyn StopHookHandler>| StopHookPolicy {
            name: hook.name().to_owned(),
            command: None,
            timeout_ms: 1_000,
            on_error: provost_event::OnHookError::Ignore,
        };
        RunPolicy {
            spawn: provost_event::SpawnBudget::default(),
            ..RunPolicy::new(AgentPolicy {
                system_prompt: "be good".into(),
                tools: self.tools.specs(),
                stop_hooks: self.hooks.iter().map(hook).collect(),
                step_mode: self.step_mode,
                ..AgentPolicy::new(ModelPolicy::new("script:test", 1_000), self.workspace.path().to_owned())
            })
        }
    }

    async fn run(&self) -> Outcome {
        let (harness, _backend) = self.harness();
        let mut run = harness.start(RUN, "the goal", self.policy()).await.expect("it starts");
        run.run(&CancellationToken::new()).await.expect("it ends")
    }

    async fn finished(&self) -> Vec<ToolFinished> {
        let (_, backend) = self.harness();
        let records = backend.read(SessionId::root(RUN).into(), Seq::START, 1_000).await.expect("a log");
        let result = |record: &Arc<Record>| match &record.entry {
            Entry::Tool(ToolEntry::Finished(finished)) => Some(finished.clone()),
            _ => None,
        };
        records.iter().filter_map(result).collect()
    }
}

const ONE_CALL: &str = "answers: [{tools: [{act: {}}]}, {text: done}]";

#[tokio::test]
async fn reads_of_one_answer_run_side_by_side() {
    let together = Arc::new(Barrier::new(3));
    let scene = Scene::new("answers: [{tools: [{act: {n: 1}}, {act: {n: 2}}, {act: {n: 3}}]}, {text: done}]")
        .tool(made("act", Access::Reads, move |_, _| {
            let together = together.clone();
            async move {
                // No task gets past this alone.
                together.wait().await;
                ToolOutput::ok("met")
            }
        }));
    assert_eq!(scene.run().await, Outcome::UNVERIFIED);
    let outputs = scene.finished().await.into_iter().map(|one| one.output).collect::<Vec<_>>();
    assert_eq!(outputs, ["met", "met", "met"]);
    assert_eq!(scene.seen.tools.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_tool_that_runs_over_its_time_is_told_and_is_an_error() {
    let scene = Scene::new(ONE_CALL).tool(made("act", Access::Reads, |_, context: ToolContext| async move {
        context.cancel.cancelled().await;
        ToolOutput::ok("as far as it came")
    }));
    assert_eq!(scene.run().await, Outcome::UNVERIFIED);
    let finished = scene.finished().await;
    assert_eq!(finished[0].status, ToolStatus::TimedOut);
    assert_eq!(finished[0].output, "as far as it came\nStopped: it ran longer than 0.3 s.");
}

#[tokio::test]
async fn a_tool_that_panics_is_an_error() {
    async fn fall() -> ToolOutput {
        panic!("it falls over")
    }
    let scene = Scene::new(ONE_CALL).tool(made("act", Access::Reads, |_, _| fall()));
    assert_eq!(scene.run().await, Outcome::UNVERIFIED);
    assert_eq!(scene.finished().await[0].status, ToolStatus::Error);
}

#[tokio::test]
async fn a_long_output_is_cut_in_the_middle_and_kept_whole() {
    let scene = Scene::new(ONE_CALL).tool(made("act", Access::Reads, |_, _| async {
        ToolOutput::ok(format!("begin{}end", "é".repeat(500)))
    }));
    scene.run().await;
    let finished = scene.finished().await.remove(0);
    assert!(
        finished.output.starts_with("beginé") && finished.output.ends_with("éend"),
        "{}",
        finished.output
    );
    assert!(
        finished.output.contains(" bytes left out; read_file and search take the whole as path \"output:"),
        "{}",
        finished.output
    );
    let whole = finished.whole.expect("it is kept");
    let (_, backend) = scene.harness();
    let body = backend.get_blob(&whole).await.expect("readable").expect("there");
    assert_eq!(body.len(), 1_008);
}

#[tokio::test]
async fn a_tool_is_told_what_it_asked_to_be_told() {
    let script = "answers: [{tools: [{act: {n: 1}}]}, {tools: [{act: {n: 2}}]}, {text: done}]";
    let scene = Scene::new(script).tool(made("act", Access::Reads, |_, context: ToolContext| async move {
        let before: u32 = context.memory.map_or(0, |memory| memory.read().expect("a number"));
        let memory = Json::of(&(before + 1)).ok();
        ToolOutput { memory, ..ToolOutput::ok(format!("was {before}")) }
    }));
    scene.run().await;
    let outputs = scene.finished().await.into_iter().map(|one| one.output).collect::<Vec<_>>();
    assert_eq!(outputs, ["was 0", "was 1"]);
}

#[tokio::test]
async fn a_callback_sees_everything_and_cannot_hurt() {
    let mut scene = Scene::new("answers: [{text: 'all is well'}]");
    scene.seen = Arc::new(Seen { panics: true, ..Seen::default() });
    assert_eq!(scene.run().await, Outcome::UNVERIFIED);
    assert_eq!(*scene.seen.deltas.lock().expect("seen"), "all is well");
    let kinds = scene.seen.records.lock().expect("seen").iter().map(|r| r.entry.kind()).collect::<Vec<_>>();
    let missing = ["run_started", "model_called", "assistant_message", "turn_ended", "ended"]
        .into_iter()
        .filter(|kind| !kinds.contains(kind))
        .collect::<Vec<_>>();
    assert!(missing.is_empty(), "{missing:?}");
}

#[tokio::test]
async fn a_stepped_run_takes_one_turn_at_a_time() {
    let mut scene = Scene::new("answers: [{tools: [{act: {n: 1}}]}, {tools: [{act: {n: 2}}]}, {text: done}]")
        .tool(made("act", Access::Reads, |_, _| async { ToolOutput::ok("x") }));
    scene.step_mode = StepMode::Stepped;
    let (harness, _backend) = scene.harness();
    let cancel = CancellationToken::new();
    let mut run = harness.start(RUN, "the goal", scene.policy()).await.expect("it starts");
    assert_eq!(run.run_turn(&cancel).await.expect("a turn"), TurnState::Continue);
    assert_eq!(scene.finished().await.len(), 1, "the second turn waits to be asked for");
    drop(run);
    // Another process continues where this one stopped.
    let (harness, _backend) = scene.harness();
    let mut run = open_when_free(&harness, RUN).await;
    assert_eq!(run.run_turn(&cancel).await.expect("a turn"), TurnState::Continue);
    let done = TurnState::Done(Outcome::UNVERIFIED);
    assert_eq!(run.run_turn(&cancel).await.expect("a turn"), done);
    assert_eq!(run.run_turn(&cancel).await.expect("a turn"), done, "and stays done");
}

/// Opens a run that was dropped: its lease is released as soon as its task has ended.
pub(crate) async fn open_when_free(harness: &AgentHarness, run: RunId) -> provost_harness::Harness {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    loop {
        match harness.open(run).await {
            Ok(run) => return run,
            Err(HarnessError::Backend(BackendError::Held { .. }))
                if tokio::time::Instant::now() < deadline =>
            {
                tokio::task::yield_now().await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn a_second_worker_is_told_who_has_the_run() {
    let scene = Scene::new(ONE_CALL).tool(made("act", Access::Reads, |_, context: ToolContext| async move {
        context.cancel.cancelled().await;
        ToolOutput::ok("x")
    }));
    let (one, _backend) = scene.harness();
    let _run = one.start(RUN, "the goal", scene.policy()).await.expect("it starts");
    let (two, _backend) = scene.harness();
    let Err(HarnessError::Backend(BackendError::Held { run, by })) = two.open(RUN).await else {
        panic!("two have it")
    };
    assert_eq!(run, RUN);
    assert!(by.contains(&std::process::id().to_string()), "{by}");
}

/// A run with one call, which ends when it is stopped.
fn interruptible() -> Scene {
    Scene::new(ONE_CALL).tool(made("act", Access::Anything, |_, context: ToolContext| async move {
        context.cancel.cancelled().await;
        ToolOutput::ok("x")
    }))
}

#[tokio::test]
async fn cancelling_pauses_and_resume_goes_on_in_the_same_log() {
    let scene = interruptible();
    let (harness, backend) = scene.harness();
    let mut run = harness.start(RUN, "the goal", scene.policy()).await.expect("it starts");
    let cancel = CancellationToken::new();
    cancel.cancel();
    let outcome = run.run(&cancel).await.expect("it is suspended");
    assert_eq!(outcome.to_string(), "paused by the embedding program");
    run.resume("me", Budget::default(), None).await.expect("it goes on");
    let outcome = run.run(&CancellationToken::new()).await.expect("it ends");
    assert_eq!(outcome, Outcome::UNVERIFIED);
    let records = backend.read(RUN.into(), Seq::START, 100).await.expect("a log");
    assert!(
        records.iter().any(|record| matches!(record.entry, Entry::Lifecycle(LifecycleEntry::Resumed(_))))
    );
}

#[tokio::test]
async fn a_resumed_run_does_not_end_with_an_end_from_before() {
    let scene = interruptible();
    let (harness, backend) = scene.harness();
    let mut run = harness.start(RUN, "the goal", scene.policy()).await.expect("it starts");
    let cancel = CancellationToken::new();
    cancel.cancel();
    let outcome = run.run(&cancel).await.expect("it is suspended");
    assert_eq!(outcome.to_string(), "paused by the embedding program");
    // Another terminal cancels it while this one is about to resume it.
    let cancel = RunEvent::Cancel { agent: None, by: "ann".to_owned() };
    backend.post(RUN.into(), cancel.into(), None).await.expect("it is cancelled");
    run.resume("me", Budget::default(), None).await.expect("it goes on");
    let outcome = run.run(&CancellationToken::new()).await.expect("it ends");
    assert_eq!(outcome, Outcome::UNVERIFIED);
}

struct Hook(&'static str, fn() -> StopHookVerdict);

#[async_trait]
impl StopHookHandler for Hook {
    fn name(&self) -> &str {
        self.0
    }

    async fn evaluate(&self, context: &StopHookContext, _: &CancellationToken) -> StopHookVerdict {
        assert_eq!(context.final_text.as_deref(), Some("done"));
        (self.1)()
    }
}

#[tokio::test]
async fn stop_hooks_of_the_embedder_are_asked_and_one_that_panics_does_not_block() {
    let mut scene = Scene::new("answers: [{text: done}, {text: done}]");
    scene.hooks = vec![
        Arc::new(Hook("panics", || panic!("it falls over"))),
        Arc::new(Hook("says no", || StopHookVerdict::Block("never".into()))),
    ];
    assert_eq!(scene.run().await, Outcome::Blocked { reasons: vec!["says no: never".into()] });
    let seen = scene.seen.records.lock().expect("seen");
    let reports = seen.iter().find_map(|record| match &record.entry {
        Entry::Gate(GateEntry::StopChecked(verdicts)) => Some(verdicts.reports.clone()),
        _ => None,
    });
    let reports = reports.expect("they were asked");
    assert_eq!(reports[0].stop_verdict(), StopHookVerdict::Broken("it panicked".into()));
    assert_eq!((reports[0].hook.as_str(), reports[1].hook.as_str()), ("panics", "says no"));
}

#[tokio::test]
async fn a_money_budget_without_a_price_is_refused() {
    let scene = Scene::new(ONE_CALL);
    let mut policy = scene.policy();
    policy.budget.money = Some(provost_event::MicroDollars(1));
    let (harness, backend) = scene.harness();
    let refused = harness.start(RUN, "the goal", policy).await;
    assert!(matches!(refused, Err(HarnessError::UnknownPrice { .. })));
    assert!(
        backend.read(RUN.into(), Seq::START, 1).await.expect("readable").is_empty(),
        "nothing has started"
    );
}

#[tokio::test]
async fn one_that_comes_late_does_not_take_another_s_end_for_its_own_work() {
    let scene = interruptible();
    let (one, _backend) = scene.harness();
    let mut first = one.start(RUN, "the goal", scene.policy()).await.expect("it starts");
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    first.run(&cancelled).await.expect("it is suspended");
    drop(first);
    let mut second = open_when_free(&one, RUN).await;
    second.resume("me", Budget::default(), None).await.expect("it goes on");
    let outcome = second.run(&CancellationToken::new()).await.expect("it ends");
    assert_eq!(outcome, Outcome::UNVERIFIED);
    drop(second);
    let before = scene.seen.records.lock().expect("seen").len();
    let mut third = open_when_free(&one, RUN).await;
    assert_eq!(third.run(&CancellationToken::new()).await.expect("it has ended"), outcome);
    assert_eq!(scene.seen.records.lock().expect("seen").len(), before, "nothing new to see");
}

#[tokio::test]
async fn a_run_can_be_handed_to_a_task_of_its_own() {
    let scene = Scene::new("answers: [{text: done}]");
    let (harness, _backend) = scene.harness();
    let mut run = harness.start(RUN, "the goal", scene.policy()).await.expect("it starts");
    let task = tokio::spawn(async move { run.run(&CancellationToken::new()).await });
    let outcome = task.await.expect("the task").expect("it ends");
    assert_eq!(outcome, Outcome::UNVERIFIED);
}
