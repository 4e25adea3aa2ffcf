//! The dependencies of a harness, given by the embedding program, and the errors of a harness.

use std::path::PathBuf;
use std::sync::Arc;

use provost_engine::FlowProblem;
use provost_event::RunId;
use provost_process::MaskedPaths;

use crate::{
    Backend, BackendError, Blobs, Clock, ExternalAgents, HarnessCallback, HookPrograms, HookRegistry, Models,
    NoCallback, NoExternalAgents, NoHookPrograms, NoPower, NoSandbox, Observers, Power, Redactor, Sandbox,
    StopHookHandler, SystemClock, ToolRegistry,
};

/// The dependencies of a harness. Everything else it needs is in the log. Clones share them.
#[derive(Clone)]
pub struct HarnessDeps {
    /// Stores the log and dispatches effects.
    pub backend: Arc<dyn Backend>,
    /// The models that policies may name.
    pub models: Models,
    /// The tools that policies may name.
    pub tools: ToolRegistry,
    /// The stop hooks that policies may name besides shell commands.
    pub stop_hooks: Vec<Arc<dyn StopHookHandler>>,
    /// The hooks that are called before those of each run's policy; none by default.
    pub hooks: HookRegistry,
    /// Runs hooks that are programs; by default none can be run.
    pub hook_programs: Arc<dyn HookPrograms>,
    /// Is called at each event.
    pub callback: Arc<dyn HarnessCallback>,
    /// Observers, each on a thread of its own, and trace sinks; none by default.
    pub observers: Observers,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Keeps the machine awake while an agent works; by default nothing does.
    pub power: Arc<dyn Power>,
    /// Drives the programs of external agents; by default none can be run.
    pub external: Arc<dyn ExternalAgents>,
    /// Confines agents' programs and file tools; by default nothing does, and policies that require it are refused.
    pub sandbox: Arc<dyn Sandbox>,
    /// A folder for the transcripts that stop hooks may read; `None`: they get none.
    pub transcripts: Option<PathBuf>,
    /// What file tools never read or write; by default the user's credentials. Give it Provost's own folders.
    pub masked: Arc<MaskedPaths>,
    /// Removes secrets from evidence for judges; by default what has the shape of one. Give it the keys that the
    /// program knows.
    pub redactor: Arc<Redactor>,
}

impl HarnessDeps {
    /// The required dependencies; no hooks and observers, and the machine's clock.
    #[must_use]
    pub fn new(backend: Arc<dyn Backend>, models: Models, tools: ToolRegistry) -> Self {
        Self {
            backend,
            models,
            tools,
            stop_hooks: Vec::new(),
            hooks: HookRegistry::default(),
            hook_programs: Arc::new(NoHookPrograms),
            callback: Arc::new(NoCallback),
            observers: Observers::new(),
            clock: Arc::new(SystemClock),
            power: Arc::new(NoPower),
            external: Arc::new(NoExternalAgents),
            sandbox: Arc::new(NoSandbox),
            transcripts: None,
            masked: Arc::new(MaskedPaths::of_user()),
            redactor: Arc::new(Redactor::default()),
        }
    }

    pub(crate) fn blobs(&self) -> Arc<dyn Blobs> {
        self.backend.clone()
    }
}

/// Why a harness couldn't do its work. A failed run is an [`Outcome`](provost_event::Outcome), not this.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HarnessError {
    /// The backend failed; everything acknowledged before is stored.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// There is no such run.
    #[error("there is no run {0}")]
    UnknownRun(RunId),
    /// A money budget can't limit a model without a known price.
    #[error("the budget limits money, but the price of model `{model}` isn't known")]
    UnknownPrice {
        /// The model.
        model: String,
    },
    /// Two hooks have the same name, so that the log couldn't tell which one decided.
    #[error("two hooks are called `{hook}`")]
    DoubledHook {
        /// The name.
        hook: String,
    },
    /// An agent's worktree doesn't exist any more.
    #[error(
        "the worktree {} of agent {agent} is gone and can't be made again: {why}; put it back, or cancel the agent",
        path.display()
    )]
    WorktreeGone {
        /// The agent's number.
        agent: u32,
        /// Its path.
        path: std::path::PathBuf,
        /// Why it can't be created again.
        why: String,
    },
    /// The policy's workflow can't be run.
    #[error(transparent)]
    Flow(#[from] FlowProblem),
}
