//! Why a model gives no answer: the provider's error, and the remedy.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::skip::is_default;
use crate::{ErrorClass, ModelPolicy, SessionId, Timestamp};

/// A model's failure to give a usable answer, as of when the session gives up or waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelTrouble {
    /// The model, by the policy's name.
    pub model: String,
    /// The class of failure.
    pub class: ErrorClass,
    /// The provider's own message, or ours if it gave none.
    pub message: String,
    /// Where to look, such as the variable that holds the key; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hint: String,
    /// The models that were asked before this one in the same outage, and why each gave no answer. Theirs is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<ModelTrouble>,
}

/// What must change before the model can be called again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TroubleCause {
    /// The provider must be available.
    Provider,
    /// The key must be valid.
    Key,
    /// Quota or credit must be available.
    Quota,
    /// The address must not redirect.
    Address,
    /// The model's name must be known to the provider.
    ModelUnknown,
    /// The request must change: another model, or another version of Provost.
    Request,
    /// The model must answer: it refuses, or gives empty answers.
    Answer,
}

impl ErrorClass {
    /// What must change before a model with this failure can be called again.
    #[must_use]
    pub const fn cause(self) -> TroubleCause {
        match self {
            Self::Unauthorized | Self::Forbidden => TroubleCause::Key,
            Self::QuotaUsedUp => TroubleCause::Quota,
            Self::NotFound => TroubleCause::ModelUnknown,
            Self::Redirected => TroubleCause::Address,
            Self::InvalidRequest | Self::ContextTooLong | Self::ContextExhausted => TroubleCause::Request,
            Self::Refusal | Self::NoAnswer | Self::OutputCap => TroubleCause::Answer,
            Self::Transport
            | Self::Cut
            | Self::Stalled
            | Self::Silent
            | Self::RateLimited
            | Self::Overloaded
            | Self::Server
            | Self::MalformedResponse
            | Self::Workspace
            | Self::StepFailed
            | Self::Aborted
            | Self::ScriptMismatch
            | Self::Storage
            | Self::Program
            | Self::ProgramGone
            | Self::Unanswered => TroubleCause::Provider,
        }
    }
}

impl TroubleCause {
    /// Whether the cause is outside of the conversation: any other agent that calls the same model fails too.
    #[must_use]
    pub const fn is_outside(self) -> bool {
        match self {
            Self::Provider | Self::Key | Self::Quota | Self::Address | Self::ModelUnknown => true,
            Self::Request | Self::Answer => false,
        }
    }

    /// The cause, for display.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Provider => "the provider can't be reached",
            Self::Key => "the provider refuses the key",
            Self::Quota => "the quota is used up",
            Self::Address => "the provider's base URL redirects",
            Self::ModelUnknown => "the provider doesn't know the model",
            Self::Request => "request refused",
            Self::Answer => "the model gives no usable answer",
        }
    }

    /// The cause, for display where it is over or nothing has looked at it since.
    #[must_use]
    pub const fn past(self) -> &'static str {
        match self {
            Self::Provider => "the provider couldn't be reached",
            Self::Key => "the provider refused the key",
            Self::Quota => "the quota was used up",
            Self::Address => "the provider's base URL redirected",
            Self::ModelUnknown => "the provider didn't know the model",
            Self::Request => "request refused",
            Self::Answer => "the model gave no usable answer",
        }
    }

    /// The remedy.
    #[must_use]
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::Provider => {
                "resume when it answers again, or resume with --model and another provider's model"
            }
            Self::Key => "set a valid key, then resume",
            Self::Quota => "add credit or wait until it is renewed, then resume; or resume with --model",
            Self::Address => "set base_url to the address that answers, then resume; or resume with --model",
            Self::ModelUnknown => "resume with --model and a model that it has",
            Self::Request => "resume with --model and another model",
            Self::Answer => "resume with a message that says what to do instead, or with --model",
        }
    }
}

impl ModelTrouble {
    /// What must change.
    #[must_use]
    pub const fn cause(&self) -> TroubleCause {
        self.class.cause()
    }

    /// What happens, for display.
    #[must_use]
    pub const fn words(&self) -> &'static str {
        match self.class {
            ErrorClass::Cut => "the provider can't be reached: its answers break off",
            ErrorClass::Stalled => "the provider can't be reached: it stops in the middle of an answer",
            ErrorClass::Silent => "the provider can't be reached: it doesn't answer",
            ErrorClass::RateLimited => "the provider limits the rate of requests",
            ErrorClass::Overloaded => "the provider can't be reached: it is overloaded",
            ErrorClass::Server => "the provider can't be reached: it reports an error",
            ErrorClass::MalformedResponse => "the provider's answers are malformed",
            ErrorClass::Refusal => "the model's provider reports a refusal",
            ErrorClass::OutputCap => "the model's answer is cut off by the limit on its length",
            _ => self.cause().words(),
        }
    }

    /// What happened, for display where it is over or nothing has looked at it since.
    #[must_use]
    pub const fn past(&self) -> &'static str {
        match self.class {
            ErrorClass::Cut => "the provider couldn't be reached: its answers broke off",
            ErrorClass::Stalled => "the provider couldn't be reached: it stopped in the middle of an answer",
            ErrorClass::Silent => "the provider couldn't be reached: it didn't answer",
            ErrorClass::RateLimited => "the provider limited the rate of requests",
            ErrorClass::Overloaded => "the provider couldn't be reached: it was overloaded",
            ErrorClass::Server => "the provider couldn't be reached: it reported an error",
            ErrorClass::MalformedResponse => "the provider's answers were malformed",
            ErrorClass::Refusal => "the model's provider reported a refusal",
            ErrorClass::OutputCap => "the model's answer was cut off by the limit on its length",
            _ => self.cause().past(),
        }
    }

    /// What to do, for display.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        match self.class {
            ErrorClass::OutputCap => {
                "a resume continues it; raise output_tokens_max, or resume with a message that asks for less"
            }
            _ => self.cause().remedy(),
        }
    }

    /// The failure, without the remedy.
    #[must_use]
    pub fn what(&self) -> String {
        let hint = if self.hint.is_empty() { String::new() } else { format!(" ({})", self.hint) };
        let tried = self.tried_in_words();
        format!("{} ({}): {}{hint}{tried}", self.words(), self.model, self.message)
    }

    /// The models that were asked before, each with its failure and, unless waiting helps, the remedy; as the end of
    /// a sentence, empty if there are none.
    #[must_use]
    pub fn tried_in_words(&self) -> String {
        let tried = self.tried.iter().map(|tried| {
            let remedy = if tried.cause() == TroubleCause::Provider { "" } else { tried.remedy() };
            let separator = if remedy.is_empty() { "" } else { "; " };
            format!("; asked before: {}{separator}{remedy}", tried.what())
        });
        tried.collect()
    }
}

impl fmt::Display for ModelTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what(), self.remedy())
    }
}

/// Why another model is called from here on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelChange {
    /// It was requested.
    Asked {
        /// By whom.
        by: String,
    },
    /// The previous model gives no answer.
    Fallback {
        /// The number of the fallback model, from 1.
        number: u32,
        /// The failure of the previous model.
        trouble: ModelTrouble,
    },
    /// The first model is retried.
    Returned,
}

/// Another model is called from here on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelChanged {
    /// The previous model, by the policy's name.
    pub from: String,
    /// The new model.
    pub to: Box<ModelPolicy>,
    /// Why.
    pub why: ModelChange,
}

/// The maximum wait for outages from here on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutageWaitChanged {
    /// In milliseconds; with 0 a session is suspended at once, and its process stops waiting.
    pub outage_max_ms: u64,
    /// Who changed it.
    pub by: String,
}

/// A session waits for its model's provider. The wait isn't worked time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderAwaited {
    /// The session.
    pub session: SessionId,
    /// The model's failure.
    pub trouble: ModelTrouble,
    /// When the model is called again.
    pub until: Timestamp,
    /// Whether `model_patience_ms` is exceeded: the session counts as suspended, and retries periodically.
    #[serde(default, skip_serializing_if = "is_default")]
    pub suspended: bool,
}
