//! Control over whole runs: real home, real loop, scripted words; what each typed hook may do, and what none may.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use provost_engine::{Answer, Event, SessionEvent};
use provost_event::{
    Access, AgentPolicy, ApprovalAnswer, ApprovalScope, Block, Budget, Entry, HookContract, HookDecision,
    HookMoment, HookPolicy, HookProgram, HookReport, Json, Limits, ModelFailure, ModelPolicy, OnFailure,
    Outcome, Pace, PauseReason, Permission, PermissionPolicy, Record, RunId, RunPolicy, Seq, SessionId,
    Timestamp, ToolSpec,
};
use provost_harness::hooks::*;
use provost_harness::{
    AgentHarness, Clock, DeltaSink, Harness, HarnessDeps, Home, HookAnswer, HookPrograms, HookQuestion,
    Model, ModelRequest, Models, Part, SimulatedClock, SystemClock, Tool, ToolContext, ToolOutput, Toolbox,
};
use provost_llm::ScriptedModel;
use provost_store::{LocalHome, MemoryStore, SqliteStore};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

const RUN: RunId = RunId::from_entropy(77);
const SESSION: SessionId = SessionId::root(RUN);
const DEADLINE: Duration = Duration::from_secs(10);
const DONE: Outcome = Outcome::Completed { verdict: None };

const ONE: &str = "answers: [{tools: [{act: {n: 1}}]}, {text: 'all is well'}, {text: 'still well'}]";
const TWO: &str = "answers: [{tools: [{act: {n: 1}}, {act: {n: 2}}]}, {text: 'all is well'}]";

/// Hands questions on to a model and keeps what it was asked, a line for each part.
struct Tapped {
    model: ScriptedModel,
    tape: Arc<Mutex<Vec<Vec<String>>>>,
}

#[async_trait]
impl Model for Tapped {
    async fn answer(
        &self,
        request: ModelRequest<'_>,
        deltas: &dyn DeltaSink,
        cancel: &CancellationToken,
    ) -> Result<Answer, ModelFailure> {
        let parts = request.messages.iter().flat_map(|message| &message.parts).map(|part| match part {
            Part::Block(Block::Text(text)) => format!("text {text}"),
            Part::Block(Block::ToolCall(call)) => format!("call {}", call.id),
            Part::ToolResult { call, is_error, output, .. } => format!("result {call} {is_error} {output}"),
            other => format!("{other:?}"),
        });
        self.tape.lock().unwrap().push(parts.collect());
        self.model.answer(request, deltas, cancel).await
    }
}

/// Counts how often it was called; fails if told to; stays until it is cancelled if told to.
struct Act {
    spec: ToolSpec,
    called: Arc<AtomicU32>,
}

#[async_trait]
impl Tool for Act {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, input: &Json, context: &ToolContext) -> ToolOutput {
        self.called.fetch_add(1, Ordering::SeqCst);
        if input.text().contains("stay") {
            context.cancel.cancelled().await;
            return ToolOutput::error("interrupted");
        }
        if input.text().contains("fail") { ToolOutput::error("it failed") } else { ToolOutput::ok("acted") }
    }
}

fn spec(access: Access) -> ToolSpec {
    ToolSpec {
        name: "act".into(),
        description: String::new(),
        input_schema: Json::empty_object(),
        access,
        idempotent: false,
        timeout_ms: 60_000,
        output_bytes_max: 10_000,
    }
}

pub(crate) struct Bench {
    pub(crate) script: String,
    pub(crate) hooks: HookRegistryBuilder,
    policies: Vec<HookPolicy>,
    programs: Option<Arc<dyn HookPrograms>>,
    permissions: PermissionPolicy,
    access: Access,
    clock: Arc<dyn Clock>,
}

/// A run, what its model was asked and how often its tool was called.
pub(crate) struct Stage {
    pub(crate) run: Harness,
    home: Arc<LocalHome>,
    tape: Arc<Mutex<Vec<Vec<String>>>>,
    called: Arc<AtomicU32>,
}

impl Bench {
    pub(crate) fn new(script: &str) -> Self {
        Self {
            script: script.to_owned(),
            hooks: HookRegistry::builder(),
            policies: Vec::new(),
            programs: None,
            permissions: PermissionPolicy::default(),
            access: Access::Reads,
            clock: Arc::new(SystemClock),
        }
    }

    pub(crate) fn on<E: HookEvent>(self, owner: &str, hook: impl Hook<E>) -> Self {
        self.with(HookOptions::new(owner), hook)
    }

    fn with<E: HookEvent>(mut self, options: HookOptions, hook: impl Hook<E>) -> Self {
        self.hooks = self.hooks.on(options, hook);
        self
    }

    fn asking(mut self) -> Self {
        self.permissions.otherwise = Permission::Ask;
        self
    }

    async fn start(self) -> Stage {
        let home = Arc::new(LocalHome::new(MemoryStore::new(), self.clock.clone()).unwrap());
        self.start_at(home).await
    }

    async fn start_at(self, home: Arc<LocalHome>) -> Stage {
        let (harness, tape, called, policy) = self.harness(home.clone());
        let run = harness.start(RUN, "the goal", policy).await.unwrap();
        Stage { run, home, tape, called }
    }

    fn harness(
        self,
        home: Arc<LocalHome>,
    ) -> (AgentHarness, Arc<Mutex<Vec<Vec<String>>>>, Arc<AtomicU32>, RunPolicy) {
        let (tape, called) = (Arc::<Mutex<Vec<Vec<String>>>>::default(), Arc::new(AtomicU32::new(0)));
        let model =
            Tapped { model: ScriptedModel::parse(&self.script, "script").unwrap(), tape: tape.clone() };
        let tool = Act { spec: spec(self.access), called: called.clone() };
        let policy = RunPolicy {
            observers: Vec::new(),
            budget: Budget::default(),
            allow_unpriced: false,
            agent: AgentPolicy {
                model: ModelPolicy::new("script:test", 1_000),
                system_prompt: String::new(),
                tools: vec![tool.spec.clone()],
                workspace: std::env::temp_dir(),
                limits: Limits::default(),
                stop_hooks: Vec::new(),
                hooks: self.policies,
                permissions: self.permissions,
                pace: Pace::Free,
            },
        };
        let mut deps = HarnessDeps {
            hooks: self.hooks.freeze().unwrap(),
            clock: self.clock,
            ..HarnessDeps::new(
                home,
                Models::new().with("script:test", Arc::new(model)),
                Toolbox::new().with(tool),
            )
        };
        if let Some(programs) = self.programs {
            deps.hook_programs = programs;
        }
        (AgentHarness::new(deps), tape, called, policy)
    }
}

impl Stage {
    async fn goes(&mut self) -> Outcome {
        let cancel = CancellationToken::new();
        timeout(DEADLINE, self.run.run(&cancel)).await.expect("it comes to an end").unwrap()
    }

    async fn resumed(&mut self) -> Outcome {
        self.run.resume("ann", Budget::default(), None).await.unwrap();
        self.goes().await
    }

    async fn log(&self) -> Vec<Arc<Record>> {
        self.home.read(SESSION.into(), Seq::START, 10_000).await.unwrap()
    }

    async fn until<T>(&self, found: impl Fn(&Record) -> Option<T>) -> T {
        let look = async {
            loop {
                if let Some(found) = self.log().await.iter().find_map(|record| found(record)) {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(DEADLINE, look).await.expect("it happens")
    }

    async fn reports(&self) -> Vec<HookReport> {
        let log = self.log().await;
        log.iter()
            .filter_map(|record| match &record.entry {
                Entry::HooksDecided(decided) => Some(decided.reports.clone()),
                _ => None,
            })
            .flatten()
            .collect()
    }

    async fn said(&self) -> Vec<(String, HookDecision)> {
        self.reports().await.into_iter().map(|report| (report.hook, report.decision)).collect()
    }

    fn called(&self) -> u32 {
        self.called.load(Ordering::SeqCst)
    }

    fn asked(&self) -> Vec<Vec<String>> {
        self.tape.lock().unwrap().clone()
    }

    /// Every call has one result, and at a final end there is exactly one.
    async fn is_lawful(&self, outcome: &Outcome) {
        let log = self.log().await;
        let mut open = HashSet::new();
        let mut ends = 0;
        for record in &log {
            match &record.entry {
                Entry::AssistantMessage(message) => {
                    for block in &message.content {
                        if let Block::ToolCall(call) = block {
                            assert!(open.insert(call.id.clone()));
                        }
                    }
                }
                Entry::ToolFinished(finished) => assert!(open.remove(&finished.call), "{finished:?} twice"),
                Entry::Ended(_) => ends += 1,
                _ => assert_eq!(ends, 0, "{record:?} behind the end"),
            }
        }
        assert_eq!(ends, usize::from(outcome.is_final()), "{outcome:?}");
        assert!(open.is_empty() || !outcome.is_final(), "without a result: {open:?}");
    }
}

fn aborted(hook: &str, reason: &str) -> Outcome {
    Outcome::Aborted { hook: hook.into(), reason: reason.into() }
}

fn paused_by(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Paused { why: PauseReason::Hook { hook, .. } } => hook,
        other => panic!("{other:?}"),
    }
}

/// Says `first` the first time, and goes on afterwards.
fn once<E: HookEvent>(first: fn() -> E::Action, then: fn() -> E::Action) -> impl Hook<E> {
    let is_first = Mutex::new(true);
    from_fn::<E>(move |_| if std::mem::take(&mut *is_first.lock().unwrap()) { first() } else { then() })
}

#[tokio::test]
async fn each_event_fires_at_its_moment_with_its_input() {
    let told = Arc::new(Mutex::new(Vec::<String>::new()));
    macro_rules! tell {
        ($bench:expr, $($event:ident => $action:expr, $input:ident: $words:expr;)*) => {{
            let mut bench = $bench;
            $(
                bench = {
                    let told = told.clone();
                    bench.on(stringify!($event), from_fn::<$event>(move |$input| {
                        told.lock().unwrap().push($words);
                        $action
                    }))
                };
            )*
            bench
        }};
    }
    let script = "answers: [{tools: [{act: {n: 1}}, {act: {fail: 2}}]}, {text: 'all is well'}]";
    let bench = tell! { Bench::new(script).asking(),
        OnSessionStart => (), input: format!("start {:?}", input.source);
        OnPromptSubmit => OnPromptSubmitAction::Continue, input: format!("prompt {} {}", input.text, input.turn);
        PreLlmRequest => PreLlmRequestAction::Continue,
            input: format!("request {} {} {}", input.turn, input.items, input.last_input_tokens.is_some());
        PreToolCall => PreToolCallAction::Continue,
            input: format!("before {} {} {}", input.call, input.tool, input.arguments.text());
        OnApproval => OnApprovalAction::Allow,
            input: format!("approval {} {}", input.call, !input.why.is_empty());
        PostToolCall => PostToolCallAction::Continue,
            input: format!("after {} {} {} {}", input.call, input.is_error, input.summary, input.output_bytes);
        OnTurnEnd => OnTurnEndAction::Finish,
            input: format!("turn {} {} {}", input.turn, input.tool_calls, input.preview);
        OnAbort => (), input: format!("abort {:?}", input.outcome);
        OnSessionEnd => (), input: format!("end {:?}", input.outcome);
        PreCompact => PreCompactAction::Continue, input: format!("compact {}", input.turn);
    };
    let mut stage = bench.start().await;
    assert_eq!(stage.goes().await, DONE);
    let mut told = told.lock().unwrap().clone();
    // The two calls go side by side: what is said of one keeps its order, not what is said of both.
    told[3..9].sort_by_key(|line| (line.contains("call_1_2"), 0));
    assert_eq!(
        told,
        [
            "start Startup",
            "prompt the goal 1",
            "request 1 1 false",
            "before call_1_1 act {\"n\":1}",
            "approval call_1_1 true",
            "after call_1_1 false acted 5",
            "before call_1_2 act {\"fail\":2}",
            "approval call_1_2 true",
            "after call_1_2 true it failed 9",
            "request 2 4 true",
            "turn 2 2 all is well",
            "end Completed { verdict: None }",
        ]
    );
    stage.is_lawful(&DONE).await;
}

#[tokio::test]
async fn a_goal_that_a_hook_refuses_is_never_heard() {
    let no = from_fn::<OnPromptSubmit>(|_| OnPromptSubmitAction::Cancel("not that".into()));
    let mut stage = Bench::new(ONE).on("no", no).start().await;
    assert_eq!(stage.goes().await, aborted("no", "not that"));
    assert_eq!((stage.asked().len(), stage.called()), (0, 0));
    stage.is_lawful(&aborted("no", "")).await;
}

#[tokio::test]
async fn words_that_a_hook_refuses_are_never_heard_and_others_are() {
    let picky = from_fn::<OnPromptSubmit>(|input| {
        if input.text.contains("secret") {
            OnPromptSubmitAction::Cancel("no secrets".into())
        } else {
            OnPromptSubmitAction::Continue
        }
    });
    let rests = once::<PreLlmRequest>(|| PreLlmRequestAction::Yield, || PreLlmRequestAction::Continue);
    let mut stage = Bench::new(ONE).on("picky", picky).on("rests", rests).start().await;
    assert_eq!(paused_by(&stage.goes().await), "rests");
    stage.run.say("the secret is 42", "ann").await.unwrap();
    stage.run.say("be quick", "ann").await.unwrap();
    assert_eq!(stage.resumed().await, DONE);
    let asked = stage.asked().concat().join("\n");
    assert!(asked.contains("be quick") && !asked.contains("secret"), "{asked}");
    stage.is_lawful(&DONE).await;
}

#[tokio::test]
async fn a_hook_before_the_model_ends_the_run_before_it_is_asked() {
    let no = from_fn::<PreLlmRequest>(|_| PreLlmRequestAction::Cancel("too dear".into()));
    let mut stage = Bench::new(ONE).on("no", no).start().await;
    assert_eq!(stage.goes().await, aborted("no", "too dear"));
    assert_eq!(stage.asked().len(), 0);
}

#[tokio::test]
async fn a_denied_call_gives_the_model_a_result_that_says_so() {
    let no = from_fn::<PreToolCall>(|input| match input.arguments.text().contains('1') {
        true => PreToolCallAction::Deny("not the first".into()),
        false => PreToolCallAction::Continue,
    });
    let mut stage = Bench::new(TWO).on("no", no).start().await;
    assert_eq!(stage.goes().await, DONE);
    assert_eq!(stage.called(), 1);
    let asked = stage.asked();
    let results = asked[1].iter().filter(|part| part.starts_with("result")).collect::<Vec<_>>();
    assert!(results[0].starts_with("result call_1_1 true ") && results[0].contains("not the first"));
    assert_eq!(results[1], "result call_1_2 false acted");
    stage.is_lawful(&DONE).await;
}

#[tokio::test]
async fn an_abort_ends_the_run_with_a_result_for_each_call() {
    for access in [Access::Reads, Access::Anything] {
        let before = from_fn::<PreToolCall>(|input| match input.arguments.text().contains('2') {
            true => PreToolCallAction::Abort("enough".into()),
            false => PreToolCallAction::Continue,
        });
        let script = TWO.replace("n: 1", "stay: 1");
        let script = if access == Access::Reads { &*script } else { TWO };
        let mut stage = Bench { access, ..Bench::new(script) }.on("no", before).start().await;
        let outcome = stage.goes().await;
        assert_eq!(outcome, aborted("no", "enough"));
        assert!(stage.called() <= 1);
        stage.is_lawful(&outcome).await;
    }
    let after = from_fn::<PostToolCall>(|_| PostToolCallAction::Abort("seen enough".into()));
    let mut stage = Bench::new(ONE).on("after", after).start().await;
    let outcome = stage.goes().await;
    assert_eq!((outcome.clone(), stage.called()), (aborted("after", "seen enough"), 1));
    assert_eq!(stage.asked().len(), 1);
    stage.is_lawful(&outcome).await;
}

#[tokio::test]
async fn a_paused_call_is_made_once_after_the_resumption() {
    let pauses = once::<PreToolCall>(|| PreToolCallAction::Pause, || PreToolCallAction::Continue);
    let mut stage = Bench::new(ONE).on("pauses", pauses).start().await;
    assert_eq!(paused_by(&stage.goes().await), "pauses");
    assert_eq!(stage.called(), 0);
    assert_eq!(stage.resumed().await, DONE);
    assert_eq!((stage.called(), stage.asked().len()), (1, 2));
    stage.is_lawful(&DONE).await;
}

#[tokio::test]
async fn a_paused_call_waits_while_its_neighbour_is_made_once() {
    let first = Mutex::new(true);
    let pauses = from_fn::<PreToolCall>(move |input| {
        let pauses = input.arguments.text().contains('1') && std::mem::take(&mut *first.lock().unwrap());
        if pauses { PreToolCallAction::Pause } else { PreToolCallAction::Continue }
    });
    let mut stage = Bench::new(TWO).on("pauses", pauses).start().await;
    assert_eq!(paused_by(&stage.goes().await), "pauses");
    assert_eq!(stage.resumed().await, DONE);
    assert_eq!(stage.called(), 2);
    stage.is_lawful(&DONE).await;
}

#[tokio::test]
async fn a_yield_before_the_model_rests_and_goes_on() {
    let yields = once::<PreLlmRequest>(|| PreLlmRequestAction::Yield, || PreLlmRequestAction::Continue);
    let mut stage = Bench::new(ONE).on("yields", yields).start().await;
    assert_eq!(paused_by(&stage.goes().await), "yields");
    assert_eq!(stage.asked().len(), 0);
    assert_eq!(stage.resumed().await, DONE);
    assert_eq!((stage.asked().len(), stage.called()), (2, 1));
}

#[tokio::test]
async fn a_pause_at_the_turns_end_rests_and_goes_on() {
    let pauses = once::<OnTurnEnd>(|| OnTurnEndAction::Pause, || OnTurnEndAction::Finish);
    let mut stage = Bench::new(ONE).on("pauses", pauses).start().await;
    assert_eq!(paused_by(&stage.goes().await), "pauses");
    assert_eq!(stage.resumed().await, DONE);
    assert_eq!(stage.called(), 1);
    stage.is_lawful(&DONE).await;
}

#[tokio::test]
async fn a_paused_run_goes_on_in_another_process() {
    let folder = tempfile::tempdir().unwrap();
    let home = || {
        Arc::new(
            LocalHome::new(SqliteStore::open(folder.path().join("log.db")).unwrap(), Arc::new(SystemClock))
                .unwrap(),
        )
    };
    let pauses = || from_fn::<PreToolCall>(|_| PreToolCallAction::Pause);
    let mut first = Bench::new(ONE).on("pauses", pauses()).start_at(home()).await;
    assert_eq!(paused_by(&first.goes().await), "pauses");
    drop(first);
    // It has the same hooks by name, and they have changed their mind.
    let goes = from_fn::<PreToolCall>(|_| PreToolCallAction::Continue);
    let home = home();
    let (harness, tape, called, _) = Bench::new(ONE).on("pauses", goes).harness(home.clone());
    let run = harness.open(RUN).await.unwrap();
    let mut second = Stage { run, home, tape, called };
    assert_eq!(second.resumed().await, DONE);
    assert_eq!(second.called(), 1);
    second.is_lawful(&DONE).await;
}

#[tokio::test]
async fn a_hook_that_the_next_process_lacks_denies_its_calls() {
    let folder = tempfile::tempdir().unwrap();
    let home = || {
        Arc::new(
            LocalHome::new(SqliteStore::open(folder.path().join("log.db")).unwrap(), Arc::new(SystemClock))
                .unwrap(),
        )
    };
    let pauses = from_fn::<PreToolCall>(|_| PreToolCallAction::Pause);
    let mut first = Bench::new(ONE).on("pauses", pauses).start_at(home()).await;
    assert_eq!(paused_by(&first.goes().await), "pauses");
    drop(first);
    let home = home();
    let (harness, tape, called, _) = Bench::new(ONE).harness(home.clone());
    let run = harness.open(RUN).await.unwrap();
    let mut second = Stage { run, home, tape, called };
    assert_eq!(second.resumed().await, DONE);
    assert_eq!(second.called(), 0, "nobody checks it, so it isn't made");
}

#[tokio::test]
async fn a_hook_that_consents_or_refuses_spares_the_person() {
    for (action, called) in [(OnApprovalAction::Allow, 1), (OnApprovalAction::Deny("no".into()), 0)] {
        let consents = from_fn::<OnApproval>(move |_| action.clone());
        let mut stage = Bench::new(ONE).asking().on("consents", consents).start().await;
        assert_eq!(stage.goes().await, DONE);
        assert_eq!(stage.called(), called);
        let log = stage.log().await;
        assert!(!log.iter().any(|record| matches!(record.entry, Entry::ApprovalRequested(_))));
    }
}

#[tokio::test]
async fn an_undecided_hook_leaves_it_to_a_person_whose_first_answer_counts() {
    let undecided = from_fn::<OnApproval>(|_| OnApprovalAction::Undecided);
    let mut stage = Bench::new(ONE).asking().on("undecided", undecided).start().await;
    let cancel = CancellationToken::new();
    let (home, log) = (stage.home.clone(), stage.home.clone());
    let answers = async {
        let asked = loop {
            let log = log.read(SESSION.into(), Seq::START, 1_000).await.unwrap();
            if let Some(asked) = log.iter().find(|record| matches!(record.entry, Entry::ApprovalRequested(_)))
            {
                break asked.seq;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        };
        for answer in [
            ApprovalAnswer::Deny { reason: "ann says no".into() },
            ApprovalAnswer::Allow { scope: ApprovalScope::Once, pattern: None },
        ] {
            let event = SessionEvent::Resolve { asked, answer, by: "ann".into() };
            home.post(SESSION.into(), Event::Session(event), None).await.unwrap();
        }
    };
    let (outcome, ()) =
        timeout(DEADLINE, async { tokio::join!(stage.run.run(&cancel), answers) }).await.unwrap();
    assert_eq!((outcome.unwrap(), stage.called()), (DONE, 0));
    assert!(stage.asked()[1].iter().any(|part| part.contains("ann says no")), "{:?}", stage.asked());
    stage.is_lawful(&DONE).await;
}

// ---- reminders ----------------------------------------------------------------------------------------------------

struct Reminds;

#[async_trait]
impl HookPrograms for Reminds {
    fn wants(&self, _: &HookPolicy, _: &HookQuestion, _: HookMoment) -> bool {
        true
    }

    async fn ask(
        &self,
        hook: &HookPolicy,
        _: &HookQuestion,
        _: HookMoment,
        _: &CancellationToken,
    ) -> HookAnswer {
        HookAnswer {
            decision: HookDecision::Continue,
            reminders: vec![format!("of {}", hook.name)],
            note: None,
        }
    }
}

fn program(name: &str, moment: HookMoment) -> HookPolicy {
    HookPolicy {
        name: name.into(),
        moment,
        matcher: None,
        condition: None,
        program: Some(HookProgram::Shell { command: "true".into() }),
        contract: HookContract::Provost,
        timeout_ms: 2_000,
        on_failure: OnFailure::Continue,
        may_remind: true,
    }
}

#[tokio::test]
async fn reminders_come_once_wrapped_once_and_behind_the_results() {
    let count = AtomicU32::new(0);
    let reminds = from_fn::<PreLlmRequest>(move |input| {
        let n = count.fetch_add(1, Ordering::SeqCst) + 1;
        let body = format!("<system-reminder>typed {n}</system-reminder>");
        input.reminders.expect("it is granted").append_task_reminder(body);
        PreLlmRequestAction::Continue
    });
    let options = HookOptions { may_remind: true, ..HookOptions::new("typed") };
    let mut bench = Bench::new(TWO).with(options, reminds);
    bench.policies = vec![
        program("before", HookMoment::PreToolCall),
        program("after", HookMoment::PostToolCall),
        program("batch", HookMoment::PostToolBatch),
    ];
    bench.programs = Some(Arc::new(Reminds));
    let mut stage = bench.start().await;
    assert_eq!(stage.goes().await, DONE);
    let asked = stage.asked();
    let text = |n: usize| asked[n].join("\n");
    assert_eq!(text(0).matches("typed 1").count(), 1, "{}", text(0));
    for words in ["typed 1", "typed 2", "of batch"] {
        assert_eq!(text(1).matches(words).count(), 1, "{words} in {}", text(1));
    }
    for words in ["of before", "of after"] {
        assert_eq!(text(1).matches(words).count(), 2, "{words} in {}", text(1));
    }
    assert_eq!(text(1).matches("<system-reminder>").count(), 7, "{}", text(1));
    assert_eq!(text(1).matches("</system-reminder>").count(), 7, "{}", text(1));
    let last_result = asked[1].iter().rposition(|part| part.starts_with("result")).unwrap();
    let first = asked[1].iter().position(|part| part.contains("of before")).unwrap();
    assert!(first > last_result, "reminders stand behind the results: {:#?}", asked[1]);
    let last_call = asked[1].iter().rposition(|part| part.starts_with("call ")).unwrap();
    assert!(asked[1][last_call + 1].starts_with("result"), "nothing stands between: {:#?}", asked[1]);
}

#[tokio::test]
async fn without_a_grant_there_is_no_handle() {
    let looks = from_fn::<PreLlmRequest>(|input| {
        assert!(input.reminders.is_none());
        PreLlmRequestAction::Continue
    });
    let mut stage = Bench::new(ONE).on("looks", looks).start().await;
    assert_eq!(stage.goes().await, DONE);
    assert!(stage.said().await.iter().all(|(_, decision)| *decision == HookDecision::Continue));
}

// ---- hooks that misbehave -----------------------------------------------------------------------------------------

/// Never answers, and says when it is asked.
struct Hangs(mpsc::UnboundedSender<()>);

macro_rules! hangs {
    ($($event:ident),*) => {$(
        #[async_trait]
        impl Hook<$event> for Hangs {
            async fn decide(&self, _: <$event as HookEvent>::Input<'_>) -> <$event as HookEvent>::Action {
                self.0.send(()).unwrap();
                std::future::pending().await
            }
        }
    )*};
}

hangs!(
    OnSessionStart,
    OnPromptSubmit,
    PreLlmRequest,
    PreToolCall,
    PostToolCall,
    OnTurnEnd,
    OnSessionEnd,
    OnAbort
);

fn simulated() -> Arc<SimulatedClock> {
    Arc::new(SimulatedClock::at(Timestamp(1_000_000)))
}

#[tokio::test]
async fn hooks_that_never_answer_cost_their_time_and_nothing_more() {
    let clock = simulated();
    let (asked, mut is_asked) = mpsc::unbounded_channel();
    let options = |name: &str| HookOptions {
        timeout: Duration::from_secs(3),
        on_failure: Some(OnFailure::Continue),
        ..HookOptions::new(name)
    };
    let bench = Bench { clock: clock.clone(), ..Bench::new(ONE) }
        .with::<OnSessionStart>(options("start"), Hangs(asked.clone()))
        .with::<OnPromptSubmit>(options("prompt"), Hangs(asked.clone()))
        .with::<PreLlmRequest>(options("request"), Hangs(asked.clone()))
        .with::<PreToolCall>(options("before"), Hangs(asked.clone()))
        .with::<PostToolCall>(options("after"), Hangs(asked.clone()))
        .with::<OnTurnEnd>(options("turn"), Hangs(asked.clone()))
        .with::<OnSessionEnd>(options("end"), Hangs(asked));
    let mut stage = bench.start().await;
    let (began, real) = (clock.now(), Instant::now());
    let time = clock.clone();
    let mut moves = tokio::spawn(async move {
        while is_asked.recv().await.is_some() {
            time.advance_to_next_sleeper().await;
        }
    });
    assert_eq!(stage.goes().await, DONE);
    let hung = stage.said().await;
    assert_eq!(hung.len(), 8, "one for each moment, two requests: {hung:?}");
    assert!(hung.iter().all(|(_, decision)| matches!(decision, HookDecision::Failed(_))), "{hung:?}");
    assert_eq!(clock.now().since_ms(began), 8 * 3_000);
    assert!(real.elapsed() < Duration::from_secs(2));
    assert_eq!(stage.called(), 1);
    stage.is_lawful(&DONE).await;
    drop(stage);
    let _ = timeout(Duration::from_millis(1), &mut moves).await;
    moves.abort();
}

#[tokio::test]
async fn a_hook_that_never_answers_denies_the_call_by_default() {
    let (asked, mut is_asked) = mpsc::unbounded_channel();
    let clock = simulated();
    let mut stage = Bench { clock: clock.clone(), ..Bench::new(ONE) }
        .on::<PreToolCall>("hangs", Hangs(asked))
        .start()
        .await;
    let moves = async {
        is_asked.recv().await.unwrap();
        clock.advance_to_next_sleeper().await
    };
    let cancel = CancellationToken::new();
    let (outcome, at) =
        timeout(DEADLINE, async { tokio::join!(stage.run.run(&cancel), moves) }).await.unwrap();
    assert_eq!((outcome.unwrap(), stage.called()), (DONE, 0));
    assert_eq!(at.since_ms(Timestamp(1_000_000)), 5_000);
    assert!(
        stage.asked()[1].iter().any(|part| part.starts_with("result call_1_1 true")),
        "{:?}",
        stage.asked()
    );
}

#[tokio::test]
async fn a_hook_that_blocks_its_thread_holds_the_run_for_its_time_only() {
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = Mutex::new(released);
    let stuck = blocking::<PreToolCall>(move |_| {
        let _ = released.lock().unwrap().recv();
        PreToolCallAction::Continue
    });
    let options = HookOptions { timeout: Duration::from_millis(80), ..HookOptions::new("stuck") };
    let mut stage = Bench::new(ONE).with(options, stuck).start().await;
    let began = Instant::now();
    assert_eq!(stage.goes().await, DONE);
    assert!(began.elapsed() < Duration::from_millis(800), "{:?}", began.elapsed());
    assert_eq!(stage.called(), 0);
    drop(release);
}

#[tokio::test]
async fn a_panic_is_in_the_log_and_fails_closed_before_tools_only() {
    let bench = Bench::new(ONE)
        .on("start", from_fn::<OnSessionStart>(|_| panic!("boom")))
        .on("prompt", from_fn::<OnPromptSubmit>(|_| panic!("boom")))
        .on("request", from_fn::<PreLlmRequest>(|_| panic!("boom")))
        .on("before", from_fn::<PreToolCall>(|_| panic!("boom")))
        .on("turn", from_fn::<OnTurnEnd>(|_| panic!("boom")))
        .on("end", from_fn::<OnSessionEnd>(|_| panic!("boom")));
    let mut stage = bench.start().await;
    assert_eq!(stage.goes().await, DONE);
    assert_eq!(stage.called(), 0);
    let said = stage.said().await;
    assert_eq!(said.len(), 7, "{said:?}");
    assert!(said.iter().all(|(_, decision)| matches!(decision, HookDecision::Failed(_))), "{said:?}");
    stage.is_lawful(&DONE).await;
}

#[tokio::test]
async fn behind_the_third_of_ten_that_says_no_nobody_is_called() {
    let called = Arc::new(Mutex::new(Vec::new()));
    let mut bench = Bench::new(ONE);
    for n in 1..=10 {
        let called = called.clone();
        bench = bench.on(
            &format!("hook-{n}"),
            from_fn::<PreToolCall>(move |_| {
                called.lock().unwrap().push(n);
                if n == 3 { PreToolCallAction::Deny("three".into()) } else { PreToolCallAction::Continue }
            }),
        );
    }
    let mut stage = bench.start().await;
    assert_eq!(stage.goes().await, DONE);
    assert_eq!(*called.lock().unwrap(), [1, 2, 3]);
    assert_eq!(stage.called(), 0);
    assert_eq!(stage.said().await.len(), 3);
}

// ---- cancel at each moment ----------------------------------------------------------------------------------------

/// Cancelled (or paused) while the hook of one event hangs.
async fn stopped_amid<E: HookEvent>(pause: Option<()>)
where
    Hangs: Hook<E>,
{
    let (asked, mut is_asked) = mpsc::unbounded_channel();
    let mut stage = Bench::new(ONE).on::<E>("hangs", Hangs(asked)).start().await;
    let (home, cancel) = (stage.home.clone(), CancellationToken::new());
    let stop = async {
        is_asked.recv().await.unwrap();
        let event = match pause {
            Some(()) => provost_engine::RunEvent::Pause { by: "ann".into() },
            None => provost_engine::RunEvent::Cancel { by: "ann".into() },
        };
        home.post(RUN.into(), Event::Run(event), None).await.unwrap();
    };
    let began = Instant::now();
    let both = async { tokio::join!(stage.run.run(&cancel), stop) };
    let (outcome, ()) = timeout(DEADLINE, both).await.unwrap_or_else(|_| panic!("{:?} holds it", E::MOMENT));
    let outcome = outcome.unwrap();
    let expected = match pause {
        Some(()) => Outcome::Paused { why: PauseReason::Asked { by: "ann".into() } },
        None => Outcome::Cancelled { by: "ann".into() },
    };
    assert_eq!(outcome, expected, "{:?}", E::MOMENT);
    assert!(began.elapsed() < Duration::from_secs(1), "{:?} holds it for {:?}", E::MOMENT, began.elapsed());
    stage.is_lawful(&outcome).await;
}

#[tokio::test]
async fn a_cancel_wins_over_every_hook_that_hangs() {
    stopped_amid::<OnSessionStart>(None).await;
    stopped_amid::<OnPromptSubmit>(None).await;
    stopped_amid::<PreLlmRequest>(None).await;
    stopped_amid::<PreToolCall>(None).await;
    stopped_amid::<PostToolCall>(None).await;
    stopped_amid::<OnTurnEnd>(None).await;
}

#[tokio::test]
async fn a_pause_wins_over_every_hook_that_hangs() {
    stopped_amid::<OnSessionStart>(Some(())).await;
    stopped_amid::<OnPromptSubmit>(Some(())).await;
    stopped_amid::<PreLlmRequest>(Some(())).await;
    stopped_amid::<PreToolCall>(Some(())).await;
    stopped_amid::<PostToolCall>(Some(())).await;
    stopped_amid::<OnTurnEnd>(Some(())).await;
}

#[tokio::test]
async fn a_cancel_while_somebody_is_asked_withdraws_the_question() {
    let mut stage = Bench::new(TWO).asking().start().await;
    let (home, cancel) = (stage.home.clone(), CancellationToken::new());
    let stop = async {
        loop {
            let log = home.read(SESSION.into(), Seq::START, 1_000).await.unwrap();
            let asked =
                log.iter().filter(|record| matches!(record.entry, Entry::ApprovalRequested(_))).count();
            if asked == 2 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let event = provost_engine::RunEvent::Cancel { by: "ann".into() };
        home.post(RUN.into(), Event::Run(event), None).await.unwrap();
    };
    let (outcome, ()) =
        timeout(DEADLINE, async { tokio::join!(stage.run.run(&cancel), stop) }).await.unwrap();
    let outcome = outcome.unwrap();
    assert_eq!(outcome, Outcome::Cancelled { by: "ann".into() });
    assert_eq!(stage.called(), 0);
    stage.is_lawful(&outcome).await;
    let resolved = |record: &Record| matches!(record.entry, Entry::ApprovalResolved(_)).then_some(());
    stage.until(resolved).await;
}

/// The run is cancelled, and then once more while a hook at its end hangs.
#[tokio::test]
#[ignore = "a hook at the end holds a cancelled run for its whole time, whoever cancels it again"]
async fn a_second_cancel_does_not_wait_for_the_last_hooks() {
    let (asked, mut is_asked) = mpsc::unbounded_channel();
    let options = HookOptions { timeout: Duration::from_secs(3_600), ..HookOptions::new("farewell") };
    let script = "answers: [{tools: [{act: {stay: 1}}]}, {text: 'all is well'}]";
    let mut stage = Bench::new(script).with::<OnAbort>(options, Hangs(asked)).start().await;
    stage.until(|record| matches!(record.entry, Entry::ToolStarted(_)).then_some(())).await;
    let cancel = || provost_engine::RunEvent::Cancel { by: "ann".into() };
    stage.home.post(RUN.into(), Event::Run(cancel()), None).await.unwrap();
    is_asked.recv().await.unwrap();
    stage.home.post(RUN.into(), Event::Run(cancel()), None).await.unwrap();
    let token = CancellationToken::new();
    let outcome = timeout(Duration::from_secs(1), stage.run.run(&token)).await.expect("it ends").unwrap();
    assert_eq!(outcome, Outcome::Cancelled { by: "ann".into() });
    stage.is_lawful(&outcome).await;
}

#[tokio::test]
async fn a_hook_at_the_end_that_hangs_holds_it_for_its_time_only() {
    let (asked, mut is_asked) = mpsc::unbounded_channel();
    let clock = simulated();
    let mut stage = Bench { clock: clock.clone(), ..Bench::new(ONE) }
        .on("no", from_fn::<PreToolCall>(|_| PreToolCallAction::Abort("enough".into())))
        .on::<OnAbort>("farewell", Hangs(asked))
        .start()
        .await;
    let moves = async {
        is_asked.recv().await.unwrap();
        clock.advance_to_next_sleeper().await
    };
    let cancel = CancellationToken::new();
    let both = async { tokio::join!(stage.run.run(&cancel), moves) };
    let (outcome, at) = timeout(DEADLINE, both).await.unwrap();
    assert_eq!((outcome.unwrap(), at), (aborted("no", "enough"), Timestamp(1_005_000)));
}
