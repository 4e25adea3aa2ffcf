//! The events of the stream and the format of errors on the wire. Unknown types and fields are ignored, as the
//! provider requires of its clients.

use std::borrow::Cow;

use provost_event::{ErrorClass, ModelFailure, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::failure::{ErrorDetails, says_quota_used_up, says_too_long};
use crate::stream::malformed;

/// The event types that are parsed.
const KNOWN: [&str; 7] = [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "error",
];

/// Any event; its type determines which fields it has.
#[derive(Deserialize)]
pub(super) struct WireEvent<'a> {
    #[serde(borrow)]
    pub(super) r#type: Cow<'a, str>,
    pub(super) index: Option<u64>,
    pub(super) message: Option<WireMessage>,
    #[serde(borrow)]
    pub(super) content_block: Option<&'a RawValue>,
    pub(super) delta: Option<WireDelta>,
    pub(super) usage: Option<WireUsage>,
    pub(super) error: Option<WireError>,
    pub(super) request_id: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct WireMessage {
    pub(super) model: Option<String>,
    pub(super) usage: Option<WireUsage>,
}

#[derive(Deserialize)]
pub(super) struct WireDelta {
    pub(super) r#type: Option<String>,
    pub(super) text: Option<String>,
    pub(super) thinking: Option<String>,
    pub(super) signature: Option<String>,
    pub(super) partial_json: Option<String>,
    pub(super) stop_reason: Option<String>,
    pub(super) stop_details: Option<WireStopDetails>,
}

/// Why the model stopped, if it refused.
#[derive(Deserialize)]
pub(super) struct WireStopDetails {
    category: Option<String>,
    explanation: Option<String>,
}

impl WireStopDetails {
    /// The provider's message for a refusal; empty if there is none.
    pub(super) fn words(self) -> String {
        let category = self.category.map(|category| format!("(category: {category})"));
        let words = self.explanation.into_iter().chain(category);
        words.filter(|words| !words.trim().is_empty()).collect::<Vec<_>>().join(" ")
    }
}

#[derive(Deserialize)]
pub(super) struct WireBlockStart<'a> {
    #[serde(borrow)]
    pub(super) r#type: Cow<'a, str>,
    pub(super) text: Option<String>,
    pub(super) thinking: Option<String>,
    pub(super) signature: Option<String>,
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
}

/// Token counts so far; each event's are cumulative.
#[derive(Deserialize)]
pub(super) struct WireUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
}

impl WireUsage {
    /// Applies the counts. A later count is never lower, but some gateways send 0 for unknown ones.
    pub(super) fn add_to(&self, usage: &mut Usage) {
        let newer = |count: &mut u64, reported: Option<u64>| *count = (*count).max(reported.unwrap_or(0));
        newer(&mut usage.input_tokens, self.input_tokens);
        newer(&mut usage.output_tokens, self.output_tokens);
        newer(&mut usage.cache_write_tokens, self.cache_creation_input_tokens);
        newer(&mut usage.cache_read_tokens, self.cache_read_input_tokens);
    }
}

#[derive(Deserialize)]
pub(super) struct WireError {
    r#type: Option<String>,
    message: Option<String>,
}

impl WireError {
    /// The error in the common format.
    pub(super) fn said(self, request_id: Option<String>) -> ErrorDetails {
        let kind = self.r#type.unwrap_or_default();
        let message =
            self.message.filter(|message| !message.trim().is_empty()).unwrap_or_else(|| kind.clone());
        let class = match kind.as_str() {
            "invalid_request_error" if says_too_long(&message) => Some(ErrorClass::ContextTooLong),
            "invalid_request_error" if says_quota_used_up(&message) => Some(ErrorClass::QuotaUsedUp),
            "invalid_request_error" => Some(ErrorClass::InvalidRequest),
            "request_too_large" => Some(ErrorClass::ContextTooLong),
            "authentication_error" => Some(ErrorClass::Unauthorized),
            "billing_error" => Some(ErrorClass::QuotaUsedUp),
            "permission_error" => Some(ErrorClass::Forbidden),
            "not_found_error" => Some(ErrorClass::NotFound),
            "rate_limit_error" => Some(ErrorClass::RateLimited),
            "overloaded_error" => Some(ErrorClass::Overloaded),
            "api_error" | "timeout_error" => Some(ErrorClass::Server),
            _ => None,
        };
        ErrorDetails { class, message, request_id, ..ErrorDetails::default() }
    }
}

/// Parses an event; `None` for an unknown type, with any fields.
pub(super) fn parse(data: &str) -> Result<Option<WireEvent<'_>>, ModelFailure> {
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(borrow)]
        r#type: Cow<'a, str>,
    }
    match serde_json::from_str::<WireEvent<'_>>(data) {
        Ok(event) => Ok(Some(event).filter(|event| KNOWN.contains(&event.r#type.as_ref()))),
        Err(error) => match serde_json::from_str::<Head<'_>>(data) {
            Ok(head) if !KNOWN.contains(&head.r#type.as_ref()) => Ok(None),
            _ => Err(malformed(format!("an event of the stream can't be read: {error}"))),
        },
    }
}

/// Parses an error's body.
pub(super) fn read_error(body: &str) -> Option<ErrorDetails> {
    #[derive(Deserialize)]
    struct Body {
        error: WireError,
        request_id: Option<String>,
    }
    let body: Body = serde_json::from_str(body).ok()?;
    Some(body.error.said(body.request_id)).filter(|said| !said.message.is_empty())
}
