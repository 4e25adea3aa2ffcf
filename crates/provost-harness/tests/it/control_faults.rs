//! Reminders, faulty hooks, and stops during hooks: over whole runs.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use provost_engine::Event;
use provost_event::{
    Entry, GateEntry, HookContract, HookDecision, HookPoint, HookPolicy, HookProgram, HookSetup,
    LifecycleEntry, OnFailure, Outcome, PauseReason, Record, Seq, Timestamp, ToolEntry,
};
use provost_harness::hooks::*;
use provost_harness::{Clock, HookAnswer, HookPrograms, HookQuestion, Log as _, SimulatedClock};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::control_stage::*;

// ---- reminders ----------------------------------------------------------------------------------------------------

struct Reminds;

#[async_trait]
impl HookPrograms for Reminds {
    fn wants(&self, _: &HookPolicy, _: &HookQuestion, _: HookPoint) -> bool {
        true
    }

    async fn ask(
        &self,
        hook: &HookPolicy,
        _: &HookQuestion,
        _: HookPoint,
        _: &CancellationToken,
    ) -> HookAnswer {
        HookAnswer {
            decision: HookDecision::Continue,
            reminders: vec![format!("of {}", hook.name)],
            note: None,
            replacement: None,
        }
    }
}

fn program(name: &str, point: HookPoint) -> HookPolicy {
    HookPolicy {
        name: name.into(),
        point,
        matcher: None,
        condition: None,
        program: Some(HookProgram::Shell { command: "true".into() }),
        contract: HookContract::Provost,
        timeout_ms: 2_000,
        on_failure: OnFailure::Continue,
        may_remind: true,
        setup: HookSetup::default(),
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
        program("before", HookPoint::PreToolCall),
        program("after", HookPoint::PostToolCall),
        program("batch", HookPoint::PostToolBatch),
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
    let (_, announced) =
        text(0).split_once("<system-reminder id=\"").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let id = announced.split('"').next().unwrap();
    // Seven, and the announcement of the id.
    assert_eq!(text(1).matches(&format!("<system-reminder id=\"{id}\">")).count(), 8, "{}", text(1));
    assert_eq!(text(1).matches("system-reminder").count(), 16, "{}", text(1));
    let last_result = asked[1].iter().rposition(|part| part.starts_with("result")).unwrap();
    let first = asked[1].iter().position(|part| part.contains("of before")).unwrap();
    assert!(first > last_result, "reminders stand behind the results: {:#?}", asked[1]);
    let last_call = asked[1].iter().rposition(|part| part.starts_with("call ")).unwrap();
    assert!(asked[1][last_call + 1].starts_with("result"), "nothing stands between: {:#?}", asked[1]);
}

const POSES: &str = r#"
answers:
  - { tools: [{ act: { what: pose } }] }
  - { text: Done. }
"#;

#[tokio::test]
async fn only_provosts_own_words_carry_the_id_that_the_conversation_begins_with() {
    let mut stage = Bench::new(POSES).start().await;
    assert_eq!(stage.goes().await, DONE);
    let ids = ids_in(&stage.log().await);
    let [id] = ids.as_slice() else { panic!("one session began: {ids:?}") };
    let asked = stage.asked();
    let begins = format!("text <system-reminder id=\"{id}\">\n");
    assert!(asked[0][0].starts_with(&begins), "{}", asked[0][0]);
    assert_eq!(asked[0][1], "text the goal", "what people say is as they said it");
    let result = asked[1].iter().find(|part| part.starts_with("result")).unwrap();
    assert!(result.ends_with(&format!("false {POSED}")), "a result's bytes are kept: {result}");
    assert!(!result.contains(id.as_str()));
    assert_eq!(asked[1][..2], asked[0][..2], "the conversation begins as it did");
}

#[tokio::test]
async fn each_run_has_its_own_id_and_keeps_it_when_it_is_resumed() {
    let (mut one, mut other) = (Bench::new(TWO).start().await, Bench::new(TWO).start().await);
    assert_eq!((one.goes().await, other.goes().await), (DONE, DONE));
    assert_ne!(ids_in(&one.log().await), ids_in(&other.log().await));
    let first = one.asked()[0][0].clone();
    one.resumed().await;
    assert!(one.asked().len() > 2, "it was asked again");
    assert!(one.asked().iter().all(|asked| asked[0] == first), "{:#?}", one.asked());
}

fn ids_in(log: &[Arc<Record>]) -> Vec<String> {
    let began = log.iter().filter_map(|record| match &record.entry {
        Entry::Lifecycle(LifecycleEntry::SessionStarted(started)) => Some(started.reminder_id.clone()),
        _ => None,
    });
    began.collect()
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

/// Never answers, and reports each call.
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
    assert!(hung.iter().all(|(_, decision)| *decision == HookDecision::TimedOut(3_000)), "{hung:?}");
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
    assert!(said.iter().all(|(_, decision)| matches!(decision, HookDecision::Broken(_))), "{said:?}");
    stage.is_lawful(&DONE).await;
}

#[tokio::test]
async fn after_the_third_of_ten_says_no_no_other_is_called() {
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
    let (backend, cancel) = (stage.backend.clone(), CancellationToken::new());
    let stop = async {
        is_asked.recv().await.unwrap();
        let event = match pause {
            Some(()) => provost_engine::RunEvent::Pause { agent: None, by: "ann".into() },
            None => provost_engine::RunEvent::Cancel { agent: None, by: "ann".into() },
        };
        backend.post(RUN.into(), Event::Run(event), None).await.unwrap();
    };
    let began = Instant::now();
    let both = async { tokio::join!(stage.run.run(&cancel), stop) };
    let (outcome, ()) = timeout(DEADLINE, both).await.unwrap_or_else(|_| panic!("{:?} holds it", E::POINT));
    let outcome = outcome.unwrap();
    let expected = match pause {
        Some(()) => Outcome::Paused { why: PauseReason::Asked { by: "ann".into(), awaited: None } },
        None => Outcome::Cancelled { by: "ann".into() },
    };
    assert_eq!(outcome, expected, "{:?}", E::POINT);
    assert!(began.elapsed() < Duration::from_secs(1), "{:?} holds it for {:?}", E::POINT, began.elapsed());
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
async fn a_cancel_withdraws_an_open_question() {
    let mut stage = Bench::new(TWO).asking().start().await;
    let (backend, cancel) = (stage.backend.clone(), CancellationToken::new());
    let stop = async {
        loop {
            let log = backend.read(SESSION.into(), Seq::START, 1_000).await.unwrap();
            let asked = log
                .iter()
                .filter(|record| matches!(record.entry, Entry::Gate(GateEntry::ApprovalRequested(_))))
                .count();
            if asked == 2 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let event = provost_engine::RunEvent::Cancel { agent: None, by: "ann".into() };
        backend.post(RUN.into(), Event::Run(event), None).await.unwrap();
    };
    let (outcome, ()) =
        timeout(DEADLINE, async { tokio::join!(stage.run.run(&cancel), stop) }).await.unwrap();
    let outcome = outcome.unwrap();
    assert_eq!(outcome, Outcome::Cancelled { by: "ann".into() });
    assert_eq!(stage.called(), 0);
    stage.is_lawful(&outcome).await;
    let resolved =
        |record: &Record| matches!(record.entry, Entry::Gate(GateEntry::ApprovalResolved(_))).then_some(());
    stage.until(resolved).await;
}

/// The run is cancelled, and then once more while a hook at its end hangs.
#[tokio::test]
async fn a_second_cancel_does_not_wait_for_the_last_hooks() {
    let (asked, mut is_asked) = mpsc::unbounded_channel();
    let options = HookOptions { timeout: Duration::from_secs(3_600), ..HookOptions::new("farewell") };
    let script = "answers: [{tools: [{act: {stay: 1}}]}, {text: 'all is well'}]";
    let mut stage = Bench::new(script).with::<OnAbort>(options, Hangs(asked)).start().await;
    stage.until(|record| matches!(record.entry, Entry::Tool(ToolEntry::Started(_))).then_some(())).await;
    let cancel = || provost_engine::RunEvent::Cancel { agent: None, by: "ann".into() };
    stage.backend.post(RUN.into(), Event::Run(cancel()), None).await.unwrap();
    is_asked.recv().await.unwrap();
    stage.backend.post(RUN.into(), Event::Run(cancel()), None).await.unwrap();
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
