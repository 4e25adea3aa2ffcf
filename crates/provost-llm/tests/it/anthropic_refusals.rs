//! Requests that Anthropic refuses, in its own words.

use provost_event::{ErrorClass, ModelFailure};

use crate::anthropic_support::*;
use crate::server::{Reply, plain};

#[tokio::test]
async fn every_status_has_its_class_and_the_providers_own_message() {
    for (status, kind, class) in [
        (400, "invalid_request_error", ErrorClass::InvalidRequest),
        (401, "authentication_error", ErrorClass::Unauthorized),
        (402, "billing_error", ErrorClass::Forbidden),
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
