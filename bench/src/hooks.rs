//! (n) What a hook that is a script costs beside the same script that is only started, and what its transcript costs.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use provost_engine::{CallDetails, HookCall, HookCallDetails};
use provost_event::{
    AssistantMessage, Block, Elapsed, HookContract, HookDecision, HookPoint, HookPolicy, HookProgram,
    HookSetup, HookTrigger, Json, ModelPolicy, OnFailure, Record, Seq, SessionId, StopReason, Timestamp,
    ToolIdentity, Usage,
};
use provost_harness::{HookAgent, HookPrograms as _, HookQuestion, HookQuestionTrigger, SystemClock};
use provost_hooks::{ProgramHooks, ProgramHooksOptions};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::Options;
use crate::case::Case;
use crate::log;
use crate::measure::Start;
use crate::sample::{Sample, in_child};
use crate::table::{self, Target};

/// A guard as users have it: it reads its input and looks at the command.
const SCRIPT: &str = "#!/bin/sh\ncase $(cat) in *'rm -rf'*) echo no >&2; exit 2;; esac\n";
/// Entries of the log that a transcript is written of.
const ENTRIES: usize = 20_000;

/// How the script is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Work {
    /// By the standard library, with the same input.
    Bare,
    /// As a hook.
    Asked,
}

/// Measures and prints.
pub(crate) fn report(options: &Options) -> anyhow::Result<()> {
    table::head("Hooks that are scripts");
    let hooks = options.sized(200, 2_000);
    for (what, work) in [("the script, only started", Work::Bare), ("the script as a hook", Work::Asked)] {
        let case = Case::Hooks { work, hooks };
        let samples =
            (0..options.runs).map(|_| in_child(&case, options.dir())).collect::<anyhow::Result<Vec<_>>>()?;
        let wall =
            samples.iter().map(|sample| sample.each(sample.wall.as_secs_f64() * 1e6)).collect::<Vec<_>>();
        table::row(what, "one after the other", "µs/hook", &wall, Target::None);
    }
    let (all_ms, next_us) = transcript();
    table::row("a transcript, written for the first time", "20,000 entries", "ms", &[all_ms], Target::None);
    table::row("the next entry of it", "20,000 entries", "µs", &[next_us], Target::AtMost(1_000.0));
    Ok(())
}

/// One run: hooks, each once the one before has answered.
pub(crate) async fn case(work: Work, hooks: usize, dir: &Path) -> anyhow::Result<Sample> {
    let script = dir.join("guard.sh");
    std::fs::write(&script, SCRIPT)?;
    let program = ProgramHooks::new(ProgramHooksOptions {
        clock: Arc::new(SystemClock),
        spill: None,
        header_env: std::collections::HashMap::new(),
        redactor: Arc::default(),
        extra_env: Vec::new(),
    });
    let (hook, question) = (policy(&script), question(dir)?);
    let cancel = CancellationToken::new();
    let start = Start::now()?;
    for _ in 0..hooks {
        match work {
            Work::Bare => bare(&script)?,
            Work::Asked => {
                let answer = program.ask(&hook, &question, HookPoint::PreToolCall, &cancel).await;
                ensure!(answer.decision == HookDecision::Continue, "{answer:?}");
            }
        }
    }
    start.sample(hooks)
}

fn bare(script: &PathBuf) -> anyhow::Result<()> {
    let mut child = Command::new("sh")
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    child.stdin.take().context("an input")?.write_all(br#"{"tool_input":{"command":"cargo test"}}"#)?;
    ensure!(child.wait_with_output()?.status.success(), "the script failed");
    Ok(())
}

fn policy(script: &Path) -> HookPolicy {
    HookPolicy {
        name: "guard".to_owned(),
        point: HookPoint::PreToolCall,
        matcher: None,
        condition: None,
        program: Some(HookProgram::Shell { command: format!("sh {}", script.display()) }),
        contract: HookContract::Claude,
        timeout_ms: 10_000,
        on_failure: OnFailure::Continue,
        may_remind: true,
        setup: HookSetup::default(),
    }
}

fn question(dir: &Path) -> anyhow::Result<HookQuestion> {
    let call = CallDetails {
        call: "toolu_00000001".into(),
        tool: Box::new(ToolIdentity::unknown("shell")),
        input: Json::parse(r#"{"command":"cargo test"}"#.to_owned())?,
        memory: None,
        why: String::new(),
        wanted: None,
    };
    let hook_call = HookCall {
        session: SessionId::root(log::RUN),
        turn: 1,
        about: HookTrigger::call(call.call.clone()),
        details: HookCallDetails::Call(call),
        limit_ms: None,
        shell: None,
        spent: Vec::new(),
    };
    Ok(HookQuestion {
        trigger: HookQuestionTrigger::HookCall(hook_call),
        workspace: dir.into(),
        folder: dir.into(),
        agent: HookAgent::default(),
        model: ModelPolicy::new("a/model", 1_000),
        transcript_path: None,
        root_transcript_path: None,
        env_file: None,
        records: Vec::new(),
        confinement: provost_process::Confinement::default(),
        voice: None,
    })
}

/// The time to write the lines of a log, and then those of one more entry: in milliseconds, and in microseconds.
fn transcript() -> (f64, f64) {
    let session = SessionId::root(log::RUN);
    let program = ProgramHooks::new(ProgramHooksOptions {
        clock: Arc::new(SystemClock),
        spill: None,
        header_env: std::collections::HashMap::new(),
        redactor: Arc::default(),
        extra_env: Vec::new(),
    });
    let mut transcript = program.transcript(HookContract::Claude, session);
    let mut lines = String::new();
    let started = Instant::now();
    for seq in 1..=ENTRIES {
        transcript.add(&record(session, seq), &mut lines);
    }
    let all_ms = started.elapsed().as_secs_f64() * 1e3;
    let started = Instant::now();
    transcript.add(&record(session, ENTRIES + 1), &mut String::new());
    (all_ms, started.elapsed().as_secs_f64() * 1e6)
}

fn record(session: SessionId, seq: usize) -> Record {
    let answer = AssistantMessage {
        turn: 1,
        call: 1,
        content: vec![Block::Text("I look at the next file.".repeat(20))],
        usage: Usage::default(),
        cost: None,
        model: "model".to_owned(),
        stop: StopReason::EndTurn,
    };
    let (at, elapsed) = (Timestamp(1_700_000_000_000), Elapsed(0));
    Record { actor: session.into(), seq: Seq(seq as u64), at, elapsed, entry: answer.into() }
}
