//! How many agents a run may have at work, and which of them comes first.

use std::fmt;
use std::str::FromStr;

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

impl Priority {
    /// All of them, the lowest first.
    pub const ALL: [Self; 5] = [Self::Background, Self::Low, Self::Normal, Self::High, Self::Critical];

    /// Its name, as settings and logs have it.
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

/// A text that is no priority.
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
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Slots, at least the root's.
    #[must_use]
    pub fn slots(&self) -> usize {
        usize::try_from(self.max_agents).unwrap_or(usize::MAX).max(1)
    }
}
