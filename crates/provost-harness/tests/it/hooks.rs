//! Typed hooks, called through the registry, with a simulated clock.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use async_trait::async_trait;
use provost_engine::{CallDetails, HookCall, HookCallDetails};
use provost_event::{
    Elapsed, Entry, HookDecision, HookPoint, HookReport, HookTrigger, Json, ModelPolicy, OnFailure, Outcome,
    Record, RunId, Seq, SessionId, SessionSource, Timestamp, ToolEntry, ToolFinished, ToolIdentity,
    ToolStatus,
};
use provost_harness::hooks::*;
use provost_harness::{Clock, HookAgent, HookQuestion, HookQuestionTrigger, SimulatedClock};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

const SESSION: SessionId = SessionId::root(RunId::from_entropy(5));
/// The deadline of every wait.
const DEADLINE: Duration = Duration::from_secs(10);

fn question(about: HookTrigger, details: HookCallDetails) -> Arc<HookQuestion> {
    let hook_call = HookCall {
        session: SESSION,
        turn: 3,
        about,
        details,
        limit_ms: None,
        shell: None,
        spent: Vec::new(),
    };
    Arc::new(HookQuestion {
        trigger: HookQuestionTrigger::HookCall(hook_call),
        workspace: std::path::Path::new("/somewhere").into(),
        folder: std::path::Path::new("/somewhere").into(),
        model: ModelPolicy::new("script:test", 1_000),
        agent: HookAgent::default(),
        transcript_path: None,
        root_transcript_path: None,
        voice: None,
        env_file: None,
        records: Vec::new(),
        confinement: provost_process::Confinement::Strongest,
    })
}

fn call() -> CallDetails {
    let input = Json::parse(r#"{"command":"ls"}"#.to_owned()).expect("JSON");
    CallDetails {
        call: "c1".into(),
        tool: Box::new(ToolIdentity::unknown("shell")),
        input,
        memory: None,
        why: "a rule says so".into(),
        wanted: None,
    }
}

fn before_a_call() -> Arc<HookQuestion> {
    question(HookTrigger::call("c1".into()), HookCallDetails::Call(call()))
}

fn before_a_request() -> Arc<HookQuestion> {
    let details = HookCallDetails::Request { items: 7, input_tokens: Some(900), tool_calls: 2 };
    question(HookTrigger::Request { call: 4 }, details)
}

fn result_at(finished: Seq) -> (HookTrigger, HookCallDetails) {
    let about = HookTrigger::Result { call: "c1".into(), is_error: true };
    (about, HookCallDetails::Result { call: call(), finished })
}

fn finished(seq: Seq, output: String) -> Arc<Record> {
    let entry = Entry::Tool(ToolEntry::Finished(ToolFinished {
        plan: None,
        facts: provost_event::CallFacts::default(),
        call: "c1".into(),
        tool: "shell".into(),
        status: ToolStatus::Error,
        output,
        images: Vec::new(),
        whole: None,
        duration_ms: 12,
        memory: None,
    }));
    Arc::new(Record { actor: SESSION.into(), seq, at: Timestamp(1), elapsed: Elapsed::default(), entry })
}

fn clock() -> SimulatedClock {
    SimulatedClock::at(Timestamp(1_000))
}

/// Calls the hooks, with a clock that stands still.
async fn ask(builder: HookRegistryBuilder, question: &Arc<HookQuestion>) -> Vec<HookReport> {
    let registry = builder.freeze().expect("a registry");
    let asked = async { registry.ask(question, &clock(), &CancellationToken::new()).await };
    timeout(DEADLINE, asked).await.expect("an answer")
}

fn said(reports: &[HookReport]) -> Vec<(&str, HookDecision)> {
    reports.iter().map(|report| (&*report.hook, report.decision.clone())).collect()
}

fn broken(why: &str) -> HookDecision {
    HookDecision::Broken(why.to_owned())
}

fn failed(why: &str) -> HookDecision {
    HookDecision::Failed(why.to_owned())
}

/// Registers a hook that returns `action`; its decision.
async fn word_of<E: HookEvent>(question: &Arc<HookQuestion>, action: E::Action) -> HookDecision
where
    E::Action: Clone + Sync,
{
    let builder = HookRegistry::builder().on(HookOptions::new("h"), from_fn::<E>(move |_| action.clone()));
    let report = ask(builder, question).await.remove(0);
    assert_eq!((&*report.hook, report.point), ("h", E::POINT));
    report.decision
}

#[tokio::test]
async fn each_action_becomes_its_word_in_the_log() {
    use HookDecision as D;
    let why = || "why".to_owned();

    let prompt = question(HookTrigger::Prompt { text: "hi".into(), by: "ann".into() }, HookCallDetails::None);
    assert_eq!(word_of::<OnPromptSubmit>(&prompt, OnPromptSubmitAction::Continue).await, D::Continue);
    assert_eq!(word_of::<OnPromptSubmit>(&prompt, OnPromptSubmitAction::Cancel(why())).await, D::Deny(why()));

    let request = before_a_request();
    assert_eq!(word_of::<PreLlmRequest>(&request, PreLlmRequestAction::Continue).await, D::Continue);
    assert_eq!(word_of::<PreLlmRequest>(&request, PreLlmRequestAction::Cancel(why())).await, D::Abort(why()));
    assert_eq!(word_of::<PreLlmRequest>(&request, PreLlmRequestAction::Yield).await, D::Pause(String::new()));

    let call = before_a_call();
    assert_eq!(word_of::<PreToolCall>(&call, PreToolCallAction::Continue).await, D::Continue);
    assert_eq!(word_of::<PreToolCall>(&call, PreToolCallAction::Deny(why())).await, D::Deny(why()));
    assert_eq!(word_of::<PreToolCall>(&call, PreToolCallAction::Abort(why())).await, D::Abort(why()));
    assert_eq!(word_of::<PreToolCall>(&call, PreToolCallAction::Pause).await, D::Pause(String::new()));

    let end = HookCallDetails::Text { tool_calls: 1, last_text: "done".into() };
    let end = question(HookTrigger::TurnEnd { turn: 3 }, end);
    assert_eq!(word_of::<OnTurnEnd>(&end, OnTurnEndAction::Finish).await, D::Continue);
    assert_eq!(word_of::<OnTurnEnd>(&end, OnTurnEndAction::Pause).await, D::Pause(String::new()));

    let compact = question(HookTrigger::Compaction, HookCallDetails::None);
    assert_eq!(word_of::<PreCompact>(&compact, PreCompactAction::Continue).await, D::Continue);
    assert_eq!(word_of::<PreCompact>(&compact, PreCompactAction::Refuse(why())).await, D::Deny(why()));

    let consent = question(HookTrigger::approval("c1".into()), HookCallDetails::Call(self::call()));
    assert_eq!(word_of::<OnApproval>(&consent, OnApprovalAction::Undecided).await, D::Continue);
    assert_eq!(word_of::<OnApproval>(&consent, OnApprovalAction::Allow).await, D::Allow);
    assert_eq!(word_of::<OnApproval>(&consent, OnApprovalAction::Deny(why())).await, D::Deny(why()));

    let (about, details) = result_at(Seq(8));
    let mut result = question(about, details);
    Arc::make_mut(&mut result).records.push(finished(Seq(8), String::new()));
    assert_eq!(word_of::<PostToolCall>(&result, PostToolCallAction::Continue).await, D::Continue);
    assert_eq!(word_of::<PostToolCall>(&result, PostToolCallAction::Abort(why())).await, D::Abort(why()));

    let start = question(HookTrigger::Session { source: SessionSource::Resume }, HookCallDetails::None);
    assert_eq!(word_of::<OnSessionStart>(&start, ()).await, D::Continue);
    let outcome = Outcome::Cancelled { by: "ann".into() };
    let closing = question(HookTrigger::Closing { outcome }, HookCallDetails::None);
    assert_eq!(word_of::<OnAbort>(&closing, ()).await, D::Continue);
    assert_eq!(word_of::<OnSessionEnd>(&closing, ()).await, D::Continue);
}

/// Checks the input of hooks of `E` for `question`.
async fn told<E: HookEvent<Action = ()>>(
    question: &Arc<HookQuestion>,
    check: impl for<'a> Fn(E::Input<'a>) + Send + Sync + 'static,
) {
    let builder = HookRegistry::builder().on(HookOptions::new("h"), from_fn::<E>(check));
    assert_eq!(said(&ask(builder, question).await), [("h", HookDecision::Continue)]);
}

#[tokio::test]
async fn hooks_that_are_only_told_are_told_how_it_begins_and_ends() {
    let start = question(HookTrigger::Session { source: SessionSource::Resume }, HookCallDetails::None);
    told::<OnSessionStart>(&start, |input| {
        assert_eq!((input.session, input.source), (SESSION, SessionSource::Resume));
    })
    .await;
    let outcome = Outcome::Cancelled { by: "ann".into() };
    let closing = question(HookTrigger::Closing { outcome: outcome.clone() }, HookCallDetails::None);
    let same = outcome.clone();
    told::<OnAbort>(&closing, move |input| assert_eq!(input.outcome, &same)).await;
    told::<OnSessionEnd>(&closing, move |input| assert_eq!(input.outcome, &outcome)).await;
}

#[tokio::test]
async fn hooks_that_decide_are_told_what_about() {
    let consent = question(HookTrigger::approval("c1".into()), HookCallDetails::Call(call()));
    let prompt = question(HookTrigger::Prompt { text: "hi".into(), by: "ann".into() }, HookCallDetails::None);
    let builder = || {
        HookRegistry::builder()
            .on(
                HookOptions::new("call"),
                from_fn::<PreToolCall>(|input| {
                    assert_eq!((input.call.to_string().as_str(), input.tool), ("c1", "shell"));
                    PreToolCallAction::Deny(input.arguments.text().to_owned())
                }),
            )
            .on(
                HookOptions::new("consent"),
                from_fn::<OnApproval>(|input| {
                    OnApprovalAction::Deny(format!("{}: {}", input.tool, input.why))
                }),
            )
            .on(
                HookOptions::new("request"),
                from_fn::<PreLlmRequest>(|input| {
                    assert!(input.reminders.is_none(), "it was not granted");
                    let told = (input.items, input.last_input_tokens, input.turn, input.tool_calls);
                    PreLlmRequestAction::Cancel(format!("{told:?}"))
                }),
            )
            .on(
                HookOptions::new("prompt"),
                from_fn::<OnPromptSubmit>(|input| {
                    OnPromptSubmitAction::Cancel(format!("{} of {}, {}", input.text, input.by, input.turn))
                }),
            )
    };
    for (question, reason) in [
        (before_a_call(), HookDecision::Deny(r#"{"command":"ls"}"#.into())),
        (consent, HookDecision::Deny("shell: a rule says so".into())),
        (before_a_request(), HookDecision::Abort("(7, Some(900), 3, 2)".into())),
        (prompt, HookDecision::Deny("hi of ann, 3".into())),
    ] {
        assert_eq!(ask(builder(), &question).await[0].decision, reason);
    }
}

#[tokio::test]
async fn outputs_and_final_summary_are_shown_in_part_and_cut_between_characters() {
    let (about, details) = result_at(Seq(8));
    let mut result = question(about, details);
    Arc::make_mut(&mut result).records = vec![
        finished(Seq(7), "another".into()),
        finished(Seq(8), format!("a{}", "é".repeat(SUMMARY_BYTES_MAX))),
    ];
    let builder = HookRegistry::builder().on(
        HookOptions::new("result"),
        from_fn::<PostToolCall>(|input| {
            assert_eq!((input.tool, input.is_error, input.duration_ms), ("shell", true, 12));
            assert_eq!(input.output, format!("a{}", "é".repeat(SUMMARY_BYTES_MAX)), "all of it");
            PostToolCallAction::Abort(input.summary.to_owned())
        }),
    );
    let cut = |max: usize| format!("a{}", "é".repeat((max - 1) / 2));
    assert_eq!(ask(builder, &result).await[0].decision, HookDecision::Abort(cut(SUMMARY_BYTES_MAX)));

    let last_text = format!("a{}", "é".repeat(PREVIEW_BYTES_MAX));
    let end = HookCallDetails::Text { tool_calls: 6, last_text };
    let end = question(HookTrigger::TurnEnd { turn: 3 }, end);
    let builder = HookRegistry::builder().on(
        HookOptions::new("end"),
        from_fn::<OnTurnEnd>(move |input| {
            assert_eq!((input.turn, input.tool_calls, input.preview), (3, 6, &*cut(PREVIEW_BYTES_MAX)));
            OnTurnEndAction::Pause
        }),
    );
    assert_eq!(ask(builder, &end).await[0].decision, HookDecision::Pause(String::new()));
}

#[tokio::test]
async fn a_result_that_cannot_be_read_is_no_answer() {
    let (about, details) = result_at(Seq(8));
    let builder = HookRegistry::builder()
        .on(HookOptions::new("h"), from_fn::<PostToolCall>(|_| PostToolCallAction::Abort("no".into())));
    let reports = ask(builder, &question(about, details)).await;
    assert_eq!(reports[0].decision, failed("what it is asked about isn't there"));
}

fn says(action: PreToolCallAction) -> impl Hook<PreToolCall> {
    from_fn::<PreToolCall>(move |_| action.clone())
}

fn named(owner: &str) -> HookOptions {
    HookOptions::new(owner)
}

fn open(owner: &str) -> HookOptions {
    HookOptions { on_failure: Some(OnFailure::Continue), ..named(owner) }
}

#[tokio::test]
async fn the_first_who_decides_wins_and_the_rest_are_not_called() {
    let no = || PreToolCallAction::Deny("no".into());
    for (action, word) in [
        (no(), HookDecision::Deny("no".into())),
        (PreToolCallAction::Pause, HookDecision::Pause(String::new())),
        (PreToolCallAction::Abort("off".into()), HookDecision::Abort("off".into())),
    ] {
        let builder = HookRegistry::builder()
            .on(named("first"), says(PreToolCallAction::Continue))
            .on(named("elsewhere"), from_fn::<OnTurnEnd>(|_| panic!("another event")))
            .on(named("second"), says(action))
            .on(named("third"), says(no()));
        let reports = ask(builder, &before_a_call()).await;
        assert_eq!(said(&reports), [("first", HookDecision::Continue), ("second", word)]);
    }
}

#[tokio::test]
async fn a_panic_is_reported_and_stops_where_silence_means_no() {
    let falls = || from_fn::<PreToolCall>(|_| panic!("it falls over"));
    let builder = HookRegistry::builder()
        .on(open("open"), falls())
        .on(named("closed"), falls())
        .on(named("late"), says(PreToolCallAction::Continue));
    let reports = ask(builder, &before_a_call()).await;
    assert_eq!(said(&reports), [("open", broken("it panicked")), ("closed", broken("it panicked"))]);
}

#[tokio::test]
async fn a_panic_on_a_thread_of_its_own_is_reported_too() {
    let builder =
        HookRegistry::builder().on(named("h"), blocking::<PreToolCall>(|_| panic!("it falls over")));
    assert_eq!(said(&ask(builder, &before_a_call()).await), [("h", broken("it panicked"))]);
}

/// Never answers; counts how often it was dropped.
struct Never(Arc<AtomicUsize>);

#[async_trait]
impl Hook<PreToolCall> for Never {
    async fn decide(&self, _: PreToolCallInput<'_>) -> PreToolCallAction {
        struct LetGo(Arc<AtomicUsize>);
        impl Drop for LetGo {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        let _let_go = LetGo(self.0.clone());
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_hook_that_never_answers_is_let_go_when_its_time_is_over() {
    let let_go = Arc::new(AtomicUsize::new(0));
    let short = HookOptions { timeout: Duration::from_millis(1_500), ..open("short") };
    let registry = HookRegistry::builder()
        .on(short, Never(let_go.clone()))
        .on(named("usual"), Never(let_go.clone()))
        .freeze()
        .expect("a registry");
    let (clock, question, cancel) = (clock(), before_a_call(), CancellationToken::new());
    let moved = async {
        let first = clock.advance_to_next_sleeper().await;
        // The second waits only after the first was dropped.
        while let_go.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        (first, clock.advance_to_next_sleeper().await)
    };
    let both = async { tokio::join!(registry.ask(&question, &clock, &cancel), moved) };
    let (reports, wakes) = timeout(DEADLINE, both).await.expect("an answer");
    assert_eq!(wakes, (Timestamp(2_500), Timestamp(7_500)));
    assert_eq!(
        said(&reports),
        [("short", HookDecision::TimedOut(1_500)), ("usual", HookDecision::TimedOut(5_000))]
    );
    assert_eq!(let_go.load(Ordering::SeqCst), 2);
}

/// Answers after some time.
struct Slow(Arc<SimulatedClock>, Duration);

#[async_trait]
impl Hook<PreToolCall> for Slow {
    async fn decide(&self, _: PreToolCallInput<'_>) -> PreToolCallAction {
        self.0.sleep(self.1).await;
        PreToolCallAction::Deny("after all".into())
    }
}

#[tokio::test]
async fn a_slow_hook_is_heard_within_its_time() {
    let clock = Arc::new(clock());
    let registry = HookRegistry::builder()
        .on(named("slow"), Slow(clock.clone(), Duration::from_secs(4)))
        .freeze()
        .expect("a registry");
    let (question, cancel) = (before_a_call(), CancellationToken::new());
    let both =
        async { tokio::join!(registry.ask(&question, &*clock, &cancel), clock.advance_to_next_sleeper()) };
    let (reports, woken) = timeout(DEADLINE, both).await.expect("an answer");
    assert_eq!(woken, Timestamp(5_000));
    assert_eq!(said(&reports), [("slow", HookDecision::Deny("after all".into()))]);
}

#[tokio::test]
async fn a_hook_that_blocks_its_thread_delays_nothing_beyond_its_timeout() {
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let registry = HookRegistry::builder()
        .on(
            open("stuck"),
            blocking::<PreToolCall>(move |call| {
                assert_eq!(call.tool, "shell");
                let _ = released.lock().expect("alone").recv();
                PreToolCallAction::Continue
            }),
        )
        .on(named("next"), blocking::<PreToolCall>(|_| PreToolCallAction::Pause))
        .freeze()
        .expect("a registry");
    let (clock, question, cancel) = (clock(), before_a_call(), CancellationToken::new());
    // All of this runs on one thread, which is free while the hook blocks.
    let both =
        async { tokio::join!(registry.ask(&question, &clock, &cancel), clock.advance_to_next_sleeper()) };
    let (reports, _) = timeout(DEADLINE, both).await.expect("an answer");
    assert_eq!(
        said(&reports),
        [("stuck", HookDecision::TimedOut(5_000)), ("next", HookDecision::Pause(String::new()))]
    );
    release.send(()).expect("it is still there");
}

/// A clock whose waits panic.
struct NoTimers;

#[async_trait]
impl Clock for NoTimers {
    fn now(&self) -> Timestamp {
        Timestamp(0)
    }

    fn monotonic(&self) -> Elapsed {
        Elapsed(0)
    }

    async fn sleep_until(&self, _: Elapsed) {
        panic!("a timer was set");
    }
}

#[tokio::test]
async fn a_hook_that_answers_at_once_costs_no_timer() {
    let registry = HookRegistry::builder()
        .on(HookOptions { timeout: Duration::ZERO, ..named("h") }, says(PreToolCallAction::Continue))
        .freeze()
        .expect("a registry");
    let reports = registry.ask(&before_a_call(), &NoTimers, &CancellationToken::new()).await;
    assert_eq!(said(&reports), [("h", HookDecision::Continue)]);
}

#[tokio::test]
async fn a_cancelled_question_ends_at_once_and_is_not_an_approval() {
    let let_go = Arc::new(AtomicUsize::new(0));
    let registry = HookRegistry::builder()
        .on(open("asked"), Never(let_go.clone()))
        .on(open("open"), says(PreToolCallAction::Continue))
        .on(named("closed"), says(PreToolCallAction::Continue))
        .on(named("last"), says(PreToolCallAction::Continue))
        .freeze()
        .expect("a registry");
    let (clock, question, cancel) = (clock(), before_a_call(), CancellationToken::new());
    let both = async {
        tokio::join!(registry.ask(&question, &clock, &cancel), async {
            tokio::task::yield_now().await;
            cancel.cancel();
        })
    };
    let (reports, ()) = timeout(DEADLINE, both).await.expect("an answer");
    let cancelled = || failed("cancelled");
    assert_eq!(said(&reports), [("asked", cancelled()), ("open", cancelled()), ("closed", cancelled())]);
    assert_eq!(let_go.load(Ordering::SeqCst), 1);
}

fn reminding(bodies: impl Fn() -> Vec<String> + Send + Sync + 'static) -> impl Hook<PreLlmRequest> {
    from_fn::<PreLlmRequest>(move |input| {
        let handle = input.reminders.expect("it was granted");
        bodies().into_iter().for_each(|body| handle.append_task_reminder(body));
        PreLlmRequestAction::Continue
    })
}

#[tokio::test]
async fn a_granted_hook_has_the_model_reminded() {
    let may = HookOptions { may_remind: true, ..named("h") };
    let hook = reminding(|| vec!["mind the gap".into(), " \n".into(), String::new(), "and the step".into()]);
    let reports = ask(HookRegistry::builder().on(may, hook), &before_a_request()).await;
    assert_eq!(reports[0].reminders, ["mind the gap", "and the step"]);
    assert_eq!(reports[0].note, None);
}

#[tokio::test]
async fn reminders_are_bounded_in_number_and_length() {
    let may = HookOptions { may_remind: true, ..named("h") };
    let hook = reminding(|| vec!["é".repeat(WORDS_BYTES_MAX); REMINDERS_MAX + 3]);
    let reports = ask(HookRegistry::builder().on(may, hook), &before_a_request()).await;
    assert_eq!(reports[0].reminders.len(), REMINDERS_MAX);
    for body in &reports[0].reminders {
        assert!(body.len() <= WORDS_BYTES_MAX && body.len() > WORDS_BYTES_MAX - 8, "{}", body.len());
        assert!(body.ends_with("é […]"));
    }
    assert_eq!(reports[0].note.as_deref(), Some("reminders beyond the first 16 were dropped: 3"));
}

#[tokio::test]
async fn a_hook_without_an_answer_reminds_of_nothing() {
    let may = HookOptions { may_remind: true, ..named("h") };
    let hook = from_fn::<PreLlmRequest>(|input| {
        input.reminders.expect("it was granted").append_task_reminder("mind the gap");
        panic!("it falls over")
    });
    let reports = ask(HookRegistry::builder().on(may, hook), &before_a_request()).await;
    assert_eq!((&reports[0].decision, &*reports[0].reminders), (&broken("it panicked"), &[][..]));
}

#[tokio::test]
async fn reasons_are_cut_at_their_limit() {
    for (bytes, is_cut) in [(WORDS_BYTES_MAX, false), (WORDS_BYTES_MAX + 1, true)] {
        let builder =
            HookRegistry::builder().on(named("h"), says(PreToolCallAction::Deny("a".repeat(bytes))));
        let reports = ask(builder, &before_a_call()).await;
        let HookDecision::Deny(reason) = &reports[0].decision else { panic!("{reports:?}") };
        assert_eq!((reason.len(), reason.ends_with(" […]")), (WORDS_BYTES_MAX, is_cut));
    }
}

#[test]
fn a_registry_says_what_policies_need_to_know() {
    let registry = HookRegistry::builder()
        .on(named("usual"), says(PreToolCallAction::Continue))
        .on(
            HookOptions { timeout: Duration::from_micros(1_500), may_remind: true, ..named("own") },
            reminding(Vec::new),
        )
        .on(open("open"), says(PreToolCallAction::Continue))
        .freeze()
        .expect("a registry");
    let policies = registry.policies();
    let shown = policies.iter().map(|p| (&*p.name, p.point, p.timeout_ms, p.on_failure, p.may_remind));
    assert_eq!(
        shown.collect::<Vec<_>>(),
        [
            ("usual", HookPoint::PreToolCall, 5_000, OnFailure::Deny, false),
            ("own", HookPoint::PreLlmRequest, 1, OnFailure::Continue, true),
            ("open", HookPoint::PreToolCall, 5_000, OnFailure::Continue, false),
        ]
    );
    assert!(policies.iter().all(|policy| policy.program.is_none()));
}

#[test]
fn two_hooks_of_one_name_are_refused_and_so_is_one_without() {
    let doubled = HookRegistry::builder()
        .on(named("guard"), says(PreToolCallAction::Continue))
        .on(named("guard"), reminding(Vec::new));
    assert_eq!(doubled.freeze().expect_err("doubled").to_string(), "two hooks are called `guard`");
    let nameless = HookRegistry::builder().on(named(""), says(PreToolCallAction::Continue));
    assert_eq!(nameless.freeze().expect_err("unnamed").to_string(), "a hook at `pre_tool_call` has no name");
}
