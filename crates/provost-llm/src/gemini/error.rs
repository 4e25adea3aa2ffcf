//! The provider's errors: Google's `{"error": {"code", "message", "status", "details"}}`, alone or as the only
//! element of a list.

use std::time::Duration;

use provost_event::{ErrorClass, ModelFailure};
use serde_json::Value;

use crate::failure::{ErrorDetails, class_of, says_too_long};
use crate::stream::malformed;

/// The beginnings of errors about a key, which the provider reports as invalid arguments.
const KEY_WORDS: [&str; 3] = ["api key not valid", "api key not found", "api key expired"];

/// Parses an error's body.
pub(super) fn read_error(body: &str) -> Option<ErrorDetails> {
    let body = serde_json::from_str::<Value>(body).ok()?;
    let body = match &body {
        Value::Array(all) => all.first()?,
        body => body,
    };
    let error = body.get("error")?;
    let (status, code) = (text(error, "status"), error.get("code").and_then(Value::as_u64));
    let short = error.as_str().filter(|text| !text.trim().is_empty());
    let message = short.or_else(|| text(error, "message")).or(status)?.to_owned();
    let class = status.and_then(|status| named(status, error, &message));
    let class = class.or_else(|| code.and_then(|code| numbered(code, &message)));
    Some(ErrorDetails { class, message, request_id: None, retry_after_ms: retry_after_ms(error) })
}

/// The failure in an event of the stream.
pub(super) fn failure_of(event: &str) -> ModelFailure {
    let Some(said) = read_error(event) else {
        return malformed("an error in the stream says nothing");
    };
    let mut failure = ModelFailure::new(said.class.unwrap_or(ErrorClass::Server), said.message);
    failure.retry_after_ms = said.retry_after_ms;
    failure
}

fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field)?.as_str().filter(|text| !text.trim().is_empty())
}

/// The class of a status by name (google.rpc.Code).
fn named(status: &str, error: &Value, message: &str) -> Option<ErrorClass> {
    Some(match status {
        "INVALID_ARGUMENT" if is_about_key(error, message) => ErrorClass::Unauthorized,
        "INVALID_ARGUMENT" | "OUT_OF_RANGE" if says_too_long(message) => ErrorClass::ContextTooLong,
        "INVALID_ARGUMENT" | "OUT_OF_RANGE" => ErrorClass::InvalidRequest,
        "UNAUTHENTICATED" => ErrorClass::Unauthorized,
        // A country or an account that the provider doesn't serve.
        "PERMISSION_DENIED" | "FAILED_PRECONDITION" => ErrorClass::Forbidden,
        "NOT_FOUND" => ErrorClass::NotFound,
        // The names of quotas contain their period.
        "RESOURCE_EXHAUSTED" if error.to_string().contains("PerDay") => ErrorClass::QuotaUsedUp,
        "RESOURCE_EXHAUSTED" => ErrorClass::RateLimited,
        "UNAVAILABLE" => ErrorClass::Overloaded,
        "INTERNAL" | "UNKNOWN" | "DEADLINE_EXCEEDED" | "ABORTED" | "CANCELLED" | "DATA_LOSS" => {
            ErrorClass::Server
        }
        _ => return None,
    })
}

/// The class of an error with only a code.
fn numbered(code: u64, message: &str) -> Option<ErrorClass> {
    match u16::try_from(code).ok()? {
        400 if says_too_long(message) => Some(ErrorClass::ContextTooLong),
        503 => Some(ErrorClass::Overloaded),
        code @ 400..=599 => Some(class_of(code, None)),
        _ => None,
    }
}

fn is_about_key(error: &Value, message: &str) -> bool {
    let reasons = details(error).filter_map(|detail| text(detail, "reason"));
    let message = message.to_lowercase();
    reasons.into_iter().any(|reason| reason == "API_KEY_INVALID")
        || KEY_WORDS.iter().any(|words| message.contains(words))
}

fn details(error: &Value) -> impl Iterator<Item = &Value> {
    error.get("details").and_then(Value::as_array).into_iter().flatten()
}

/// The delay of `google.rpc.RetryInfo`, which in JSON is seconds followed by `s`.
fn retry_after_ms(error: &Value) -> Option<u64> {
    let delay = details(error).find_map(|detail| text(detail, "retryDelay"))?;
    let seconds = delay.trim().strip_suffix('s')?.parse().ok()?;
    let delay = Duration::try_from_secs_f64(seconds).ok()?;
    Some(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX))
}
