//! Requests that Google, or a compatible server, refuses.

use provost_event::ErrorClass;
use serde_json::{Value, json};

use crate::gemini_support::*;
use crate::server::{Reply, Server, plain, streamed};
use crate::support::Conversation;

fn error(code: u16, status: &str, message: &str) -> Value {
    json!({"error": {"code": code, "message": message, "status": status}})
}

/// The class of a refusal, alone and as the only element of a list, and of the same error in a stream.
async fn check(code: u16, error: &Value, expected: ErrorClass, in_stream: ErrorClass) {
    for body in [error.to_string(), json!([error]).to_string()] {
        let failure = failure_of(Reply::Whole(plain(code, "", &body))).await;
        assert_eq!((failure.class, failure.status), (expected, Some(code)), "{body}");
        for begun in [vec![], vec![parts(r#"{"text": "Well"}"#)]] {
            let failure = outcome(&[begun, vec![body.clone()]].concat()).await.unwrap_err();
            assert_eq!((failure.class, failure.status), (in_stream, None), "{body}");
            if let Some(message) = error.pointer("/error/message") {
                assert_eq!(failure.message, message.as_str().unwrap());
            }
        }
    }
}

#[tokio::test]
async fn every_status_has_its_class() {
    for (code, status, class) in [
        (400, "INVALID_ARGUMENT", ErrorClass::InvalidRequest),
        (400, "FAILED_PRECONDITION", ErrorClass::Forbidden),
        (400, "OUT_OF_RANGE", ErrorClass::InvalidRequest),
        (400, "", ErrorClass::InvalidRequest),
        (401, "UNAUTHENTICATED", ErrorClass::Unauthorized),
        (403, "PERMISSION_DENIED", ErrorClass::Forbidden),
        (404, "NOT_FOUND", ErrorClass::NotFound),
        (409, "ABORTED", ErrorClass::Server),
        (429, "RESOURCE_EXHAUSTED", ErrorClass::RateLimited),
        (429, "SOMETHING_NEW", ErrorClass::RateLimited),
        (500, "INTERNAL", ErrorClass::Server),
        (503, "UNAVAILABLE", ErrorClass::Overloaded),
        (503, "", ErrorClass::Overloaded),
        (504, "DEADLINE_EXCEEDED", ErrorClass::Server),
    ] {
        check(code, &error(code, status, "Own words."), class, class).await;
    }
}

#[tokio::test]
async fn a_wrong_key_is_told_from_other_wrong_arguments() {
    let invalid = |message: &str| error(400, "INVALID_ARGUMENT", message);
    let unauthorized = ErrorClass::Unauthorized;
    check(400, &invalid("API key not valid. Please pass a valid API key."), unauthorized, unauthorized).await;
    check(400, &invalid("API key expired. Please renew the API key."), unauthorized, unauthorized).await;
    let mut reason = invalid("Clé inconnue.");
    reason["error"]["details"] = json!([
        {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"},
    ]);
    check(400, &reason, unauthorized, unauthorized).await;
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_told_by_its_words() {
    for message in [
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "The input token count is 40000 but model only supports up to 32768",
        "Request payload size exceeds the limit: 20971520 bytes.",
    ] {
        let too_long = ErrorClass::ContextTooLong;
        check(400, &error(400, "INVALID_ARGUMENT", message), too_long, too_long).await;
        check(400, &error(400, "", message), too_long, too_long).await;
    }
}

#[tokio::test]
async fn a_wish_to_wait_stands_in_the_body_unless_a_header_says_it() {
    for (delay, headers, expected) in [
        (json!("34.4s"), "", Some(34_400)),
        (json!("31s"), "", Some(31_000)),
        (json!("0s"), "", Some(0)),
        (json!("31s"), "retry-after: 7\r\n", Some(7_000)),
        (json!("soon"), "", None),
        (json!("-1s"), "", None),
        (json!(31), "", None),
    ] {
        let mut error = error(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.");
        error["error"]["details"] = json!([
            {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": "PerMinute"}]},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay},
        ]);
        let failure = failure_of(Reply::Whole(plain(429, headers, &error.to_string()))).await;
        assert_eq!((failure.class, failure.retry_after_ms), (ErrorClass::RateLimited, expected), "{delay}");
        if headers.is_empty() {
            let failure = outcome(&[error.to_string()]).await.unwrap_err();
            assert_eq!(
                (failure.class, failure.retry_after_ms),
                (ErrorClass::RateLimited, expected),
                "{delay}"
            );
        }
    }
}

#[tokio::test]
async fn errors_of_others_in_nearly_the_same_form_are_read() {
    let server = ErrorClass::Server;
    check(400, &json!({"error": "no such thing"}), ErrorClass::InvalidRequest, server).await;
    check(
        400,
        &json!({"error": {"message": "no", "code": "bad", "type": "x"}}),
        ErrorClass::InvalidRequest,
        server,
    )
    .await;
    let failure =
        failure_of(Reply::Whole(plain(400, "", r#"{"error": {"status": "INVALID_ARGUMENT"}}"#))).await;
    assert_eq!(failure.message, "INVALID_ARGUMENT");
    let failure = failure_of(Reply::Whole(plain(400, "", r#"{"detail": "else"}"#))).await;
    assert_eq!(failure.message, r#"HTTP 400: {"detail": "else"}"#);
}

#[tokio::test]
async fn an_answer_that_breaks_off_with_an_error_counts_what_was_written() {
    let server = Server::start([Reply::Whole(streamed([sse(&[
        parts(r#"{"text": "1234567890ab"}"#),
        error(503, "UNAVAILABLE", "High demand.").to_string(),
    ])
    .as_bytes()]))])
    .await;
    let failure = Conversation::new("go").ask(&named(&server, FLASH_2, None)).await.unwrap_err();
    assert_eq!((failure.class, failure.usage.output_tokens), (ErrorClass::Overloaded, 4));
    assert!(failure.usage.input_tokens > 0);
}
