//! Model calls and their retries.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::skip::is_default;
use crate::{ErrorClass, Usage};

/// The purpose of a model call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The agent's next answer.
    #[default]
    Turn,
    /// A summary of the conversation, to replace its older part.
    Summary,
    /// A final summary at a limit. No tool is called after it.
    FinalSummary,
    /// A verdict on the goal. It is another model that is called, and it sees only the evidence.
    Judge,
    /// A call that an external agent's program makes itself, through the gateway.
    External,
    /// The answer of a hook that is a model.
    Hook,
}

impl Purpose {
    /// Whether calls with it are made beside the conversation, with numbers of their own: several may be open at once.
    #[must_use]
    pub const fn is_beside(self) -> bool {
        matches!(self, Self::External | Self::Hook)
    }
}

/// A model call is about to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelCalled {
    /// The turn, from 1.
    pub turn: u32,
    /// The session's calls so far, this one included.
    pub call: u32,
    /// Which attempt at this answer, from 1.
    pub attempt: u32,
    /// Its purpose.
    #[serde(default, skip_serializing_if = "is_default")]
    pub purpose: Purpose,
    /// The cap on the answer, within the remaining budget.
    pub output_tokens_max: u32,
    /// The time left of the run's or the agent's time limit, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_left: Option<TimeLeft>,
}

/// The time left of a time limit, in milliseconds of worked time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimeLeft {
    /// Until the agent is asked for its final summary.
    pub work_ms: u64,
    /// Until the limit is used up.
    pub limit_ms: u64,
}

/// Why a model call is retried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RetryCause {
    /// It failed.
    Failed {
        /// The class of failure.
        class: ErrorClass,
        /// The error message.
        message: String,
        /// The HTTP status.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        /// The provider's request id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
    },
    /// The answer was empty.
    EmptyAnswer,
    /// Provost was interrupted before the answer was recorded.
    Interrupted,
    /// The conversation was too long, and is compacted before the retry.
    Compacted,
    /// The summary can't be used; the conversation is compacted by rule instead.
    UselessSummary {
        /// What is wrong with it.
        why: String,
    },
}

/// A model call is retried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Retry {
    /// The call that gave no usable answer.
    pub call: u32,
    /// Why.
    pub cause: RetryCause,
    /// The wait before the next attempt, in milliseconds.
    pub delay_ms: u64,
    /// The usage of the discarded call.
    pub usage: Usage,
    /// Milliseconds since the first of the consecutive failed calls.
    #[serde(default, skip_serializing_if = "is_default")]
    pub outage_ms: u64,
    /// Whether `model_patience_ms` is exceeded: until the next attempt the session counts as suspended.
    #[serde(default, skip_serializing_if = "is_default")]
    pub suspended: bool,
}

impl Retry {
    /// A retry without a wait.
    #[must_use]
    pub const fn at_once(call: u32, cause: RetryCause, usage: Usage) -> Self {
        Self { call, cause, delay_ms: 0, usage, outage_ms: 0, suspended: false }
    }
}
