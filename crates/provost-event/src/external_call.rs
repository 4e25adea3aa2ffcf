//! Model calls beside the conversation: those that an external agent's program makes itself, through the model gateway, and
//! those of hooks that are models.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::skip::is_default;
use crate::{BlobId, ErrorClass, Exhausted, Json, MicroDollars, Price, Purpose, Usage};

/// How the usage of an external agent's program becomes known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Metering {
    /// What the program itself reports, if anything.
    #[default]
    Reported,
    /// Its model calls pass the gateway: the budget binds each of them before it is made.
    Gateway,
    /// Not at all, as the settings say: money doesn't bind it.
    Unmetered,
}

/// A request to a model beside the conversation, by a program or for a hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExternalCall {
    /// Its purpose: `external`, or `hook`.
    #[serde(default = "external")]
    pub purpose: Purpose,
    /// The id of the request, unique in the session: the gateway's, or the executor's.
    pub request: String,
    /// The model, as `provider/model`.
    pub model: String,
    /// The wire format; empty for a hook.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub wire: String,
    /// The price of the model's tokens; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// The request's body, where bodies are recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<BlobId>,
}

/// A model call beside the conversation is about to be made: its budget is reserved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExternalModelCalled {
    /// The session's turn in which it is made.
    pub turn: u32,
    /// The session's calls beside its conversation so far, this one included.
    pub call: u32,
    /// The request.
    #[serde(flatten)]
    pub of: ExternalCall,
    /// The cap on the answer, within the remaining budget.
    pub output_tokens_max: u32,
}

/// A model call beside the conversation waits for another one, which has reserved what is left of the budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExternalModelQueued {
    /// The request.
    #[serde(flatten)]
    pub of: ExternalCall,
    /// Tokens of the request, by a conservative estimate.
    pub input_tokens: u64,
    /// The cap on the answer that it asks for.
    pub output_tokens_max: u32,
}

/// A model call beside the conversation isn't made. Who asked for it is told so; at the end of a limit the session is
/// suspended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExternalModelRefused {
    /// The request.
    #[serde(flatten)]
    pub of: ExternalCall,
    /// The limit that leaves no useful answer; absent if money is limited and the model's price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exhausted: Option<Exhausted>,
}

/// How a model call beside the conversation ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExternalCallEnd {
    /// With a complete answer.
    #[default]
    Answered,
    /// The program closed the connection before the answer was complete, or the hook's time was over.
    Aborted,
    /// The provider failed, or couldn't be reached.
    Failed {
        /// The class of failure.
        class: ErrorClass,
        /// The message.
        message: String,
    },
    /// Provost was interrupted while it was open.
    Lost,
}

/// A tool that a program's model asked it to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestedTool {
    /// The tool's name.
    pub name: String,
    /// Its arguments; cut to a text where they are long.
    pub input: Json,
}

/// A model call beside the conversation is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExternalModelAnswered {
    /// The call.
    pub call: u32,
    /// Its purpose: `external`, or `hook`.
    #[serde(default = "external")]
    pub purpose: Purpose,
    /// The id of the request.
    pub request: String,
    /// The model, as `provider/model`.
    pub model: String,
    /// How it ended.
    #[serde(default, skip_serializing_if = "is_default")]
    pub end: ExternalCallEnd,
    /// Its usage.
    pub usage: Usage,
    /// Its cost; absent if the price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<MicroDollars>,
    /// The provider's HTTP status; absent if it gave none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The provider's request id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// From the request to the end of the answer, in milliseconds.
    #[serde(default, skip_serializing_if = "is_default")]
    pub duration_ms: u64,
    /// The tools that the model asked for, the first of them if there are many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<RequestedTool>,
    /// The answer's body, where bodies are recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<BlobId>,
}

const fn external() -> Purpose {
    Purpose::External
}
