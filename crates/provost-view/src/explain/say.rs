//! Whether configured items took effect in a run, and how long answers took.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether a configured item took effect in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UseState {
    /// It isn't configured.
    NotSet,
    /// No process recorded how it fared.
    NotReported,
    /// It was consulted.
    Consulted,
    /// It wasn't.
    Never,
    /// It wasn't, and can't be as the run is configured.
    Unreachable,
}

/// The same, with the reason, if any.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleUse {
    /// Whether it took effect.
    pub say: UseState,
    /// Why it didn't, or isn't known to; absent if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl RuleUse {
    pub(super) const NOT_SET: Self = Self { say: UseState::NotSet, why: None };

    /// For an item that was consulted this often; `why` says why it never was.
    #[must_use]
    pub fn of(consulted: u64, why: impl FnOnce() -> String) -> Self {
        match consulted {
            0 => Self { say: UseState::Never, why: Some(why()) },
            _ => Self { say: UseState::Consulted, why: None },
        }
    }

    pub(super) fn unreachable(why: impl Into<String>) -> Self {
        Self { say: UseState::Unreachable, why: Some(format!("can't be reached: {}", why.into())) }
    }

    pub(super) fn not_reported(why: &str) -> Self {
        Self { say: UseState::NotReported, why: Some(format!("not reported: {why}")) }
    }
}

/// How many items are configured, and how many of them had no effect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tally {
    /// Items that are configured.
    pub configured: u64,
    /// Of all, those that were never consulted.
    pub never_consulted: u64,
    /// Of those, the ones that can't be.
    pub unreachable: u64,
    /// Those without a record of how they fared.
    pub not_reported: u64,
}

impl Tally {
    /// Adds an item.
    pub fn add(&mut self, standing: &RuleUse) {
        self.configured += u64::from(standing.say != UseState::NotSet);
        self.never_consulted += u64::from(matches!(standing.say, UseState::Never | UseState::Unreachable));
        self.unreachable += u64::from(standing.say == UseState::Unreachable);
        self.not_reported += u64::from(standing.say == UseState::NotReported);
    }
}

/// A kind of configured item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ItemGroup {
    /// Limits.
    Limits,
    /// Judges.
    Judges,
    /// Stop hooks.
    StopHooks,
    /// Hooks.
    Hooks,
    /// Permissions.
    Permissions,
    /// Observers.
    Observers,
}

/// Times, summed up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Durations {
    /// All together, in microseconds.
    pub total_us: u64,
    /// The longest, in microseconds.
    pub longest_us: u64,
}

impl Durations {
    pub(super) fn add_us(&mut self, us: u64) {
        self.total_us = self.total_us.saturating_add(us);
        self.longest_us = self.longest_us.max(us);
    }

    pub(super) fn add_ms(&mut self, ms: u64) {
        self.add_us(ms.saturating_mul(1_000));
    }
}
