//! The effect of a failing provider on a run: a real HTTP server on loopback that speaks the wire format, the real
//! client, backend and harness; only the clock is simulated.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use provost_backend::{EmbeddedBackend, MemoryStore};
use provost_event::{
    AgentPolicy, BudgetEntry, Entry, ErrorClass, ModelEntry, ModelPolicy, Outcome, PauseReason, RetryCause,
    RunId, RunPolicy, Seq, SessionId, Timestamp, ToolEntry, ToolStatus,
};
use provost_harness::{
    AgentHarness, HarnessDeps, Log as _, Models, SimulatedClock, SystemClock, ToolRegistry,
};
use provost_llm::{ModelLimits, Provider, ProviderModel, ProviderOptions, WireFormat};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

pub(crate) const OK: &str = "200 OK\r\ncontent-type: text/event-stream";

pub(crate) fn events(events: &[&str]) -> String {
    let line = |event: &&str| {
        let kind: serde_json::Value = serde_json::from_str(event).expect("JSON");
        format!("event: {}\ndata: {event}\n\n", kind["type"].as_str().expect("a type"))
    };
    events.iter().map(line).collect()
}

pub(crate) const START: &str = r#"{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"claude-test","content":[],"stop_reason":null,"usage":{"input_tokens":20,"output_tokens":1}}}"#;
pub(crate) const STOP: &str = r#"{"type":"message_stop"}"#;

pub(crate) fn done(reason: &str) -> String {
    format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}},"usage":{{"output_tokens":9}}}}"#
    )
}

/// A stream that says "done".
pub(crate) fn good() -> (String, String) {
    let body = events(&[
        START,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"done. VERDICT: PASS"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        &done("end_turn"),
        STOP,
    ]);
    (OK.to_owned(), body)
}

pub(crate) fn failure(status: &str, kind: &str, message: &str) -> (String, String) {
    let body = format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}}}}"#);
    (status.to_owned(), body)
}

pub(crate) async fn serve(listener: TcpListener, answers: Arc<Mutex<VecDeque<(String, String)>>>) {
    while let Ok((mut stream, _)) = listener.accept().await {
        read_request(&mut stream).await;
        let next = answers.lock().expect("the answers").pop_front();
        let (head, body) = next.unwrap_or_else(|| failure("418 Teapot", "none", "no answer is left"));
        let head = format!("HTTP/1.1 {head}\r\nconnection: close\r\n\r\n");
        let _ = stream.write_all(head.as_bytes()).await;
        let _ = stream.write_all(body.as_bytes()).await;
        let _ = stream.shutdown().await;
    }
}

pub(crate) async fn read_request(stream: &mut TcpStream) {
    let mut request = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return;
            }
        }
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => return,
            Ok(read) => request.extend_from_slice(&chunk[..read]),
        }
    }
}

struct Told {
    outcome: Outcome,
    entries: Vec<Entry>,
    charged: u64,
}

impl Told {
    fn retries(&self) -> Vec<(RetryCause, u64)> {
        let retry = |entry: &Entry| match entry {
            Entry::Model(ModelEntry::Retried(retry)) => Some((retry.cause.clone(), retry.delay_ms)),
            _ => None,
        };
        self.entries.iter().filter_map(retry).collect()
    }

    fn retried_classes(&self) -> Vec<ErrorClass> {
        let class = |cause| match cause {
            RetryCause::Failed { class, .. } => Some(class),
            _ => None,
        };
        self.retries().into_iter().filter_map(|(cause, _)| class(cause)).collect()
    }
}

async fn run(answers: Vec<(String, String)>) -> Told {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base_url = format!("http://{}", listener.local_addr().expect("an address"));
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(serve(listener, Arc::new(Mutex::new(answers.into()))));
    let clock = Arc::new(SimulatedClock::at(Timestamp(1_000_000)));
    let hurried = clock.clone();
    tasks.spawn(async move {
        loop {
            hurried.advance_to_next_sleeper().await;
            tokio::task::yield_now().await;
        }
    });
    let options = ProviderOptions {
        provider: Provider::new("anthropic", WireFormat::Anthropic, base_url),
        model: "claude-test".to_owned(),
        key: Some("a-key".into()),
        reasoning: None,
        limits: ModelLimits::default(),
        clock: Arc::new(SystemClock),
    };
    let model = ProviderModel::new(options).expect("a client");
    let backend = Arc::new(EmbeddedBackend::new(MemoryStore::new(), clock.clone()).expect("a backend"));
    let harness = AgentHarness::new(HarnessDeps {
        clock,
        ..HarnessDeps::new(
            backend.clone(),
            Models::new().with("anthropic/claude-test", Arc::new(model)),
            ToolRegistry::new(),
        )
    });
    let id = RunId::from_entropy(42);
    let mut run = harness.start(id, "the goal", policy()).await.expect("it starts");
    let outcome = run.run(&CancellationToken::new()).await.expect("it ends");
    let records = backend.read(SessionId::root(id).into(), Seq::START, 1_000).await.expect("a log");
    let runs = backend.read(id.into(), Seq::START, 1_000).await.expect("a log");
    let charged = runs.iter().map(|record| match &record.entry {
        Entry::Budget(BudgetEntry::Charged(charged)) => charged.usage.total(),
        _ => 0,
    });
    Told {
        outcome,
        entries: records.iter().map(|record| record.entry.clone()).collect(),
        charged: charged.sum(),
    }
}

pub(crate) fn policy() -> RunPolicy {
    let model =
        ModelPolicy { window_tokens: Some(200_000), ..ModelPolicy::new("anthropic/claude-test", 1_000) };
    RunPolicy {
        spawn: provost_event::SpawnBudget::default(),
        ..RunPolicy::new(AgentPolicy {
            system_prompt: "You are an agent.".to_owned(),
            ..AgentPolicy::new(model, std::env::temp_dir())
        })
    }
}

fn completed() -> Outcome {
    Outcome::Completed {
        verdict: Some(provost_event::Verdict::Pass),
        verification: provost_event::Verification::None,
    }
}

#[tokio::test]
async fn a_429_is_waited_out_as_long_as_the_provider_asks() {
    let busy = failure("429 Too Many Requests\r\nretry-after: 17", "rate_limit_error", "slow down");
    let told = run(vec![busy, good()]).await;
    assert_eq!(told.outcome, completed());
    let cause = RetryCause::Failed {
        class: ErrorClass::RateLimited,
        message: "slow down".into(),
        status: Some(429),
        request_id: None,
    };
    assert_eq!(told.retries(), [(cause, 17_000)]);
}

#[tokio::test]
async fn a_500_and_a_529_are_tried_again() {
    let told = run(vec![
        failure("500 Internal Server Error", "api_error", "oops"),
        failure("529 Overloaded", "overloaded_error", "full"),
        good(),
    ])
    .await;
    assert_eq!(told.outcome, completed());
    assert_eq!(told.retried_classes(), [ErrorClass::Server, ErrorClass::Overloaded]);
}

#[tokio::test]
async fn a_stream_cut_in_the_middle_is_made_again_and_its_tokens_are_charged() {
    let (head, body) = good();
    let middle = body.find("content_block_delta").expect("a delta");
    let told = run(vec![(head, body[..middle + 30].to_owned()), good()]).await;
    assert_eq!(told.outcome, completed());
    assert_eq!(told.retried_classes(), [ErrorClass::Cut]);
    assert_eq!(told.charged, 21 + 29, "the discarded answer's usage and the good one's");
}

#[tokio::test]
async fn a_stream_that_ends_without_its_last_event_is_made_again() {
    let (head, body) = good();
    let end = body.find("event: message_stop").expect("the last event");
    let told = run(vec![(head, body[..end].to_owned()), good()]).await;
    assert_eq!(told.outcome, completed());
    assert_eq!(told.retried_classes(), [ErrorClass::Cut]);
}

#[tokio::test]
async fn invalid_json_in_a_stream_is_made_again() {
    let body = format!("{}event: content_block_delta\ndata: {{nonsense\n\n", events(&[START]));
    let told = run(vec![(OK.to_owned(), body), good()]).await;
    assert_eq!(told.outcome, completed());
    assert_eq!(told.retried_classes(), [ErrorClass::MalformedResponse]);
}

#[tokio::test]
async fn an_unknown_tool_is_an_error_result_and_the_loop_goes_on() {
    let body = events(&[
        START,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t1","name":"fly","input":{}}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        &done("tool_use"),
        STOP,
    ]);
    let told = run(vec![(OK.to_owned(), body), good()]).await;
    assert_eq!(told.outcome, completed());
    let finished = told.entries.iter().find_map(|entry| match entry {
        Entry::Tool(ToolEntry::Finished(finished)) => {
            Some((finished.status, finished.output.contains("no tool `fly`")))
        }
        _ => None,
    });
    assert_eq!(finished, Some((ToolStatus::Rejected, true)));
}

#[tokio::test]
async fn an_empty_answer_is_asked_again() {
    let empty = || (OK.to_owned(), events(&[START, &done("end_turn"), STOP]));
    let told = run(vec![empty(), empty(), good()]).await;
    assert_eq!(told.outcome, completed());
    let causes = told.retries().into_iter().map(|(cause, _)| cause).collect::<Vec<_>>();
    assert_eq!(causes, [RetryCause::EmptyAnswer, RetryCause::EmptyAnswer]);

    let told = run(vec![empty(), empty(), empty()]).await;
    let Outcome::Paused { why: PauseReason::Model(trouble) } = &told.outcome else {
        panic!("{:?}", told.outcome)
    };
    assert_eq!(trouble.class, ErrorClass::NoAnswer);
}

#[tokio::test]
async fn a_context_that_is_too_long_is_shortened_once_and_then_suspends_the_run() {
    let long = || {
        failure(
            "400 Bad Request",
            "invalid_request_error",
            "prompt is too long: 210000 tokens > 200000 maximum",
        )
    };
    let told = run(vec![long(), long()]).await;
    let Outcome::Paused { why: PauseReason::Model(trouble) } = &told.outcome else {
        panic!("{:?}", told.outcome)
    };
    assert_eq!(trouble.class, ErrorClass::ContextTooLong);
    assert!(trouble.message.starts_with("prompt is too long: 210000 tokens"), "{trouble}");
}

#[tokio::test]
async fn a_refused_key_is_not_tried_again() {
    let told =
        run(vec![failure("401 Unauthorized", "authentication_error", "invalid x-api-key"), good()]).await;
    let Outcome::Paused { why: PauseReason::Model(trouble) } = &told.outcome else {
        panic!("{:?}", told.outcome)
    };
    assert_eq!((trouble.class, trouble.message.as_str()), (ErrorClass::Unauthorized, "invalid x-api-key"));
    assert!(told.retries().is_empty());
}
