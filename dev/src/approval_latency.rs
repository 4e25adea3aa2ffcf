//! `cargo xtask approval-latency [N]`: how soon an approval from another process is acted on.
//!
//! One process works on a run whose agent calls a tool that needs approval, N times; this one approves each call and
//! measures the time until it has the decision, and until the tool runs there.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use async_trait::async_trait;
use provost_backend::EmbeddedBackend;
use provost_engine::{Actor, Answer, PendingApproval, SessionEvent};
use provost_event::{
    Access, AgentPolicy, ApprovalAnswer, ApprovalScope, Block, Json, Limits, ModelFailure, ModelPolicy,
    Permission, PermissionPolicy, RunId, RunPolicy, SessionId, StopReason, ToolCall, ToolSpec, ToolSubject,
    Usage,
};
use provost_harness::{
    AgentHarness, Backend, DeltaSink, HarnessDeps, Log as _, Model, ModelRequest, Models, SystemClock, Tool,
    ToolContext, ToolOutput, ToolRegistry,
};
use provost_sqlite::SqliteStore;
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

/// The command by which this program starts the process that works on the run.
pub(crate) const WORKER: &str = "approval-latency-worker";

const RUN: RunId = RunId::from_entropy(20);
const MODEL: &str = "the/model";
const TOOL: &str = "act";
/// The deadline of each step.
const DEADLINE: Duration = Duration::from_secs(20);
/// The interval of checks for the next question.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Approves `times` calls, and prints the medians and 99th percentiles.
pub(crate) fn run(times: usize) -> Result<()> {
    let folder = tempfile::tempdir_in(std::env::current_dir()?.join("target"))?;
    let program = std::env::current_exe()?;
    let mut command = Command::new(program);
    command.arg(WORKER).arg(folder.path()).arg(times.to_string());
    let mut worker = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let lines = worker.stdout.take().context("a pipe")?;
    let (sender, acted) = mpsc::channel();
    std::thread::spawn(move || {
        for _ in BufReader::new(lines).lines().map_while(Result::ok) {
            if sender.send(Instant::now()).is_err() {
                return;
            }
        }
    });
    let measured = approve_all(folder.path(), times, &acted);
    if measured.is_err() {
        worker.kill()?;
    }
    ensure!(worker.wait()?.success() || measured.is_err(), "the process that works on the run has failed");
    let Measured { decided, acted } = measured?;
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("{times} approvals from another process; load {}", load.trim());
    print("until the sender has the decision", decided);
    print("until the tool runs", acted);
    Ok(())
}

struct Measured {
    decided: Vec<Duration>,
    acted: Vec<Duration>,
}

fn approve_all(folder: &Path, times: usize, acted: &Receiver<Instant>) -> Result<Measured> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let backend = EmbeddedBackend::new(SqliteStore::open(folder.join("provost.db"))?, Arc::new(SystemClock))?;
    let mut measured = Measured { decided: Vec::new(), acted: Vec::new() };
    for _ in 0..times {
        let question = runtime.block_on(next_question(&backend))?;
        let answer = ApprovalAnswer::Allow { scope: ApprovalScope::Once, pattern: None };
        let event = SessionEvent::Resolve { asked: question.asked, answer, by: "ann".to_owned() };
        let asked = Instant::now();
        let posted = runtime.block_on(backend.post(SessionId::root(RUN).into(), event.into(), None))?;
        measured.decided.push(asked.elapsed());
        ensure!(posted.changed, "an answer didn't count");
        let ran = acted.recv_timeout(DEADLINE).context("the tool didn't run")?;
        measured.acted.push(ran.duration_since(asked));
    }
    Ok(measured)
}

async fn next_question(backend: &EmbeddedBackend) -> Result<PendingApproval> {
    let until = Instant::now() + DEADLINE;
    while Instant::now() < until {
        if let Actor::Session(state) = backend.state(SessionId::root(RUN).into()).await?
            && let Some(question) = state.approvals().next()
        {
            return Ok(question.clone());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    bail!("no question came")
}

fn print(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |percent: usize| times.get((times.len() * percent / 100).min(times.len() - 1)).copied();
    let ms = |time: Option<Duration>| time.unwrap_or_default().as_secs_f64() * 1e3;
    println!("{what}: p50 {:.2} ms, p99 {:.2} ms, max {:.2} ms", ms(at(50)), ms(at(99)), ms(at(100)));
}

/// Works on the run in `folder`, which asks for approval `times` times.
pub(crate) fn work(folder: &Path, times: u32) -> Result<()> {
    Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(async {
        let store = SqliteStore::open(folder.join("provost.db"))?;
        let backend: Arc<dyn Backend> = Arc::new(EmbeddedBackend::new(store, Arc::new(SystemClock))?);
        let models = Models::new().with(MODEL, Arc::new(Calls(times)) as Arc<dyn Model>);
        let tools = ToolRegistry::new().with(Acts(spec()));
        let agent = AgentPolicy {
            tools: vec![spec()],
            permissions: PermissionPolicy { default: Permission::Ask, ..PermissionPolicy::default() },
            limits: Limits { turns_max: u32::MAX, stuck_turns: 0, ..Limits::default() },
            ..AgentPolicy::new(ModelPolicy::new(MODEL, 1_000), folder.to_owned())
        };
        let harness = AgentHarness::new(HarnessDeps::new(backend, models, tools));
        let mut run = harness.start(RUN, "act", RunPolicy::new(agent)).await?;
        run.run(&CancellationToken::new()).await?;
        Ok(())
    })
}

fn spec() -> ToolSpec {
    ToolSpec {
        name: TOOL.to_owned(),
        description: "Writes a line.".to_owned(),
        input_schema: Json::empty_object(),
        access: Access::Anything,
        subject: ToolSubject::Opaque,
        aliases: Vec::new(),
        forms: Vec::new(),
        freeform: None,
        summary_field: None,
        idempotent: false,
        timeout_ms: 60_000,
        output_bytes_max: 1_000,
    }
}

/// A model that calls the tool this many times, and is done.
struct Calls(u32);

#[async_trait]
impl Model for Calls {
    async fn answer(
        &self,
        request: ModelRequest<'_>,
        _deltas: &dyn DeltaSink,
        _cancel: &CancellationToken,
    ) -> Result<Answer, ModelFailure> {
        let number = request.answers_before;
        let (content, stop) = if number < self.0 {
            let id = format!("call-{number}").as_str().into();
            let input =
                Json::parse(format!(r#"{{"number":{number}}}"#)).unwrap_or_else(|_| Json::empty_object());
            let call = ToolCall { id, name: TOOL.to_owned(), input, malformed: None };
            (vec![Block::ToolCall(call)], StopReason::ToolUse)
        } else {
            (vec![Block::Text("Done.".to_owned())], StopReason::EndTurn)
        };
        Ok(Answer { content, usage: Usage::default(), cost: None, model: MODEL.to_owned(), stop })
    }
}

/// Writes a line to standard output.
struct Acts(ToolSpec);

#[async_trait]
impl Tool for Acts {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, input: &Json, _context: &ToolContext) -> ToolOutput {
        let mut out = std::io::stdout().lock();
        match writeln!(out, "acted").and_then(|()| out.flush()) {
            Ok(()) => ToolOutput::ok(input.text()),
            Err(error) => ToolOutput::error(error.to_string()),
        }
    }
}
