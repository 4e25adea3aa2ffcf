//! The events of the stream on the wire. Unknown types and fields are ignored.
//!
//! Compatible servers leave out items' ids, indexes and whole types of events: only the type is required here.

use std::borrow::Cow;

use provost_event::{Certainty, ModelFailure, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::error::WireError;
use crate::stream::malformed;

/// The event types that are parsed. Types that only repeat others (`response.output_text.done` and similar) are
/// left out, and so are keep-alives (`response.in_progress`, `keepalive`).
const KNOWN: [&str; 17] = [
    "response.output_item.added",
    "response.output_item.done",
    "response.output_text.delta",
    "response.refusal.delta",
    "response.reasoning_summary_text.delta",
    "response.reasoning_text.delta",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.custom_tool_call_input.delta",
    "response.custom_tool_call_input.done",
    "response.completed",
    "response.incomplete",
    "response.done",
    "response.failed",
    "response.cancelled",
    "error",
    "",
];
/// The end marker of some servers' streams.
const END: &str = "[DONE]";

/// Any event; its type determines which fields it has.
#[derive(Deserialize)]
pub(super) struct WireEvent<'a> {
    #[serde(borrow, default)]
    pub(super) r#type: Cow<'a, str>,
    pub(super) item_id: Option<String>,
    pub(super) output_index: Option<i64>,
    pub(super) content_index: Option<i64>,
    pub(super) summary_index: Option<i64>,
    pub(super) delta: Option<String>,
    pub(super) arguments: Option<String>,
    pub(super) input: Option<String>,
    #[serde(borrow)]
    pub(super) item: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) response: Option<&'a RawValue>,
    pub(super) error: Option<WireError>,
}

/// The response in its last event.
#[derive(Deserialize)]
pub(super) struct WireResponse<'a> {
    pub(super) model: Option<String>,
    pub(super) status: Option<String>,
    pub(super) usage: Option<WireUsage>,
    pub(super) error: Option<WireError>,
    pub(super) incomplete_details: Option<WireIncomplete>,
    #[serde(borrow)]
    pub(super) output: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
pub(super) struct WireIncomplete {
    pub(super) reason: Option<String>,
}

/// The counts of the whole response; the details are included in the counts beside them.
#[derive(Deserialize)]
pub(super) struct WireUsage {
    input_tokens: Option<u64>,
    input_tokens_details: Option<WireInputDetails>,
    output_tokens: Option<u64>,
    output_tokens_details: Option<WireOutputDetails>,
}

#[derive(Deserialize, Default)]
struct WireInputDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct WireOutputDetails {
    reasoning_tokens: Option<u64>,
}

impl WireUsage {
    /// The counts without overlaps.
    pub(super) fn usage(&self) -> Usage {
        let details = self.input_tokens_details.as_ref();
        let cache_read_tokens = details.and_then(|details| details.cached_tokens).unwrap_or(0);
        let cache_write_tokens = details.and_then(|details| details.cache_write_tokens).unwrap_or(0);
        let cached = cache_read_tokens.saturating_add(cache_write_tokens);
        let output = self.output_tokens_details.as_ref();
        Usage {
            input_tokens: self.input_tokens.unwrap_or(0).saturating_sub(cached),
            output_tokens: self.output_tokens.unwrap_or(0),
            cache_read_tokens,
            cache_write_tokens,
            reasoning_tokens: output.and_then(|details| details.reasoning_tokens).unwrap_or(0),
            certainty: Certainty::Reported,
        }
    }
}

/// An item of any type.
#[derive(Deserialize)]
pub(super) struct WireItemHead<'a> {
    #[serde(borrow)]
    pub(super) r#type: Cow<'a, str>,
    pub(super) id: Option<String>,
}

/// A message of the model.
#[derive(Deserialize)]
pub(super) struct WireMessage {
    pub(super) phase: Option<String>,
    pub(super) content: Option<Vec<WirePart>>,
}

/// The model's reasoning.
#[derive(Deserialize)]
pub(super) struct WireReasoning {
    pub(super) summary: Option<Vec<WirePart>>,
    pub(super) content: Option<Vec<WirePart>>,
    pub(super) encrypted_content: Option<String>,
}

/// A function call.
#[derive(Deserialize)]
pub(super) struct WireCall<'a> {
    pub(super) call_id: Option<String>,
    pub(super) name: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    /// The one argument of a custom tool.
    pub(super) input: Option<String>,
}

impl WireCall<'_> {
    /// The arguments as the model wrote them: in a string, or as JSON from some servers.
    pub(super) fn arguments(&self) -> String {
        let raw = self.arguments.map(RawValue::get).unwrap_or_default();
        serde_json::from_str(raw).unwrap_or_else(|_| raw.to_owned())
    }
}

/// A part of a message or of reasoning.
#[derive(Deserialize)]
pub(super) struct WirePart {
    pub(super) text: Option<String>,
    pub(super) refusal: Option<String>,
}

/// Parses an event; `None` for an unknown type, with any fields.
pub(super) fn parse(data: &str) -> Result<Option<WireEvent<'_>>, ModelFailure> {
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(borrow, default)]
        r#type: Cow<'a, str>,
    }
    if data.trim() == END {
        return Ok(None);
    }
    match serde_json::from_str::<WireEvent<'_>>(data) {
        Ok(event) => Ok(Some(event).filter(|event| KNOWN.contains(&event.r#type.as_ref()))),
        Err(error) => match serde_json::from_str::<Head<'_>>(data) {
            Ok(head) if !KNOWN.contains(&head.r#type.as_ref()) => Ok(None),
            _ => Err(malformed(format!("an event of the stream can't be read: {error}"))),
        },
    }
}

/// Parses the content of an event.
pub(super) fn read<'a, T: Deserialize<'a>>(what: &str, raw: &'a RawValue) -> Result<T, ModelFailure> {
    serde_json::from_str(raw.get()).map_err(|error| malformed(format!("{what} can't be read: {error}")))
}
