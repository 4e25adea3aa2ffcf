//! Google's models, and the chunks of their streams on the wire.

use expect_test::Expect;
use provost_engine::Answer;
use provost_event::ModelFailure;
use provost_harness::ImageData;
use provost_llm::{ProviderModel, ProviderOptions, Reasoning, WireFormat};

use crate::server::{HEAD, ReceivedRequest, Reply, Server, chunk, streamed};
use crate::support::{self, Conversation};

pub(crate) const FLASH_2: &str = "gemini-2.5-flash";
pub(crate) const PRO_3: &str = "gemini-3.1-pro-preview";

pub(crate) fn options(server: &Server) -> ProviderOptions {
    ProviderOptions { model: FLASH_2.to_owned(), ..support::options(WireFormat::Gemini, server.url()) }
}

pub(crate) fn named(server: &Server, name: &str, reasoning: Option<Reasoning>) -> ProviderModel {
    ProviderModel::new(ProviderOptions { model: name.to_owned(), reasoning, ..options(server) }).unwrap()
}

/// These chunks in the format of a stream.
pub(crate) fn sse(chunks: &[String]) -> String {
    chunks.iter().map(|chunk| format!("data: {chunk}\r\n\r\n")).collect()
}

/// A chunk with these parts, as written.
pub(crate) fn parts(parts: &str) -> String {
    format!(r#"{{"candidates": [{{"content": {{"parts": [{parts}],"role": "model"}},"index": 0}}]}}"#)
}

/// The last chunk, with these parts.
pub(crate) fn last(parts: &str, reason: &str) -> String {
    format!(
        r#"{{"candidates": [{{"content": {{"parts": [{parts}],"role": "model"}},"finishReason": "{reason}","index": 0}}],"usageMetadata": {{"promptTokenCount": 7,"candidatesTokenCount": 2,"totalTokenCount": 103,"promptTokensDetails": [{{"modality": "TEXT","tokenCount": 7}}],"thoughtsTokenCount": 94,"serviceTier": "standard"}},"modelVersion": "gemini-as-released","responseId": "WQuq"}}"#
    )
}

pub(crate) async fn outcome(chunks: &[String]) -> Result<Answer, ModelFailure> {
    let stream = sse(chunks);
    let server = Server::start([Reply::Whole(streamed([stream.as_bytes()]))]).await;
    Conversation::new("go").ask(&named(&server, FLASH_2, None)).await
}

/// The failure of a call whose stream ends cleanly after these chunks.
pub(crate) async fn failure_of(reply: Reply) -> ModelFailure {
    let server = Server::start([reply]).await;
    Conversation::new("go").ask(&named(&server, FLASH_2, None)).await.unwrap_err()
}

/// Shows an answer's blocks and its stop reason.
pub(crate) async fn check(chunks: &[String], expected: Expect) {
    let answer = outcome(chunks).await.unwrap();
    let blocks = answer.content.iter().map(|block| serde_json::to_string(block).unwrap() + "\n");
    expected.assert_eq(&format!("{}{:?}\n", blocks.collect::<String>(), answer.stop));
}

/// The request to the model of this name.
pub(crate) async fn asked(
    conversation: &Conversation,
    name: &str,
    reasoning: Option<Reasoning>,
) -> ReceivedRequest {
    let stream = sse(&[last(r#"{"text": "a"}"#, "STOP")]);
    let server = Server::start([Reply::Whole(streamed([stream.as_bytes()]))]).await;
    conversation.ask(&named(&server, name, reasoning)).await.unwrap();
    server.seen().asked.remove(0)
}

/// The contents of a request to the model of this name, as sent.
pub(crate) async fn contents(conversation: &Conversation, name: &str) -> String {
    let sent = String::from_utf8(asked(conversation, name, None).await.body).unwrap();
    let contents = sent.split_once("\"contents\":").unwrap().1;
    contents.rsplit_once(",\"generationConfig\"").unwrap().0.replace("},{\"role\"", "},\n{\"role\"")
}

pub(crate) fn png() -> ImageData {
    ImageData::new(b"\x89PNG\r\n\x1a\n.".as_slice()).unwrap()
}

/// A stream that ends without an end.
pub(crate) fn cut(chunks: &[String]) -> Reply {
    let mut bytes = HEAD.as_bytes().to_vec();
    bytes.extend(chunk(sse(chunks).as_bytes()));
    Reply::Cut(bytes)
}
