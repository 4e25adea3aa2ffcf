//! The port to tools.

use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use provost_event::{CallFacts, EffectId, Json, Plan, SessionId, ToolSpec, ToolStatus};
use tokio_util::sync::CancellationToken;

use crate::{Blobs, ImageData, SessionLog};

/// What a tool may know of the call it serves.
#[derive(Clone)]
pub struct ToolContext {
    /// The call's effect; an idempotency key.
    pub effect: EffectId,
    /// The folder the agent works in, absolute and without symlinks.
    pub workspace: Arc<Path>,
    /// What the tool asked to be told at its last call in this session.
    pub memory: Option<Json>,
    /// How long the call may take. When that is over, `cancel` fires.
    pub timeout: Duration,
    /// What is left of the time limit that binds the agent, at the call's beginning. Once `cancel` has fired, ending what the
    /// call has started must fit into it: what ignores a request to end is ended by force in time. Absent without a limit.
    pub limit: Option<Duration>,
    /// Fires when the call shall end: the tool ends what it started, and returns.
    pub cancel: CancellationToken,
    /// Outputs kept whole, for tools that can read them.
    pub blobs: Arc<dyn Blobs>,
    /// What the model was shown of the session's log or said itself, for tools that look things up in it.
    pub log: SessionLog,
    /// Bytes of output that the model gets to see; the middle of a longer one is left out.
    pub output_bytes_max: usize,
}

/// What a tool call gave. A tool that fails is data, not an error of Provost's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutput {
    /// How it ended: `Ok`, `Error`, `Rejected` (arguments that don't fit), `TimedOut` or `Cancelled`.
    pub status: ToolStatus,
    /// What the model shall read: the result, or what went wrong and how to do better.
    pub text: String,
    /// Pictures that the model shall see besides; one that can't see is told that there are some.
    pub images: Vec<ImageData>,
    /// What to be told at the next call in this session; `None` leaves that as it was.
    pub memory: Option<Json>,
    /// The agent's plan from here on, if the call has changed it.
    pub plan: Option<Plan>,
    /// What else is known of it: the exit status of a command, whether it only waited.
    pub facts: CallFacts,
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
        }
    }

    /// A failure, in words that help the model.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            status: ToolStatus::Error,
            text: text.into(),
            images: Vec::new(),
            memory: None,
            plan: None,
            facts: CallFacts::default(),
        }
    }

    /// Arguments that don't fit; nothing was done.
    pub fn rejected(text: impl Into<String>) -> Self {
        Self {
            status: ToolStatus::Rejected,
            text: text.into(),
            images: Vec::new(),
            memory: None,
            plan: None,
            facts: CallFacts::default(),
        }
    }
}

/// Something an agent can do.
#[async_trait]
pub trait Tool: Send + Sync {
    /// What the model and the engine know of it.
    fn spec(&self) -> &ToolSpec;

    /// Does it.
    ///
    /// # Cancellation
    /// When `context.cancel` fires the tool returns soon, with nothing left running.
    async fn call(&self, input: &Json, context: &ToolContext) -> ToolOutput;

    /// The folder that a call's relative paths count from, by what the tool asked to be told; the workspace where it says none.
    fn folder(&self, memory: Option<&Json>) -> Option<PathBuf> {
        let _ = memory;
        None
    }

    /// The session has ended, or rests with its run: what the tool keeps for it goes. Must not block; may be called for a
    /// session that never called the tool, and again.
    fn session_over(&self, session: SessionId) {
        let _ = session;
    }
}

/// The tools a process can run, by name; their order is stable.
#[derive(Clone, Default)]
pub struct Toolbox {
    by_name: BTreeMap<String, Arc<dyn Tool>>,
}

impl Toolbox {
    /// No tool.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With `tool`, in place of one of the same name.
    #[must_use]
    pub fn with(mut self, tool: impl Tool + 'static) -> Self {
        self.by_name.insert(tool.spec().name.clone(), Arc::new(tool));
        self
    }

    /// The tool named `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.by_name.get(name)
    }

    /// Tells all of them that a session is over.
    pub(crate) fn session_over(&self, session: SessionId) {
        self.by_name.values().for_each(|tool| tool.session_over(session));
    }

    /// What the policy says of them, ordered by name.
    #[must_use]
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.by_name.values().map(|tool| tool.spec().clone()).collect()
    }
}
