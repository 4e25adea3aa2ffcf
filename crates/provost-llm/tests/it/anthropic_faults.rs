//! Connections and streams that fail: each way has its class, its words and its usage.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;

use provost_event::{ErrorClass, ModelFailure, Usage};
use provost_llm::{AnthropicModel, AnthropicOptions, ModelLimits};
use serde_json::{Value, json};

use crate::server::{HEAD, Reply, Server, begun, streamed};
use crate::support::*;

fn usage() -> Usage {
    Usage { input_tokens: 25, output_tokens: 1, cache_read_tokens: 2000, cache_write_tokens: 100 }
}

#[tokio::test]
async fn a_refused_connection_says_where_and_what_to_check() {
    let server = Server::start([Reply::Reset]).await;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let base_url = format!("http://user:password@127.0.0.1:{port}");
    let model = AnthropicModel::new(AnthropicOptions { base_url, ..options(&server) }).unwrap();
    let failure = Conversation::new("go").ask(&model).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::Transport);
    let expected = format!(
        "127.0.0.1:{port} refuses connections; check that a server listens there, the base URL's host and port, and the proxy variables"
    );
    assert_eq!(failure.message, expected);
}

#[tokio::test]
async fn an_unknown_host_and_a_failed_handshake_say_what_to_check() {
    let server = Server::start([Reply::Reset]).await;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let no_tls = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        stream.read_to_end(&mut Vec::new())
    });
    for (base_url, expected) in [
        ("http://no-such-host.invalid".to_owned(), "no address is known for no-such-host.invalid:80; check"),
        (format!("https://127.0.0.1:{port}"), "no trusted TLS connection to 127.0.0.1:"),
    ] {
        let model = AnthropicModel::new(AnthropicOptions { base_url, ..options(&server) }).unwrap();
        let failure = Conversation::new("go").ask(&model).await.unwrap_err();
        assert_eq!(failure.class, ErrorClass::Transport, "{}", failure.message);
        assert!(failure.message.starts_with(expected), "{}", failure.message);
    }
    let _ = no_tls.join().unwrap();
}

#[tokio::test]
async fn a_connection_that_breaks_before_an_answer_is_no_connection() {
    for reply in [Reply::Reset, Reply::Cut(Vec::new()), Reply::Cut(b"HTTP/1.1 200 OK\r\ncont".to_vec())] {
        let failure = failure_of(reply).await;
        assert_eq!(failure.class, ErrorClass::Transport);
        assert!(failure.message.contains("broke before an answer began"), "{}", failure.message);
    }
}

/// What the events that are whole report.
fn reported(stream: &str) -> Usage {
    let whole = stream.rfind("\n\n").map_or("", |end| &stream[..end]);
    match (whole.contains("message_start"), whole.contains("message_delta")) {
        (false, _) => Usage::default(),
        (true, false) => usage(),
        (true, true) => Usage { output_tokens: 40, ..usage() },
    }
}

#[tokio::test]
async fn a_stream_that_ends_early_is_cut_wherever_that_is() {
    let stream = stream(&[text_block(0, &["Hello"])], "end_turn");
    let end = stream.rfind("event: message_stop").unwrap();
    for at in (0..end + 20).step_by(7) {
        let failure = failure_of(Reply::Cut(begun(&stream[..at]))).await;
        assert_eq!(failure.class, ErrorClass::Cut, "broken at {at}: {}", failure.message);
        assert_eq!(failure.request_id.as_deref(), Some("req_head"));
        let failure = failure_of(Reply::Whole(streamed([&stream.as_bytes()[..at]]))).await;
        assert_eq!(
            (failure.class, failure.message.as_str()),
            (ErrorClass::Cut, "the stream ended before the answer did")
        );
        assert_eq!(failure.usage, reported(&stream[..at]), "ended at {at}");
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
async fn no_first_token_in_time_is_a_stall_also_with_pings() {
    for bytes in [Vec::new(), HEAD.as_bytes().to_vec(), begun(&sse(&[start(), json!({"type": "ping"})]))] {
        let server = Server::start([Reply::Hold(bytes)]).await;
        let limits = ModelLimits { first_token_ms: 100, ..ModelLimits::default() };
        let failure = Conversation::new("go").ask(&limited(&server, limits)).await.unwrap_err();
        assert_eq!(
            (failure.class, failure.message.as_str()),
            (ErrorClass::Stalled, "no answer began for 100 ms")
        );
        server.until(|seen| seen.closed == 1).await;
    }
}

#[tokio::test]
async fn a_gap_of_a_minute_is_a_stall_that_keeps_the_usage() {
    let events = [vec![start()], text_block(0, &["Hello"])].concat();
    let server = Server::start([Reply::Hold(begun(&sse(&events)))]).await;
    let (model, clock) = timed(&server);
    let heard = Arc::new(Heard::default());
    let asking = {
        let heard = Arc::clone(&heard);
        tokio::spawn(async move {
            let conversation = Conversation::new("go");
            provost_harness::Model::answer(&model, conversation.request(), &*heard, &Default::default()).await
        })
    };
    heard.until_first().await;
    let asked_at = provost_harness::Clock::now(&*clock);
    assert_eq!(clock.advance_to_next_sleeper().await, asked_at.plus_ms(60_000));
    let failure = asking.await.unwrap().unwrap_err();
    assert_eq!(
        (failure.class, failure.message.as_str()),
        (ErrorClass::Stalled, "the answer stopped coming for 60 s")
    );
    assert_eq!(failure.usage, usage());
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
        assert_eq!(failure.class, ErrorClass::Nonsense, "{words}");
        assert!(failure.message.contains(words), "{}", failure.message);
    }
    let failure = failure_of(Reply::Whole(streamed([b"data: \xff\n\n".as_slice()]))).await;
    assert_eq!((failure.class, failure.message.as_str()), (ErrorClass::Nonsense, "the stream isn't UTF-8"));
}

#[tokio::test]
async fn an_answer_of_the_largest_size_is_read_and_a_larger_one_refused() {
    let stream = stream(&[text_block(0, &["a"; 200])], "end_turn");
    let server = Server::start([Reply::Whole(streamed(stream.as_bytes().chunks(100)))]).await;
    let conversation = Conversation::new("go");
    let limits = |answer_bytes_max| ModelLimits { answer_bytes_max, ..ModelLimits::default() };
    conversation.ask(&limited(&server, limits(stream.len()))).await.unwrap();
    let failure = conversation.ask(&limited(&server, limits(stream.len() - 1))).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::Nonsense);
    assert_eq!(failure.message, format!("the answer is longer than {} bytes", stream.len() - 1));
    let limits = ModelLimits { event_bytes_max: 200, ..ModelLimits::default() };
    let failure = conversation.ask(&limited(&server, limits)).await.unwrap_err();
    assert_eq!(failure.message, "an event of the stream is longer than 200 bytes");
}
