//! A scripted server, and the tools that an agent would have of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use provost_event::{
    BlobId, CallQuestion, EffectId, Json, QuestionAnswer, RunId, SandboxPolicy, Seq, SessionId,
};
use provost_harness::{
    BackendError, Blobs, FileReach, LiveOutput, NoSandbox, Redactor, SessionLog, ToolContext, ToolOutput,
    ToolRegistry,
};
use provost_mcp_client::{Catalog, Inspection, McpServers, Pins, PinsFile, Reach, ServerSetup, inspect};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub(crate) struct Stage {
    folder: tempfile::TempDir,
    pub(crate) setup: ServerSetup,
}

#[derive(Default)]
struct NoBlobs;

#[async_trait::async_trait]
impl Blobs for NoBlobs {
    async fn put_blob(&self, _: Vec<u8>) -> Result<BlobId, BackendError> {
        unreachable!("no call stores anything")
    }

    async fn get_blob(&self, _: &BlobId) -> Result<Option<Vec<u8>>, BackendError> {
        Ok(None)
    }
}

pub(crate) fn tool(name: &str) -> Value {
    json!({ "name": name, "description": "Does something.", "inputSchema": { "type": "object" } })
}

impl Stage {
    /// A server with this script.
    pub(crate) fn new(script: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(path("script.json"), script.to_string()).unwrap();
        let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/server.py");
        let reach = Reach::Program {
            command: "python3".to_owned(),
            args: vec![server.display().to_string(), path("script.json"), path("record")],
            env: Vec::new(),
            cwd: folder.path().to_owned(),
        };
        let setup = ServerSetup {
            name: "evil".to_owned(),
            reach,
            written: vec!["command: server.py".to_owned()],
            tools: Vec::new(),
            idempotent: Vec::new(),
            subjects: std::collections::BTreeMap::new(),
            always_load: false,
            timeout: Duration::from_secs(60),
            sandbox: SandboxPolicy::default(),
            pins: PathBuf::from(path("pins.json")),
        };
        Self { folder, setup }
    }

    pub(crate) fn script(&self, script: &Value) {
        std::fs::write(self.folder.path().join("script.json"), script.to_string()).unwrap();
    }

    pub(crate) async fn inspected(&self) -> Result<Inspection, String> {
        let seen = inspect(&self.setup, &(Arc::new(NoSandbox) as _), None, None).await;
        seen.map_err(|error| error.to_string())
    }

    /// The user agrees to the server as it is.
    pub(crate) async fn agreed(self) -> Agent {
        let seen = self.inspected().await.unwrap();
        self.agreed_to(&seen.pins)
    }

    pub(crate) fn agreed_to(self, pins: &Pins) -> Agent {
        PinsFile::at(self.setup.pins.clone()).write(pins).unwrap();
        self.agent()
    }

    /// The same server for another agent, in another process.
    pub(crate) async fn agreed_as(self, other: &Agent) -> Agent {
        let pins = PinsFile::at(other.stage.setup.pins.clone()).read().unwrap().unwrap();
        self.agreed_to(&pins)
    }

    /// An agent with the tools that the user has agreed to.
    pub(crate) fn agent(self) -> Agent {
        let _ = std::fs::remove_file(self.record_file());
        let servers = McpServers::new(Arc::new(NoSandbox));
        let (catalog, notices) = Catalog::read(vec![self.setup.clone()]);
        let tools = catalog.registry(&servers);
        Agent {
            stage: self,
            tools,
            catalog,
            notices,
            cancel: CancellationToken::new(),
            secrets: Arc::default(),
        }
    }

    fn record_file(&self) -> PathBuf {
        self.folder.path().join("record")
    }
}

pub(crate) struct Agent {
    pub(crate) stage: Stage,
    pub(crate) tools: ToolRegistry,
    pub(crate) catalog: Catalog,
    pub(crate) notices: Vec<String>,
    pub(crate) cancel: CancellationToken,
    pub(crate) secrets: Arc<Redactor>,
}

impl Agent {
    pub(crate) fn run() -> RunId {
        RunId::from_entropy(7)
    }

    fn context(&self, answer: Option<QuestionAnswer>) -> ToolContext {
        let session = SessionId::root(Self::run());
        ToolContext {
            effect: EffectId { actor: session.into(), seq: Seq(1) },
            workspace: Arc::from(self.stage.folder.path()),
            reach: FileReach::default(),
            memory: None,
            env_file: None,
            limit: None,
            timeout: Duration::from_secs(60),
            cancel: self.cancel.clone(),
            blobs: Arc::new(NoBlobs),
            log: SessionLog::empty(),
            output_bytes_max: 32 * 1024,
            secrets: Arc::clone(&self.secrets),
            sandbox: Arc::new(NoSandbox),
            output: LiveOutput::ignored(),
            answer,
        }
    }

    pub(crate) async fn call(&self, tool: &str, input: Value) -> ToolOutput {
        self.called(tool, input, None).await
    }

    /// Makes the call again, with the answer to its question.
    pub(crate) async fn answered(
        &self,
        tool: &str,
        asked: &CallQuestion,
        content: Option<Value>,
    ) -> ToolOutput {
        let content = content.map(|content| Json::of(&content).unwrap());
        self.called(tool, json!({}), Some(QuestionAnswer { state: asked.state.clone(), content })).await
    }

    async fn called(&self, tool: &str, input: Value, answer: Option<QuestionAnswer>) -> ToolOutput {
        let tool = self.tools.get(&format!("mcp__evil__{tool}")).or_else(|| self.tools.get(tool)).unwrap();
        tool.call(&Json::of(&input).unwrap(), &self.context(answer)).await
    }

    /// What the server was sent, and how often it was started.
    pub(crate) fn record(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.stage.record_file()).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(crate) fn count(&self, method: &str) -> usize {
        let is_it =
            |line: &&Value| line["method"] == method || (method == "start" && line["started"].is_array());
        self.record().iter().filter(is_it).count()
    }

    /// Waits until the server was sent this.
    pub(crate) async fn until_sent(&self, method: &str, within: Duration) {
        let began = Instant::now();
        while self.count(method) == 0 {
            assert!(began.elapsed() < within, "the server wasn't sent {method} within {within:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// The time by the wall clock, in milliseconds.
pub(crate) fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    u64::try_from(since.as_millis()).unwrap()
}

/// Waits for a state.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(20), "{what}: not within 20 s");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
