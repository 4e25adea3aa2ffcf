//! Agents that call a tool each turn, and workers that perform their effects.

use std::collections::{BTreeMap, HashSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt as _;
use provost_engine::{Answer, Effect, Event, RunEvent, SessionEvent, ToolResult};
use provost_event::{
    Access, AgentPolicy, Block, Budget, CallFacts, EffectId, Entry, Json, LifecycleEntry, Limits,
    ModelPolicy, RunId, RunPolicy, Seq, SpawnBudget, StopReason, ToolCall, ToolSpec, ToolStatus, Usage,
};
use provost_harness::{Executor, Log as _, Worker as _};
use provost_restate::RestateBackend;
use tokio_util::sync::CancellationToken;

/// A policy with a tool that may be repeated, `look`, and one that must not be, `once`.
pub(crate) fn policy() -> RunPolicy {
    let tool = |name: &str, idempotent: bool| ToolSpec {
        access: Access::Reads,
        idempotent,
        ..ToolSpec::new(name, "does something", Json::empty_object())
    };
    let agent = AgentPolicy {
        system_prompt: "Be brief.".to_owned(),
        tools: vec![tool("look", true), tool("once", false)],
        limits: Limits { turns_max: 1000, ..Limits::default() },
        ..AgentPolicy::new(ModelPolicy::new("by/hand", 1000), PathBuf::from("/somewhere"))
    };
    RunPolicy { budget: Budget::default(), spawn: SpawnBudget::default(), ..RunPolicy::new(agent) }
}

pub(crate) fn start() -> RunEvent {
    start_with(policy())
}

pub(crate) fn start_with(policy: RunPolicy) -> RunEvent {
    RunEvent::Start {
        goal: "a goal".to_owned(),
        images: Vec::new(),
        policy: Box::new(policy),
        baseline: None,
    }
}

/// Answers with turns of one call of `tool` each, and notes each run of it in a file. The folder's files
/// `die` and `hang` have one run of it end or stop this process before it is noted.
#[derive(Debug, Clone)]
pub(crate) struct Scripted {
    pub(crate) folder: PathBuf,
    pub(crate) tool: &'static str,
    pub(crate) turns: u32,
    pub(crate) takes: Duration,
}

#[async_trait]
impl Executor for Scripted {
    async fn run(&self, id: EffectId, effect: Effect, cancel: CancellationToken) -> Event {
        let seq = id.seq;
        match effect {
            Effect::CallModel(call) => {
                tokio::time::sleep(self.takes).await;
                let answer = if call.answers_before < self.turns {
                    calls(&[self.tool], seq)
                } else {
                    done("Done.".to_owned())
                };
                SessionEvent::Answered { seq, answer }.into()
            }
            Effect::RunTool(_) => {
                if taken(&self.folder.join("die")) {
                    std::process::abort();
                }
                if taken(&self.folder.join("hang")) {
                    cancel.cancelled().await;
                    std::future::pending::<()>().await;
                }
                note(&self.folder, id);
                tokio::time::sleep(self.takes).await;
                SessionEvent::ToolDone { seq, result: tool_ran("seen".to_owned()) }.into()
            }
            other => panic!("unexpected effect {other:?}"),
        }
    }
}

fn taken(file: &Path) -> bool {
    std::fs::remove_file(file).is_ok()
}

fn note(folder: &Path, id: EffectId) {
    let path = folder.join("tools");
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).expect("a file");
    file.write_all(format!("{id}\n").as_bytes()).expect("a note");
}

/// How often each effect of a tool was run.
pub(crate) fn tools_run(folder: &Path) -> BTreeMap<String, usize> {
    let noted = std::fs::read_to_string(folder.join("tools")).unwrap_or_default();
    let mut counts = BTreeMap::new();
    noted.lines().for_each(|id| *counts.entry(id.to_owned()).or_default() += 1);
    counts
}

fn answer(content: Vec<Block>, stop: StopReason) -> Answer {
    Answer { cost: None, content, usage: Usage::default(), model: "by-hand".to_owned(), stop }
}

pub(crate) fn done(text: String) -> Answer {
    answer(vec![Block::Text(text)], StopReason::EndTurn)
}

/// An answer that calls each of these tools.
pub(crate) fn calls(tools: &[&str], seq: Seq) -> Answer {
    let call = |(number, tool): (usize, &&str)| ToolCall {
        id: format!("call-{seq}-{number}").as_str().into(),
        name: (*tool).to_owned(),
        input: Json::parse(format!(r#"{{"at":{seq}}}"#)).expect("JSON"),
        malformed: None,
    };
    answer(tools.iter().enumerate().map(call).map(Block::ToolCall).collect(), StopReason::ToolUse)
}

pub(crate) fn tool_ran(output: String) -> ToolResult {
    ToolResult {
        tools: Vec::new(),
        asks: None,
        plan: None,
        facts: CallFacts::default(),
        status: ToolStatus::Ok,
        output,
        images: Vec::new(),
        whole: None,
        duration_ms: 1,
        memory: None,
    }
}

/// Takes runs and performs their effects until `stop` fires; then releases them.
pub(crate) async fn work_as_worker(backend: RestateBackend, executor: Scripted, stop: CancellationToken) {
    let mut tasks = tokio::task::JoinSet::new();
    let taken = Arc::new(Mutex::new(HashSet::<RunId>::new()));
    while !stop.is_cancelled() {
        for run in backend.waiting_runs(100).await.unwrap_or_default() {
            if taken.lock().expect("a lock").insert(run) {
                let (backend, executor, taken) = (backend.clone(), executor.clone(), Arc::clone(&taken));
                let stop = stop.clone();
                tasks.spawn(async move {
                    hold(&backend, run, executor, stop).await;
                    taken.lock().expect("a lock").remove(&run);
                });
            }
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(Duration::from_millis(200)) => {}
        }
    }
    while tasks.join_next().await.is_some() {}
}

async fn hold(backend: &RestateBackend, run: RunId, executor: Scripted, stop: CancellationToken) {
    let Ok(guard) = backend.serve(run, Arc::new(executor), CancellationToken::new()).await else { return };
    let ended = async {
        let mut records = backend.subscribe(run.into(), Seq::START);
        while let Some(record) = records.next().await {
            let is_end =
                record.is_ok_and(|record| matches!(record.entry, Entry::Lifecycle(LifecycleEntry::Ended(_))));
            if is_end {
                break;
            }
        }
    };
    tokio::select! {
        () = ended => {}
        _ = guard.failed() => {}
        () = stop.cancelled() => {}
    }
    guard.release().await;
}
