//! What messages are made of.

use serde::{Deserialize, Serialize};

use crate::{CallId, Json};

/// One piece of a message, in the order the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Block {
    /// Plain text.
    Text(String),
    /// The model's reasoning; goes back to its provider unchanged.
    Thinking {
        /// The reasoning as far as the provider shows it.
        text: String,
        /// The provider's seal over it, if it gave one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// A block only its provider understands; kept as it came and sent back unchanged.
    Opaque {
        /// The wire format it belongs to.
        wire: String,
        /// The block itself.
        json: Json,
    },
    /// The model asks for a tool.
    ToolCall(ToolCall),
}

/// The model's wish to have a tool called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The provider's name for the call.
    pub id: CallId,
    /// The tool.
    pub name: String,
    /// The arguments; an empty object where they were malformed.
    pub input: Json,
    /// What the model wrote instead of JSON, shortened, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub malformed: Option<String>,
}
