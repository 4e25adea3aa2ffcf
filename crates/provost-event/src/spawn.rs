//! How many agents a run may have at work, and which of them comes first.

use serde::{Deserialize, Serialize};

/// How urgent an agent's work is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// Whenever there is room.
    Background = 0,
    /// Below what is usual.
    Low = 1,
    /// As usual.
    #[default]
    Normal = 2,
    /// It may take the slot of one below it.
    High = 4,
    /// It may take the slot of any below it.
    Critical = 8,
}

/// How many agents of a run may be at work, and how deep they may nest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnBudget {
    /// Agents at work at the same time, the root included; at least 1. Default 8.
    pub max_agents: u32,
    /// Whether an agent of high priority may take the slot of one below it. Default true.
    pub allow_preempt: bool,
    /// Agents above an agent, at most; the root has none. Default 4.
    pub max_depth: u32,
}

impl Default for SpawnBudget {
    fn default() -> Self {
        Self { max_agents: 8, allow_preempt: true, max_depth: 4 }
    }
}

impl SpawnBudget {
    /// Slots, at least the root's.
    #[must_use]
    pub fn slots(&self) -> usize {
        usize::try_from(self.max_agents).unwrap_or(usize::MAX).max(1)
    }
}
