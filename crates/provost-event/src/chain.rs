//! The chain of agents: where among the agents of a run one stands.

use serde::{Deserialize, Serialize};

use crate::{RunId, SessionId, SessionStarted};

/// Where an agent stands: every event and span of it says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ChainContext {
    /// The chain, which is the run: all its agents belong to it.
    #[serde(rename = "chain_id")]
    pub chain: RunId,
    /// The agent that asked for this one; `None` for the root, and for what happens to the run as a whole.
    pub parent: Option<SessionId>,
    /// How many agents stand above it; 0 for the root, and for the run as a whole.
    pub depth: u32,
}

impl ChainContext {
    /// The place of a run's root agent, and of the run itself.
    #[must_use]
    pub const fn root(run: RunId) -> Self {
        Self { chain: run, parent: None, depth: 0 }
    }

    /// The place of `session`, as its first entry has it. Whoever has a parent is below somebody.
    #[must_use]
    pub fn of(session: SessionId, started: &SessionStarted) -> Self {
        let depth = started.depth.max(u32::from(started.parent.is_some()));
        Self { chain: session.run, parent: started.parent, depth }
    }

    /// The place of an agent that `parent`, whose own place this is, asks for.
    ///
    /// # Errors
    /// When it would have more than `depth_max` agents above it. With 0 only the root is allowed.
    pub const fn child_of(self, parent: SessionId, depth_max: u32) -> Result<Self, DepthExceeded> {
        let depth = self.depth.saturating_add(1);
        Self { chain: self.chain, parent: Some(parent), depth }.within(depth_max)
    }

    /// This place, if it is allowed.
    ///
    /// # Errors
    /// When more than `depth_max` agents stand above it.
    pub const fn within(self, depth_max: u32) -> Result<Self, DepthExceeded> {
        if self.depth > depth_max {
            return Err(DepthExceeded { depth: self.depth, depth_max });
        }
        Ok(self)
    }
}

/// Why there is no such agent: too many would stand above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this agent would be {depth} levels below the root, and at most {depth_max} are allowed")]
pub struct DepthExceeded {
    /// How many would stand above it.
    pub depth: u32,
    /// How many may.
    pub depth_max: u32,
}
