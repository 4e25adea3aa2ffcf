//! Requests that the provider, or somebody on the way to it, refuses.

use provost_event::{ErrorClass, ModelFailure};
use provost_llm::ModelLimits;
use serde_json::Value;

use crate::server::{Reply, Server, plain, streamed};
use crate::support::*;

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
async fn statuses_alone_are_enough() {
    for (status, class) in [
        (301, ErrorClass::NotFound),
        (400, ErrorClass::InvalidRequest),
        (401, ErrorClass::Unauthorized),
        (413, ErrorClass::ContextTooLong),
        (418, ErrorClass::InvalidRequest),
        (429, ErrorClass::RateLimited),
        (502, ErrorClass::Server),
        (529, ErrorClass::Overloaded),
    ] {
        let failure = failure_of(Reply::Whole(plain(status, "request-id: req_head\r\n", ""))).await;
        assert_eq!((failure.class, failure.status), (class, Some(status)));
        assert_eq!(failure.message, format!("HTTP {status} without a message"));
        assert_eq!(failure.request_id.as_deref(), Some("req_head"));
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
async fn a_wish_to_wait_is_passed_on_in_milliseconds() {
    for (headers, expected) in [
        ("", None),
        ("retry-after: 7\r\n", Some(7000)),
        ("Retry-After: Sun, 06 Nov 1994 08:50:07 GMT\r\n", Some(30_000)),
        ("retry-after: nonsense\r\n", None),
    ] {
        let server =
            Server::start([Reply::Whole(plain(429, headers, &refusal("rate_limit_error", "slow")))]).await;
        let (model, _clock) = timed(&server);
        let failure = Conversation::new("go").ask(&model).await.unwrap_err();
        assert_eq!((failure.class, failure.retry_after_ms), (ErrorClass::RateLimited, expected), "{headers}");
    }
}

#[tokio::test]
async fn a_page_of_somebody_in_between_is_shown_shortened() {
    let page = format!("<html>\n  <h1>Bad   gateway</h1>\n{}", "x".repeat(5000));
    let failure = failure_of(Reply::Whole(plain(502, "content-type: text/html\r\n", &page))).await;
    assert_eq!(failure.class, ErrorClass::Server);
    assert!(failure.message.starts_with("HTTP 502: <html> <h1>Bad gateway</h1> xxx"), "{}", failure.message);
    assert!(failure.message.chars().count() < 220);
    let failure = failure_of(Reply::Whole(plain(200, "content-type: text/html\r\n", &page))).await;
    assert_eq!(failure.class, ErrorClass::Nonsense);
    assert!(failure.message.starts_with("HTTP 200, but no stream of events: <html>"), "{}", failure.message);
}

#[tokio::test]
async fn an_error_message_and_its_body_have_a_largest_size() {
    let server =
        Server::start([Reply::Whole(plain(400, "", &refusal("invalid_request_error", &"ü".repeat(900))))])
            .await;
    let limits = ModelLimits { message_chars_max: 899, ..ModelLimits::default() };
    let failure = Conversation::new("go").ask(&limited(&server, limits)).await.unwrap_err();
    assert_eq!(failure.message, format!("{}…", "ü".repeat(899)));
    let limits = ModelLimits { error_body_bytes_max: 100, ..ModelLimits::default() };
    let failure = Conversation::new("go").ask(&limited(&server, limits)).await.unwrap_err();
    assert!(failure.message.starts_with("HTTP 400: {"), "{}", failure.message);
}

#[tokio::test]
async fn a_redirect_isnt_followed_and_names_where_it_leads() {
    let failure = failure_of(Reply::Whole(plain(307, "location: http://elsewhere.test/v1\r\n", ""))).await;
    assert_eq!(failure.class, ErrorClass::NotFound);
    assert_eq!(
        failure.message,
        "HTTP 307: the address has moved to http://elsewhere.test/v1; check the base URL"
    );
}

#[tokio::test]
async fn the_key_is_in_no_error_and_no_debug_text() {
    let echo = format!("Bad key {KEY}, I say: {KEY}!");
    let error: Value = serde_json::from_str(&refusal("authentication_error", &echo)).unwrap();
    let headers = format!("request-id: {KEY}\r\n");
    for reply in [
        Reply::Whole(plain(401, &headers, &refusal("authentication_error", &echo))),
        Reply::Whole(plain(401, &headers, &echo)),
        Reply::Whole(plain(401, "", &format!("{}{echo}", "x".repeat(180)))),
        Reply::Whole(streamed([sse(&[error]).as_bytes()])),
        Reply::Whole(streamed([format!("data: {echo}\n\n").as_bytes()])),
    ] {
        let failure = failure_of(reply).await;
        let shown = format!("{failure:?} {}", serde_json::to_string(&failure).unwrap());
        assert!(!shown.contains("secret"), "{shown}");
        assert!(!shown.contains("sk-ant"), "{shown}");
    }
    let server = Server::start([Reply::Reset]).await;
    let shown = format!("{:?}", model(&server));
    assert_eq!(shown, format!("AnthropicModel {{ place: \"127.0.0.1:{}\", .. }}", server.port));
}
