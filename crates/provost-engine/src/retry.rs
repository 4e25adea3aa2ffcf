//! Whether and when something that failed is tried once more.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::AgentNumber;

/// The ceiling of the first wait between attempts; it doubles with each.
const BACKOFF_FIRST_MS: u64 = 500;
/// The highest ceiling.
const BACKOFF_MAX_MS: u64 = 60_000;

/// How often an agent that failed is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// Retries in a row, at most: the first attempt isn't counted. Default 3; with 0 nothing is tried again.
    pub attempts_max: u32,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { attempts_max: 3 }
    }
}

/// The retries that a run's agents have had in a row.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryTracker {
    policy: RetryPolicy,
    /// Of agents that had any.
    attempts: BTreeMap<AgentNumber, u32>,
}

impl RetryTracker {
    /// One in which no agent has failed yet.
    #[must_use]
    pub const fn new(policy: RetryPolicy) -> Self {
        Self { policy, attempts: BTreeMap::new() }
    }

    /// Whether an agent that has just failed is tried again. It counts: a yes takes one of its attempts.
    pub fn should_retry(&mut self, agent: AgentNumber) -> bool {
        let attempts = self.attempts(agent);
        if attempts >= self.policy.attempts_max {
            return false;
        }
        self.attempts.insert(agent, attempts.saturating_add(1));
        true
    }

    /// Retries that the agent has had since it last worked.
    #[must_use]
    pub fn attempts(&self, agent: AgentNumber) -> u32 {
        self.attempts.get(&agent).copied().unwrap_or(0)
    }

    /// The agent has worked, or will never be tried again: it has all its attempts.
    pub fn reset(&mut self, agent: AgentNumber) {
        self.attempts.remove(&agent);
    }
}

/// Milliseconds to wait before the attempt after `failures` in a row: what the provider asks for, else between half of a
/// ceiling and all of it, which doubles with each failure up to 60 s. At least 1.
#[must_use]
pub fn retry_delay_ms(failures: u32, asked_ms: Option<u64>, entropy: u64) -> u64 {
    let doublings = failures.saturating_sub(1).min(16);
    let half = BACKOFF_FIRST_MS.saturating_mul(1_u64 << doublings).min(BACKOFF_MAX_MS) / 2;
    asked_ms.unwrap_or(half + entropy % (half + 1)).max(1)
}
