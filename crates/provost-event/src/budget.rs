//! What a run sets aside for model calls, and what they took.

use serde::{Deserialize, Serialize};

use crate::{Dimension, Exhausted, MicroDollars, Purpose, SessionId, Usage};

/// What is set aside for a model call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetReserved {
    /// For whom.
    pub session: SessionId,
    /// For which of its calls.
    pub call: u32,
    /// Tokens: the input, by what was reported so far and no less than the estimate, and the output cap.
    pub tokens: u64,
    /// What they would cost at most; 0 where the price is unknown.
    pub cost: MicroDollars,
    /// The output cap within it.
    pub output_tokens_max: u32,
    /// What the call is for.
    #[serde(default, skip_serializing_if = "Purpose::is_turn")]
    pub purpose: Purpose,
    /// The session's turn that it belongs to.
    #[serde(default, skip_serializing_if = "is_zero_turn")]
    pub turn: u32,
    /// The request's tokens by our own estimate, which the provider's count is compared with; 0 if nobody knows.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub estimated_tokens: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape serde asks for")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape serde asks for")]
const fn is_zero_turn(turn: &u32) -> bool {
    *turn == 0
}

/// What a model call really took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetCharged {
    /// Whose call.
    pub session: SessionId,
    /// Which of its calls.
    pub call: u32,
    /// The session's turn.
    pub turn: u32,
    /// The model that was asked, by the policy's name; empty in logs of format 1.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// What the provider reported.
    pub usage: Usage,
    /// What that cost; absent where the price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<MicroDollars>,
}

/// A limit of the run was reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetExhausted {
    /// By whom.
    pub session: SessionId,
    /// Whose limit it is; the run's if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<SessionId>,
    /// Which and how far.
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
