//! A run whose judge's evidence is recorded: real tools, files, hooks and git.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use expect_test::Expect;
use futures::stream::BoxStream;
use provost_backend::{EmbeddedBackend, MemoryStore};
use provost_engine::{Answer, Event, judged_spawn_tool};
use provost_event::{
    ActorKey, AgentPolicy, BlobId, Block, CallId, GoalPolicy, Json, Limits, ModelFailure, ModelPolicy,
    Outcome, Purpose, Record, RunId, RunPolicy, Seq, SessionId, StepMode, StopHookPolicy, StopReason,
    ToolCall, Usage,
};
use provost_harness::{
    AgentHarness, BackendError, Blobs, Catalog, DeltaSink, Executor, HarnessDeps, Holder, Log, Model,
    ModelRequest, Models, Part, PlacedEntry, PlacedRecord, Posted, Redactor, RunLease, RunPosition, RunQuery,
    RunSummary, SystemClock, ToolRegistry, Worker,
};
use provost_tools::{EditFile, Shell, UpdatePlan, WriteFile};
use secrecy::SecretString;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

const RUN: RunId = RunId::from_entropy(808);
const DEADLINE: Duration = Duration::from_secs(20);
const YES: &str = r#"{"achieved": true, "reasoning": "It is there.", "confidence": 0.9}"#;

// ---- who speaks ---------------------------------------------------------------------------------------------------

/// An agent's answer: text, then calls.
pub(crate) type Line = (String, Vec<(&'static str, Value)>);

/// Answers by a function of the agent's number and of the number of its answers so far.
struct Agent<F> {
    line: F,
    read: Arc<AtomicUsize>,
}

fn usage() -> Usage {
    Usage { input_tokens: 10, output_tokens: 10, ..Usage::default() }
}

#[async_trait]
impl<F: Fn(u32, u32) -> Line + Send + Sync> Model for Agent<F> {
    async fn answer(
        &self,
        request: ModelRequest<'_>,
        _: &dyn DeltaSink,
        _: &CancellationToken,
    ) -> Result<Answer, ModelFailure> {
        self.read.store(0, Ordering::SeqCst);
        let (text, calls) = match request.purpose {
            Purpose::FinalSummary => ("I was not done, but the condition is met.".to_owned(), Vec::new()),
            _ => (self.line)(request.session.agent, request.answers_before),
        };
        let stop = if calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse };
        let mut content = Vec::new();
        if !text.is_empty() {
            content.push(Block::Text(text));
        }
        content.extend(calls.into_iter().zip(1..).map(|((name, input), place)| {
            Block::ToolCall(ToolCall {
                // The same ids in each answer, as with some providers.
                id: CallId::from(format!("call_{place}").as_str()),
                name: name.to_owned(),
                input: Json::of(&input).unwrap(),
                malformed: None,
            })
        }));
        Ok(Answer { cost: None, content, usage: usage(), model: "agent".into(), stop })
    }
}

/// Finds everything achieved, and records its prompt and how many entries were read for it.
#[derive(Default)]
struct Judge {
    asked: Mutex<Vec<(String, usize)>>,
    read: Arc<AtomicUsize>,
}

#[async_trait]
impl Model for Judge {
    async fn answer(
        &self,
        request: ModelRequest<'_>,
        _: &dyn DeltaSink,
        _: &CancellationToken,
    ) -> Result<Answer, ModelFailure> {
        let parts = request.messages.iter().flat_map(|message| &message.parts);
        let texts = parts.filter_map(|part| match part {
            Part::Block(Block::Text(text)) => Some(text.as_str()),
            _ => None,
        });
        self.asked.lock().unwrap().push((texts.collect(), self.read.load(Ordering::SeqCst)));
        let content = vec![Block::Text(YES.to_owned())];
        Ok(Answer { cost: None, content, usage: usage(), model: "judge".into(), stop: StopReason::EndTurn })
    }
}

/// A backend that counts the entries read.
struct Counted {
    backend: EmbeddedBackend,
    read: Arc<AtomicUsize>,
}

#[async_trait]
impl Blobs for Counted {
    async fn put_blob(&self, body: Vec<u8>) -> Result<BlobId, BackendError> {
        self.backend.put_blob(body).await
    }

    async fn get_blob(&self, id: &BlobId) -> Result<Option<Vec<u8>>, BackendError> {
        self.backend.get_blob(id).await
    }
}

#[async_trait]
impl Log for Counted {
    async fn post(&self, key: ActorKey, event: Event, dedup: Option<&str>) -> Result<Posted, BackendError> {
        self.backend.post(key, event, dedup).await
    }

    async fn read(&self, key: ActorKey, after: Seq, max: usize) -> Result<Vec<Arc<Record>>, BackendError> {
        let records = self.backend.read(key, after, max).await?;
        self.read.fetch_add(records.len(), Ordering::SeqCst);
        Ok(records)
    }

    async fn newest_snapshot(&self, key: ActorKey) -> Result<Option<Arc<Record>>, BackendError> {
        self.read.fetch_add(1, Ordering::SeqCst);
        self.backend.newest_snapshot(key).await
    }

    async fn actors(&self, run: RunId) -> Result<Vec<ActorKey>, BackendError> {
        self.backend.actors(run).await
    }

    fn subscribe(&self, key: ActorKey, after: Seq) -> BoxStream<'static, Result<Arc<Record>, BackendError>> {
        self.backend.subscribe(key, after)
    }

    async fn order(
        &self,
        run: RunId,
        after: RunPosition,
        max: usize,
    ) -> Result<Vec<PlacedEntry>, BackendError> {
        self.backend.order(run, after, max).await
    }

    async fn run_head(&self, run: RunId) -> Result<RunPosition, BackendError> {
        self.backend.run_head(run).await
    }

    fn subscribe_run(
        &self,
        run: RunId,
        after: RunPosition,
    ) -> BoxStream<'static, Result<PlacedRecord, BackendError>> {
        self.backend.subscribe_run(run, after)
    }
}

#[async_trait]
impl Catalog for Counted {
    async fn list(&self, query: RunQuery) -> Result<Vec<RunSummary>, BackendError> {
        self.backend.list(query).await
    }

    async fn get(&self, run: RunId) -> Result<Option<RunSummary>, BackendError> {
        self.backend.get(run).await
    }

    async fn find(&self, prefix: &str, max: usize) -> Result<Vec<RunSummary>, BackendError> {
        self.backend.find(prefix, max).await
    }
}

#[async_trait]
impl Worker for Counted {
    async fn serve(
        &self,
        run: RunId,
        executor: Arc<dyn Executor>,
        stop: CancellationToken,
    ) -> Result<Box<dyn RunLease>, BackendError> {
        self.backend.serve(run, executor, stop).await
    }

    async fn holder(&self, run: RunId) -> Result<Option<Holder>, BackendError> {
        self.backend.holder(run).await
    }
}

// ---- the stage ----------------------------------------------------------------------------------------------------

pub(crate) struct Stage {
    folder: TempDir,
    pub(crate) secrets: Vec<SecretString>,
    pub(crate) goal: GoalPolicy,
    pub(crate) limits: Limits,
    pub(crate) stop_hooks: Vec<StopHookPolicy>,
    /// Messages to the agent before it starts.
    pub(crate) said: Vec<&'static str>,
    /// The folder for worktrees; without it no agents are spawned.
    pub(crate) trees: Option<PathBuf>,
    /// The folder below that is the workspace.
    pub(crate) part: Option<&'static str>,
}

pub(crate) struct Played {
    pub(crate) asked: Vec<String>,
    /// Entries read for each question.
    pub(crate) read: Vec<usize>,
    /// Entries of the root's log at the end.
    pub(crate) entries: usize,
    pub(crate) outcome: Outcome,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let judge = ModelPolicy::new("judge", 300);
        Self {
            folder: tempfile::tempdir().unwrap(),
            secrets: Vec::new(),
            goal: GoalPolicy::new("greeting.txt says hello.", judge),
            limits: Limits::default(),
            stop_hooks: Vec::new(),
            said: Vec::new(),
            trees: None,
            part: None,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A repository with a commit, created before the agent starts.
    pub(crate) fn with_git(self) -> Self {
        std::fs::write(self.path().join("old.txt"), "one\ntwo\n").unwrap();
        std::fs::write(self.path().join("test.sh"), "grep -q hello greeting.txt\n").unwrap();
        let script = "git init -q && git add -A && \
             GIT_COMMITTER_DATE='2020-01-01T00:00:00Z' git -c user.name=a -c user.email=a@b -c commit.gpgsign=false commit -qm first";
        let done = Command::new("/bin/sh").args(["-c", script]).current_dir(self.path()).status().unwrap();
        assert!(done.success());
        self
    }

    fn policy(&self, tools: &ToolRegistry) -> RunPolicy {
        let mut tools = tools.specs();
        tools.extend(self.trees.is_some().then(judged_spawn_tool));
        RunPolicy {
            judging: Some(Box::new(self.goal.clone())),
            worktrees: self.trees.clone(),
            ..RunPolicy::new(AgentPolicy {
                goal: Some(Box::new(self.goal.clone())),
                tools,
                limits: self.limits,
                stop_hooks: self.stop_hooks.clone(), // Messages before the agent's start are part of its first turn.
                step_mode: if self.said.is_empty() { StepMode::Free } else { StepMode::Stepped },
                ..AgentPolicy::new(
                    ModelPolicy::new("agent", 1_000),
                    self.part.map_or_else(|| self.path().to_owned(), |part| self.path().join(part)),
                )
            })
        }
    }

    /// The judge's prompts for an agent that answers `lines`, and then claims to be done.
    pub(crate) async fn plays(&self, lines: Vec<Line>) -> Vec<String> {
        let line = move |_, answers: u32| {
            let line = lines.get(usize::try_from(answers).unwrap());
            line.cloned().unwrap_or_else(|| ("It is done.".to_owned(), Vec::new()))
        };
        self.runs(line).await.asked
    }

    pub(crate) async fn runs(&self, line: impl Fn(u32, u32) -> Line + Send + Sync + 'static) -> Played {
        let read = Arc::new(AtomicUsize::new(0));
        let backend = EmbeddedBackend::new(MemoryStore::new(), Arc::new(SystemClock)).unwrap();
        let backend = Arc::new(Counted { backend, read: read.clone() });
        let log = backend.clone();
        let judge = Arc::new(Judge { read: read.clone(), ..Judge::default() });
        let agent = Arc::new(Agent { line, read });
        let models = Models::new().with("agent", agent).with("judge", judge.clone());
        let tools = ToolRegistry::new()
            .with(Shell::new())
            .with(WriteFile::new())
            .with(EditFile::new())
            .with(UpdatePlan::new());
        let policy = self.policy(&tools);
        let deps = HarnessDeps {
            redactor: Arc::new(Redactor::new(self.secrets.clone())),
            ..HarnessDeps::new(backend, models, tools)
        };
        let mut run =
            AgentHarness::new(deps).start(RUN, "Make greeting.txt say hello.", policy).await.unwrap();
        for words in &self.said {
            run.control("ann").say(0, *words).await.unwrap();
        }
        let outcome = timeout(DEADLINE, run.run(&CancellationToken::new())).await.expect("it ends").unwrap();
        let (asked, read) = judge.asked.lock().unwrap().iter().cloned().unzip();
        let entries = log.read(SessionId::root(RUN).into(), Seq::START, 100_000).await.unwrap().len();
        Played { asked, read, entries, outcome }
    }
}

pub(crate) fn calls(calls: &[(&'static str, Value)]) -> Line {
    (String::new(), calls.to_vec())
}

pub(crate) fn sh(command: &str) -> Line {
    calls(&[("shell", json!({ "command": command }))])
}

pub(crate) fn write(path: &str, content: &str) -> Line {
    calls(&[("write_file", json!({ "path": path, "content": content }))])
}

pub(crate) fn plan(steps: &[(&str, &str)]) -> Line {
    let items = steps.iter().map(|(text, status)| json!({ "text": text, "status": status }));
    calls(&[("update_plan", json!({ "items": items.collect::<Vec<_>>() }))])
}

pub(crate) fn stop_hook(name: &str, command: &str) -> StopHookPolicy {
    StopHookPolicy {
        name: name.into(),
        command: Some(command.into()),
        timeout_ms: 10_000,
        on_error: provost_event::OnHookError::Ignore,
    }
}

/// The part of a question from `heading` to the next empty line.
pub(crate) fn section(question: &str, heading: &str) -> String {
    let lines = question.lines().skip_while(|line| *line != heading).take_while(|line| !line.is_empty());
    lines.map(|line| format!("{line}\n")).collect()
}

pub(crate) fn check(asked: &[String], expected: &Expect) {
    let [question] = asked else { panic!("asked {} times", asked.len()) };
    expected.assert_eq(question);
}
