//! What a harness is given by the program that embeds it, and why it may fail to do its work.

use std::path::PathBuf;
use std::sync::Arc;

use provost_engine::FlowProblem;
use provost_event::RunId;

use crate::{
    Blobs, Clock, ExternalAgents, HarnessCallback, Home, HomeError, HookPrograms, HookRegistry, Models,
    NoCallback, NoExternalAgents, NoHookPrograms, NoPower, Observers, Power, Redactor, StopHookHandler,
    SystemClock, Toolbox,
};

/// What a harness works with. Everything it knows beyond this is in the log.
pub struct HarnessDeps {
    /// Where the log is kept and effects are handed out.
    pub home: Arc<dyn Home>,
    /// The models that policies may name.
    pub models: Models,
    /// The tools that policies may name.
    pub tools: Toolbox,
    /// The stop hooks that policies may name besides shell commands.
    pub stop_hooks: Vec<Arc<dyn StopHookHandler>>,
    /// The hooks that are put before those of each run's policy; none by default.
    pub hooks: HookRegistry,
    /// Runs hooks that are programs; by default none can be run.
    pub hook_programs: Arc<dyn HookPrograms>,
    /// Who watches.
    pub callback: Arc<dyn HarnessCallback>,
    /// Who watches besides, each on a thread of its own, and where traces go; nobody and nowhere by default.
    pub observers: Observers,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Keeps the machine awake while an agent works; by default nothing does.
    pub power: Arc<dyn Power>,
    /// Drives the programs of external agents; by default none can be run.
    pub external: Arc<dyn ExternalAgents>,
    /// A folder for the transcripts that stop hooks may read; `None`: they get none.
    pub transcripts: Option<PathBuf>,
    /// Takes secrets out of what judges are shown; by default what has the shape of one. Give it the keys that the
    /// program knows.
    pub redactor: Arc<Redactor>,
}

impl HarnessDeps {
    /// What no harness can do without; nobody decides or watches besides, and the time is the machine's.
    #[must_use]
    pub fn new(home: Arc<dyn Home>, models: Models, tools: Toolbox) -> Self {
        Self {
            home,
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
            transcripts: None,
            redactor: Arc::new(Redactor::default()),
        }
    }

    pub(crate) fn blobs(&self) -> Arc<dyn Blobs> {
        self.home.clone()
    }
}

/// Why a harness couldn't do its work. A run that fails is an [`Outcome`](provost_event::Outcome), not this.
#[derive(Debug, thiserror::Error)]
pub enum HarnessError {
    /// The home failed; what was acknowledged before is kept.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// There is no such run.
    #[error("there is no run {0}")]
    UnknownRun(RunId),
    /// A money budget can't bind a model whose price nobody knows.
    #[error("the budget limits money, but the price of model `{model}` isn't known")]
    UnknownPrice {
        /// The model.
        model: String,
    },
    /// Who decided couldn't be told from the log.
    #[error("two hooks are called `{hook}`")]
    DoubledHook {
        /// The name.
        hook: String,
    },
    /// An agent's worktree isn't there any more.
    #[error(
        "the worktree {} of agent {agent} is gone and can't be made again: {why}; put it back, or cancel the agent",
        path.display()
    )]
    WorktreeGone {
        /// The agent's number.
        agent: u32,
        /// Where it was.
        path: std::path::PathBuf,
        /// Why it can't.
        why: String,
    },
    /// The policy's flow can't be gone through.
    #[error(transparent)]
    Flow(#[from] FlowProblem),
}
