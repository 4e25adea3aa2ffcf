//! How an executor calls hooks, typed ones and programs: on a real backend, with the run's frozen policy.

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use provost_backend::{EmbeddedBackend, MemoryStore};
use provost_engine::{CallDetails, Effect, Event, HookCall, HookCallDetails, SessionEvent, StopCheck};
use provost_event::{
    ActorKey, AgentPolicy, BlobId, EffectId, HookContract, HookDecision, HookPoint, HookPolicy, HookProgram,
    HookReport, HookSetup, HookTrigger, Json, ModelPolicy, OnFailure, Record, RunId, RunPolicy, Seq,
    SessionId, StepMode, StopHookPolicy, StopHookVerdict, Timestamp, ToolIdentity,
};
use provost_harness::hooks::{HookOptions, HookRegistry, PreToolCall, PreToolCallAction, from_fn};
use provost_harness::{
    AgentHarness, BackendError, Blobs, Catalog, Clock, Executor, Harness, HarnessDeps, HarnessError, Holder,
    HookAnswer, HookPrograms, HookQuestion, HookQuestionTrigger, HookTranscript, Log, LogTranscript, Models,
    PlacedEntry, PlacedRecord, Posted, RunLease, RunPosition, RunQuery, RunSummary, SimulatedClock,
    SystemClock, ToolRegistry, Worker,
};
use provost_llm::ScriptedModel;
use tokio::sync::{Barrier, mpsc};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

const RUN: RunId = RunId::from_entropy(6);
const SESSION: SessionId = SessionId::root(RUN);
/// The deadline of every wait.
const DEADLINE: Duration = Duration::from_secs(10);

/// A real backend that gives the test the executor it gets.
struct Caught {
    backend: EmbeddedBackend,
    executor: Mutex<Option<Arc<dyn Executor>>>,
}

#[async_trait]
impl Blobs for Caught {
    async fn put_blob(&self, body: Vec<u8>) -> Result<BlobId, BackendError> {
        self.backend.put_blob(body).await
    }

    async fn get_blob(&self, id: &BlobId) -> Result<Option<Vec<u8>>, BackendError> {
        self.backend.get_blob(id).await
    }
}

#[async_trait]
impl Log for Caught {
    async fn post(&self, key: ActorKey, event: Event, dedup: Option<&str>) -> Result<Posted, BackendError> {
        self.backend.post(key, event, dedup).await
    }

    async fn read(&self, key: ActorKey, after: Seq, max: usize) -> Result<Vec<Arc<Record>>, BackendError> {
        self.backend.read(key, after, max).await
    }

    async fn actors(&self, run: RunId) -> Result<Vec<ActorKey>, BackendError> {
        self.backend.actors(run).await
    }

    fn subscribe(&self, key: ActorKey, after: Seq) -> BoxStream<'static, Result<Arc<Record>, BackendError>> {
        self.backend.subscribe(key, after)
    }

    async fn order(
        &self,
        run: RunId,
        after: RunPosition,
        max: usize,
    ) -> Result<Vec<PlacedEntry>, BackendError> {
        self.backend.order(run, after, max).await
    }

    async fn run_head(&self, run: RunId) -> Result<RunPosition, BackendError> {
        self.backend.run_head(run).await
    }

    fn subscribe_run(
        &self,
        run: RunId,
        after: RunPosition,
    ) -> BoxStream<'static, Result<PlacedRecord, BackendError>> {
        self.backend.subscribe_run(run, after)
    }
}

#[async_trait]
impl Catalog for Caught {
    async fn list(&self, query: RunQuery) -> Result<Vec<RunSummary>, BackendError> {
        self.backend.list(query).await
    }

    async fn get(&self, run: RunId) -> Result<Option<RunSummary>, BackendError> {
        self.backend.get(run).await
    }

    async fn find(&self, prefix: &str, max: usize) -> Result<Vec<RunSummary>, BackendError> {
        self.backend.find(prefix, max).await
    }
}

#[async_trait]
impl Worker for Caught {
    async fn serve(
        &self,
        run: RunId,
        executor: Arc<dyn Executor>,
        stop: CancellationToken,
    ) -> Result<Box<dyn RunLease>, BackendError> {
        *self.executor.lock().expect("alone") = Some(executor.clone());
        self.backend.serve(run, executor, stop).await
    }

    async fn holder(&self, run: RunId) -> Result<Option<Holder>, BackendError> {
        self.backend.holder(run).await
    }
}

type Does =
    Box<dyn Fn(String, HookQuestion, CancellationToken) -> BoxFuture<'static, HookAnswer> + Send + Sync>;

/// Hook programs from functions of this test.
struct Programs {
    unwanted: &'static [&'static str],
    does: Does,
    /// The entries that transcripts were written of, for all contracts.
    transcribed: Arc<AtomicUsize>,
}

/// A transcript of the kinds of entries.
struct Kinds(Arc<AtomicUsize>);

impl HookTranscript for Kinds {
    fn add(&mut self, record: &Record, lines: &mut String) {
        self.0.fetch_add(1, Ordering::Relaxed);
        lines.push_str(record.entry.kind());
        lines.push('\n');
    }
}

#[async_trait]
impl HookPrograms for Programs {
    fn wants(&self, hook: &HookPolicy, _: &HookQuestion, _: HookPoint) -> bool {
        assert_ne!(hook.name, "unsure", "a matcher that falls over");
        !self.unwanted.contains(&&*hook.name)
    }

    async fn ask(
        &self,
        hook: &HookPolicy,
        question: &HookQuestion,
        _: HookPoint,
        cancel: &CancellationToken,
    ) -> HookAnswer {
        (self.does)(hook.name.clone(), question.clone(), cancel.clone()).await
    }

    fn transcript(&self, contract: HookContract, _: SessionId) -> Box<dyn HookTranscript> {
        match contract {
            HookContract::Provost => Box::new(LogTranscript),
            HookContract::Claude | HookContract::Codex => Box::new(Kinds(self.transcribed.clone())),
        }
    }
}

fn does<R>(does: impl Fn(String, HookQuestion, CancellationToken) -> R + Send + Sync + 'static) -> Programs
where
    R: Future<Output = HookAnswer> + Send + 'static,
{
    Programs {
        unwanted: &[],
        transcribed: Arc::default(),
        does: Box::new(move |name, question, cancel| Box::pin(does(name, question, cancel))),
    }
}

/// The answer of each is its name.
fn as_named() -> Programs {
    does(|name, _, _| async move {
        let words = || name.clone();
        HookAnswer::only(match name.split('-').next() {
            Some("allow") => HookDecision::Allow,
            Some("ask") => HookDecision::Ask(words()),
            Some("deny") => HookDecision::Deny(words()),
            Some("pause") => HookDecision::Pause(words()),
            Some("abort") => HookDecision::Abort(words()),
            Some("failed") => HookDecision::Failed(words()),
            Some("panic") => panic!("it falls over"),
            Some("remind") => {
                let reminders = vec!["mind the gap".to_owned()];
                return HookAnswer {
                    decision: HookDecision::Continue,
                    reminders,
                    note: Some("hm".to_owned()),
                    replacement: None,
                };
            }
            _ => HookDecision::Continue,
        })
    })
}

fn program(name: &str, point: HookPoint) -> HookPolicy {
    HookPolicy {
        name: name.to_owned(),
        point,
        matcher: None,
        condition: None,
        program: Some(HookProgram::Shell { command: name.to_owned() }),
        contract: HookContract::Provost,
        timeout_ms: 2_000,
        on_failure: OnFailure::Continue,
        may_remind: false,
        setup: HookSetup::default(),
    }
}

fn before(name: &str) -> HookPolicy {
    program(name, HookPoint::PreToolCall)
}

fn claude(name: &str) -> HookPolicy {
    HookPolicy { contract: HookContract::Claude, ..before(name) }
}

struct Scene {
    hooks: Vec<HookPolicy>,
    stop_hooks: Vec<StopHookPolicy>,
    registry: HookRegistry,
    programs: Arc<dyn HookPrograms>,
    clock: Arc<dyn Clock>,
    folder: tempfile::TempDir,
}

/// A run that waits for its first turn, and the executor of its effects.
struct Open {
    run: Harness,
    backend: Arc<Caught>,
    executor: Arc<dyn Executor>,
}

impl Scene {
    fn new(programs: Programs, hooks: Vec<HookPolicy>) -> Self {
        Self {
            hooks,
            stop_hooks: Vec::new(),
            registry: HookRegistry::default(),
            programs: Arc::new(programs),
            clock: Arc::new(SystemClock),
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    fn typed(mut self, names: &[&str]) -> Self {
        let mut builder = HookRegistry::builder();
        for name in names {
            let hook = from_fn::<PreToolCall>(|_| PreToolCallAction::Continue);
            builder = builder.on(HookOptions::new(*name), hook);
        }
        self.registry = builder.freeze().expect("a registry");
        self
    }

    fn policy(&self) -> RunPolicy {
        RunPolicy {
            spawn: provost_event::SpawnBudget::default(),
            ..RunPolicy::new(AgentPolicy {
                stop_hooks: self.stop_hooks.clone(),
                hooks: self.hooks.clone(),
                step_mode: StepMode::Stepped,
                ..AgentPolicy::new(ModelPolicy::new("script:test", 1_000), self.folder.path().to_owned())
            })
        }
    }

    async fn try_open(&self) -> Result<Open, HarnessError> {
        let backend = EmbeddedBackend::new(MemoryStore::new(), Arc::new(SystemClock)).expect("a backend");
        let backend = Arc::new(Caught { backend, executor: Mutex::default() });
        let model = ScriptedModel::parse("answers: [{text: done}]", "script").expect("a script");
        let harness = AgentHarness::new(HarnessDeps {
            hooks: self.registry.clone(),
            hook_programs: self.programs.clone(),
            clock: self.clock.clone(),
            transcripts: Some(self.folder.path().join("transcripts")),
            ..HarnessDeps::new(
                backend.clone(),
                Models::new().with("script:test", Arc::new(model)),
                ToolRegistry::new(),
            )
        });
        let run = harness.start(RUN, "the goal", self.policy()).await?;
        let executor = backend.executor.lock().expect("alone").clone().expect("it is served");
        Ok(Open { run, backend, executor })
    }

    async fn open(&self) -> Open {
        self.try_open().await.expect("it starts")
    }

    async fn before_a_call(&self) -> Vec<HookReport> {
        self.open().await.ask(before_a_call(), CancellationToken::new()).await
    }
}

impl Open {
    async fn perform(&self, effect: Effect, cancel: CancellationToken) -> SessionEvent {
        let id = EffectId { actor: SESSION.into(), seq: Seq(1_000) };
        let event = timeout(DEADLINE, self.executor.run(id, effect, cancel)).await.expect("an answer");
        let Event::Session(event) = event else { panic!("{event:?}") };
        event
    }

    async fn ask(&self, hook_call: HookCall, cancel: CancellationToken) -> Vec<HookReport> {
        let event = self.perform(Effect::AskHooks(hook_call), cancel).await;
        let SessionEvent::HooksAnswered { seq: Seq(1_000), reports, .. } = event else { panic!("{event:?}") };
        reports
    }

    async fn log(&self) -> Vec<Arc<Record>> {
        self.backend.read(SESSION.into(), Seq::START, 1_000).await.expect("a log")
    }

    /// A message to the agent is in its log.
    async fn hears(&self, text: &str) {
        let before = self.log().await.len();
        self.run.control("ann").say(0, text).await.expect("it is said");
        let heard = async {
            while self.log().await.len() == before {
                tokio::task::yield_now().await;
            }
        };
        timeout(DEADLINE, heard).await.expect("it is heard");
    }

    async fn lines(&self) -> String {
        let log = self.log().await;
        log.iter().map(|record| record.to_line().expect("JSON") + "\n").collect()
    }
}

fn call() -> CallDetails {
    CallDetails {
        call: "c1".into(),
        tool: Box::new(ToolIdentity::unknown("shell")),
        input: Json::empty_object(),
        memory: None,
        why: String::new(),
        wanted: None,
    }
}

fn before_a_call() -> HookCall {
    let about = HookTrigger::call("c1".into());
    HookCall {
        session: SESSION,
        turn: 1,
        about,
        details: HookCallDetails::Call(call()),
        limit_ms: None,
        shell: None,
        spent: Vec::new(),
    }
}

fn said(reports: &[HookReport]) -> Vec<(&str, HookDecision)> {
    reports.iter().map(|report| (&*report.hook, report.decision.clone())).collect()
}

fn names(reports: &[HookReport]) -> Vec<&str> {
    reports.iter().map(|report| &*report.hook).collect()
}

fn broken(why: &str) -> HookDecision {
    HookDecision::Broken(why.to_owned())
}

fn failed(why: &str) -> HookDecision {
    HookDecision::Failed(why.to_owned())
}

/// By that contract a program that is configured several times is called once per question.
#[tokio::test]
async fn the_same_program_is_asked_once_by_claude_codes_contract_and_each_time_by_ours() {
    let again = |mut hook: HookPolicy| {
        hook.name.push_str("-again");
        hook
    };
    let hooks = vec![claude("a"), again(claude("a")), claude("b"), before("c"), again(before("c"))];
    let reports = Scene::new(as_named(), hooks).before_a_call().await;
    assert_eq!(names(&reports), ["a", "b", "c", "c-again"]);
    let unwanted = Programs { unwanted: &["a"], ..as_named() };
    let reports = Scene::new(unwanted, vec![claude("a"), again(claude("a"))]).before_a_call().await;
    assert_eq!(names(&reports), ["a-again"], "only one that is meant keeps another from being asked");
}

#[tokio::test]
async fn typed_hooks_come_first_and_weak_answers_let_the_rest_be_asked() {
    let hooks = ["allow", "ask", "failed", "panic", "deny", "late"].map(before).to_vec();
    let reports = Scene::new(as_named(), hooks).typed(&["typed-1", "typed-2"]).before_a_call().await;
    assert_eq!(
        said(&reports),
        [
            ("typed-1", HookDecision::Continue),
            ("typed-2", HookDecision::Continue),
            ("allow", HookDecision::Allow),
            ("ask", HookDecision::Ask("ask".into())),
            ("failed", failed("failed")),
            ("panic", broken("it panicked")),
            ("deny", HookDecision::Deny("deny".into())),
        ]
    );
}

#[tokio::test]
async fn a_required_hook_stops_the_others_by_failing() {
    let closed = HookPolicy { on_failure: OnFailure::Deny, ..before("failed") };
    let reports = Scene::new(as_named(), vec![closed, before("late")]).before_a_call().await;
    assert_eq!(said(&reports), [("failed", failed("failed"))]);
}

#[tokio::test]
async fn who_does_not_want_to_be_asked_gives_no_report() {
    let hooks =
        vec![before("no-1"), before("unsure"), program("elsewhere", HookPoint::PostToolCall), before("b")];
    let programs = Programs { unwanted: &["no-1"], ..as_named() };
    let reports = Scene::new(programs, hooks).before_a_call().await;
    assert_eq!(names(&reports), ["unsure", "b"]);
}

#[tokio::test]
async fn a_typed_hook_that_is_not_there_gives_no_answer() {
    let missing = HookPolicy { program: None, ..before("guard") };
    let reports = Scene::new(as_named(), vec![missing]).before_a_call().await;
    let why = "the program that runs this agent doesn't have this hook";
    assert_eq!(said(&reports), [("guard", broken(why))]);
}

#[tokio::test]
async fn hooks_of_the_other_contract_start_together_and_all_are_heard() {
    let together = Arc::new(Barrier::new(3));
    let programs = does(move |name, _, _| {
        let together = together.clone();
        async move {
            if name.starts_with("own") {
                return HookAnswer::only(HookDecision::Continue);
            }
            // No task gets past this alone.
            together.wait().await;
            let no = name == "claude-2";
            HookAnswer::only(if no { HookDecision::Deny("no".into()) } else { HookDecision::Allow })
        }
    });
    let hooks = vec![
        before("own-1"),
        claude("claude-1"),
        before("own-2"),
        claude("claude-2"),
        claude("claude-3"),
        before("own-3"),
    ];
    let reports = Scene::new(programs, hooks).before_a_call().await;
    assert_eq!(
        said(&reports),
        [
            ("own-1", HookDecision::Continue),
            ("claude-1", HookDecision::Allow),
            ("claude-2", HookDecision::Deny("no".into())),
            ("claude-3", HookDecision::Allow),
        ]
    );
}

#[tokio::test]
async fn reports_are_in_the_policys_order() {
    let hooks = vec![claude("c-1"), before("own-1"), claude("c-2"), before("deny-own"), claude("c-3")];
    let reports = Scene::new(as_named(), hooks).before_a_call().await;
    assert_eq!(names(&reports), ["c-1", "own-1", "c-2", "deny-own", "c-3"]);
}

#[tokio::test]
async fn a_no_before_them_spares_the_hooks_of_the_other_contract() {
    let reports = Scene::new(as_named(), vec![before("deny"), claude("c-1")]).before_a_call().await;
    assert_eq!(names(&reports), ["deny"]);
}

#[tokio::test]
async fn reminders_of_hooks_without_that_right_are_dropped_and_that_is_said() {
    let may = HookPolicy { may_remind: true, ..before("remind-may") };
    let reports = Scene::new(as_named(), vec![may, before("remind-not")]).before_a_call().await;
    assert_eq!(
        (&*reports[0].reminders, reports[0].note.as_deref()),
        (&["mind the gap".to_owned()][..], Some("hm"))
    );
    let note = "it may not remind the model of anything; reminders dropped: 1\nhm";
    assert_eq!((&*reports[1].reminders, reports[1].note.as_deref()), (&[][..], Some(note)));
}

#[tokio::test]
async fn a_program_keeps_its_own_time_and_is_let_go_when_it_does_not() {
    let (asked, mut are_asked) = mpsc::unbounded_channel();
    let programs = does(move |name, _, cancel: CancellationToken| {
        let asked = asked.clone();
        async move {
            asked.send(()).expect("the test is there");
            cancel.cancelled().await;
            match &*name {
                "tells" => HookAnswer::only(failed("its own words")),
                "agrees" => HookAnswer::only(HookDecision::Allow),
                _ => std::future::pending().await,
            }
        }
    });
    let clock = Arc::new(SimulatedClock::at(Timestamp(10_000)));
    let scene = Scene {
        clock: clock.clone(),
        ..Scene::new(programs, ["tells", "agrees", "stuck"].map(before).to_vec())
    };
    let open = scene.open().await;
    let moved = async {
        are_asked.recv().await;
        let tells = clock.advance_to_next_sleeper().await;
        are_asked.recv().await;
        let agrees = clock.advance_to_next_sleeper().await;
        are_asked.recv().await;
        let stuck = clock.advance_to_next_sleeper().await;
        let mut let_go = stuck;
        while let_go == stuck {
            // A woken task needs a moment to end.
            tokio::task::yield_now().await;
            let_go = clock.advance_to_next_sleeper().await;
        }
        [tells, agrees, stuck, let_go]
    };
    let (reports, wakes) = tokio::join!(open.ask(before_a_call(), CancellationToken::new()), async {
        timeout(DEADLINE, moved).await.expect("sleepers")
    });
    let late = || HookDecision::TimedOut(2_000);
    assert_eq!(said(&reports), [("tells", failed("its own words")), ("agrees", late()), ("stuck", late())]);
    assert_eq!(wakes, [17_000, 24_000, 31_000, 46_000].map(Timestamp));
}

#[tokio::test]
async fn a_cancelled_program_is_told_and_may_still_speak() {
    let (asked, mut is_asked) = mpsc::unbounded_channel();
    let programs = does(move |_, _, cancel: CancellationToken| {
        let asked = asked.clone();
        async move {
            asked.send(()).expect("the test is there");
            cancel.cancelled().await;
            HookAnswer::only(failed("ended by the cancel"))
        }
    });
    let open = Scene::new(programs, vec![before("a"), before("b")]).open().await;
    let cancel = CancellationToken::new();
    let (reports, ()) = tokio::join!(open.ask(before_a_call(), cancel.clone()), async {
        is_asked.recv().await;
        cancel.cancel();
    });
    assert_eq!(said(&reports), [("a", failed("ended by the cancel")), ("b", failed("cancelled"))]);
}

#[tokio::test]
async fn programs_are_told_of_results_and_where_the_log_is() {
    let programs = does(|_, question: HookQuestion, _| async move {
        let kinds = question.records.iter().map(|record| record.entry.kind()).collect::<Vec<_>>();
        HookAnswer::only(HookDecision::Abort(format!("{kinds:?} {:?}", question.transcript_path)))
    });
    let scene = Scene::new(programs, vec![program("h", HookPoint::PostToolCall)]);
    let about = HookTrigger::Result { call: "c1".into(), is_error: false };
    // Any entry will do as the result in the question; the program reads it itself.
    let details = HookCallDetails::Result { call: call(), finished: Seq(1) };
    let hook_call = HookCall {
        session: SESSION,
        turn: 1,
        about,
        details,
        limit_ms: None,
        shell: None,
        spent: Vec::new(),
    };
    let reports = scene.open().await.ask(hook_call, CancellationToken::new()).await;
    let path = scene.transcript();
    assert_eq!(
        said(&reports),
        [("h", HookDecision::Abort(format!("[\"session_started\"] {:?}", Some(path))))]
    );
}

impl Scene {
    fn transcripts(&self) -> PathBuf {
        self.folder.path().join("transcripts").join(RUN.to_string())
    }

    fn transcript(&self) -> PathBuf {
        self.transcripts().join(format!("{SESSION}.jsonl"))
    }
}

#[tokio::test]
async fn the_log_file_is_written_once_and_then_only_grows() {
    let scene = Scene::new(as_named(), vec![before("h")]);
    let open = scene.open().await;
    let path = scene.transcript();
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(&path, "what another process left").expect("written");

    open.ask(before_a_call(), CancellationToken::new()).await;
    let read = || std::fs::read_to_string(&path).expect("a file");
    let first = read();
    assert_eq!(first, open.lines().await);

    let same = File::open(&path).expect("a file");
    open.hears("more").await;
    open.ask(before_a_call(), CancellationToken::new()).await;
    assert_eq!(read(), open.lines().await);
    let (mut seen, mut file) = (String::new(), same);
    file.read_to_string(&mut seen).expect("text");
    assert_eq!(seen, read(), "it was written anew");
    assert!(seen.len() > first.len() && seen.starts_with(&first));

    // Both have something to add, and it is added once.
    open.hears("still more").await;
    let ask = || open.ask(before_a_call(), CancellationToken::new());
    tokio::join!(ask(), ask(), ask());
    assert_eq!(read(), open.lines().await);
    file.read_to_string(&mut seen).expect("text");
    assert_eq!(seen, read(), "it was written anew");

    std::fs::write(&path, "what a hook left").expect("written");
    open.hears("and more").await;
    open.ask(before_a_call(), CancellationToken::new()).await;
    assert_eq!(read(), open.lines().await);
}

#[tokio::test]
async fn each_contract_has_a_transcript_in_its_form_and_no_entry_is_written_twice() {
    let programs = as_named();
    let transcribed = programs.transcribed.clone();
    let scene = Scene::new(programs, vec![before("own"), claude("script")]);
    let open = scene.open().await;
    for text in ["one", "two", "three"] {
        open.hears(text).await;
        let ask = || open.ask(before_a_call(), CancellationToken::new());
        tokio::join!(ask(), ask());
        assert_eq!(transcribed.load(Ordering::Relaxed), open.log().await.len());
    }
    let path = scene.transcripts().join("claude").join(format!("{SESSION}.jsonl"));
    let kinds =
        open.log().await.iter().map(|record| format!("{}\n", record.entry.kind())).collect::<String>();
    assert_eq!(std::fs::read_to_string(path).expect("a file"), kinds);
    assert_eq!(std::fs::read_to_string(scene.transcript()).expect("a file"), open.lines().await);
}

#[tokio::test]
async fn no_log_file_is_written_for_typed_hooks() {
    let programs = Programs { unwanted: &["h"], ..as_named() };
    let scene = Scene::new(programs, vec![before("h")]).typed(&["typed"]);
    assert_eq!(names(&scene.before_a_call().await), ["typed"]);
    assert!(!scene.transcript().exists());
}

fn check_stop() -> Effect {
    Effect::CheckStop(StopCheck {
        shell: None,
        spent: Vec::new(),
        limit_ms: None,
        session: SESSION,
        turn: 1,
        tool_calls: 0,
        final_text: "done".into(),
        blocked_before: false,
        trigger: provost_event::GoalTrigger::Claim,
    })
}

#[tokio::test]
async fn programs_answer_a_wish_to_stop_after_the_stop_hooks() {
    let stop = |name: &str| program(name, HookPoint::Stop);
    let names = ["go", "allow", "deny", "ask", "pause", "abort", "failed", "no-1"];
    let mut hooks = names.map(stop).to_vec();
    hooks.push(HookPolicy { on_failure: OnFailure::Deny, ..stop("failed-closed") });
    hooks.push(HookPolicy { may_remind: true, ..stop("remind-may") });
    hooks.push(HookPolicy { program: None, ..stop("typed") });
    hooks.push(before("elsewhere"));
    let shell = StopHookPolicy {
        name: "shell".into(),
        command: Some("true".into()),
        timeout_ms: 5_000,
        on_error: provost_event::OnHookError::Ignore,
    };
    let programs = Programs { unwanted: &["no-1"], ..as_named() };
    let scene = Scene { stop_hooks: vec![shell], ..Scene::new(programs, hooks) };
    let open = scene.open().await;
    let event = open.perform(check_stop(), CancellationToken::new()).await;
    let SessionEvent::StopChecked { result, .. } = event else { panic!("{event:?}") };
    let verdicts = result.reports.iter().map(|report| (&*report.hook, report.stop_verdict()));
    let block = |why: &str| StopHookVerdict::Block(why.to_owned());
    assert_eq!(
        verdicts.collect::<Vec<_>>(),
        [
            ("shell", StopHookVerdict::Allow),
            ("go", StopHookVerdict::Allow),
            ("allow", StopHookVerdict::Allow),
            ("deny", block("deny")),
            ("ask", block("ask")),
            ("pause", block("pause")),
            ("abort", StopHookVerdict::Halt("abort".into())),
            ("failed", StopHookVerdict::Error("failed".into())),
            ("failed-closed", block("failed-closed")),
            ("remind-may", block("mind the gap")),
            (
                "typed",
                StopHookVerdict::Broken("the program that runs this agent doesn't have this hook".into())
            ),
        ]
    );
    assert_eq!(std::fs::read_to_string(scene.transcript()).expect("a file"), open.lines().await);
}

#[tokio::test]
async fn programs_are_asked_about_a_wish_to_stop_as_one() {
    let programs = does(|_, question: HookQuestion, _| async move {
        let HookQuestionTrigger::Stop(check) = question.trigger else { panic!("{question:?}") };
        assert!(question.transcript_path.is_some_and(|path| path.exists()));
        HookAnswer::only(HookDecision::Deny(check.final_text))
    });
    let scene = Scene::new(programs, vec![program("h", HookPoint::Stop)]);
    let event = scene.open().await.perform(check_stop(), CancellationToken::new()).await;
    let SessionEvent::StopChecked { result, .. } = event else { panic!("{event:?}") };
    assert_eq!(result.reports[0].stop_verdict(), StopHookVerdict::Block("done".into()));
}

#[tokio::test]
async fn the_registrys_hooks_stand_before_the_policys() {
    let open = Scene::new(as_named(), vec![before("b")]).typed(&["a"]).open().await;
    let log = open.log().await;
    let provost_event::Entry::Lifecycle(provost_event::LifecycleEntry::SessionStarted(started)) =
        &log[0].entry
    else {
        panic!("{log:?}")
    };
    let hooks = started.policy.hooks.iter().map(|hook| &*hook.name).collect::<Vec<_>>();
    assert_eq!(hooks, ["a", "b"]);
}

#[tokio::test]
async fn two_hooks_of_one_name_keep_a_run_from_starting() {
    let scene = Scene::new(as_named(), vec![before("b"), before("a")]).typed(&["a"]);
    let error = scene.try_open().await.err().expect("it is refused");
    assert!(matches!(&error, HarnessError::DoubledHook { hook } if hook == "a"), "{error:?}");
    assert_eq!(error.to_string(), "two hooks are called `a`");
}
