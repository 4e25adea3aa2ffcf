//! Limits of all kinds, as a page shows them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::say::RuleUse;

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitUnit {
    /// Tokens.
    Tokens,
    /// Millionths of a US dollar.
    MicroUsd,
    /// Milliseconds.
    Ms,
    /// How often something happened.
    Times,
}

/// A limit, and how it fared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitUse {
    /// Its name.
    pub name: String,
    /// What it counts.
    pub unit: LimitUnit,
    /// What is allowed; `None` is unlimited.
    pub set_to: Option<u64>,
    /// What was allowed at first, where that was changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_to_at_first: Option<u64>,
    /// The most that was reached.
    pub most: u64,
    /// How often it was compared with what was reached.
    pub consulted: u64,
    /// How often it took effect.
    pub decided: u64,
    /// How it was enforced; absent for limits of anything but tokens and money.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub reserved: Option<ReservedUse>,
    /// Whether it took effect.
    #[serde(flatten)]
    pub standing: RuleUse,
}

/// How a limit of spending was enforced: before each model call, its worst case is reserved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReservedUse {
    /// The most that was reserved at a time.
    pub reserved_most: u64,
    /// Answers whose cap was lowered to what was left.
    pub lowered: u64,
    /// Calls that no longer fitted.
    pub refused: u64,
}

/// How far something limited went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) most: u64,
    pub(super) consulted: u64,
    pub(super) decided: u64,
}

impl Count {
    pub(super) fn reaches(&mut self, count: impl Into<u64>) {
        self.most = self.most.max(count.into());
    }

    pub(super) const fn asked(&mut self) {
        self.consulted += 1;
    }

    pub(super) fn asked_and(&mut self, decides: bool) {
        self.consulted += 1;
        self.decided += u64::from(decides);
    }

    /// As a limit on how often something may happen.
    pub(super) fn limit(self, name: &'static str, set_to: u32, standing: RuleUse) -> LimitUse {
        LimitUse {
            name: name.to_owned(),
            unit: LimitUnit::Times,
            set_to: Some(set_to.into()),
            set_to_at_first: None,
            most: self.most,
            consulted: self.consulted,
            decided: self.decided,
            reserved: None,
            standing,
        }
    }
}
