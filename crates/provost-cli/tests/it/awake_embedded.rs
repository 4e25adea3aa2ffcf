//! The machine may sleep again after each way in which an agent's work can end, while the program goes on.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use provost_backend::{EmbeddedBackend, MemoryStore};
use provost_event::{Access, AgentPolicy, Json, ModelPolicy, RunId, RunPolicy, ToolSpec, ToolSubject};
use provost_harness::{
    AgentHarness, HarnessDeps, Models, SystemClock, Tool, ToolContext, ToolOutput, ToolRegistry, TurnState,
};
use provost_llm::ScriptedModel;
use provost_power::{KeepAwake, KeepAwakeOptions};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::awake::logind::{Logind, Manner};

/// Names the script in the environment of the program under test.
const SCRIPT: &str = "AWAKE_TEST_SCRIPT";
const OVER: &str = "over: ";

/// Works until a file says how to end.
struct Steered {
    spec: ToolSpec,
    panic: Arc<Notify>,
}

#[async_trait]
impl Tool for Steered {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, _: &Json, context: &ToolContext) -> ToolOutput {
        tokio::select! {
            () = context.cancel.cancelled() => ToolOutput::ok("stopped"),
            () = self.panic.notified() => panic!("as told"),
        }
    }
}

/// Not a test: the program under test. It runs an agent, and goes on after that.
#[test]
fn works_as_told() {
    let Ok(script) = std::env::var(SCRIPT) else { return };
    let (panic, cancel) = (Arc::new(Notify::new()), CancellationToken::new());
    let (told, stop) = (panic.clone(), cancel.clone());
    let orders = std::thread::spawn(move || {
        for order in std::io::stdin().lines() {
            if order.unwrap() == "panic" { told.notify_one() } else { stop.cancel() }
        }
    });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let harness = runtime.block_on(work(&script, panic, cancel));
    orders.join().unwrap();
    drop(harness);
}

async fn work(script: &str, panic: Arc<Notify>, cancel: CancellationToken) -> AgentHarness {
    let spec = ToolSpec {
        name: "steered".to_owned(),
        description: String::new(),
        input_schema: Json::parse(r#"{"type":"object"}"#.to_owned()).unwrap(),
        access: Access::Anything,
        subject: ToolSubject::Opaque,
        aliases: Vec::new(),
        forms: Vec::new(),
        freeform: None,
        summary_field: None,
        idempotent: false,
        timeout_ms: 60_000,
        output_bytes_max: 1_000,
    };
    let tools = ToolRegistry::new().with(Steered { spec, panic });
    let policy = RunPolicy {
        spawn: provost_event::SpawnBudget::default(),
        ..RunPolicy::new(AgentPolicy {
            tools: tools.specs(),
            ..AgentPolicy::new(ModelPolicy::new("demo/scripted", 1_000), std::env::current_dir().unwrap())
        })
    };
    let backend = Arc::new(EmbeddedBackend::new(MemoryStore::new(), Arc::new(SystemClock)).unwrap());
    let model = Arc::new(ScriptedModel::parse(script, "SCRIPT").unwrap());
    let options = KeepAwakeOptions { linger: Duration::ZERO, ..KeepAwakeOptions::default() };
    let harness = AgentHarness::new(HarnessDeps {
        power: Arc::new(KeepAwake::new(options)),
        ..HarnessDeps::new(backend, Models::new().with("demo/scripted", model), tools)
    });
    let mut run = harness.start(RunId::from_entropy(1), "go", policy).await.unwrap();
    let outcome = loop {
        if let TurnState::Done(outcome) = run.run_turn(&cancel).await.unwrap() {
            break outcome;
        }
    };
    println!("{OVER}{outcome}");
    harness
}

/// That program, as a test sees it.
struct Program {
    child: Child,
    orders: ChildStdin,
    said: BufReader<ChildStdout>,
}

impl Program {
    fn start(logind: &Logind, script: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "awake_embedded::works_as_told", "--nocapture"])
            .env(SCRIPT, script)
            .env("DBUS_SYSTEM_BUS_ADDRESS", logind.address())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (orders, said) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, orders, said }
    }

    fn order(&mut self, order: &str) {
        writeln!(self.orders, "{order}").unwrap();
    }

    /// Waits for the end of its agent's work, and returns how that came to be.
    #[track_caller]
    fn over(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert!(self.said.read_line(&mut line).unwrap() > 0, "it ended before its agent did");
            if let Some((_, outcome)) = line.split_once(OVER) {
                return outcome.trim().to_owned();
            }
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

const STEERED: &str = "
answers:
  - tools: [steered]
    delay_ms: 100
  - text: done
";

#[test]
fn after_a_tools_panic() {
    let logind = Logind::start(Manner::Grants);
    let mut program = Program::start(&logind, STEERED);
    logind.wait_until_held(1);
    program.order("panic");
    assert_eq!(program.over(), "completed, not verified");
    logind.wait_until_held(0);
}

#[test]
fn after_a_cancel() {
    let logind = Logind::start(Manner::Grants);
    let mut program = Program::start(&logind, STEERED);
    logind.wait_until_held(1);
    program.order("cancel");
    assert_eq!(program.over(), "paused by the embedding program");
    logind.wait_until_held(0);
}

#[test]
fn after_a_failure() {
    let logind = Logind::start(Manner::Grants);
    let script = "answers: [{ fault: { class: unauthorized, message: no, delay_ms: 300 } }, text: done]";
    let mut program = Program::start(&logind, script);
    logind.wait_until_held(1);
    assert_eq!(
        program.over(),
        "the provider refuses the key (demo/scripted): no; set a valid key, then resume"
    );
    logind.wait_until_held(0);
}

#[test]
fn but_not_between_two_attempts_at_a_model_call() {
    let logind = Logind::start(Manner::Grants);
    let script =
        "answers: [{ fault: { class: rate_limited, retry_after_ms: 300, delay_ms: 300 } }, text: done]";
    let mut program = Program::start(&logind, script);
    logind.wait_until_held(1);
    assert_eq!(program.over(), "completed, not verified");
    assert_eq!(logind.asked().len(), 1, "it wasn't let go");
    assert_eq!(logind.held().len(), 1);
}
