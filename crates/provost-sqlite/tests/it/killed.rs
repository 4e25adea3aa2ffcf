//! A process that serves a long run is killed repeatedly: each process that opens the run finds it as its log has
//! it.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use provost_backend::EmbeddedBackend;
use provost_engine::{Answer, Effect, Event, RunEvent, SessionEvent, ToolResult};
use provost_event::{
    Block, Budget, EffectId, ErrorClass, Json, Limits, ModelFailure, Purpose, RunPolicy, Seq, StopReason,
    ToolCall, ToolStatus, Usage,
};
use provost_harness::{Executor, Log as _, SystemClock, Worker as _};
use provost_sqlite::SqliteStore;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::snapshots::{check, check_snapshots, root};
use crate::support::{policy, run, start};

const ENTRIES: Seq = Seq(5_000);
const KILLS: usize = 8;

/// A model that calls tools forever, and tools that sometimes fail; each model call is reported.
struct Eventful {
    random: Mutex<fastrand::Rng>,
    called: mpsc::UnboundedSender<()>,
}

#[async_trait]
impl Executor for Eventful {
    async fn run(&self, id: EffectId, effect: Effect, _: CancellationToken) -> Event {
        let (seq, mut random) = (id.seq, self.random.lock().unwrap().fork());
        match effect {
            Effect::CallModel(_) if random.u8(..) < 8 => {
                let failure = ModelFailure::new(ErrorClass::Overloaded, "busy");
                let failure = ModelFailure { retry_after_ms: Some(1), ..failure };
                SessionEvent::ModelFailed { seq, failure }.into()
            }
            Effect::CallModel(model_call) => {
                let _ = self.called.send(());
                SessionEvent::Answered { seq, answer: answer(model_call.purpose, seq, &mut random) }.into()
            }
            Effect::RunTool(call) => {
                let failed = random.u8(..) < 25;
                let result = ToolResult {
                    tools: Vec::new(),
                    asks: None,
                    plan: None,
                    facts: provost_event::CallFacts::default(),
                    status: if failed { ToolStatus::Error } else { ToolStatus::Ok },
                    output: format!("{seq}: {}", "a line of it\n".repeat(random.usize(1..60))),
                    images: Vec::new(),
                    whole: None,
                    duration_ms: 1,
                    memory: (!failed).then(|| call.input.clone()),
                };
                SessionEvent::ToolDone { seq, result }.into()
            }
            other => panic!("unexpected effect {other:?}"),
        }
    }
}

fn answer(purpose: Purpose, seq: Seq, random: &mut fastrand::Rng) -> Answer {
    let call = |number: usize| {
        Block::ToolCall(ToolCall {
            id: format!("call-{seq}-{number}").as_str().into(),
            name: "look".to_owned(),
            input: Json::parse(format!(r#"{{"at":{}}}"#, random.u8(..))).unwrap(),
            malformed: None,
        })
    };
    let (content, stop) = match purpose {
        Purpose::Turn => ((0..20).map(call).collect(), StopReason::ToolUse),
        Purpose::Summary | Purpose::FinalSummary | Purpose::Judge | Purpose::External | Purpose::Hook => {
            (vec![Block::Text(format!("Up to {seq} I looked."))], StopReason::EndTurn)
        }
    };
    Answer { cost: None, content, usage: Usage::default(), model: "by-hand".to_owned(), stop }
}

/// A conversation that must be shortened now and then.
fn narrow() -> RunPolicy {
    let mut policy = policy(Budget::default(), u32::MAX);
    policy.agent.limits = Limits { turns_max: u32::MAX, ..policy.agent.limits };
    policy.agent.model.window_tokens = Some(16_000);
    policy
}

fn open(path: &Path) -> EmbeddedBackend {
    EmbeddedBackend::new(SqliteStore::open(path).unwrap(), Arc::new(SystemClock)).unwrap()
}

/// Not a test: the process that the next test kills.
#[tokio::test]
#[ignore = "started by another test"]
async fn process_that_works_for_long() {
    let Some(path) = std::env::var_os("PROVOST_TEST_DATABASE") else { return };
    let backend = open(Path::new(&path));
    let (called, mut calls) = mpsc::unbounded_channel();
    let executor = Eventful { random: Mutex::new(fastrand::Rng::new()), called };
    let _guard = backend.serve(run(1), Arc::new(executor), CancellationToken::new()).await.unwrap();
    backend.post(run(1).into(), start(narrow()).into(), Some("start")).await.unwrap();
    let mut random = fastrand::Rng::new();
    while calls.recv().await.is_some() {
        println!("called");
        std::io::stdout().flush().unwrap();
        if random.u8(..) < 50 {
            let say = RunEvent::Say { agent: 0, text: "And the others?".to_owned(), by: "ann".to_owned() };
            backend.post(run(1).into(), say.into(), None).await.unwrap();
        }
    }
}

fn start_process(path: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "killed::process_that_works_for_long", "--ignored", "--nocapture"]);
    command.env("PROVOST_TEST_DATABASE", path).stdin(Stdio::null()).stdout(Stdio::piped());
    command.spawn().unwrap()
}

/// Starts a process, and kills it as soon as it has made this many model calls.
fn work_and_be_killed(path: &Path, calls: usize) {
    let mut process = start_process(path);
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let seen = lines.map(Result::unwrap).filter(|line| line.contains("called")).take(calls).count();
    process.kill().unwrap();
    process.wait().unwrap();
    assert_eq!(seen, calls, "it ended by itself");
}

#[tokio::test]
async fn a_long_run_whose_process_is_killed_anywhere_stands_as_its_whole_log() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("provost.db");
    let (mut head, mut kills) = (Seq::START, 0);
    while head < ENTRIES || kills < KILLS {
        work_and_be_killed(&path, fastrand::usize(3..32));
        let backend = open(&path);
        let after = check(&backend, root()).await;
        assert!(after > head, "it went on");
        check(&backend, run(1).into()).await;
        (head, kills) = (after, kills + 1);
    }
    let backend = open(&path);
    assert!(check_snapshots(&backend, root()).await >= 4);
    check_snapshots(&backend, run(1).into()).await;
    let records = backend.read(root(), Seq::START, usize::MAX).await.unwrap();
    let kinds = records.iter().map(|record| record.entry.kind()).collect::<BTreeSet<_>>();
    for kind in ["compacted", "retry", "resumed", "snapshot", "user_message"] {
        assert!(kinds.contains(kind), "there is no {kind} in it");
    }
}
