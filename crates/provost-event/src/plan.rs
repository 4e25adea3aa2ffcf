//! An agent's plan.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An agent's latest plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Its steps, in order.
    pub items: Vec<PlanItem>,
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanItem {
    /// A short description.
    pub text: String,
    /// Its status.
    pub status: PlanStatus,
}

/// The status of a plan's step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    /// Not begun.
    Pending,
    /// Begun.
    InProgress,
    /// Done, by the agent's claim.
    Done,
}
