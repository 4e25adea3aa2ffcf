//! Why a model gives no answer: what the provider says, and what to do about it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{ErrorClass, ModelPolicy, SessionId, Timestamp};

/// A model that gave no usable answer, as the session that asked it gives up or waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelTrouble {
    /// The model, by the policy's name.
    pub model: String,
    /// What kind of failure.
    pub class: ErrorClass,
    /// The provider's own message, or ours where it gave none.
    pub message: String,
    /// Where to look, such as the variable that holds the key; empty where nothing more is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hint: String,
}

/// What must change before the model can be asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TroubleCause {
    /// The provider must be reachable and work.
    Provider,
    /// The key must be valid.
    Key,
    /// There must be quota or credit.
    Quota,
    /// The address must be one that answers by itself.
    Address,
    /// The model's name must be one that the provider knows.
    ModelUnknown,
    /// The request must be another: another model, or another version of Provost.
    Request,
    /// The model must answer: it refuses, or says nothing.
    Answer,
}

impl ErrorClass {
    /// What must change before a model can be asked again that failed like this.
    #[must_use]
    pub const fn cause(self) -> TroubleCause {
        match self {
            Self::Unauthorized | Self::Forbidden => TroubleCause::Key,
            Self::QuotaUsedUp => TroubleCause::Quota,
            Self::NotFound => TroubleCause::ModelUnknown,
            Self::Redirected => TroubleCause::Address,
            Self::InvalidRequest | Self::ContextTooLong | Self::ContextExhausted => TroubleCause::Request,
            Self::Refusal | Self::NoAnswer => TroubleCause::Answer,
            Self::Transport
            | Self::Cut
            | Self::Stalled
            | Self::Silent
            | Self::RateLimited
            | Self::Overloaded
            | Self::Server
            | Self::Nonsense
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
    /// Whether nothing in the conversation is at fault: any other agent that asks the same model fares the same.
    #[must_use]
    pub const fn is_outside(self) -> bool {
        match self {
            Self::Provider | Self::Key | Self::Quota | Self::Address | Self::ModelUnknown => true,
            Self::Request | Self::Answer => false,
        }
    }

    /// The cause as people read it.
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

    /// What to do about it.
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

    /// What has happened, without what people can do about it.
    #[must_use]
    pub fn what(&self) -> String {
        let hint = if self.hint.is_empty() { String::new() } else { format!(" ({})", self.hint) };
        format!("{} ({}): {}{hint}", self.cause().words(), self.model, self.message)
    }
}

impl fmt::Display for ModelTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what(), self.cause().remedy())
    }
}

/// Why another model is asked from here on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelChange {
    /// Somebody wants it.
    Asked {
        /// Who.
        by: String,
    },
    /// The model before it gives no answer.
    Fallback {
        /// Its place among the models that stand in, from 1.
        number: u32,
        /// How the one before it failed.
        trouble: ModelTrouble,
    },
    /// The first model is tried again.
    Returned,
}

/// Another model is asked from here on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelChanged {
    /// The one before, by the policy's name.
    pub from: String,
    /// The one from here on.
    pub to: Box<ModelPolicy>,
    /// Why.
    pub why: ModelChange,
}

/// How long outages are waited out from here on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutageWaitChanged {
    /// In milliseconds; with 0 a session is suspended at once, and whoever works on it leaves.
    pub outage_max_ms: u64,
    /// Who wants it.
    pub by: String,
}

/// A session waits for its model's provider. What is waited is no worked time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderAwaited {
    /// Which.
    pub session: SessionId,
    /// For what.
    pub trouble: ModelTrouble,
    /// When the model is asked again.
    pub until: Timestamp,
    /// Whether patience is over: it counts as suspended, and is tried again from time to time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
}
