//! Messages in this format; one of Provost's may become several.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use bytes::Bytes;
use provost_event::{Block, ToolCall};
use provost_harness::{ImageData, Message, Part, Role};
use serde::Serialize;
use serde_json::value::RawValue;

use super::WIRE;
use crate::ReasoningBack;
use crate::json::{failed, is_blank, list, put};

/// Ends the prefix that the provider caches for the next request.
#[derive(Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum CacheControl {
    Ephemeral,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum WireMessage<'a> {
    System {
        content: Content<'a>,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        /// `null` if there are only calls, as in OpenAI's own answers; some servers require the field.
        content: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        reasoning_details: Vec<&'a RawValue>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<WireCall<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: String,
    },
}

/// A text if possible: some servers support nothing else, or split a list into messages.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Joined(String),
    Parts(Vec<WirePart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WirePart<'a> {
    Text {
        text: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ImageUrl {
        image_url: ImageUrl<'a>,
    },
}

#[derive(Serialize)]
struct ImageUrl<'a> {
    #[serde(serialize_with = "data_url")]
    url: &'a ImageData,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WireCall<'a> {
    Function { id: &'a str, function: WireFunction<'a> },
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: &'a str,
    /// JSON as a text.
    arguments: &'a str,
}

/// The variant of the encoded messages.
pub(super) const fn variant(back: ReasoningBack) -> u32 {
    match back {
        ReasoningBack::None => 0,
        ReasoningBack::ReasoningContent => 1,
        ReasoningBack::Reasoning => 2,
        ReasoningBack::ReasoningDetails => 3,
    }
}

/// The system prompt's message; empty if the prompt is empty.
pub(super) fn system(system: &str, is_cached: bool) -> Bytes {
    let content = if is_cached {
        let cache_control = Some(CacheControl::Ephemeral);
        Content::Parts(vec![WirePart::Text { text: system.to_owned(), cache_control }])
    } else {
        Content::Text(system)
    };
    if is_blank(system) { Bytes::new() } else { written(&WireMessage::System { content }) }
}

fn written(message: &WireMessage<'_>) -> Bytes {
    let mut out = Vec::new();
    put(&mut out, message);
    out.into()
}

/// The messages for one of Provost's; empty if it has nothing to send.
pub(super) fn fragment(message: &Message, back: ReasoningBack) -> Bytes {
    match message.role {
        Role::Assistant => assistant(message, back),
        Role::User => {
            let mut messages = message.parts.iter().filter_map(result).collect::<Vec<_>>();
            messages.extend(user(message));
            let mut out = Vec::new();
            list(&mut out, &messages);
            out.into()
        }
    }
}

/// A tool's result. The format has no field for failures, and none for pictures.
fn result(part: &Part) -> Option<Bytes> {
    let Part::ToolResult { call, output, images, is_error, .. } = part else { return None };
    let content = match (is_error, is_blank(output)) {
        (true, _) => failed(output),
        // Some servers refuse a message without content.
        (false, true) if images.is_empty() => "(no output)".to_owned(),
        (false, true) => "(only pictures, which follow)".to_owned(),
        (false, false) => output.clone(),
    };
    Some(written(&WireMessage::Tool { tool_call_id: &call.0, content }))
}

/// The content besides results, pictures first.
fn user(message: &Message) -> Option<Bytes> {
    let parts = message.parts.iter().flat_map(user_parts).collect::<Vec<_>>();
    if parts.is_empty() {
        return None;
    }
    let texts = parts.iter().map(|part| match part {
        WirePart::Text { text, .. } => Some(text.as_str()),
        WirePart::ImageUrl { .. } => None,
    });
    let content = match texts.collect::<Option<Vec<_>>>() {
        Some(texts) => Content::Joined(texts.join("\n\n")),
        None => Content::Parts(parts),
    };
    Some(written(&WireMessage::User { content }))
}

fn user_parts(part: &Part) -> Vec<WirePart<'_>> {
    let text = |text: String| WirePart::Text { text, cache_control: None };
    let picture = |url| WirePart::ImageUrl { image_url: ImageUrl { url } };
    match part {
        Part::Block(Block::Text(said)) if !is_blank(said) => vec![text(said.clone())],
        Part::Image(image) => vec![picture(image)],
        Part::ToolResult { call, tool, images, .. } if !images.is_empty() => {
            let heading = text(format!("Pictures of the result of {tool} ({}):", call.0));
            std::iter::once(heading).chain(images.iter().map(picture)).collect()
        }
        Part::Block(_) | Part::ToolResult { .. } => Vec::new(),
    }
}

fn data_url<S: serde::Serializer>(image: &ImageData, serializer: S) -> Result<S::Ok, S::Error> {
    let mut url = format!("data:{};base64,", image.kind().media_type());
    BASE64_STANDARD.encode_string(image.bytes(), &mut url);
    serializer.serialize_str(&url)
}

/// An answer; empty if only reasoning is left of it.
fn assistant(message: &Message, back: ReasoningBack) -> Bytes {
    let blocks = || message.parts.iter().filter_map(block);
    let texts = blocks().filter_map(|block| match block {
        Block::Text(text) if !is_blank(text) => Some(text.as_str()),
        _ => None,
    });
    let texts = texts.collect::<Vec<_>>();
    let tool_calls = blocks().filter_map(call).collect::<Vec<_>>();
    if texts.is_empty() && tool_calls.is_empty() {
        return Bytes::new();
    }
    let thoughts = blocks().filter_map(thought).collect::<Vec<_>>();
    let spoken = thoughts.iter().map(|(text, _)| *text).filter(|text| !text.is_empty()).collect::<Vec<_>>();
    let spoken = (!spoken.is_empty()).then(|| spoken.join("\n\n"));
    let details =
        thoughts.iter().flat_map(|(_, seal)| serde_json::from_str::<Vec<&RawValue>>(seal)).flatten();
    written(&WireMessage::Assistant {
        content: (!texts.is_empty()).then(|| texts.join("\n\n")),
        reasoning_content: match back {
            // DeepSeek refuses calls without the field, even if there was no reasoning.
            ReasoningBack::ReasoningContent if !tool_calls.is_empty() => {
                Some(spoken.clone().unwrap_or_default())
            }
            ReasoningBack::ReasoningContent => spoken.clone(),
            _ => None,
        },
        reasoning: spoken.filter(|_| back == ReasoningBack::Reasoning),
        reasoning_details: if back == ReasoningBack::ReasoningDetails {
            details.collect()
        } else {
            Vec::new()
        },
        tool_calls,
    })
}

const fn block(part: &Part) -> Option<&Block> {
    match part {
        Part::Block(block) => Some(block),
        Part::Image(_) | Part::ToolResult { .. } => None,
    }
}

fn call(block: &Block) -> Option<WireCall<'_>> {
    let Block::ToolCall(ToolCall { id, name, input, .. }) = block else { return None };
    Some(WireCall::Function { id: &id.0, function: WireFunction { name, arguments: input.text() } })
}

/// Reasoning of this wire format, and its seal.
fn thought(block: &Block) -> Option<(&str, &str)> {
    match block {
        Block::Thinking { text, signature, wire, .. } if wire.as_deref() == Some(WIRE.name()) => {
            Some((text, signature.as_deref().unwrap_or_default()))
        }
        _ => None,
    }
}
