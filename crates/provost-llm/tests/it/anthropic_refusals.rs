//! Requests that Anthropic refuses, with its error messages.

use provost_event::{Block, ErrorClass, ModelFailure, StopReason};
use serde_json::json;

use crate::anthropic_support::*;
use crate::server::{Reply, Server, plain, streamed};
use crate::support::Conversation;

#[tokio::test]
async fn every_status_has_its_class_and_the_providers_own_message() {
    for (status, kind, class) in [
        (400, "invalid_request_error", ErrorClass::InvalidRequest),
        (401, "authentication_error", ErrorClass::Unauthorized),
        (402, "billing_error", ErrorClass::QuotaUsedUp),
        (403, "permission_error", ErrorClass::Forbidden),
        (404, "not_found_error", ErrorClass::NotFound),
        (408, "timeout_error", ErrorClass::Server),
        (409, "invalid_request_error", ErrorClass::Server),
        (413, "request_too_large", ErrorClass::ContextTooLong),
        (422, "invalid_request_error", ErrorClass::InvalidRequest),
        (429, "rate_limit_error", ErrorClass::RateLimited),
        (500, "api_error", ErrorClass::Server),
        (500, "overloaded_error", ErrorClass::Overloaded),
        (503, "something_new", ErrorClass::Server),
        (504, "timeout_error", ErrorClass::Server),
        (529, "overloaded_error", ErrorClass::Overloaded),
    ] {
        let failure = failure_of(Reply::Whole(plain(status, "", &refusal(kind, "Own words.")))).await;
        let expected = ModelFailure {
            status: Some(status),
            request_id: Some("req_body".to_owned()),
            ..ModelFailure::new(class, "Own words.")
        };
        assert_eq!(failure, expected);
    }
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_told_from_other_wrong_requests() {
    for message in [
        "prompt is too long: 215000 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000",
        "This model's maximum context length is 128000 tokens",
    ] {
        let failure =
            failure_of(Reply::Whole(plain(400, "", &refusal("invalid_request_error", message)))).await;
        assert_eq!((failure.class, failure.message.as_str()), (ErrorClass::ContextTooLong, message));
    }
}

#[tokio::test]
async fn a_refusal_says_why_in_the_providers_words() {
    let events = [
        start(),
        json!({"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_sequence": null, "stop_details": {
            "type": "refusal", "category": "cyber", "explanation": "This could enable harm.",
        }}, "usage": {"output_tokens": 3}}),
        json!({"type": "message_stop"}),
    ];
    let server = Server::start([Reply::Whole(streamed([sse(&events).as_bytes()]))]).await;
    let answer = Conversation::new("go").ask(&model(&server)).await.unwrap();
    assert_eq!(answer.stop, StopReason::Refusal);
    assert_eq!(answer.content, [Block::Text("This could enable harm. (category: cyber)".to_owned())]);
}
