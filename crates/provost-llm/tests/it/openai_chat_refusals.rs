//! Errors in all formats of OpenAI and compatible servers.

use provost_event::{ErrorClass, ModelFailure};

use crate::openai_chat_support::*;
use crate::server::{Reply, plain};

async fn check(status: u16, body: &str, class: ErrorClass, message: &str) -> ModelFailure {
    let failure = failure_of(Reply::Whole(plain(status, "content-type: application/json\r\n", body))).await;
    assert_eq!((failure.class, failure.message.as_str()), (class, message), "{body}");
    failure
}

#[tokio::test]
async fn openais_errors_have_their_class_and_their_own_words() {
    for (status, kind, code, class) in [
        (400, "\"invalid_request_error\"", "null", ErrorClass::InvalidRequest),
        (400, "\"invalid_request_error\"", "\"context_length_exceeded\"", ErrorClass::ContextTooLong),
        (400, "\"invalid_request_error\"", "\"model_not_found\"", ErrorClass::NotFound),
        (400, "null", "\"content_filter\"", ErrorClass::Refusal),
        (401, "\"invalid_request_error\"", "\"invalid_api_key\"", ErrorClass::Unauthorized),
        (403, "\"invalid_request_error\"", "\"unsupported_country_region_territory\"", ErrorClass::Forbidden),
        (404, "\"invalid_request_error\"", "\"model_not_found\"", ErrorClass::NotFound),
        (429, "\"requests\"", "\"rate_limit_exceeded\"", ErrorClass::RateLimited),
        (500, "\"server_error\"", "null", ErrorClass::Server),
        (503, "\"service_unavailable\"", "null", ErrorClass::Overloaded),
        (200, "\"server_error\"", "null", ErrorClass::Server),
        (200, "\"tokens\"", "\"rate_limit_exceeded\"", ErrorClass::RateLimited),
    ] {
        let body =
            format!(r#"{{"error":{{"message":"Own words.","type":{kind},"param":null,"code":{code}}}}}"#);
        check(status, &body, class, "Own words.").await;
    }
}

#[tokio::test]
async fn a_quota_that_is_used_up_is_told_from_a_limit_of_rate() {
    let own = r#"{"error":{"message":"You exceeded your current quota, please check your plan.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#;
    check(429, own, ErrorClass::QuotaUsedUp, "You exceeded your current quota, please check your plan.")
        .await;
    let silent = r#"{"error":{"message":"No.","type":"insufficient_quota"}}"#;
    check(429, silent, ErrorClass::QuotaUsedUp, "No. (the quota is used up)").await;
}

#[tokio::test]
async fn errors_are_read_in_the_forms_of_every_relative() {
    for (status, body, class, message) in [
        // Ollama, before and after it had OpenAI's form; others.
        (404, r#"{"error":"model 'x' not found"}"#, ErrorClass::NotFound, "model 'x' not found"),
        (
            400,
            r#"{"error":"Bad Request","message":"no such field"}"#,
            ErrorClass::InvalidRequest,
            "Bad Request: no such field",
        ),
        // vLLM, before and after.
        (
            400,
            r#"{"object":"error","message":"Bad n.","type":"BadRequestError","param":null,"code":400}"#,
            ErrorClass::InvalidRequest,
            "Bad n.",
        ),
        (
            404,
            r#"{"error":{"message":"The model `x` does not exist.","type":"NotFoundError","param":null,"code":404}}"#,
            ErrorClass::NotFound,
            "The model `x` does not exist.",
        ),
        (401, r#"{"message":"Unauthorized","request_id":"r1"}"#, ErrorClass::Unauthorized, "Unauthorized"),
        // FastAPI.
        (404, r#"{"detail":"Not Found"}"#, ErrorClass::NotFound, "Not Found"),
        (
            422,
            r#"{"detail":[{"type":"missing","loc":["body","messages",0,"content"],"msg":"Field required"},{"loc":["body"],"msg":"Bad"}]}"#,
            ErrorClass::InvalidRequest,
            "body.messages.0.content: Field required; body: Bad",
        ),
        // Mistral.
        (
            422,
            r#"{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","n"],"msg":"Extra inputs are not permitted","input":true}]},"type":"invalid_request_error","param":null,"code":null}"#,
            ErrorClass::InvalidRequest,
            "body.n: Extra inputs are not permitted",
        ),
        // LiteLLM.
        (
            400,
            r#"{"error":{"message":"litellm.BadRequestError: no","type":null,"param":null,"code":"400"}}"#,
            ErrorClass::InvalidRequest,
            "litellm.BadRequestError: no",
        ),
        // Gemini's compatible endpoint.
        (
            400,
            r#"[{"error":{"code":400,"message":"Bad.","status":"INVALID_ARGUMENT"}}]"#,
            ErrorClass::InvalidRequest,
            "Bad.",
        ),
        // Azure.
        (
            400,
            r#"{"error":{"message":"Filtered.","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#,
            ErrorClass::Refusal,
            "Filtered.",
        ),
        // A type without a message.
        (500, r#"{"error":{"type":"server_error","message":""}}"#, ErrorClass::Server, "server_error"),
        // A status only in the body.
        (200, r#"{"error":{"message":"Slow down.","code":429}}"#, ErrorClass::RateLimited, "Slow down."),
    ] {
        check(status, body, class, message).await;
    }
    let named = check(
        401,
        r#"{"message":"Unauthorized","request_id":"r1"}"#,
        ErrorClass::Unauthorized,
        "Unauthorized",
    )
    .await;
    assert_eq!(named.request_id.as_deref(), Some("r1"));
}

#[tokio::test]
async fn openrouter_passes_on_what_the_provider_it_asked_said() {
    let nested = r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: 215000 tokens > 200000 maximum\"}}","provider_name":"Anthropic"}},"user_id":"u"}"#;
    check(
        400,
        nested,
        ErrorClass::ContextTooLong,
        "Provider returned error (Anthropic): prompt is too long: 215000 tokens > 200000 maximum",
    )
    .await;
    let text = r#"{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"x is temporarily rate-limited upstream.","provider_name":"Chutes"}}}"#;
    check(
        429,
        text,
        ErrorClass::RateLimited,
        "Provider returned error (Chutes): x is temporarily rate-limited upstream.",
    )
    .await;
    let coded = r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":{"error":{"message":"Filtered.","code":"content_filter"}},"provider_name":"Azure"}}}"#;
    check(400, coded, ErrorClass::Refusal, "Provider returned error (Azure): Filtered.").await;
    let bare = r#"{"error":{"message":"No endpoints found.","code":404}}"#;
    check(404, bare, ErrorClass::NotFound, "No endpoints found.").await;
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_recognised_in_every_servers_words() {
    for (kind, message) in [
        (
            "x",
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
        ),
        ("exceed_context_size_error", "no words for it"),
        ("x", "the request exceeds the available context size, try increasing it"),
        ("x", "prompt too long; exceeded max context length by 12 tokens"),
        ("x", "Please reduce the length of the messages or completion."),
        ("x", "This model's maximum prompt length is 131072 but the request contains 537812 tokens."),
        ("x", "Invalid request: Your request exceeded model token limit: 131072"),
        ("x", "Input is too long for requested model."),
        ("x", "Prompt exceeds max length"),
        ("x", "litellm.ContextWindowExceededError: no"),
    ] {
        let body = format!(r#"{{"error":{{"message":{message:?},"type":"{kind}","code":400}}}}"#);
        check(400, &body, ErrorClass::ContextTooLong, message).await;
    }
}

#[tokio::test]
async fn errors_in_the_middle_of_a_stream_keep_their_class_and_words() {
    let begun = delta(r#"{"content":"a"}"#);
    for (event, class, message) in [
        (r#"{"error":{"message":"Down.","type":"server_error","code":null}}"#, ErrorClass::Server, "Down."),
        (r#"{"error":{"message":"Unknown kind."}}"#, ErrorClass::Server, "Unknown kind."),
        (
            r#"{"error":"an error was encountered while running the model"}"#,
            ErrorClass::Server,
            "an error was encountered while running the model",
        ),
        (
            r#"{"error":{"message":"Full.","type":"engine_overloaded_error"}}"#,
            ErrorClass::Overloaded,
            "Full.",
        ),
        (
            r#"{"object":"error","message":"maximum context length is 1","type":"BadRequestError","param":null,"code":400}"#,
            ErrorClass::ContextTooLong,
            "maximum context length is 1",
        ),
        (r#"{"message":"Bad.","code":400}"#, ErrorClass::InvalidRequest, "Bad."),
        (
            r#"{"id":"gen-1","object":"chat.completion.chunk","model":"x","provider":"openai","error":{"code":502,"message":"Provider disconnected"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}"#,
            ErrorClass::Server,
            "Provider disconnected",
        ),
        (
            r#"{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error","error":{"code":429,"message":"Slow down."}}]}"#,
            ErrorClass::RateLimited,
            "Slow down.",
        ),
        (
            r#"{"choices":[],"x_groq":{"id":"req_1","error":"over capacity"}}"#,
            ErrorClass::Server,
            "over capacity",
        ),
    ] {
        let failure = failure_in(&sse(&[&begun, event])).await;
        assert_eq!((failure.class, failure.message.as_str()), (class, message), "{event}");
    }
}

#[tokio::test]
async fn what_was_written_before_an_error_counts() {
    let failure = failure_in(&sse(&[&delta(r#"{"content":"12345678"}"#), r#"{"error":"x"}"#])).await;
    assert_eq!(failure.usage.output_tokens, 3);
    assert!(failure.usage.input_tokens > 0);
}
