//! Why an agent can't be built, or a run's state isn't known.

use provost_engine::PatternError;
use provost_harness::hooks::HookRegistryError;
use provost_harness::{BackendError, HarnessError};
use provost_llm::ResolveError;

/// Why an agent can't be built or a run can't be served. A run that fails isn't an error: its
/// [`Outcome`](crate::Outcome) says so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A model's name can't be resolved; the message has the remedy.
    #[error(transparent)]
    Model(#[from] ResolveError),
    /// Two models of different kinds have the same name.
    #[error("two models are called `{name}`")]
    DoubledModel {
        /// The name.
        name: String,
    },
    /// Two tools, or a tool and a sub-agent, have the same name.
    #[error("two tools are called `{name}`; a sub-agent is a tool of its name")]
    DoubledTool {
        /// The name.
        name: String,
    },
    /// A sub-agent is to have a tool that the agent doesn't have.
    #[error("the sub-agent `{agent}` is to have the tool `{tool}`, which the agent itself doesn't have")]
    UnknownTool {
        /// The sub-agent.
        agent: String,
        /// The tool.
        tool: String,
    },
    /// Two stop hooks have the same name.
    #[error("two stop hooks are called `{name}`")]
    DoubledStopHook {
        /// The name.
        name: String,
    },
    /// A permission pattern can't be read, or names no tool of the agent.
    #[error(transparent)]
    Permission(#[from] PatternError),
    /// A permission names a tool that the agent doesn't have, so that it could never apply.
    #[error("the permission `{pattern}` is about no tool of the agent; it has {known}")]
    PermissionOfNoTool {
        /// The pattern.
        pattern: String,
        /// The agent's tools.
        known: String,
    },
    /// A permission could match no call of its tool.
    #[error("the permission `{pattern}` {why}, so that it never matches: {remedy}")]
    PermissionWithoutCalls {
        /// The pattern.
        pattern: String,
        /// Why.
        why: String,
        /// What to write in its place.
        remedy: String,
    },
    /// The hooks contradict each other.
    #[error(transparent)]
    Hooks(#[from] HookRegistryError),
    /// The workspace is no folder.
    #[error("can't work in {}", path.display())]
    Workspace {
        /// Its path.
        path: std::path::PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The log can't be read or written.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The run can't be served.
    #[error(transparent)]
    Harness(#[from] HarnessError),
}
