//! Message content.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BlobId, CallId, Json};

/// One piece of a message, in the order the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Block {
    /// Plain text.
    Text(String),
    /// A picture.
    Image(Image),
    /// The model's reasoning; sent back to its provider unchanged.
    Thinking {
        /// The reasoning, as far as the provider discloses it.
        text: String,
        /// The provider's signature, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
        /// The wire format of the signature; absent for reasoning that goes back to no provider.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wire: Option<String>,
        /// Hash of the request that was answered, if the provider accepts the block only after the same request
        /// prefix.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prefix: Option<PrefixHash>,
    },
    /// A block only its provider understands; stored and sent back unchanged.
    Opaque {
        /// The wire format it belongs to.
        wire: String,
        /// The block itself.
        json: Json,
        /// See [`Block::Thinking`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prefix: Option<PrefixHash>,
    },
    /// A tool call by the model.
    ToolCall(ToolCall),
}

/// A hash of everything that precedes an answer in a request (system prompt, tools and messages), in the
/// provider's wire form. 16 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct PrefixHash(pub String);

/// A picture, stored beside the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Image {
    /// Its format.
    pub kind: ImageKind,
    /// The blob with its bytes.
    pub blob: BlobId,
    /// Its size.
    pub bytes: u64,
}

/// The picture formats that models accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ImageKind {
    /// PNG.
    #[serde(rename = "image/png")]
    Png,
    /// JPEG.
    #[serde(rename = "image/jpeg")]
    Jpeg,
    /// GIF.
    #[serde(rename = "image/gif")]
    Gif,
    /// WebP.
    #[serde(rename = "image/webp")]
    Webp,
}

impl ImageKind {
    /// The picture format of `bytes`, by signature; `None` if unknown.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::Webp),
            _ => None,
        }
    }

    /// Its media type.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }
}

/// A tool call requested by the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// The provider's name for the call.
    pub id: CallId,
    /// The tool.
    pub name: String,
    /// The arguments; an empty object where they were malformed.
    pub input: Json,
    /// The beginning of the arguments as written, if they were not valid JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub malformed: Option<String>,
}
