//! A night of eight simulated hours in which the provider fails in one way after the other: the run is done in the
//! morning, each thing once, and waiting was no work. A real server on loopback, the real client, home and harness.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use provost_engine::Actor;
use provost_event::{
    Access, Budget, Entry, Json, Outcome, PauseReason, RunId, Seq, SessionId, Timestamp, ToolSpec,
    TroubleCause,
};
use provost_harness::{
    AgentHarness, Clock as _, HarnessDeps, Home, Models, SimulatedClock, SystemClock, Tool, ToolContext,
    ToolOutput, Toolbox, read_actor,
};
use provost_llm::{ModelLimits, Provider, ProviderModel, ProviderOptions, WireFormat};
use provost_store::{LocalHome, MemoryStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::provider_faults::{OK, START, STOP, done, events, failure, good, policy};

const BEGAN: Timestamp = Timestamp(1_000_000);
const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const STEP_MS: u64 = 10 * MINUTE_MS;

/// What the provider does at a time of the night; an empty head closes the connection without a word.
fn reply(elapsed_ms: u64, steps: usize) -> (String, String) {
    match elapsed_ms * 4 / HOUR_MS {
        2..=5 => failure("529 Overloaded", "overloaded_error", "full"),
        7..=10 => (String::new(), String::new()),
        12..=15 => failure("401 Unauthorized", "authentication_error", "the key has expired"),
        17..=18 => failure("503 Unavailable", "api_error", "down"),
        20..=23 => failure("402 Payment Required", "billing_error", "nothing is left"),
        25 => (OK.to_owned(), events(&[START])),
        27 => failure("429 Too Many\r\nretry-after: 600", "rate_limit_error", "slower"),
        32.. => good(),
        _ => step(steps),
    }
}

/// An answer that calls the tool with the number of the step.
fn step(number: usize) -> (String, String) {
    let start = format!(
        r#"{{"type":"content_block_start","index":0,"content_block":{{"type":"tool_use","id":"t{number}","name":"work","input":{{}}}}}}"#
    );
    let input = format!(
        r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"input_json_delta","partial_json":"{{\"step\":{number}}}"}}}}"#
    );
    let stop = r#"{"type":"content_block_stop","index":0}"#;
    (OK.to_owned(), events(&[START, &start, &input, stop, &done("tool_use"), STOP]))
}

async fn serve(mut stream: TcpStream, clock: Arc<SimulatedClock>) {
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
    let steps = body.matches("\"tool_result\"").count();
    let (head, body) = reply(clock.now().since_ms(BEGAN), steps);
    if !head.is_empty() {
        let head = format!("HTTP/1.1 {head}\r\nconnection: close\r\n\r\n");
        let _ = stream.write_all(head.as_bytes()).await;
        let _ = stream.write_all(body.as_bytes()).await;
        let _ = stream.shutdown().await;
    }
}

/// A tool that takes ten minutes, and what it has done.
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

/// A model behind a server that lives as long as `tasks`, as does what moves `clock` on.
async fn provider(clock: &Arc<SimulatedClock>, tasks: &mut JoinSet<()>) -> ProviderModel {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base_url = format!("http://{}", listener.local_addr().expect("an address"));
    let serving = clock.clone();
    let hurried = clock.clone();
    tasks.spawn(async move {
        let mut answering = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            answering.spawn(serve(stream, serving.clone()));
        }
    });
    tasks.spawn(async move {
        loop {
            hurried.advance_to_next_sleeper().await;
            tokio::task::yield_now().await;
        }
    });
    ProviderModel::new(ProviderOptions {
        provider: Provider::new("anthropic", WireFormat::Anthropic, base_url),
        model: "claude-test".to_owned(),
        key: Some("a-key".into()),
        reasoning: None,
        limits: ModelLimits::default(),
        clock: Arc::new(SystemClock),
    })
    .expect("a client")
}

#[tokio::test]
async fn a_night_in_which_the_provider_fails_in_every_way_ends_with_the_work_done_once() {
    let clock = Arc::new(SimulatedClock::at(BEGAN));
    let mut tasks = JoinSet::new();
    let model = provider(&clock, &mut tasks).await;
    let did = Arc::new(Mutex::new(Vec::new()));
    let spec = ToolSpec {
        name: "work".into(),
        description: String::new(),
        input_schema: Json::empty_object(),
        access: Access::Anything,
        idempotent: false,
        timeout_ms: HOUR_MS,
        output_bytes_max: 10_000,
    };
    let work = Work { spec: spec.clone(), clock: clock.clone(), done: did.clone() };
    let home = Arc::new(LocalHome::new(MemoryStore::new(), clock.clone()).expect("a home"));
    let models = Models::new().with("anthropic/claude-test", Arc::new(model));
    let tools = Toolbox::new().with(work);
    let harness = AgentHarness::new(HarnessDeps {
        clock: clock.clone(),
        ..HarnessDeps::new(home.clone(), models, tools)
    });
    let mut policy = policy();
    policy.agent.tools = vec![spec];
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
    let Actor::Run(state) = read_actor(&*home, id.into()).await.expect("a run") else { panic!("no run") };
    let worked_ms = state.active_ms();
    let steps_ms = did.len() as u64 * STEP_MS;
    assert!(
        worked_ms >= steps_ms && worked_ms < steps_ms + HOUR_MS,
        "worked {worked_ms} of {night_ms}, {steps_ms} in steps"
    );
    let records = home.read(SessionId::root(id).into(), Seq::START, 10_000).await.expect("a log");
    let answers = records.iter().filter(|record| matches!(record.entry, Entry::AssistantMessage(_))).count();
    assert_eq!(answers, did.len() + 1);
    assert!(did.len() >= 8, "{did:?}");
}
