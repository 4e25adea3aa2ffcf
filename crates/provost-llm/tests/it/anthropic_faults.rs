//! Failures that only Anthropic's streams have.

use provost_event::{Certainty, ErrorClass, ModelFailure, Usage};
use serde_json::{Value, json};

use crate::anthropic_support::*;
use crate::server::{Reply, streamed};

fn usage() -> Usage {
    Usage {
        input_tokens: 25,
        output_tokens: 1,
        cache_read_tokens: 2000,
        cache_write_tokens: 100,
        reasoning_tokens: 0,
        certainty: Certainty::Reported,
    }
}

#[tokio::test]
async fn errors_in_the_stream_have_their_class_and_keep_the_usage() {
    for (kind, class) in [
        ("overloaded_error", ErrorClass::Overloaded),
        ("rate_limit_error", ErrorClass::RateLimited),
        ("api_error", ErrorClass::Server),
        ("invalid_request_error", ErrorClass::InvalidRequest),
        ("something_new", ErrorClass::Server),
    ] {
        let error: Value = serde_json::from_str(&refusal(kind, "Own words.")).unwrap();
        let stream = sse(&[vec![start()], text_block(0, &["a"]), vec![error]].concat());
        let failure = failure_of(Reply::Whole(streamed([stream.as_bytes()]))).await;
        let expected = ModelFailure {
            request_id: Some("req_body".to_owned()),
            usage: usage(),
            ..ModelFailure::new(class, "Own words.")
        };
        assert_eq!(failure, expected);
    }
}

#[tokio::test]
async fn an_answer_that_makes_no_sense_is_nonsense() {
    let twice = [vec![start()], text_block(0, &["a"]), text_block(0, &["b"])].concat();
    let lost = vec![
        start(),
        json!({"type": "content_block_delta", "index": 5, "delta": {"type": "text_delta", "text": "a"}}),
    ];
    let mixed = [
        vec![start()],
        block(0, json!({"type": "text", "text": ""}), &[json!({"type": "thinking_delta", "thinking": "a"})]),
    ]
    .concat();
    let same_ids = stream(&[tool_block(0, "a", "x", &["{}"]), tool_block(1, "a", "x", &["{}"])], "tool_use");
    for (stream, words) in [
        ("data: {\"type\":\n\n".to_owned(), "an event of the stream can't be read"),
        ("data: []\n\n".to_owned(), "an event of the stream can't be read"),
        (
            "data: {\"type\":\"content_block_start\",\"index\":-1}\n\n".to_owned(),
            "an event of the stream can't be read",
        ),
        ("data: {\"type\":\"message_start\"}\n\n".to_owned(), "lacks a part of its message_start"),
        (sse(&twice), "block 0 begins twice"),
        (sse(&lost), "block 5 goes on without a beginning"),
        (sse(&mixed), "block 0 goes on as something else"),
        (sse(&[start(), json!({"type": "message_stop"})]), "doesn't say why it stopped"),
        (same_ids, "two tool calls have the same id"),
    ] {
        let failure = failure_of(Reply::Whole(streamed([stream.as_bytes()]))).await;
        assert_eq!(failure.class, ErrorClass::MalformedResponse, "{words}");
        assert!(failure.message.contains(words), "{}", failure.message);
    }
}
