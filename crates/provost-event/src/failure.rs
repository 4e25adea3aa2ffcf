//! How a model call can fail.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Usage;

/// The kind of a model call's failure; decides whether it is retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// No connection, or one that broke before an answer began.
    Transport,
    /// The answer was cut off.
    Cut,
    /// No token for longer than allowed.
    Stalled,
    /// No event at all, not even a sign of life, for longer than allowed.
    Silent,
    /// The provider limits the request rate (429).
    RateLimited,
    /// The provider is overloaded (529, or an overload reported in the stream).
    Overloaded,
    /// The provider failed (5xx), or timed out or collided on its side (408, 409).
    Server,
    /// The answer violates the wire format.
    MalformedResponse,
    /// The request is wrong (400 and other 4xx).
    InvalidRequest,
    /// The key is missing or wrong (401).
    Unauthorized,
    /// The key lacks permission (402, 403).
    Forbidden,
    /// No quota or credit is left: a short wait doesn't help.
    QuotaUsedUp,
    /// Unknown model or address (404).
    NotFound,
    /// The address redirects (3xx); the key isn't sent there.
    Redirected,
    /// The request is longer than the model's context window.
    ContextTooLong,
    /// The conversation doesn't fit the model's context window even after compaction.
    ContextExhausted,
    /// The agent's workspace can't be created.
    Workspace,
    /// A workflow step has failed.
    StepFailed,
    /// The model gives only empty answers.
    NoAnswer,
    /// The answer is still cut off by the limit on its length after it was continued.
    OutputCap,
    /// The model declined to answer.
    Refusal,
    /// The call was cancelled by Provost.
    Aborted,
    /// A scripted model got a request that its script doesn't expect.
    ScriptMismatch,
    /// The log couldn't be written or read.
    Storage,
    /// An external agent's program couldn't be started, failed, or ended before it was done.
    Program,
    /// An external agent's program waited for input or approval, and got none in time.
    Unanswered,
    /// An external agent's program has ended, and its profile has no way to resume its session.
    ProgramGone,
}

impl ErrorClass {
    /// Whether the same call may be retried.
    #[must_use]
    pub const fn may_retry(self) -> bool {
        match self {
            Self::Transport
            | Self::Cut
            | Self::Stalled
            | Self::Silent
            | Self::RateLimited
            | Self::Overloaded
            | Self::Server
            | Self::MalformedResponse => true,
            Self::InvalidRequest
            | Self::Unauthorized
            | Self::Forbidden
            | Self::QuotaUsedUp
            | Self::NoAnswer
            | Self::NotFound
            | Self::Redirected
            | Self::ContextTooLong
            | Self::ContextExhausted
            | Self::Workspace
            | Self::StepFailed
            | Self::OutputCap
            | Self::Refusal
            | Self::Aborted
            | Self::ScriptMismatch
            | Self::Storage
            | Self::Program
            | Self::ProgramGone
            | Self::Unanswered => false,
        }
    }

    /// Whether a restart may help an agent with this failure: what failed is its program, its answers or Provost
    /// itself. Outages are waited out instead; a refused request is refused again.
    #[must_use]
    pub const fn may_restart(self) -> bool {
        match self {
            Self::Program | Self::NoAnswer | Self::MalformedResponse | Self::Aborted => true,
            Self::Transport
            | Self::Cut
            | Self::Stalled
            | Self::Silent
            | Self::RateLimited
            | Self::Overloaded
            | Self::Server
            | Self::InvalidRequest
            | Self::Unauthorized
            | Self::Forbidden
            | Self::QuotaUsedUp
            | Self::NotFound
            | Self::Redirected
            | Self::ContextTooLong
            | Self::ContextExhausted
            | Self::Workspace
            | Self::StepFailed
            | Self::OutputCap
            | Self::Refusal
            | Self::ScriptMismatch
            | Self::Storage
            | Self::ProgramGone
            | Self::Unanswered => false,
        }
    }

    /// The class, for display.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Transport => "no connection to the provider",
            Self::Cut => "the answer was cut off",
            Self::Stalled => "the provider stopped answering",
            Self::Silent => "the provider says nothing",
            Self::QuotaUsedUp => "the quota is used up",
            Self::NoAnswer => "the model says nothing",
            Self::OutputCap => "the answer is cut off by its limit",
            Self::RateLimited => "rate limited",
            Self::Overloaded => "the provider is overloaded",
            Self::Server => "the provider failed",
            Self::MalformedResponse => "the provider sent a malformed response",
            Self::InvalidRequest => "the provider refused the request",
            Self::Unauthorized => "the provider refused the key",
            Self::Forbidden => "the key may not do this",
            Self::NotFound => "model or address not found",
            Self::Redirected => "the base URL redirects",
            Self::ContextTooLong => "the request is longer than the model's window",
            Self::ContextExhausted => "the conversation no longer fits the model's window",
            Self::Workspace => "the agent's workspace can't be made",
            Self::StepFailed => "a step of the workflow has failed",
            Self::Refusal => "the model refused",
            Self::Aborted => "the call was cancelled",
            Self::ScriptMismatch => "the script doesn't fit the conversation",
            Self::Storage => "the log can't be written",
            Self::Program => "the program failed",
            Self::ProgramGone => "the program can't go on",
            Self::Unanswered => "the program got no answer",
        }
    }
}

/// A model call that gave no usable answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelFailure {
    /// What kind of failure.
    pub class: ErrorClass,
    /// The HTTP status, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The provider's own message, or ours if it gave none. Never contains a key.
    pub message: String,
    /// The provider's request id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The wait that the provider asks for, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Where to look, such as the variable that holds the key; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hint: String,
    /// Usage that the provider reported before the failure.
    #[serde(default)]
    pub usage: Usage,
}

impl ModelFailure {
    /// A failure with only a class and a message.
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            class,
            status: None,
            message,
            request_id: None,
            retry_after_ms: None,
            hint: String::new(),
            usage: Usage::default(),
        }
    }
}
