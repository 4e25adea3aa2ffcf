//! Whether and when a failed operation is retried.

use std::collections::BTreeMap;

use provost_event::RetryPolicy;
use serde::{Deserialize, Serialize};

use crate::AgentNumber;

/// The ceiling of the first wait between attempts; it doubles with each attempt.
const BACKOFF_FIRST_MS: u64 = 500;
/// The highest ceiling.
const BACKOFF_MAX_MS: u64 = 60_000;

/// Counts each agent's retries in a row.
///
/// ```
/// use provost_engine::RetryTracker;
///
/// let mut retries = RetryTracker::new(2);
/// assert!(retries.should_retry(1) && retries.should_retry(1));
/// assert!(!retries.should_retry(1), "agent 1 has failed three times in a row");
/// assert!(retries.should_retry(2), "each agent has a count of its own");
/// retries.reset(1);
/// assert!(retries.should_retry(1), "it has worked since");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryTracker {
    attempts_max: u32,
    /// The limits of agents that have their own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    limits: BTreeMap<AgentNumber, u32>,
    /// The retries of agents that have had any.
    attempts: BTreeMap<AgentNumber, u32>,
}

impl Default for RetryTracker {
    fn default() -> Self {
        Self::new(RetryPolicy::default().attempts_max)
    }
}

impl RetryTracker {
    /// Creates a tracker without failures; each agent may have `attempts_max` retries in a row.
    #[must_use]
    pub const fn new(attempts_max: u32) -> Self {
        Self { attempts_max, limits: BTreeMap::new(), attempts: BTreeMap::new() }
    }

    /// Gives an agent its own limit of retries in a row.
    pub fn limit(&mut self, agent: AgentNumber, attempts_max: u32) {
        self.limits.insert(agent, attempts_max);
    }

    /// Returns whether an agent that has just failed is retried. If so, counts one retry.
    pub fn should_retry(&mut self, agent: AgentNumber) -> bool {
        let attempts = self.attempts(agent);
        if attempts >= self.limits.get(&agent).copied().unwrap_or(self.attempts_max) {
            return false;
        }
        self.attempts.insert(agent, attempts.saturating_add(1));
        true
    }

    /// Retries of the agent since it last worked.
    #[must_use]
    pub fn attempts(&self, agent: AgentNumber) -> u32 {
        self.attempts.get(&agent).copied().unwrap_or(0)
    }

    /// Resets the agent's count: it has worked, or will never be retried again.
    pub fn reset(&mut self, agent: AgentNumber) {
        self.attempts.remove(&agent);
    }
}

/// Milliseconds to wait before restart number `attempt` in a row, from 1: random between 0 and a ceiling that
/// doubles with each restart up to the policy's limit. At least 1.
///
/// ```
/// use provost_engine::{RetryTracker, restart_delay_ms};
/// use provost_event::RetryPolicy;
///
/// let policy = RetryPolicy { attempts_max: 2, ..RetryPolicy::default() };
/// let mut retries = RetryTracker::new(policy.attempts_max);
/// let mut waits = Vec::new();
/// while retries.should_retry(0) {
///     // A program takes random bits here.
///     waits.push(restart_delay_ms(policy, retries.attempts(0), 1_900));
/// }
/// assert_eq!(waits, [899, 1_900], "at most 1 s, then at most 2 s");
/// ```
#[must_use]
pub fn restart_delay_ms(policy: RetryPolicy, attempt: u32, entropy: u64) -> u64 {
    let doublings = attempt.saturating_sub(1).min(62);
    let ceiling = policy.backoff_base_ms.saturating_mul(1_u64 << doublings).min(policy.backoff_max_ms);
    let wait = ceiling.checked_add(1).map_or(entropy, |values| entropy % values);
    wait.max(1)
}

/// Milliseconds to wait before the attempt after `failures` in a row: the provider's own request, or else random
/// between half of a ceiling and all of it. The ceiling doubles with each failure up to 60 s. At least 1.
#[must_use]
pub fn retry_delay_ms(failures: u32, asked_ms: Option<u64>, entropy: u64) -> u64 {
    let doublings = failures.saturating_sub(1).min(16);
    let half = BACKOFF_FIRST_MS.saturating_mul(1_u64 << doublings).min(BACKOFF_MAX_MS) / 2;
    asked_ms.unwrap_or(half + entropy % (half + 1)).max(1)
}
