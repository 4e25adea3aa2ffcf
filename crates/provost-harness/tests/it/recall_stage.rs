//! Runs with something to recall: a model that decides by its request, and a tool with long results.

use std::sync::Arc;

use async_trait::async_trait;
use provost_backend::{EmbeddedBackend, MemoryStore};
use provost_engine::Answer;
use provost_event::{
    Access, AgentPolicy, Block, CallId, EffectId, Entry, Json, ModelFailure, ModelPolicy, Outcome, Record,
    RunId, RunPolicy, Seq, SessionId, StepMode, StopReason, ToolCall, ToolEntry, ToolFinished, ToolSpec,
    ToolSubject, Usage,
};
use provost_harness::{
    AgentHarness, Backend, DeltaSink, HarnessDeps, Model, ModelRequest, Models, Part, Recall, SessionLog,
    SystemClock, Tool, ToolContext, ToolOutput, ToolRegistry,
};
use provost_tools::ReadFile;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// The relevant parts of a request.
pub(crate) struct Seen {
    pub(crate) answers_before: u32,
    /// All results, the oldest first, with their tools.
    pub(crate) results: Vec<(String, String)>,
}

impl Seen {
    pub(crate) fn last(&self) -> &str {
        self.results.last().map_or("", |(_, output)| output)
    }
}

/// Calls what a function of the conversation returns; without a call it is done.
pub(crate) struct Deciding<F>(pub(crate) F);

#[async_trait]
impl<F> Model for Deciding<F>
where
    F: Fn(&Seen) -> Vec<(&'static str, Value)> + Send + Sync,
{
    async fn answer(
        &self,
        request: ModelRequest<'_>,
        _: &dyn DeltaSink,
        _: &CancellationToken,
    ) -> Result<Answer, ModelFailure> {
        let parts = request.messages.iter().flat_map(|message| &message.parts);
        let results = parts.filter_map(|part| match part {
            Part::ToolResult { tool, output, .. } => Some((tool.clone(), output.clone())),
            _ => None,
        });
        let seen = Seen { answers_before: request.answers_before, results: results.collect() };
        let calls = (self.0)(&seen).into_iter().zip(1..).map(|((name, input), place)| {
            Block::ToolCall(ToolCall {
                id: CallId::from(format!("call_{}_{place}", request.answers_before).as_str()),
                name: name.to_owned(),
                input: Json::of(&input).unwrap(),
                malformed: None,
            })
        });
        let mut content = calls.collect::<Vec<_>>();
        let stop = if content.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse };
        if content.is_empty() {
            content.push(Block::Text("done".into()));
        }
        Ok(Answer { cost: None, content, usage: Usage::default(), model: "deciding".into(), stop })
    }
}

/// A tool whose results have a given number of bytes, and a number.
pub(crate) struct Fetch(ToolSpec);

impl Fetch {
    pub(crate) fn new() -> Self {
        Self(ToolSpec {
            name: "fetch".into(),
            description: String::new(),
            input_schema: Json::empty_object(),
            access: Access::Reads,
            subject: ToolSubject::Opaque,
            aliases: Vec::new(),
            forms: Vec::new(),
            freeform: None,
            summary_field: None,
            idempotent: true,
            timeout_ms: 10_000,
            output_bytes_max: 64 * 1024,
        })
    }

    pub(crate) fn result(n: u64, bytes: usize) -> String {
        let lines = (0..).map(|line| format!("page {n}, line {line}: an Otter; ünïcode 🦦\n"));
        let mut text = String::new();
        for line in lines {
            if text.len() >= bytes {
                return text;
            }
            text.push_str(&line);
        }
        text
    }
}

#[async_trait]
impl Tool for Fetch {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, input: &Json, _: &ToolContext) -> ToolOutput {
        let input: Value = input.read().unwrap();
        let bytes = usize::try_from(input["bytes"].as_u64().unwrap()).unwrap();
        ToolOutput::ok(Self::result(input["n"].as_u64().unwrap(), bytes))
    }
}

pub(crate) fn fetch(n: u64, bytes: usize) -> Vec<(&'static str, Value)> {
    vec![("fetch", json!({ "n": n, "bytes": bytes }))]
}

/// A store, and a model with a small window.
pub(crate) struct Stage {
    pub(crate) store: MemoryStore,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) tools: ToolRegistry,
    pub(crate) step_mode: StepMode,
    workspace: tempfile::TempDir,
}

impl Stage {
    pub(crate) fn new<F>(decide: F) -> Self
    where
        F: Fn(&Seen) -> Vec<(&'static str, Value)> + Send + Sync + 'static,
    {
        Self {
            store: MemoryStore::new(),
            model: Arc::new(Deciding(decide)),
            tools: ToolRegistry::new().with(Fetch::new()).with(Recall::new()).with(ReadFile::new()),
            step_mode: StepMode::Free,
            workspace: tempfile::tempdir().unwrap(),
        }
    }

    /// A backend and a harness of another process.
    pub(crate) fn harness(&self) -> (AgentHarness, Arc<EmbeddedBackend>) {
        let backend = Arc::new(EmbeddedBackend::new(self.store.clone(), Arc::new(SystemClock)).unwrap());
        let models = Models::new().with("deciding", self.model.clone());
        (AgentHarness::new(HarnessDeps::new(backend.clone(), models, self.tools.clone())), backend)
    }

    pub(crate) fn policy(&self) -> RunPolicy {
        RunPolicy {
            spawn: provost_event::SpawnBudget::default(),
            ..RunPolicy::new(AgentPolicy {
                system_prompt: "a walrus prompts".into(),
                tools: self.tools.specs(),
                step_mode: self.step_mode,
                ..AgentPolicy::new(
                    ModelPolicy {
                        window_tokens: Some(8_000),
                        images: true,
                        ..ModelPolicy::new("deciding", 1_000)
                    },
                    self.workspace.path().to_owned(),
                )
            })
        }
    }

    pub(crate) async fn run(&self, run: RunId, goal: &str) -> Arc<EmbeddedBackend> {
        let (harness, backend) = self.harness();
        let mut harness = harness.start(run, goal, self.policy()).await.unwrap();
        let outcome = harness.run(&CancellationToken::new()).await.unwrap();
        assert_eq!(outcome, Outcome::UNVERIFIED);
        backend
    }
}

pub(crate) async fn log(backend: &dyn Backend, run: RunId) -> Vec<Arc<Record>> {
    backend.read(SessionId::root(run).into(), Seq::START, 100_000).await.unwrap()
}

/// The results of `tool`, with their entries.
pub(crate) fn results(log: &[Arc<Record>], tool: &str) -> Vec<(Seq, ToolFinished)> {
    let result = |record: &Arc<Record>| match &record.entry {
        Entry::Tool(ToolEntry::Finished(finished)) if finished.tool == tool => {
            Some((record.seq, finished.clone()))
        }
        _ => None,
    };
    log.iter().filter_map(result).collect()
}

/// The context of a `recall` call whose own entry would be `at`.
pub(crate) fn context(backend: &Arc<EmbeddedBackend>, run: RunId, at: u64) -> ToolContext {
    let effect = EffectId { actor: SessionId::root(run).into(), seq: Seq(at) };
    ToolContext {
        effect,
        workspace: std::env::temp_dir().into(),
        reach: provost_harness::FileReach::default(),
        memory: None,
        env_file: None,
        limit: None,
        timeout: std::time::Duration::from_secs(30),
        cancel: CancellationToken::new(),
        blobs: backend.clone(),
        log: SessionLog::of(backend.clone(), effect),
        output_bytes_max: Recall::new().spec().output_bytes_max,
        secrets: Arc::default(),
        sandbox: Arc::new(provost_harness::NoSandbox),
        output: provost_harness::LiveOutput::ignored(),
        answer: None,
    }
}

pub(crate) async fn recall(context: &ToolContext, input: Value) -> ToolOutput {
    Recall::new().call(&Json::of(&input).unwrap(), context).await
}

/// The number after `mark`.
pub(crate) fn number_after(text: &str, mark: &str) -> Option<u64> {
    let (_, rest) = text.rsplit_once(mark)?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// The part of an entry that a page of it shows.
pub(crate) fn body(page: &str) -> &str {
    let (_, rest) = page.split_once(":\n").expect("a first line");
    rest.rsplit_once("\n[").expect("a last line").0
}
