//! Every fault of a model's server, once, five times and permanently: each is survived, or suspends the run, and a
//! resume completes it. A real server on loopback, the real client, backend and harness; only the clock is
//! simulated.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use provost_backend::{EmbeddedBackend, MemoryStore};
use provost_event::{
    Budget, ConversationEntry, Entry, Outcome, PauseReason, RunId, Seq, SessionId, Timestamp, TroubleCause,
};
use provost_harness::{
    AgentHarness, HarnessDeps, Log as _, Models, SimulatedClock, SystemClock, ToolRegistry,
};
use provost_llm::{ModelLimits, Provider, ProviderModel, ProviderOptions, WireFormat};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::provider_faults::{OK, START, done, events, failure, good, policy, read_request};

/// The server's response in place of an answer.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// A status with the provider's type of error, and headers.
    Status(&'static str, &'static str),
    /// The provider says that the conversation is too long.
    TooLong,
    /// The connection closes without a response.
    Reset,
    /// The answer is cut off.
    Cut,
    /// The answer stalls.
    Stall,
    /// No response at all.
    Silent,
    /// An empty body.
    Empty,
    /// Invalid JSON in the stream.
    BadJson,
    /// An error in the stream.
    ErrorEvent,
    /// A complete, empty answer.
    EmptyAnswer,
}

/// The effect on the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// It is retried, and suspended only if the fault outlasts `model_patience_ms`.
    TriedAgain,
    /// It is suspended at the first fault.
    Suspended(TroubleCause),
    /// The conversation is compacted as far as possible and sent once more, and the run is suspended at the second
    /// fault.
    ShortenedOnce(TroubleCause),
    /// It is retried twice, and then suspended.
    AskedAgain,
}

const MATRIX: &[(Fault, Expected)] = &[
    (Fault::Status("400 Bad Request", "invalid_request_error"), Expected::Suspended(TroubleCause::Request)),
    (Fault::Status("401 Unauthorized", "authentication_error"), Expected::Suspended(TroubleCause::Key)),
    (Fault::Status("403 Forbidden", "permission_error"), Expected::Suspended(TroubleCause::Key)),
    (Fault::Status("402 Payment Required", "billing_error"), Expected::Suspended(TroubleCause::Quota)),
    (Fault::Status("404 Not Found", "not_found_error"), Expected::Suspended(TroubleCause::ModelUnknown)),
    (Fault::Status("408 Request Timeout", "timeout_error"), Expected::TriedAgain),
    (Fault::Status("409 Conflict", "api_error"), Expected::TriedAgain),
    (Fault::Status("413 Too Large", "request_too_large"), Expected::ShortenedOnce(TroubleCause::Request)),
    (Fault::Status("429 Too Many", "rate_limit_error"), Expected::TriedAgain),
    (Fault::Status("429 Too Many\r\nretry-after: 17", "rate_limit_error"), Expected::TriedAgain),
    (Fault::Status("500 Internal Server Error", "api_error"), Expected::TriedAgain),
    (Fault::Status("503 Unavailable", "api_error"), Expected::TriedAgain),
    (Fault::Status("529 Overloaded", "overloaded_error"), Expected::TriedAgain),
    (Fault::TooLong, Expected::ShortenedOnce(TroubleCause::Request)),
    (Fault::Reset, Expected::TriedAgain),
    (Fault::Cut, Expected::TriedAgain),
    (Fault::Stall, Expected::TriedAgain),
    (Fault::Silent, Expected::TriedAgain),
    (Fault::Empty, Expected::TriedAgain),
    (Fault::BadJson, Expected::TriedAgain),
    (Fault::ErrorEvent, Expected::TriedAgain),
    (Fault::EmptyAnswer, Expected::AskedAgain),
];

/// A server with a fault for the next calls.
struct Server {
    fault: Fault,
    left: AtomicUsize,
}

impl Server {
    async fn answer(&self, mut stream: TcpStream) {
        read_request(&mut stream).await;
        let count = |left: usize| Some(if left == usize::MAX { left } else { left.saturating_sub(1) });
        let left = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, count);
        let (head, body) = if left == Ok(0) { good() } else { self.fault() };
        if head.is_empty() {
            if matches!(self.fault, Fault::Silent) {
                std::future::pending::<()>().await;
            }
            return;
        }
        let head = format!("HTTP/1.1 {head}\r\nconnection: close\r\n\r\n");
        let _ = stream.write_all(head.as_bytes()).await;
        let _ = stream.write_all(body.as_bytes()).await;
        if matches!(self.fault, Fault::Stall) && left != Ok(0) {
            std::future::pending::<()>().await;
        }
        let _ = stream.shutdown().await;
    }

    fn fault(&self) -> (String, String) {
        let stream = |body: String| (OK.to_owned(), body);
        match self.fault {
            Fault::Status(status, kind) => failure(status, kind, "its words"),
            Fault::TooLong => failure("400 Bad Request", "invalid_request_error", "prompt is too long"),
            Fault::Reset | Fault::Silent => (String::new(), String::new()),
            Fault::Cut | Fault::Stall => stream(events(&[START])),
            Fault::Empty => stream(String::new()),
            Fault::BadJson => stream("event: content_block_delta\ndata: {nonsense\n\n".to_owned()),
            Fault::ErrorEvent => {
                stream(events(&[r#"{"type":"error","error":{"type":"overloaded_error","message":"full"}}"#]))
            }
            Fault::EmptyAnswer => stream(events(&[START, &done("end_turn"), r#"{"type":"message_stop"}"#])),
        }
    }
}

/// Runs against a server with `fault` for `times` calls, and resumes until the run completes; returns the cause of
/// each suspension.
async fn suspensions(fault: Fault, times: usize) -> Vec<TroubleCause> {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base_url = format!("http://{}", listener.local_addr().expect("an address"));
    let server = Arc::new(Server { fault, left: AtomicUsize::new(times) });
    let mut tasks = JoinSet::new();
    let serving = server.clone();
    tasks.spawn(async move {
        let mut answering = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let server = serving.clone();
            answering.spawn(async move { server.answer(stream).await });
        }
    });
    let clock = Arc::new(SimulatedClock::at(Timestamp(1_000_000)));
    let hurried = clock.clone();
    tasks.spawn(async move {
        loop {
            hurried.advance_to_next_sleeper().await;
            tokio::task::yield_now().await;
        }
    });
    // Connection timeouts use real time, and are short.
    let limits = ModelLimits { first_event_ms: 40, gap_ms: 40, ..ModelLimits::default() };
    let model = ProviderModel::new(ProviderOptions {
        provider: Provider::new("anthropic", WireFormat::Anthropic, base_url),
        model: "claude-test".to_owned(),
        key: Some("a-key".into()),
        reasoning: None,
        limits,
        clock: Arc::new(SystemClock),
    })
    .expect("a client");
    let backend = Arc::new(EmbeddedBackend::new(MemoryStore::new(), clock.clone()).expect("a backend"));
    let models = Models::new().with("anthropic/claude-test", Arc::new(model));
    let harness = AgentHarness::new(HarnessDeps {
        clock,
        ..HarnessDeps::new(backend.clone(), models, ToolRegistry::new())
    });
    let id = RunId::from_entropy(42);
    let mut run = harness.start(id, "the goal", policy()).await.expect("it starts");
    let mut causes = Vec::new();
    loop {
        match run.run(&CancellationToken::new()).await.expect("it ends") {
            Outcome::Completed { .. } => break,
            Outcome::Paused { why: PauseReason::Model(trouble) } => {
                causes.push(trouble.cause());
                assert!(causes.len() < 8, "{fault:?}: {trouble}");
                assert!(trouble.to_string().contains("resume"), "it says what to do: {trouble}");
                if times == usize::MAX {
                    server.left.store(0, Ordering::SeqCst);
                }
                run.resume("a test", Budget::default(), None).await.expect("it goes on");
            }
            other => panic!("{fault:?} × {times}: {other:?}"),
        }
    }
    let records = backend.read(SessionId::root(id).into(), Seq::START, 10_000).await.expect("a log");
    let answers = records
        .iter()
        .filter(|record| matches!(record.entry, Entry::Conversation(ConversationEntry::AssistantMessage(_))));
    assert_eq!(answers.count(), 1, "nothing is done twice");
    causes
}

#[tokio::test]
async fn each_fault_of_a_model_s_server_is_survived_or_suspends_until_a_resume() {
    for (fault, expected) in MATRIX {
        for times in [1, 5, usize::MAX] {
            let causes = suspensions(*fault, times).await;
            let expected = match (expected, times) {
                (Expected::TriedAgain, usize::MAX) => vec![TroubleCause::Provider],
                (Expected::TriedAgain, _) | (Expected::AskedAgain, 1) => Vec::new(),
                (Expected::Suspended(cause) | Expected::ShortenedOnce(cause), usize::MAX) => vec![*cause],
                (Expected::Suspended(cause), times) => vec![*cause; times],
                (Expected::ShortenedOnce(cause), times) => vec![*cause; times / 2],
                (Expected::AskedAgain, _) => vec![TroubleCause::Answer],
            };
            assert_eq!(causes, expected, "{fault:?}, {times} times");
        }
    }
}
