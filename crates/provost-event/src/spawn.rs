//! Limits on active agents, and their priorities.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The priority of an agent.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// The lowest priority.
    Background = 0,
    /// Below normal.
    Low = 1,
    /// The default.
    #[default]
    Normal = 2,
    /// It may preempt an agent of lower priority.
    High = 4,
    /// It may preempt any agent of lower priority.
    Critical = 8,
}

impl Priority {
    /// All priorities, the lowest first.
    pub const ALL: [Self; 5] = [Self::Background, Self::Low, Self::Normal, Self::High, Self::Critical];

    /// Its name in settings and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Background => "background",
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text isn't a valid priority.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no priority: it is background, low, normal, high or critical")]
pub struct PriorityError {
    text: String,
}

impl FromStr for Priority {
    type Err = PriorityError;

    fn from_str(text: &str) -> Result<Self, PriorityError> {
        let wrong = || PriorityError { text: text.chars().take(80).collect() };
        Self::ALL.into_iter().find(|priority| priority.name() == text).ok_or_else(wrong)
    }
}

/// Limits on the active agents of a run and on nesting depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SpawnBudget {
    /// Maximum active agents, the root included; at least 1. Default 8.
    pub max_agents: u32,
    /// Whether an agent of high priority may preempt one of lower priority. Default true.
    pub allow_preempt: bool,
    /// Maximum nesting depth; the root has depth 0. Default 1: only the root
    /// may have sub-agents.
    pub max_depth: u32,
}

impl Default for SpawnBudget {
    fn default() -> Self {
        Self { max_agents: 8, allow_preempt: true, max_depth: 1 }
    }
}

impl SpawnBudget {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The number of slots, at least 1 for the root.
    #[must_use]
    pub fn slots(&self) -> usize {
        usize::try_from(self.max_agents).unwrap_or(usize::MAX).max(1)
    }
}
