//! The port to tools.

use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use provost_event::{
    CallFacts, CallQuestion, EffectId, Json, Plan, QuestionAnswer, SessionId, ToolSpec, ToolStatus,
};
use provost_process::MaskedPaths;
use tokio_util::sync::CancellationToken;

use crate::{AgentSandbox, Blobs, ImageData, LiveOutput, Redactor, SessionLog};

/// The context of a tool call.
#[derive(Clone)]
pub struct ToolContext {
    /// The call's effect; an idempotency key.
    pub effect: EffectId,
    /// The workspace, absolute and without symlinks.
    pub workspace: Arc<Path>,
    /// What its calls reach besides the workspace, for tools that read and write files.
    pub reach: FileReach,
    /// The state that the tool stored at its last call in this session.
    pub memory: Option<Json>,
    /// A file with `export` lines of hooks, for commands; it needn't exist.
    pub env_file: Option<PathBuf>,
    /// Time limit of the call. After it, `cancel` fires.
    pub timeout: Duration,
    /// What is left of the agent's time limit at the start of the call. After `cancel` has fired, ending the
    /// call's processes must fit into it: those that ignore a request to end are killed in time. Absent without a
    /// limit.
    pub limit: Option<Duration>,
    /// Fires when the call must end: the tool ends its processes and returns.
    pub cancel: CancellationToken,
    /// Stored outputs, for tools that can read them.
    pub blobs: Arc<dyn Blobs>,
    /// The part of the session's log that the model was shown or wrote itself, for tools that search it.
    pub log: SessionLog,
    /// Maximum bytes of output for the model; the middle of a longer output is left out.
    pub output_bytes_max: usize,
    /// The keys that this process knows: no program that the tool starts may be given one.
    pub secrets: Arc<Redactor>,
    /// What confines the programs that the tool starts, and which files it may read and write.
    pub sandbox: Arc<dyn AgentSandbox>,
    /// Takes what the call prints while it runs, for people who watch.
    pub output: LiveOutput,
    /// The user's answer to what the tool asked when this call was made before.
    pub answer: Option<QuestionAnswer>,
}

/// What the calls of file tools reach besides the workspace, and what they never reach.
#[derive(Debug, Clone, Default)]
pub struct FileReach {
    /// Folders, absolute.
    pub roots: Vec<PathBuf>,
    /// A file or folder elsewhere that this call may read, absolute.
    pub granted: Option<PathBuf>,
    /// What stays hidden, wherever it is.
    pub masked: Arc<MaskedPaths>,
}

/// The result of a tool call. A tool that fails is data, not an error of Provost's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutput {
    /// How it ended: `Ok`, `Error`, `Rejected` (invalid arguments), `TimedOut` or `Cancelled`.
    pub status: ToolStatus,
    /// The text for the model: the result, or the error and its remedy.
    pub text: String,
    /// Pictures for the model; a model that doesn't accept them gets a text that there are some.
    pub images: Vec<ImageData>,
    /// State for the next call in this session; `None` leaves it unchanged.
    pub memory: Option<Json>,
    /// The agent's plan from here on, if the call changed it.
    pub plan: Option<Plan>,
    /// Further facts: the exit status of a command, whether it only waited.
    pub facts: CallFacts,
    /// Tools that the agent has from its next turn on.
    pub tools: Vec<ToolSpec>,
    /// What the tool asks the user first, which may take days: then nothing else of this counts, and the call is made
    /// again with the answer as [`ToolContext::answer`], or not at all.
    pub asks: Option<Box<CallQuestion>>,
}

impl ToolOutput {
    /// A result.
    pub fn ok(text: impl Into<String>) -> Self {
        Self {
            status: ToolStatus::Ok,
            text: text.into(),
            images: Vec::new(),
            memory: None,
            plan: None,
            facts: CallFacts::default(),
            tools: Vec::new(),
            asks: None,
        }
    }

    /// A failure, with a message that helps the model.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            status: ToolStatus::Error,
            text: text.into(),
            images: Vec::new(),
            memory: None,
            plan: None,
            facts: CallFacts::default(),
            tools: Vec::new(),
            asks: None,
        }
    }

    /// Invalid arguments; nothing was done.
    pub fn rejected(text: impl Into<String>) -> Self {
        Self {
            status: ToolStatus::Rejected,
            text: text.into(),
            images: Vec::new(),
            memory: None,
            plan: None,
            facts: CallFacts::default(),
            tools: Vec::new(),
            asks: None,
        }
    }
}

/// A tool of an agent.
#[async_trait]
pub trait Tool: Send + Sync {
    /// The tool's specification, for the model and the engine.
    fn spec(&self) -> &ToolSpec;

    /// Runs a call.
    ///
    /// # Cancellation
    /// When `context.cancel` fires the tool returns soon, with nothing left running.
    async fn call(&self, input: &Json, context: &ToolContext) -> ToolOutput;

    /// The base folder of a call's relative paths, by the tool's stored state; the workspace if that has none.
    fn folder(&self, memory: Option<&Json>) -> Option<PathBuf> {
        let _ = memory;
        None
    }

    /// The session has ended, or is suspended with its run: the tool drops its data for it. Must not block; may be
    /// called for a session that never called the tool, and repeatedly.
    fn session_over(&self, session: SessionId) {
        let _ = session;
    }
}

/// The tools of a process, by name; their order is stable.
#[derive(Clone, Default)]
pub struct ToolRegistry {
    by_name: BTreeMap<String, Arc<dyn Tool>>,
}

impl ToolRegistry {
    /// No tool.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `tool`, replacing one with the same name.
    #[must_use]
    pub fn with(mut self, tool: impl Tool + 'static) -> Self {
        self.by_name.insert(tool.spec().name.clone(), Arc::new(tool));
        self
    }

    /// Adds the tools of `other`, replacing those with the same names.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.by_name.extend(other.by_name);
        self
    }

    /// Adds `tool`, replacing one with the same name.
    pub(crate) fn add(&mut self, tool: Arc<dyn Tool>) {
        self.by_name.insert(tool.spec().name.clone(), tool);
    }

    /// The tool with this `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.by_name.get(name)
    }

    /// Informs all of them that a session is over.
    pub(crate) fn session_over(&self, session: SessionId) {
        self.by_name.values().for_each(|tool| tool.session_over(session));
    }

    /// Their specifications for the policy, ordered by name.
    #[must_use]
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.by_name.values().map(|tool| tool.spec().clone()).collect()
    }
}
