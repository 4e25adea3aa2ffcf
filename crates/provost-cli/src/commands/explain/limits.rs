//! Limits of all kinds, as a page shows them.

use serde::Serialize;

use super::say::RuleUse;

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Unit {
    Tokens,
    MicroUsd,
    Ms,
    Times,
}

/// A limit, and how it fared.
#[derive(Debug, Serialize)]
pub(super) struct Limit {
    pub(super) name: &'static str,
    pub(super) unit: Unit,
    /// What is allowed; `None` is unlimited.
    pub(super) set_to: Option<u64>,
    /// What was allowed at first, where that was changed since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) set_to_at_first: Option<u64>,
    /// The most that was reached.
    pub(super) most: u64,
    pub(super) consulted: u64,
    /// How often it took effect.
    pub(super) decided: u64,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(super) reserved: Option<Reserved>,
    #[serde(flatten)]
    pub(super) standing: RuleUse,
}

/// How a limit of spending was enforced: before each model call, its worst case is reserved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct Reserved {
    /// The most that was reserved at a time.
    pub(super) reserved_most: u64,
    /// Answers whose cap was lowered to what was left.
    pub(super) lowered: u64,
    /// Calls that no longer fitted.
    pub(super) refused: u64,
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
    pub(super) fn limit(self, name: &'static str, set_to: u32, standing: RuleUse) -> Limit {
        Limit {
            name,
            unit: Unit::Times,
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
