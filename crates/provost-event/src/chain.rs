//! The chain of agents: an agent's position among the agents of a run.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{RunId, SessionId, SessionStarted};

/// An agent's position in the chain; part of every event and span.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct ChainContext {
    /// The chain, which is the run.
    #[serde(rename = "chain_id")]
    pub chain: RunId,
    /// The agent that spawned this one; `None` for the root and for events of the run as a whole.
    pub parent: Option<SessionId>,
    /// Nesting depth; 0 for the root and for the run as a whole.
    pub depth: u32,
    /// The name of the configured sub-agent; `None` for the root, for a copy of its parent, and for the run as a whole.
    pub agent_name: Option<Arc<str>>,
}

impl ChainContext {
    /// The position of a run's root agent, and of the run itself.
    #[must_use]
    pub const fn root(run: RunId) -> Self {
        Self { chain: run, parent: None, depth: 0, agent_name: None }
    }

    /// The position of `session` by its first entry. A session with a parent has a depth of at least 1.
    #[must_use]
    pub fn of(session: SessionId, started: &SessionStarted) -> Self {
        let depth = started.depth.max(u32::from(started.parent.is_some()));
        Self {
            chain: session.run,
            parent: started.parent,
            depth,
            agent_name: started.agent.as_deref().map(Arc::from),
        }
    }

    /// The position of an agent spawned by `parent`, whose position this is.
    ///
    /// # Errors
    /// When its depth would exceed `depth_max`. With 0 only the root is allowed.
    pub fn child_of(&self, parent: SessionId, depth_max: u32) -> Result<Self, DepthExceeded> {
        let depth = self.depth.saturating_add(1);
        Self { chain: self.chain, parent: Some(parent), depth, agent_name: None }.within(depth_max)
    }

    /// This position, if it is allowed.
    ///
    /// # Errors
    /// When the depth exceeds `depth_max`.
    pub fn within(self, depth_max: u32) -> Result<Self, DepthExceeded> {
        if self.depth > depth_max {
            return Err(DepthExceeded { depth: self.depth, depth_max });
        }
        Ok(self)
    }
}

/// The maximum nesting depth is exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this agent would be {depth} levels below the root, and at most {depth_max} are allowed")]
pub struct DepthExceeded {
    /// The agent's depth.
    pub depth: u32,
    /// The maximum depth.
    pub depth_max: u32,
}
