//! Requests for budget, and reports of its use.

use provost_event::{Dimension, LimitOwner, MicroDollars, Purpose, SessionId, Usage};
use serde::{Deserialize, Serialize};

use super::ExternalCallRequest;

/// A request for budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReserveRequest {
    /// The session.
    pub session: SessionId,
    /// The number of the session's call.
    pub call: u32,
    /// The turn.
    #[serde(default)]
    pub turn: u32,
    /// The model to call, by the policy's name.
    #[serde(default)]
    pub model: String,
    /// Tokens of the request: the provider's last count plus what was added since, and at least the estimate.
    pub input_tokens: u64,
    /// The same by our own estimate alone; 0 if unknown.
    #[serde(default)]
    pub estimated_tokens: u64,
    /// Whether a provider has counted this conversation before.
    #[serde(default)]
    pub is_counted: bool,
    /// The cap on the answer.
    pub output_tokens_max: u32,
    /// What the model's tokens cost, if known.
    pub price: Option<provost_event::Price>,
    /// Whether to keep back budget for a final summary at a limit.
    #[serde(default)]
    pub keeps_back: bool,
    /// Thinking tokens for the final summary, if anything is kept back.
    #[serde(default)]
    pub thinking_tokens: u32,
    /// Additional tokens that must be left, if anything is kept back.
    #[serde(default)]
    pub kept_tokens: u64,
    /// Additional money that must be left.
    #[serde(default)]
    pub kept_cost: MicroDollars,
    /// The percentage of each of the run's limits that all judges together may use and that is kept for them.
    #[serde(default)]
    pub judges_percent: u8,
    /// Whether the work ends without this budget; other calls are skipped.
    #[serde(default)]
    pub ends_work: bool,
    /// The purpose of the call.
    #[serde(default)]
    pub purpose: Purpose,
    /// The request beside the conversation that the call is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<Box<ExternalCallRequest>>,
}

/// How much of a limit is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitUse {
    /// The dimension of the limit.
    pub dimension: Dimension,
    /// The amount used, in the dimension's unit.
    pub used: u64,
    /// The limit.
    pub limit: u64,
    /// Whose limit it is.
    pub owner: LimitOwner,
}

impl LimitUse {
    /// The percentage of use from which an agent is notified.
    pub(crate) const NEAR: u8 = 50;

    /// The percentage of the limit that is used, at most 100.
    #[must_use]
    pub fn percent(&self) -> u8 {
        let percent = u128::from(self.used) * 100 / u128::from(self.limit.max(1));
        u8::try_from(percent.min(100)).unwrap_or(100)
    }
}

/// The usage of a model call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettleNote {
    /// The session.
    pub session: SessionId,
    /// The number of the session's call.
    pub call: u32,
    /// The turn.
    pub turn: u32,
    /// The model that was called, by the policy's name.
    #[serde(default)]
    pub model: String,
    /// The usage that the provider reported.
    pub usage: Usage,
    /// The cost, if known.
    pub cost: Option<MicroDollars>,
    /// `External` or `Hook` for a call beside the conversation, which has numbers of its own.
    #[serde(default)]
    pub purpose: Purpose,
}
