//! Budget entries: reservations for model calls and charges.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::skip::is_default;
use crate::{Dimension, Exhausted, MicroDollars, Purpose, SessionId, Usage};

/// A reservation for a model call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BudgetReserved {
    /// The session that makes the call.
    pub session: SessionId,
    /// The session's call.
    pub call: u32,
    /// Tokens: the input (by earlier reports, at least the estimate) and the output cap.
    pub tokens: u64,
    /// Their maximum cost; 0 if the price is unknown.
    pub cost: MicroDollars,
    /// The output cap within `tokens`.
    pub output_tokens_max: u32,
    /// What the call is for.
    #[serde(default, skip_serializing_if = "is_default")]
    pub purpose: Purpose,
    /// The session's turn that it belongs to.
    #[serde(default, skip_serializing_if = "is_default")]
    pub turn: u32,
    /// The request's tokens by our own estimate, which the provider's count is compared with; 0 if unknown.
    #[serde(default, skip_serializing_if = "is_default")]
    pub estimated_tokens: u64,
}

/// The actual consumption of a model call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BudgetCharged {
    /// The session that made the call.
    pub session: SessionId,
    /// The session's call.
    pub call: u32,
    /// The session's turn.
    pub turn: u32,
    /// The model called, by the policy's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// What the provider reported.
    pub usage: Usage,
    /// Its cost; absent if the price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<MicroDollars>,
    /// `external` for a call of an external agent's program, which has numbers of its own; otherwise absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub purpose: Purpose,
}

/// A limit of the run was reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BudgetExhausted {
    /// The session that reached it.
    pub session: SessionId,
    /// The agent whose limit it is; the run's limit if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<SessionId>,
    /// The limit and how far it is exceeded.
    #[serde(flatten)]
    pub exhausted: Exhausted,
}

impl BudgetExhausted {
    /// Which limit.
    #[must_use]
    pub const fn dimension(&self) -> Dimension {
        self.exhausted.dimension
    }
}
