//! Eight simulated hours in which the provider fails in one way after the other: the run is completed in the end,
//! each step is done once, and waits aren't worked time. A real server on loopback, the real client, backend and
//! harness.

mod tree;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use provost_backend::{EmbeddedBackend, MemoryStore};
use provost_engine::Actor;
use provost_event::{
    Access, Budget, ConversationEntry, Entry, Json, Outcome, PauseReason, RunId, Seq, SessionId, Timestamp,
    ToolSpec, ToolSubject, TroubleCause,
};
use provost_harness::{
    AgentHarness, Clock as _, DeltaSink, HarnessDeps, Log as _, Model, ModelRequest, Models, SimulatedClock,
    SystemClock, Tool, ToolContext, ToolOutput, ToolRegistry,
};
use provost_llm::{ModelLimits, Provider, ProviderModel, ProviderOptions, WireFormat};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::provider_faults::{OK, START, STOP, done, events, failure, good, policy};

const BEGAN: Timestamp = Timestamp(1_000_000);
const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const STEP_MS: u64 = 10 * MINUTE_MS;

/// The head and the body of the response to a request's body; the flag is set near the end of the eight hours.
type Answer = fn(&str, bool) -> (String, String);

/// The provider's fault at a time; an empty head closes the connection without a response. `None`: it answers.
fn fault(elapsed_ms: u64) -> Option<(String, String)> {
    let fault = match elapsed_ms * 4 / HOUR_MS {
        2..=5 => failure("529 Overloaded", "overloaded_error", "full"),
        7..=10 => (String::new(), String::new()),
        12..=15 => failure("401 Unauthorized", "authentication_error", "the key has expired"),
        17..=18 => failure("503 Unavailable", "api_error", "down"),
        20..=23 => failure("402 Payment Required", "billing_error", "nothing is left"),
        25 => (OK.to_owned(), events(&[START])),
        27 => failure("429 Too Many\r\nretry-after: 600", "rate_limit_error", "slower"),
        _ => return None,
    };
    Some(fault)
}

/// An answer that calls the tool with the number of the step.
fn step(body: &str, is_late: bool) -> (String, String) {
    if is_late {
        return good();
    }
    let number = body.matches("\"tool_result\"").count();
    calls(&[(format!("t{number}"), "work", json!({"step": number}))])
}

/// An answer with tool calls: an id, a name and the arguments of each call.
fn calls(calls: &[(String, &str, Value)]) -> (String, String) {
    let blocks = calls.iter().enumerate().flat_map(|(index, (id, name, input))| {
        let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
        let delta = json!({"type": "input_json_delta", "partial_json": input.to_string()});
        [
            json!({"type": "content_block_start", "index": index, "content_block": block}),
            json!({"type": "content_block_delta", "index": index, "delta": delta}),
            json!({"type": "content_block_stop", "index": index}),
        ]
    });
    answer(blocks.map(|block| block.to_string()).collect(), "tool_use")
}

/// An answer of these events, as a whole stream.
fn answer(blocks: Vec<String>, stop_reason: &str) -> (String, String) {
    let mut all = vec![START.to_owned()];
    all.extend(blocks);
    all.extend([done(stop_reason), STOP.to_owned()]);
    (OK.to_owned(), events(&all.iter().map(String::as_str).collect::<Vec<_>>()))
}

/// The number of complete answers sent.
type Sent = Arc<AtomicU64>;

async fn serve(mut stream: TcpStream, clock: Arc<SimulatedClock>, answer: Answer, sent: Sent) {
    let mut request = Vec::new();
    let mut chunk = [0; 4096];
    let body = loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let mut lengths = head.lines().filter_map(|line| {
                line.to_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok()
            });
            if body.len() >= lengths.next().unwrap_or(0) {
                break body.to_owned();
            }
        }
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => return,
            Ok(read) => request.extend_from_slice(&chunk[..read]),
        }
    };
    let elapsed_ms = clock.now().since_ms(BEGAN);
    let (head, body) = fault(elapsed_ms).unwrap_or_else(|| {
        sent.fetch_add(1, Ordering::SeqCst);
        answer(&body, elapsed_ms >= 8 * HOUR_MS)
    });
    if !head.is_empty() {
        let head = format!("HTTP/1.1 {head}\r\nconnection: close\r\n\r\n");
        let _ = stream.write_all(head.as_bytes()).await;
        let _ = stream.write_all(body.as_bytes()).await;
        let _ = stream.shutdown().await;
    }
}

/// A tool that takes ten minutes, and its finished work.
struct Work {
    spec: ToolSpec,
    clock: Arc<SimulatedClock>,
    done: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl Tool for Work {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, input: &Json, _: &ToolContext) -> ToolOutput {
        self.clock.sleep(std::time::Duration::from_millis(STEP_MS)).await;
        self.done.lock().expect("what is done").push(input.text().to_owned());
        ToolOutput::ok(format!("did {}", input.text()))
    }
}

type InFlight = watch::Sender<usize>;

/// A model whose answers take no simulated time.
struct TakesNoTime {
    model: ProviderModel,
    in_flight: InFlight,
}

#[async_trait]
impl Model for TakesNoTime {
    async fn answer(
        &self,
        request: ModelRequest<'_>,
        deltas: &dyn DeltaSink,
        cancel: &CancellationToken,
    ) -> Result<provost_engine::Answer, provost_event::ModelFailure> {
        self.in_flight.send_modify(|calls| *calls += 1);
        let answer = self.model.answer(request, deltas, cancel).await;
        self.in_flight.send_modify(|calls| *calls -= 1);
        answer
    }
}

/// A model with a server that lives as long as `tasks`, as does the task that advances `clock`; and the number of
/// its answers.
async fn provider(
    clock: &Arc<SimulatedClock>,
    answer: Answer,
    tasks: &mut JoinSet<()>,
) -> (TakesNoTime, Sent) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base_url = format!("http://{}", listener.local_addr().expect("an address"));
    let sent = Sent::default();
    let counted = sent.clone();
    let serving = clock.clone();
    let in_flight = InFlight::new(0);
    let hurried = clock.clone();
    let mut calls = in_flight.subscribe();
    tasks.spawn(async move {
        let mut answering = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            answering.spawn(serve(stream, serving.clone(), answer, counted.clone()));
        }
    });
    tasks.spawn(async move {
        while calls.wait_for(|calls| *calls == 0).await.is_ok() {
            tokio::select! {
                biased;
                _ = calls.changed() => {}
                _ = hurried.advance_to_next_sleeper() => tokio::task::yield_now().await,
            }
        }
    });
    let model = ProviderModel::new(ProviderOptions {
        provider: Provider::new("anthropic", WireFormat::Anthropic, base_url),
        model: "claude-test".to_owned(),
        key: Some("a-key".into()),
        reasoning: None,
        limits: ModelLimits::default(),
        clock: Arc::new(SystemClock),
    });
    (TakesNoTime { model: model.expect("a client"), in_flight }, sent)
}

fn work_spec() -> ToolSpec {
    ToolSpec {
        name: "work".into(),
        description: String::new(),
        input_schema: Json::empty_object(),
        access: Access::Anything,
        subject: ToolSubject::Opaque,
        aliases: Vec::new(),
        forms: Vec::new(),
        freeform: None,
        summary_field: None,
        idempotent: false,
        timeout_ms: HOUR_MS,
        output_bytes_max: 10_000,
    }
}

#[tokio::test]
async fn a_night_in_which_the_provider_fails_in_every_way_ends_with_the_work_done_once() {
    let clock = Arc::new(SimulatedClock::at(BEGAN));
    let mut tasks = JoinSet::new();
    let (model, _) = provider(&clock, step, &mut tasks).await;
    let did = Arc::new(Mutex::new(Vec::new()));
    let work = Work { spec: work_spec(), clock: clock.clone(), done: did.clone() };
    let backend = Arc::new(EmbeddedBackend::new(MemoryStore::new(), clock.clone()).expect("a backend"));
    let models = Models::new().with("anthropic/claude-test", Arc::new(model));
    let tools = ToolRegistry::new().with(work);
    let harness = AgentHarness::new(HarnessDeps {
        clock: clock.clone(),
        ..HarnessDeps::new(backend.clone(), models, tools)
    });
    let mut policy = policy();
    policy.agent.tools = vec![work_spec()];
    policy.agent.limits.outage_max_ms = 8 * HOUR_MS;
    policy.agent.limits.stuck_turns = 0;
    let id = RunId::from_entropy(8);
    let mut run = harness.start(id, "the goal", policy).await.expect("it starts");
    let mut causes = Vec::new();
    loop {
        match run.run(&CancellationToken::new()).await.expect("it ends") {
            Outcome::Completed { .. } => break,
            Outcome::Paused { why: PauseReason::Model(trouble) } => {
                causes.push(trouble.cause());
                assert!(causes.len() < 4, "{trouble}");
                // A new key takes an hour, and so does more money.
                clock.advance_ms(HOUR_MS);
                run.resume("a test", Budget::default(), None).await.expect("it goes on");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(causes, [TroubleCause::Key, TroubleCause::Quota]);
    let night_ms = clock.now().since_ms(BEGAN);
    assert!(night_ms >= 8 * HOUR_MS, "{night_ms}");
    let did = did.lock().expect("what is done").clone();
    let each_once = (0..did.len()).map(|step| format!("{{\"step\":{step}}}")).collect::<Vec<_>>();
    assert_eq!(did, each_once);
    let Actor::Run(state) = backend.state(id.into()).await.expect("a run") else { panic!("no run") };
    let worked_ms = state.active_ms();
    let steps_ms = did.len() as u64 * STEP_MS;
    assert!(
        worked_ms >= steps_ms && worked_ms < steps_ms + HOUR_MS,
        "worked {worked_ms} of {night_ms}, {steps_ms} in steps"
    );
    let records = backend.read(SessionId::root(id).into(), Seq::START, 10_000).await.expect("a log");
    let answers = records
        .iter()
        .filter(|record| matches!(record.entry, Entry::Conversation(ConversationEntry::AssistantMessage(_))))
        .count();
    assert_eq!(answers, did.len() + 1);
    assert!(did.len() >= 8, "{did:?}");
}
