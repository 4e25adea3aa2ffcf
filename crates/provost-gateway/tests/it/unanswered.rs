//! Calls whose answer the program doesn't wait for, or can't be read: the budget holds all the same.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures::future::join_all;
use provost_event::{Certainty, ErrorClass, ExternalCallEnd};
use tokio::sync::Notify;

use crate::answers::{ANTHROPIC_STREAM, ASK_ANTHROPIC};
use crate::stage::{KEY, Stage, Staged, json, sse};

const ASK_WHOLE: &str = r#"{"model":"claude","max_tokens":300,"messages":[{"role":"user","content":"hi"}]}"#;
const WHOLE: &str = r#"{"content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn","usage":{"input_tokens":20,"output_tokens":250}}"#;

/// A whole answer whose body comes once it is told to.
fn late(body: &'static str, comes: Arc<Notify>) -> Response {
    let piece = futures::stream::once(async move {
        comes.notified().await;
        Ok::<_, std::io::Error>(Bytes::from_static(body.as_bytes()))
    });
    let response = Response::builder().header("content-type", "application/json");
    response.body(Body::from_stream(piece)).unwrap()
}

#[tokio::test]
async fn a_whole_answer_that_the_program_hangs_up_on_is_charged_as_the_provider_bills_it() {
    let comes = Arc::new(Notify::new());
    let told = Arc::clone(&comes);
    let stage = Stage::new(move |_| late(WHOLE, Arc::clone(&told))).await;
    let asking = stage.post("/anthropic/v1/messages", ASK_WHOLE);
    let response = asking.await;
    drop(response);
    comes.notify_one();
    let answered = stage.answered(1).await;
    assert_eq!(answered[0].end, ExternalCallEnd::Answered);
    assert_eq!((answered[0].usage.output_tokens, answered[0].usage.certainty), (250, Certainty::Reported));
}

#[tokio::test]
async fn a_whole_answer_that_is_never_seen_counts_as_all_that_was_granted() {
    let stage = Stage::new(|_| late(WHOLE, Arc::new(Notify::new()))).await;
    drop(stage.post("/anthropic/v1/messages", ASK_WHOLE).await);
    stage.close().await;
    let answered = stage.answered(1).await;
    assert_eq!(answered[0].end, ExternalCallEnd::Aborted);
    assert_eq!(answered[0].usage.certainty, Certainty::Unconfirmed);
}

#[tokio::test]
async fn an_answer_in_an_encoding_that_nothing_asked_for_counts_as_all_that_was_granted() {
    let stage = Stage::new(|_| {
        let response = Response::builder().header("content-type", "application/json");
        response.header("content-encoding", "gzip").body(Body::from(&b"\x1f\x8b\x08\x00rest"[..])).unwrap()
    })
    .await;
    stage.post("/anthropic/v1/messages", ASK_WHOLE).await.bytes().await.unwrap();
    assert_eq!(stage.answered(1).await[0].usage.certainty, Certainty::Unconfirmed);
}

#[tokio::test]
async fn when_the_budget_is_used_up_each_call_that_waits_is_told_at_once() {
    let staged = Staged { money: Some(1_500), ..Staged::default() };
    let stream = ANTHROPIC_STREAM.replace("\"output_tokens\":9", "\"output_tokens\":280");
    let stage = Stage::with(staged, move |_| sse(&stream)).await;
    let calls = (0..10).map(|_| stage.post("/anthropic/v1/messages", ASK_ANTHROPIC));
    let answers = tokio::time::timeout(std::time::Duration::from_secs(3), join_all(calls));
    let answers = answers.await.expect("nothing is left to wait for");
    let refused = answers.iter().filter(|response| response.status() == 400).count();
    let made = answers.iter().filter(|response| response.status() == 200).count();
    assert!(refused > 0 && made > 0 && refused + made == 10, "{made} made, {refused} refused");
}

#[tokio::test]
async fn the_key_is_hidden_wherever_a_provider_repeats_it() {
    let (first, last) = KEY.split_at(7);
    let stage = Stage::new(move |_| {
        let pieces = [format!("{{\"error\":\"bad key {first}"), format!("{last} and {KEY}\"}}")];
        let pieces = pieces.map(|piece| Ok::<_, std::io::Error>(Bytes::from(piece)));
        let response = Response::builder().status(401).header("content-type", "application/json");
        let response = response.header("x-echo", format!("Bearer {KEY}"));
        response.body(Body::from_stream(futures::stream::iter(pieces))).unwrap()
    })
    .await;
    let list = stage.client.get(format!("{}/anthropic/v1/models", stage.access.url));
    let list = list.bearer_auth(&stage.access.token).send().await.unwrap();
    for response in [stage.post("/anthropic/v1/messages", ASK_ANTHROPIC).await, list] {
        assert_eq!(response.status(), 401);
        assert!(response.headers().get("x-echo").is_none(), "{:?}", response.headers());
        let hidden = "*".repeat(KEY.len());
        assert_eq!(
            response.text().await.unwrap(),
            format!("{{\"error\":\"bad key {hidden} and {hidden}\"}}")
        );
    }
}

#[tokio::test]
async fn a_call_that_the_gateway_refuses_is_a_failure_of_the_program_s() {
    let stage = Stage::with(Staged { models: vec!["a/claude".to_owned()], ..Staged::default() }, |_| {
        json(200, WHOLE)
    })
    .await;
    let refused = stage.post("/anthropic/v1/messages", &ASK_WHOLE.replace("claude", "other")).await;
    assert_eq!(refused.status(), 400);
    let failure = stage.activity().failure.expect("the driver sees it");
    assert_eq!((failure.class, failure.status), (ErrorClass::InvalidRequest, Some(400)));
    assert!(failure.message.contains("don't allow the model `a/other`"), "{failure:?}");
    stage.post("/anthropic/v1/messages", ASK_WHOLE).await.text().await.unwrap();
    stage.answered(1).await;
    assert_eq!(stage.activity().failure, None, "the next one is answered");
}
