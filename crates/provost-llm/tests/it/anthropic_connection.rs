//! Connections: used again, and closed when nobody wants the answer any more.

use std::sync::Arc;

use provost_event::{ErrorClass, Usage};
use provost_harness::Model as _;
use provost_llm::ModelLimits;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::server::{HEAD, Reply, Server, begun, chunk, plain, streamed};
use crate::support::*;

#[tokio::test]
async fn turns_go_over_one_connection_also_after_an_error() {
    let stream = stream(&[text_block(0, &["a"])], "end_turn");
    let whole = || Reply::Whole(streamed([stream.as_bytes()]));
    let server = Server::start([whole(), Reply::Whole(plain(529, "", "{}")), whole(), whole()]).await;
    let (model, conversation) = (model(&server), Conversation::new("go"));
    conversation.ask(&model).await.unwrap();
    conversation.ask(&model).await.unwrap_err();
    conversation.ask(&model).await.unwrap();
    conversation.ask(&model).await.unwrap();
    let seen = server.seen();
    assert_eq!((seen.accepted, seen.asked.len()), (1, 4));
}

#[tokio::test]
async fn a_connection_the_server_has_closed_is_replaced() {
    let stream = streamed([stream(&[text_block(0, &["a"])], "end_turn").as_bytes()]);
    let server = Server::start([Reply::Cut(stream.clone()), Reply::Whole(stream)]).await;
    let (model, conversation) = (model(&server), Conversation::new("go"));
    conversation.ask(&model).await.unwrap();
    server.until(|seen| seen.closed == 1).await;
    conversation.ask(&model).await.unwrap();
    assert_eq!(server.seen().accepted, 2);
}

#[tokio::test]
async fn an_answer_counts_though_the_stream_never_ends_after_it() {
    let server = Server::start([Reply::Hold(begun(&stream(&[text_block(0, &["a"])], "end_turn")))]).await;
    let model = limited(&server, ModelLimits { drain_ms: 50, ..ModelLimits::default() });
    let answer = Conversation::new("go").ask(&model).await.unwrap();
    assert_eq!(answer.content.len(), 1);
    server.until(|seen| seen.closed == 1).await;
}

#[tokio::test]
async fn cancel_closes_the_connection_and_tells_what_was_used() {
    let events = [vec![start()], text_block(0, &["Hello"])].concat();
    let server = Server::start([Reply::Hold(begun(&sse(&events)))]).await;
    let (model, cancel, heard) = (model(&server), CancellationToken::new(), Arc::new(Heard::default()));
    let asking = {
        let (cancel, heard) = (cancel.clone(), Arc::clone(&heard));
        tokio::spawn(async move { model.answer(Conversation::new("go").request(), &*heard, &cancel).await })
    };
    heard.until_first().await;
    assert_eq!(server.seen().closed, 0);
    cancel.cancel();
    let failure = asking.await.unwrap().unwrap_err();
    assert_eq!(failure.class, ErrorClass::Aborted);
    let expected =
        Usage { input_tokens: 25, output_tokens: 1, cache_read_tokens: 2000, cache_write_tokens: 100 };
    assert_eq!(failure.usage, expected);
    server.until(|seen| seen.closed == 1).await;
}

#[tokio::test]
async fn cancel_works_before_the_server_says_anything() {
    let server = Server::start([Reply::Hold(Vec::new())]).await;
    let (model, cancel) = (model(&server), CancellationToken::new());
    let asking = {
        let cancel = cancel.clone();
        tokio::spawn(async move {
            model.answer(Conversation::new("go").request(), &Heard::default(), &cancel).await
        })
    };
    server.until(|seen| seen.asked.len() == 1).await;
    cancel.cancel();
    assert_eq!(asking.await.unwrap().unwrap_err().class, ErrorClass::Aborted);
    server.until(|seen| seen.closed == 1).await;
}

#[tokio::test]
async fn a_cancelled_call_doesnt_even_connect() {
    let server = Server::start([Reply::Reset]).await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let model = model(&server);
    let failure =
        model.answer(Conversation::new("go").request(), &Heard::default(), &cancel).await.unwrap_err();
    assert_eq!((failure.class, server.seen().accepted), (ErrorClass::Aborted, 0));
}

#[tokio::test]
async fn dropping_the_call_closes_the_connection() {
    let server = Server::start([Reply::Hold(HEAD.as_bytes().to_vec())]).await;
    let model = model(&server);
    let conversation = Conversation::new("go");
    tokio::select! {
        answer = conversation.ask(&model) => panic!("{answer:?}"),
        () = server.until(|seen| seen.asked.len() == 1) => {}
    }
    server.until(|seen| seen.closed == 1).await;
}

#[tokio::test]
async fn bytes_after_the_answer_dont_matter() {
    let mut bytes = begun(&stream(&[text_block(0, &["a"])], "end_turn"));
    bytes.extend(chunk(b"data: not json\n\ndata: "));
    bytes.extend(chunk(json!({"type": "error"}).to_string().as_bytes()));
    bytes.extend_from_slice(b"0\r\n\r\n");
    let server = Server::start([Reply::Whole(bytes)]).await;
    let (model, conversation) = (model(&server), Conversation::new("go"));
    conversation.ask(&model).await.unwrap();
    conversation.ask(&model).await.unwrap();
    assert_eq!(server.seen().accepted, 1);
}
