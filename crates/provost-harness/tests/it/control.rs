//! Control over whole runs: real backend, real loop, scripted answers; what each typed hook can do, and what none
//! can.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use provost_backend::EmbeddedBackend;
use provost_engine::{Event, SessionEvent};
use provost_event::{Access, ApprovalAnswer, ApprovalScope, Entry, GateEntry, Seq};
use provost_harness::hooks::*;
use provost_harness::{Log as _, SystemClock};
use provost_sqlite::SqliteStore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::control_stage::*;

/// Returns `first` the first time, and continues afterwards.
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
            input: format!("request {} {} {} {}", input.turn, input.items, input.last_input_tokens.is_some(), input.tool_calls);
        PreToolCall => PreToolCallAction::Continue,
            input: format!("before {} {} {}", input.call, input.tool, input.arguments.text());
        OnApproval => OnApprovalAction::Allow,
            input: format!("approval {} {}", input.call, !input.why.is_empty());
        PostToolCall => PostToolCallAction::Continue,
            input: format!("after {} {} {} {}", input.call, input.is_error, input.summary, input.output);
        OnTurnEnd => OnTurnEndAction::Finish,
            input: format!("turn {} {} {}", input.turn, input.tool_calls, input.preview);
        OnAbort => (), input: format!("abort {:?}", input.outcome);
        OnSessionEnd => (), input: format!("end {:?}", input.outcome);
        PreCompact => PreCompactAction::Continue, input: format!("compact {}", input.turn);
    };
    let mut stage = bench.start().await;
    assert_eq!(stage.goes().await, DONE);
    let mut told = told.lock().unwrap().clone();
    // The two calls run in parallel: only the events of each call have a fixed order.
    told[3..9].sort_by_key(|line| (line.contains("call_1_2"), 0));
    assert_eq!(
        told,
        [
            "start Startup",
            "prompt the goal 1",
            "request 1 1 false 0",
            "before call_1_1 act {\"n\":1}",
            "approval call_1_1 true",
            "after call_1_1 false acted acted",
            "before call_1_2 act {\"fail\":2}",
            "approval call_1_2 true",
            "after call_1_2 true it failed it failed",
            "request 2 4 true 2",
            "turn 2 2 all is well",
            "end Completed { verdict: None, verification: None }",
        ]
    );
    stage.is_lawful(&DONE).await;
}

#[tokio::test]
async fn calls_are_counted_from_where_the_agent_stopped_last() {
    let script = "answers: [{tools: [{act: {n: 1}}, {act: {n: 2}}]}, {text: one}, {tools: [{act: {n: 3}}]}, {text: two}]";
    let told = Arc::new(Mutex::new(Vec::<String>::new()));
    let of_requests = told.clone();
    let of_ends = told.clone();
    let bench = Bench::new(script)
        .on(
            "requests",
            from_fn::<PreLlmRequest>(move |input| {
                of_requests.lock().unwrap().push(format!("request {}", input.tool_calls));
                PreLlmRequestAction::Continue
            }),
        )
        .on(
            "ends",
            from_fn::<OnTurnEnd>(move |input| {
                of_ends.lock().unwrap().push(format!("turn {}", input.tool_calls));
                OnTurnEndAction::Finish
            }),
        );
    let mut stage = bench.start().await;
    assert_eq!(stage.goes().await, DONE);
    stage.run.control("ann").say(0, "and more").await.unwrap();
    assert_eq!(stage.resumed().await, DONE);
    let told = told.lock().unwrap().clone();
    assert_eq!(told, ["request 0", "request 2", "turn 2", "request 0", "request 1", "turn 1"]);
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
    let suspended = once::<PreLlmRequest>(|| PreLlmRequestAction::Yield, || PreLlmRequestAction::Continue);
    let mut stage = Bench::new(ONE).on("picky", picky).on("rests", suspended).start().await;
    assert_eq!(paused_by(&stage.goes().await), "rests");
    stage.run.control("ann").say(0, "the secret is 42").await.unwrap();
    stage.run.control("ann").say(0, "be quick").await.unwrap();
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
    let backend = || {
        Arc::new(
            EmbeddedBackend::new(
                SqliteStore::open(folder.path().join("log.db")).unwrap(),
                Arc::new(SystemClock),
            )
            .unwrap(),
        )
    };
    let pauses = || from_fn::<PreToolCall>(|_| PreToolCallAction::Pause);
    let mut first = Bench::new(ONE).on("pauses", pauses()).start_at(backend()).await;
    assert_eq!(paused_by(&first.goes().await), "pauses");
    drop(first);
    // It has hooks with the same names and other actions.
    let goes = from_fn::<PreToolCall>(|_| PreToolCallAction::Continue);
    let backend = backend();
    let (harness, tape, called, _) = Bench::new(ONE).on("pauses", goes).harness(backend.clone());
    let run = harness.open(RUN).await.unwrap();
    let mut second = Stage { run, backend, tape, called };
    assert_eq!(second.resumed().await, DONE);
    assert_eq!(second.called(), 1);
    second.is_lawful(&DONE).await;
}

#[tokio::test]
async fn a_hook_that_the_next_process_lacks_denies_its_calls() {
    let folder = tempfile::tempdir().unwrap();
    let backend = || {
        Arc::new(
            EmbeddedBackend::new(
                SqliteStore::open(folder.path().join("log.db")).unwrap(),
                Arc::new(SystemClock),
            )
            .unwrap(),
        )
    };
    let pauses = from_fn::<PreToolCall>(|_| PreToolCallAction::Pause);
    let mut first = Bench::new(ONE).on("pauses", pauses).start_at(backend()).await;
    assert_eq!(paused_by(&first.goes().await), "pauses");
    drop(first);
    let backend = backend();
    let (harness, tape, called, _) = Bench::new(ONE).harness(backend.clone());
    let run = harness.open(RUN).await.unwrap();
    let mut second = Stage { run, backend, tape, called };
    assert_eq!(second.resumed().await, DONE);
    assert_eq!(second.called(), 0, "it is checked nowhere, so it isn't made");
}

#[tokio::test]
async fn a_hook_that_consents_or_refuses_spares_the_person() {
    for (action, called) in [(OnApprovalAction::Allow, 1), (OnApprovalAction::Deny("no".into()), 0)] {
        let consents = from_fn::<OnApproval>(move |_| action.clone());
        let mut stage = Bench::new(ONE).asking().on("consents", consents).start().await;
        assert_eq!(stage.goes().await, DONE);
        assert_eq!(stage.called(), called);
        let log = stage.log().await;
        assert!(
            !log.iter().any(|record| matches!(record.entry, Entry::Gate(GateEntry::ApprovalRequested(_))))
        );
    }
}

#[tokio::test]
async fn an_undecided_hook_leaves_it_to_a_person_whose_first_answer_counts() {
    let undecided = from_fn::<OnApproval>(|_| OnApprovalAction::Undecided);
    let mut stage = Bench::new(ONE).asking().on("undecided", undecided).start().await;
    let cancel = CancellationToken::new();
    let (backend, log) = (stage.backend.clone(), stage.backend.clone());
    let answers = async {
        let asked = loop {
            let log = log.read(SESSION.into(), Seq::START, 1_000).await.unwrap();
            if let Some(asked) =
                log.iter().find(|record| matches!(record.entry, Entry::Gate(GateEntry::ApprovalRequested(_))))
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
            backend.post(SESSION.into(), Event::Session(event), None).await.unwrap();
        }
    };
    let (outcome, ()) =
        timeout(DEADLINE, async { tokio::join!(stage.run.run(&cancel), answers) }).await.unwrap();
    assert_eq!((outcome.unwrap(), stage.called()), (DONE, 0));
    assert!(stage.asked()[1].iter().any(|part| part.contains("ann says no")), "{:?}", stage.asked());
    stage.is_lawful(&DONE).await;
}
