//! The observers of Provost: costs, lines, traces.

use std::path::Path;
use std::sync::Arc;

use provost_engine::Actor;
use provost_event::{
    AsideCall, BudgetCharged, Certainty, Compacted, CompactionKind, Delta, DeltaKind, Elapsed, Entry,
    FinalSummaryFinished, Json, MicroDollars, Outcome, Price, Record, RunId, Seq, SessionId, Timestamp,
    ToolStarted, Usage,
};
use provost_harness::{
    CostTracker, JsonlTrace, Log as _, MemoryTrace, NoTrace, ObserverOptions, Observers, Redactor, RunLogger,
    RunObservers, TraceBody, TraceError, TraceEvent, TraceSink,
};
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use crate::observers_harness::{RUN, harness, policy};

const ANSWERS: &str = "answers: [{tools: [{nothing: {}}]}, {text: 'all is well'}]";

fn session() -> SessionId {
    SessionId::root(RUN)
}

fn record(seq: u64, entry: impl Into<Entry>) -> Arc<Record> {
    let at = Timestamp(1_000 * seq);
    Arc::new(Record {
        actor: session().into(),
        seq: Seq(seq),
        at,
        elapsed: Elapsed::default(),
        entry: entry.into(),
    })
}

fn charged(run: RunId, model: &str, cost: Option<u64>) -> Arc<Record> {
    let entry = BudgetCharged {
        session: SessionId::root(run),
        call: 1,
        turn: 1,
        model: model.into(),
        usage: Usage {
            input_tokens: 10,
            output_tokens: 5,
            cache_read_tokens: 3,
            cache_write_tokens: 2,
            reasoning_tokens: 1,
            certainty: Certainty::Reported,
        },
        cost: cost.map(MicroDollars),
        purpose: provost_event::Purpose::Turn,
    };
    Arc::new(Record {
        actor: run.into(),
        seq: Seq(1),
        at: Timestamp(0),
        elapsed: Elapsed::default(),
        entry: entry.into(),
    })
}

fn started(input: &str) -> ToolStarted {
    let input = Json::parse(input.to_owned()).expect("JSON");
    ToolStarted {
        call: "c1".into(),
        tool: "shell".into(),
        input,
        again: false,
        outside: false,
        replaced_by: None,
    }
}

const PRICE: Price = Price {
    input: MicroDollars(3_000_000),
    output: MicroDollars(15_000_000),
    cache_read: MicroDollars(300_000),
    cache_write: MicroDollars(3_750_000),
    long: None,
};

#[tokio::test]
async fn costs_are_those_of_the_run_s_ledger() {
    for price in [Some(PRICE), None] {
        let costs = CostTracker::new();
        let observers = Observers::new().with("costs", ObserverOptions::default(), costs.observer());
        let (harness, backend) = harness(ANSWERS, observers);
        let mut policy = policy();
        policy.agent.model.price = price;
        let mut run = harness.start(RUN, "the goal", policy).await.expect("it starts");
        run.run(&CancellationToken::new()).await.expect("it ends");
        let Actor::Run(state) = backend.state(RUN.into()).await.expect("a log") else { panic!("a run") };
        let totals = costs.totals();
        assert_eq!(totals.all.usage.total(), state.ledger().tokens);
        assert_eq!(totals.all.known_cost, state.ledger().cost);
        assert_eq!(totals.all.calls, 2);
        assert_eq!(totals.all.cost().is_some(), price.is_some());
        assert_eq!(totals.all.unpriced_calls, if price.is_some() { 0 } else { 2 });
        assert_eq!(totals.by_model["script:test"], totals.all);
        assert_eq!((totals.by_run[&RUN], totals.by_agent[&session()]), (totals.all, totals.all));
        assert!(totals.all.usage.total() > 0);
    }
}

/// Turns that fill a small window, with a summary and a final summary.
fn talkative() -> String {
    let text = "word ".repeat(1_600);
    let turn = |n: u32| format!("  - {{ text: '{n} {text}', tools: [nothing: {{ n: {n} }}] }}\n");
    let turns = (1..=8).map(turn).collect::<String>();
    format!(
        "answers:\n{turns}summaries:\n  - text: so far so good\nfinal_summary:\n  text: it is nearly done\n"
    )
}

#[tokio::test]
async fn summaries_and_final_summary_are_counted_and_told_of_as_the_calls_they_are() {
    let (costs, trace) = (CostTracker::new(), MemoryTrace::new());
    let logger = RunLogger::new(Arc::new(Redactor::default()));
    let options = ObserverOptions::default();
    let observers = Observers::new()
        .with("costs", options, costs.observer())
        .with("lines", options, logger.observer())
        .with_trace("trace", options, trace.sink());
    let (harness, backend) = harness(&talkative(), observers);
    let mut policy = policy();
    policy.agent.model.price = Some(PRICE);
    policy.agent.model.window_tokens = Some(10_000);
    policy.agent.limits.turns_max = 5;
    policy.agent.limits.repeated_call_notice_at = 100;
    policy.agent.limits.repeated_call_max = 100;
    let mut run = harness.start(RUN, "the goal", policy).await.expect("it starts");
    let outcome = run.run(&CancellationToken::new()).await.expect("it is suspended");
    assert!(matches!(outcome, Outcome::BudgetExhausted(_)), "{outcome}");
    let Actor::Run(state) = backend.state(RUN.into()).await.expect("a log") else { panic!("a run") };
    let (totals, ledger) = (costs.totals(), state.ledger());
    assert_eq!((totals.all.usage.total(), totals.all.cost()), (ledger.tokens, Some(ledger.cost)));
    let events = trace.events();
    let calls = |name| events.iter().filter(|event| event.name == name).collect::<Vec<_>>();
    let (begun, ended) = (calls("LLM_START"), calls("LLM_END"));
    assert_eq!((begun.len(), ended.len()), (7, 7), "5 turns, a summary and final summaries");
    assert_eq!(totals.all.calls, 7);
    // Each call starts and ends as the same span, and turns start as often as they end.
    let spans = |events: &[&TraceEvent]| events.iter().map(|event| event.span.clone()).collect::<Vec<_>>();
    assert_eq!(spans(&begun), spans(&ended));
    assert_eq!((calls("TURN_START").len(), calls("TURN_END").len()), (5, 5));
    let lines = logger.lines(RUN);
    let of = |word: &str| lines.iter().filter(|line| line.contains(word)).collect::<Vec<_>>();
    assert_eq!((of("for a summary").len(), of("for a final summary").len()), (1, 1), "{lines:#?}");
    assert!(of("COMPACTION").iter().any(|line| line.ends_with(", by a summary")), "{lines:#?}");
}

fn aside(model: &str) -> Option<AsideCall> {
    let usage = Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() };
    Some(AsideCall { call: 1, usage, cost: Some(MicroDollars(700)), model: model.into() })
}

#[tokio::test]
async fn lines_say_what_calls_beside_the_conversation_took_and_came_to() {
    let logger = RunLogger::new(Arc::new(Redactor::default()));
    let run = Observers::new().with("lines", ObserverOptions::default(), logger.observer()).of_run(RUN);
    let kind = CompactionKind::Summary;
    let compacted = Compacted { call: aside("m"), tokens_before: 9, tokens_after: 2, ..Compacted::new(kind) };
    run.record(&record(1, compacted));
    run.record(&record(2, Compacted::new(CompactionKind::Trim)));
    run.record(&record(3, Compacted::new(CompactionKind::Emergency)));
    let said = FinalSummaryFinished { text: "nearly".into(), call: aside("m"), problem: None };
    run.record(&record(4, said));
    let problem = Some("no connection".to_owned());
    run.record(&record(5, FinalSummaryFinished { text: String::new(), call: aside(""), problem }));
    run.finish().await;
    let lines = logger.lines(RUN);
    let words = lines.iter().map(|line| line.rsplit_once(".0 ").expect("an actor").1);
    assert_eq!(
        words.collect::<Vec<_>>(),
        [
            "LLM_END m 10 tokens in, 5 out, $0.0007",
            "COMPACTION 9 tokens to 2, by a summary",
            "COMPACTION 0 tokens to 0, by leaving out old results",
            "COMPACTION 0 tokens to 0, by rule",
            "LLM_END m 10 tokens in, 5 out, $0.0007",
            "LLM_END failed: 10 tokens in, 5 out, $0.0007, no final summary: no connection",
        ]
    );
}

#[tokio::test]
async fn costs_are_told_apart_and_an_unknown_price_is_no_zero() {
    let costs = CostTracker::new();
    let observers = Observers::new().with("costs", ObserverOptions::default(), costs.observer());
    let other = RunId::from_entropy(12);
    let (one, two) = (observers.of_run(RUN), observers.of_run(other));
    one.record(&charged(RUN, "a", Some(7)));
    one.record(&charged(RUN, "b", None));
    two.record(&charged(other, "a", Some(0)));
    tokio::join!(one.finish(), two.finish());
    let totals = costs.totals();
    assert_eq!((totals.all.calls, totals.all.unpriced_calls, totals.all.cost()), (3, 1, None));
    assert_eq!(totals.all.known_cost, MicroDollars(7));
    assert_eq!(totals.all.usage.total(), 60);
    assert_eq!(totals.by_model["a"].cost(), Some(MicroDollars(7)));
    assert_eq!(totals.by_model["b"].cost(), None);
    assert_eq!(totals.by_run[&RUN].cost(), None);
    assert_eq!(totals.by_run[&other].cost(), Some(MicroDollars(0)), "what is free costs nothing");
    assert_eq!(totals.by_agent[&SessionId::root(other)].calls, 1);
}

#[tokio::test]
async fn lines_are_the_newest_and_safe_to_print() {
    let secret = "not-for-everybody-1";
    let redactor = Arc::new(Redactor::new([SecretString::from(secret)]));
    let logger = RunLogger::new(redactor).lines_max(3);
    let observers = Observers::new().with("lines", ObserverOptions::default(), logger.observer());
    let run = observers.of_run(RUN);
    run.record(&record(1, started("{}")));
    run.record(&record(2, started("{}")));
    run.record(&record(3, started(&format!(r#"{{"key":"{secret}"}}"#))));
    run.record(&record(4, provost_event::Paused { outcome: halted("\u{1b}[2J\nboo") }));
    run.record(&record(5, started(&format!(r#""{}""#, "é".repeat(500)))));
    run.record(&record(6, provost_event::Ended { outcome: halted("\u{1b}[2J\nboo") }));
    run.finish().await;
    let lines = logger.lines(RUN);
    let session = session();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0], format!(r#"00:00:03.000 {session} TOOL_START shell {{"key":"[secret]"}}"#));
    assert!(lines[1].ends_with("éé…") && lines[1].chars().count() == 240, "{}", lines[1]);
    assert_eq!(lines[2], format!("00:00:06.000 {session} SESSION_END cancelled by  [2J boo"));
    assert!(logger.lines(RunId::from_entropy(1)).is_empty());
}

fn halted(by: &str) -> provost_event::Outcome {
    provost_event::Outcome::Cancelled { by: by.into() }
}

fn trace(path: &Path, secrets: &[&str]) -> Observers {
    let secrets = secrets.iter().map(|secret| SecretString::from(*secret));
    let trace = JsonlTrace::new(path, Arc::new(Redactor::new(secrets)));
    Observers::new().with_trace("trace", ObserverOptions::default(), trace.sink())
}

fn lines(path: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(path).expect("a trace");
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"))).collect()
}

#[tokio::test]
async fn a_run_s_trace_is_lines_of_json_that_know_their_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.jsonl");
    let (harness, _backend) = harness(ANSWERS, trace(&path, &[]));
    let mut run = harness.start(RUN, "the goal", policy()).await.expect("it starts");
    run.run(&CancellationToken::new()).await.expect("it ends");
    assert_eq!(run.observer_reports()[0].failed, 0);
    let lines = lines(&path);
    let of = |event: &str| lines.iter().find(|line| line["event"] == event).expect("it happened");
    let run_start = of("RUN_START");
    assert_eq!(run_start["entry"]["type"], "run_started");
    assert_eq!((&run_start["span"], run_start.get("session")), (&RUN.to_string().into(), None));
    let tool = of("TOOL_END");
    let session = session().to_string();
    assert_eq!(tool["session"], session.as_str());
    assert_eq!(
        tool["chain"],
        serde_json::json!({"chain_id": RUN.to_string(), "parent": null, "depth": 0, "agent_name": null})
    );
    assert_eq!(tool["parent_span"], format!("{session}/turn-1"));
    assert_eq!(tool["span"], of("TOOL_START")["span"]);
    assert!(tool["ts_ms"].as_u64().is_some_and(|ms| ms > 1_600_000_000_000), "{tool}");
    assert_eq!(of("LLM_END")["span"], format!("{session}/turn-1/llm-1"));
    let delta = of("LLM_DELTA");
    assert_eq!(delta["delta"]["kind"], "text");
    assert!(!delta.to_string().contains("well"), "no text: {delta}");
    assert_eq!(of("RUN_END")["entry"]["outcome"]["kind"], "completed");
    #[cfg(unix)]
    {
        let metadata = std::fs::metadata(&path).expect("a file");
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777, 0o600);
    }
}

#[tokio::test]
async fn a_trace_has_no_secrets_and_stays_json() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.jsonl");
    let shaped = format!("sk-{}", "Ab1".repeat(10));
    let run = trace(&path, &["not-for\"everybody-1"]).of_run(RUN);
    run.record(&record(1, started("{\n \"key\": \"not-for\\\"everybody-1\",\r\n \"b\": 1}")));
    run.record(&record(2, started(&format!(r#"{{"{shaped}":"{shaped}"}}"#))));
    let piece = Delta { session: session(), kind: DeltaKind::Text, text: shaped.clone() };
    run.delta(Timestamp(0), &piece);
    run.finish().await;
    let text = std::fs::read_to_string(&path).expect("a trace");
    assert!(!text.contains(&shaped) && !text.contains("everybody"), "{text}");
    let lines = lines(&path);
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0]["entry"]["input"], serde_json::json!({"key": "[secret]", "b": 1}));
}

fn tell(run: &RunObservers, seqs: std::ops::RangeInclusive<u64>) {
    seqs.for_each(|seq| run.record(&record(seq, started("{}"))));
}

#[tokio::test]
async fn a_trace_that_can_t_be_written_is_counted_and_the_next_line_is_tried_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("missing");
    let path = missing.join("trace.jsonl");
    let run = trace(&path, &[]).of_run(RUN);
    tell(&run, 1..=1);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while run.reports()[0].failed == 0 {
        assert!(std::time::Instant::now() < deadline, "it never failed");
        tokio::task::yield_now().await;
    }
    std::fs::create_dir(&missing).expect("a folder");
    tell(&run, 2..=2);
    run.finish().await;
    assert_eq!(lines(&path)[0]["seq"], 2);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_disk_is_counted() {
    let run = trace(Path::new("/dev/full"), &[]).of_run(RUN);
    tell(&run, 1..=1);
    run.finish().await;
    assert_eq!(run.reports()[0].failed, 1);
}

#[tokio::test]
async fn a_trace_goes_on_behind_what_is_there_and_behind_a_line_without_an_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.jsonl");
    std::fs::write(&path, "{}\n{\"cut").expect("a file");
    let one = trace(&path, &[]);
    let (first, second) = (one.of_run(RUN), one.of_run(RUN));
    tell(&first, 1..=500);
    tell(&second, 1..=500);
    tokio::join!(first.finish(), second.finish());
    let text = std::fs::read_to_string(&path).expect("a trace");
    let bad = text.lines().filter(|line| serde_json::from_str::<serde_json::Value>(line).is_err());
    assert_eq!(bad.collect::<Vec<_>>(), ["{\"cut"]);
    let events = text.lines().filter(|line| line.contains("TOOL_START")).count();
    assert_eq!(events, 1_000);
}

/// A sink that waits for a signal before it handles anything.
struct Slow(std::sync::mpsc::Receiver<()>, MemoryTrace);

impl TraceSink for Slow {
    fn event(&mut self, event: &TraceEvent) -> Result<(), TraceError> {
        let _ = self.0.recv();
        self.1.event(event)
    }
}

#[tokio::test]
async fn a_trace_says_where_events_are_missing() {
    let (go, word) = std::sync::mpsc::channel();
    let (word, trace) = (std::sync::Mutex::new(Some(word)), MemoryTrace::new());
    let kept = trace.clone();
    let options = ObserverOptions { queue_max: 2, ..ObserverOptions::default() };
    let make = move |_| -> Box<dyn TraceSink> {
        Box::new(Slow(word.lock().expect("a word").take().expect("one segment"), kept.clone()))
    };
    let run = Observers::new().with_trace("slow", options, make).of_run(RUN);
    tell(&run, 1..=1);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while run.reports()[0].delivered == 0 {
        assert!(std::time::Instant::now() < deadline, "it is never told");
        tokio::task::yield_now().await;
    }
    tell(&run, 2..=9);
    drop(go);
    run.finish().await;
    let events = trace.events();
    let seqs = events.iter().map(|event| match &event.body {
        TraceBody::Entry(record) => record.seq.0,
        TraceBody::Lost(count) => 1_000 + count,
        TraceBody::Delta(_) => panic!("{event:?}"),
    });
    assert_eq!(seqs.collect::<Vec<_>>(), [1, 1_006, 8, 9]);
    assert_eq!(
        (events[1].name, events[1].at, events[1].span.as_str()),
        ("LOST", Timestamp(8_000), &*RUN.to_string())
    );
}

#[tokio::test]
async fn a_sink_that_panics_or_fails_is_counted_and_told_on() {
    struct Bad(MemoryTrace);
    impl TraceSink for Bad {
        fn event(&mut self, event: &TraceEvent) -> Result<(), TraceError> {
            let TraceBody::Entry(record) = &event.body else { panic!("{event:?}") };
            match record.seq.0 {
                1 => panic!("it falls over"),
                2 => Err("it fails".into()),
                _ => self.0.event(event),
            }
        }
        fn flush(&mut self) -> Result<(), TraceError> {
            Err("it fails at this too".into())
        }
    }
    let trace = MemoryTrace::new();
    let kept = trace.clone();
    let make = move |_| -> Box<dyn TraceSink> { Box::new(Bad(kept.clone())) };
    let run = Observers::new()
        .with_trace("bad", ObserverOptions::default(), make)
        .with_trace("none", ObserverOptions::default(), |_| Box::new(NoTrace))
        .of_run(RUN);
    tell(&run, 1..=3);
    run.finish().await;
    let reports = run.reports();
    assert_eq!((reports[0].panicked, reports[0].delivered, reports[0].lost), (1, 3, 0));
    assert!(reports[0].failed >= 2, "{reports:?}");
    assert_eq!((reports[1].panicked, reports[1].failed, reports[1].delivered), (0, 0, 3));
    assert_eq!(trace.events().len(), 1);
}

#[tokio::test]
async fn a_trace_in_memory_keeps_the_newest() {
    for (events_max, kept) in [(0, 9..=9), (3, 7..=9), (9, 1..=9), (10, 1..=9)] {
        let trace = MemoryTrace::new().events_max(events_max);
        let run = Observers::new().with_trace("t", ObserverOptions::default(), trace.sink()).of_run(RUN);
        tell(&run, 1..=9);
        run.finish().await;
        let times = trace.events().iter().map(|event| event.at.0 / 1_000).collect::<Vec<_>>();
        assert_eq!(times, kept.collect::<Vec<_>>(), "{events_max}");
    }
}
