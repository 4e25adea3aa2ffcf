//! The events of the stream as they are on the wire. Types and fields that aren't known are passed over.
//!
//! Compatible servers leave out items' ids, places and whole kinds of events: nothing is required here but a type.

use std::borrow::Cow;

use provost_event::{Certainty, ModelFailure, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::error::WireError;
use crate::stream::nonsense;

/// The types of events that are read. Those that only repeat what others say (`response.output_text.done` and its
/// like) aren't among them, nor are signs of life (`response.in_progress`, `keepalive`).
const KNOWN: [&str; 15] = [
    "response.output_item.added",
    "response.output_item.done",
    "response.output_text.delta",
    "response.refusal.delta",
    "response.reasoning_summary_text.delta",
    "response.reasoning_text.delta",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.completed",
    "response.incomplete",
    "response.done",
    "response.failed",
    "response.cancelled",
    "error",
    "",
];
/// Ends the stream of some servers.
const END: &str = "[DONE]";

/// Any event; which fields are there depends on its type.
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
    #[serde(borrow)]
    pub(super) item: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) response: Option<&'a RawValue>,
    pub(super) error: Option<WireError>,
}

/// The response as its last event tells it.
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

/// The counts of the whole response; the details are parts of the counts they stand beside.
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
    /// The counts, none of which is part of another.
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

/// What is known of an item of any type.
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

/// What the model thought.
#[derive(Deserialize)]
pub(super) struct WireReasoning {
    pub(super) summary: Option<Vec<WirePart>>,
    pub(super) content: Option<Vec<WirePart>>,
    pub(super) encrypted_content: Option<String>,
}

/// The call of a function.
#[derive(Deserialize)]
pub(super) struct WireCall<'a> {
    pub(super) call_id: Option<String>,
    pub(super) name: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl WireCall<'_> {
    /// The arguments as the model wrote them: in a string, or as they are, as some servers have it.
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

/// Reads an event; `None` for one that isn't known, whatever its fields.
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
            _ => Err(nonsense(format!("an event of the stream can't be read: {error}"))),
        },
    }
}

/// Reads what is inside of an event.
pub(super) fn read<'a, T: Deserialize<'a>>(what: &str, raw: &'a RawValue) -> Result<T, ModelFailure> {
    serde_json::from_str(raw.get()).map_err(|error| nonsense(format!("{what} can't be read: {error}")))
}
