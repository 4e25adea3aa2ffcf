//! The chunks of the stream on the wire. Unknown fields are ignored.

use provost_event::ModelFailure;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::error::failure_of;
use super::usage::WireUsage;
use crate::stream::malformed;

/// One chunk of the answer.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireChunk<'a> {
    #[serde(borrow)]
    pub(super) candidates: Option<Vec<WireCandidate<'a>>>,
    pub(super) prompt_feedback: Option<WireFeedback>,
    pub(super) usage_metadata: Option<WireUsage>,
    pub(super) model_version: Option<String>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// One of the candidates; only the first is used.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireCandidate<'a> {
    #[serde(borrow)]
    pub(super) content: Option<WireContent<'a>>,
    pub(super) finish_reason: Option<String>,
    pub(super) finish_message: Option<String>,
    index: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct WireContent<'a> {
    #[serde(borrow)]
    pub(super) parts: Option<Vec<&'a RawValue>>,
}

/// A part; its fields determine its kind.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WirePart<'a> {
    pub(super) text: Option<String>,
    pub(super) thought: Option<bool>,
    pub(super) thought_signature: Option<String>,
    #[serde(borrow)]
    pub(super) function_call: Option<WireCall<'a>>,
}

#[derive(Deserialize)]
pub(super) struct WireCall<'a> {
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    #[serde(borrow)]
    pub(super) args: Option<&'a RawValue>,
}

/// Feedback about the request itself.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireFeedback {
    pub(super) block_reason: Option<String>,
    pub(super) block_reason_message: Option<String>,
}

impl<'a> WireChunk<'a> {
    /// The chunk's part of the first candidate.
    pub(super) fn first(&mut self) -> Option<WireCandidate<'a>> {
        let candidates = self.candidates.take().unwrap_or_default();
        candidates.into_iter().find(|candidate| candidate.index.unwrap_or(0) == 0)
    }
}

/// Parses a chunk.
///
/// # Errors
/// The provider's error, if the chunk is one; `MalformedResponse` if it can't be parsed.
pub(super) fn parse(data: &str) -> Result<WireChunk<'_>, ModelFailure> {
    match serde_json::from_str::<WireChunk<'_>>(data) {
        Ok(WireChunk { error: Some(_), .. }) => Err(failure_of(data)),
        Ok(chunk) => Ok(chunk),
        // As in a body, an error may be the only element of a list.
        Err(_) if data.trim_start().starts_with('[') => Err(failure_of(data)),
        Err(error) => Err(malformed(format!("a chunk of the stream can't be read: {error}"))),
    }
}

/// Parses a part.
pub(super) fn part(raw: &RawValue) -> Result<WirePart<'_>, ModelFailure> {
    serde_json::from_str(raw.get())
        .map_err(|error| malformed(format!("a part of the answer can't be read: {error}")))
}
