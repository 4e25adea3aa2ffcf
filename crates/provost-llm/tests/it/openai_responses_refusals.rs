//! Errors of Responses and compatible servers, before an answer and in the middle of one.

use provost_event::{ErrorClass, Usage};
use serde_json::{Value, json};

use crate::openai_responses_support::*;
use crate::server::{Reply, plain, streamed};

fn error(kind: &str, code: Value, message: &str) -> Value {
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}

#[tokio::test]
async fn bodies_of_every_form_are_understood() {
    let own = "invalid_request_error";
    let detail =
        json!({"detail": [{"type": "missing", "loc": ["body", "input", 0], "msg": "Field required"}]});
    for (status, body, class, message) in [
        (400, error(own, Value::Null, "Wrong."), ErrorClass::InvalidRequest, "Wrong."),
        (400, error(own, json!("context_length_exceeded"), "Long."), ErrorClass::ContextTooLong, "Long."),
        (
            400,
            error(own, Value::Null, "Your input exceeds the context window."),
            ErrorClass::ContextTooLong,
            "Your input exceeds the context window.",
        ),
        (400, error(own, json!("invalid_prompt"), "Flagged."), ErrorClass::InvalidRequest, "Flagged."),
        (400, error(own, json!("content_filter"), "Filtered."), ErrorClass::Refusal, "Filtered."),
        (400, error(own, json!("model_not_found"), "Which?"), ErrorClass::NotFound, "Which?"),
        (401, error(own, json!("invalid_api_key"), "Who?"), ErrorClass::Unauthorized, "Who?"),
        (429, error("tokens", json!("rate_limit_exceeded"), "Slow."), ErrorClass::RateLimited, "Slow."),
        (
            429,
            error("insufficient_quota", json!("insufficient_quota"), "Pay."),
            ErrorClass::QuotaUsedUp,
            "Pay.",
        ),
        (500, error("server_error", Value::Null, "Oops."), ErrorClass::Server, "Oops."),
        (503, error("server_error", json!("server_is_overloaded"), "Busy."), ErrorClass::Overloaded, "Busy."),
        // vLLM's, of both generations, and its proxies'.
        (
            400,
            error("BadRequestError", json!(400), "This model's maximum context length is 8."),
            ErrorClass::ContextTooLong,
            "This model's maximum context length is 8.",
        ),
        (
            400,
            json!({"object": "error", "message": "Wrong.", "type": "BadRequestError", "code": 400}),
            ErrorClass::InvalidRequest,
            "Wrong.",
        ),
        (
            400,
            error("None", json!("400"), "litellm.BadRequestError"),
            ErrorClass::InvalidRequest,
            "litellm.BadRequestError",
        ),
        (422, detail, ErrorClass::InvalidRequest, "body.input.0: Field required"),
        (404, json!({"detail": "Not Found"}), ErrorClass::NotFound, "Not Found"),
        // Ollama's and LM Studio's, and xAI's.
        (404, json!({"error": "model \"x\" not found"}), ErrorClass::NotFound, "model \"x\" not found"),
        (400, json!({"code": "invalid_request_error", "error": "No."}), ErrorClass::InvalidRequest, "No."),
        // Without a message.
        (500, error("server_error", json!("oops"), " "), ErrorClass::Server, "oops"),
        (418, json!({"error": {}}), ErrorClass::InvalidRequest, "HTTP 418: {\"error\":{}}"),
    ] {
        let reply = Reply::Whole(plain(status, "x-request-id: req_head\r\n", &body.to_string()));
        let failure = failure_of(reply).await;
        assert_eq!((failure.class, failure.message.as_str()), (class, message), "{status} {body}");
        assert_eq!((failure.status, failure.request_id.as_deref()), (Some(status), Some("req_head")));
    }
}

#[tokio::test]
async fn a_wish_to_wait_in_words_counts_where_no_header_says_it() {
    let body = error("tokens", json!("rate_limit_exceeded"), "Please try again in 20s.").to_string();
    for (headers, expected) in [("", 20_000), ("retry-after: 7\r\n", 7000)] {
        let failure = failure_of(Reply::Whole(plain(429, headers, &body))).await;
        assert_eq!((failure.class, failure.retry_after_ms), (ErrorClass::RateLimited, Some(expected)));
    }
}

/// Fails the stream of an answer that has begun.
async fn check(last: Value, class: ErrorClass, message: &str, wait: Option<u64>) {
    let mut events = text_item(0, "msg_1", &["Hello"]);
    events.push(last.clone());
    let failure = failure_of(Reply::Whole(streamed([sse(&events).as_bytes()]))).await;
    assert_eq!((failure.class, failure.message.as_str()), (class, message), "{last}");
    assert_eq!((failure.retry_after_ms, failure.request_id.as_deref()), (wait, Some("req_head")), "{last}");
    let (input_tokens, output_tokens, cache_read_tokens, reasoning_tokens) = (125, 40, 2000, 30);
    let told = Usage { input_tokens, output_tokens, cache_read_tokens, reasoning_tokens, ..Usage::default() };
    assert_eq!(failure.usage == told, last["response"]["usage"].is_object(), "{last}");
    assert!(failure.usage.output_tokens > 0, "{last}");
}

#[tokio::test]
async fn a_failed_response_keeps_its_class_and_its_usage() {
    for (code, message, class, wait) in [
        ("server_error", "Oops.", ErrorClass::Server, None),
        ("something_new", "Oops.", ErrorClass::Server, None),
        ("rate_limit_exceeded", "Please try again in 1.898s.", ErrorClass::RateLimited, Some(1898)),
        ("context_length_exceeded", "Long.", ErrorClass::ContextTooLong, None),
        ("insufficient_quota", "Pay.", ErrorClass::QuotaUsedUp, None),
        ("invalid_prompt", "No.", ErrorClass::InvalidRequest, None),
        ("server_is_overloaded", "Busy.", ErrorClass::Overloaded, None),
    ] {
        let error = json!({"code": code, "message": message});
        let response = json!({"status": "failed", "error": error, "usage": usage()});
        check(ended("response.failed", response.clone()), class, message, wait).await;
        check(ended("response.completed", response), class, message, wait).await;
    }
    let silent = "the provider failed and doesn't say why";
    let response = ended("response.failed", json!({"error": null}));
    check(response, ErrorClass::Server, silent, None).await;
    check(event("response.failed", json!({})), ErrorClass::Server, silent, None).await;
}

#[tokio::test]
async fn an_error_event_keeps_its_class_in_every_form() {
    let flat = |code: Value, message: &str| {
        event("error", json!({"code": code, "message": message, "param": null, "sequence_number": 3}))
    };
    let within = error("invalid_request_error", Value::Null, "Wrong.");
    for (last, class, message) in [
        (flat(json!("server_error"), "Oops."), ErrorClass::Server, "Oops."),
        (flat(json!("context_length_exceeded"), "Long."), ErrorClass::ContextTooLong, "Long."),
        (flat(Value::Null, "Oops."), ErrorClass::Server, "Oops."),
        (event("error", within), ErrorClass::InvalidRequest, "Wrong."),
        (error("None", json!("429"), "Slow."), ErrorClass::RateLimited, "Slow."),
        (error("BadRequestError", json!(400), "Wrong."), ErrorClass::InvalidRequest, "Wrong."),
        (json!({"error": "out of memory"}), ErrorClass::Server, "out of memory"),
    ] {
        check(last, class, message, None).await;
    }
}
