//! What messages are made of.

use serde::{Deserialize, Serialize};

use crate::{BlobId, CallId, Json};

/// One piece of a message, in the order the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Block {
    /// Plain text.
    Text(String),
    /// A picture.
    Image(Image),
    /// The model's reasoning; goes back to its provider unchanged.
    Thinking {
        /// The reasoning as far as the provider shows it.
        text: String,
        /// The provider's seal over it, if it gave one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
        /// The wire format whose seal it is; in logs of format 1, which knew one provider, it is absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wire: Option<String>,
        /// What the request came to that it answered, where its provider accepts it back only behind the same one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prefix: Option<PrefixHash>,
    },
    /// A block only its provider understands; kept as it came and sent back unchanged.
    Opaque {
        /// The wire format it belongs to.
        wire: String,
        /// The block itself.
        json: Json,
        /// As with [`Block::Thinking`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prefix: Option<PrefixHash>,
    },
    /// The model asks for a tool.
    ToolCall(ToolCall),
}

/// A hash over everything a request said before an answer: system prompt, tools and messages, in the form its provider
/// got. 16 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PrefixHash(pub String);

/// A picture, kept beside the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// What it is.
    pub kind: ImageKind,
    /// Where its bytes are.
    pub blob: BlobId,
    /// How many they are.
    pub bytes: u64,
}

/// The kinds of pictures that models read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    /// The kind of picture that begins with `bytes`, by its signature; `None` for anything else.
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
