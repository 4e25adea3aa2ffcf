//! The servers' error formats: OpenAI's `{"error": {"message", "type", "code"}}` and its variants (Azure,
//! OpenRouter with the upstream provider's own error, LiteLLM), `{"error": "text"}` (Ollama),
//! `{"object": "error", "message"}` (vLLM, Mistral) and `{"detail"}` (FastAPI).

use provost_event::{ErrorClass, ModelFailure};
use serde_json::Value;

use super::event::says_something;
use crate::failure::{ErrorDetails, class_of, says_too_long};
use crate::stream::malformed;

/// Parses an error's body.
pub(super) fn read_error(body: &str) -> Option<ErrorDetails> {
    let body = serde_json::from_str::<Value>(body).ok()?;
    if body.get("choices").is_some_and(Value::is_array) && !body.get("error").is_some_and(says_something) {
        let message = "the server answered as a whole although a stream was asked for".to_owned();
        return Some(ErrorDetails {
            class: Some(ErrorClass::InvalidRequest),
            message,
            ..ErrorDetails::default()
        });
    }
    said(&body)
}

/// The failure in an event of the stream.
pub(super) fn failure_of(event: &str) -> ModelFailure {
    let body = serde_json::from_str::<Value>(event).unwrap_or_default();
    let groq = body.pointer("/x_groq/error").filter(|error| says_something(error));
    let choice = body.pointer("/choices/0/error").filter(|error| says_something(error));
    let has_own = body.get("error").is_some_and(says_something);
    let inner = if has_own { None } else { groq.or(choice) };
    let Some(said) = said(inner.unwrap_or(&body)) else {
        return malformed("an error in the stream says nothing");
    };
    let mut failure = ModelFailure::new(said.class.unwrap_or(ErrorClass::Server), said.message);
    failure.request_id = said.request_id;
    failure
}

/// The model's text for a call that the server couldn't parse (Groq's `tool_use_failed`; console.groq.com/docs,
/// "Tool use"): a failure of the answer, not of the request. `None` for any other error.
pub(super) fn failed_call(body: &str) -> Option<String> {
    let body = serde_json::from_str::<Value>(body).ok()?;
    let places = ["/error", "/x_groq/error", "/choices/0/error"];
    let error = places.iter().filter_map(|place| body.pointer(place)).find(|error| {
        ["code", "type"].iter().any(|field| error.get(*field).is_some_and(|kind| kind == "tool_use_failed"))
    })?;
    let written = error.get("failed_generation").or_else(|| body.get("failed_generation"));
    Some(written.and_then(Value::as_str).unwrap_or_default().to_owned())
}

fn said(body: &Value) -> Option<ErrorDetails> {
    let body = match body {
        // Gemini's compatible endpoint.
        Value::Array(all) => all.first()?,
        body => body,
    };
    let error = body.get("error").filter(|error| says_something(error)).unwrap_or(body);
    let kinds = kinds(body, error);
    let upstream = upstream(error);
    let message = message(body, error, upstream.as_ref()).or_else(|| kinds.first().cloned())?;
    let class = kinds.iter().find_map(|kind| named(kind)).or_else(|| numbered(error));
    let class = match (class, upstream.and_then(|said| said.class)) {
        (None | Some(ErrorClass::InvalidRequest), Some(class)) => Some(class),
        (class, _) => class,
    };
    let class = match class {
        None | Some(ErrorClass::InvalidRequest) if says_too_long(&message) => {
            Some(ErrorClass::ContextTooLong)
        }
        class => class,
    };
    let request_id = [error, body].iter().find_map(|place| place.get("request_id")?.as_str());
    let message = told(message, &kinds);
    Some(ErrorDetails {
        class,
        message,
        request_id: request_id.map(str::to_owned),
        ..ErrorDetails::default()
    })
}

/// The message of the error.
fn message(body: &Value, error: &Value, upstream: Option<&ErrorDetails>) -> Option<String> {
    let own = match (error, body.get("message")) {
        (Value::String(short), Some(Value::String(long))) => format!("{short}: {long}"),
        _ => words(error),
    };
    let place = error.pointer("/metadata/provider_name").and_then(Value::as_str);
    let message = match (upstream, place) {
        (Some(said), Some(place)) => format!("{own} ({place}): {}", said.message),
        (Some(said), None) => format!("{own}: {}", said.message),
        (None, Some(place)) => format!("{own} ({place})"),
        (None, None) => own,
    };
    Some(message).filter(|message| !message.trim().is_empty())
}

/// The text in a value.
fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().map(words).collect::<Vec<_>>().join("; "),
        Value::Object(fields) => {
            let said = ["message", "detail", "error", "msg"].iter().filter_map(|field| fields.get(*field));
            let said = said.map(words).find(|words| !words.trim().is_empty()).unwrap_or_default();
            match fields.get("loc").and_then(Value::as_array) {
                Some(place) => format!("{}: {said}", place.iter().map(step).collect::<Vec<_>>().join(".")),
                None => said,
            }
        }
        _ => String::new(),
    }
}

fn step(step: &Value) -> String {
    step.as_str().map_or_else(|| step.to_string(), str::to_owned)
}

/// The upstream provider's error from OpenRouter: JSON, a text that is JSON, or a text.
fn upstream(error: &Value) -> Option<ErrorDetails> {
    let raw = error.pointer("/metadata/raw").filter(|raw| says_something(raw))?;
    let Value::String(text) = raw else { return said(raw) };
    let parsed = serde_json::from_str::<Value>(text).ok();
    parsed
        .as_ref()
        .and_then(said)
        .or_else(|| Some(ErrorDetails { message: text.clone(), ..ErrorDetails::default() }))
}

/// The names of the kind of error, the more specific ones first.
fn kinds(body: &Value, error: &Value) -> Vec<String> {
    let names = ["code", "type", "status", "error_type"].iter();
    let names = names.flat_map(|field| [error.get(*field), body.get(*field)]).flatten();
    names
        .filter_map(Value::as_str)
        .filter(|name| name.parse::<u16>().is_err())
        .map(str::to_lowercase)
        .collect()
}

/// The class of a code that is an HTTP status.
fn numbered(error: &Value) -> Option<ErrorClass> {
    let code = ["code", "status"].iter().filter_map(|field| error.get(*field));
    let number = |code: &Value| code.as_u64().or_else(|| code.as_str()?.parse().ok());
    let status = code.filter_map(number).filter_map(|code| u16::try_from(code).ok());
    status.filter(|status| (400..600).contains(status)).map(|status| class_of(status, None)).next()
}

/// A used-up quota has the same code as a rate limit; the message must show the difference.
fn told(message: String, kinds: &[String]) -> String {
    let is_spent = kinds.iter().any(|kind| kind.contains("quota"));
    if is_spent && !message.to_lowercase().contains("quota") {
        format!("{message} (the quota is used up)")
    } else {
        message
    }
}

/// OpenAI's names, and those of Azure, vLLM, llama.cpp, Moonshot, DeepSeek, Mistral, LiteLLM.
fn named(kind: &str) -> Option<ErrorClass> {
    Some(match kind {
        "context_length_exceeded"
        | "exceed_context_size_error"
        | "contextwindowexceedederror"
        | "request_too_large" => ErrorClass::ContextTooLong,
        "content_filter" | "content_policy_violation" | "contentpolicyviolationerror" => ErrorClass::Refusal,
        "insufficient_quota"
        | "exceeded_current_quota_error"
        | "billing_hard_limit_reached"
        | "billing_not_active" => ErrorClass::QuotaUsedUp,
        "rate_limit_exceeded"
        | "rate_limit_error"
        | "rate_limit_reached_error"
        | "ratelimiterror"
        | "too_many_requests"
        | "resource_exhausted"
        | "requests"
        | "tokens" => ErrorClass::RateLimited,
        "model_not_found"
        | "not_found_error"
        | "resource_not_found_error"
        | "notfounderror"
        | "not_found"
        | "deploymentnotfound" => ErrorClass::NotFound,
        "invalid_api_key"
        | "authentication_error"
        | "invalid_authentication_error"
        | "authenticationerror"
        | "unauthorized"
        | "unauthenticated" => ErrorClass::Unauthorized,
        "permission_error" | "permission_denied" | "permission_denied_error" | "permissiondeniederror" => {
            ErrorClass::Forbidden
        }
        "overloaded_error"
        | "engine_overloaded_error"
        | "service_unavailable"
        | "unavailable_error"
        | "unavailable" => ErrorClass::Overloaded,
        "server_error"
        | "api_error"
        | "internal_error"
        | "internal_server_error"
        | "internalservererror"
        | "timeout"
        | "timeout_error" => ErrorClass::Server,
        "invalid_request_error"
        | "invalid_request"
        | "badrequesterror"
        | "bad_request"
        | "invalid_argument" => ErrorClass::InvalidRequest,
        _ => return None,
    })
}
