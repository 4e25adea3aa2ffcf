//! Models over Chat Completions, and their events on the wire.

use expect_test::Expect;
use provost_engine::Answer;
use provost_event::ModelFailure;
use provost_llm::{Deviations, Provider, ProviderModel, ProviderOptions, WireFormat};

use crate::server::{Reply, Server, streamed};
use crate::support::{self, Conversation};

pub(crate) const WIRE: WireFormat = WireFormat::OpenaiChat;

pub(crate) fn model(server: &Server) -> ProviderModel {
    support::model(WIRE, server)
}

/// `name` at a server with these deviations.
pub(crate) fn deviating(server: &Server, name: &str, deviations: Deviations) -> ProviderModel {
    let provider = Provider { deviations, ..Provider::new("x", WIRE, server.url()) };
    let options =
        ProviderOptions { provider, model: name.to_owned(), ..support::options(WIRE, server.url()) };
    ProviderModel::new(options).unwrap()
}

/// Events in the format of a stream.
pub(crate) fn sse(events: &[&str]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

/// A whole stream of these events.
pub(crate) fn ended(events: &[&str]) -> String {
    sse(events) + "data: [DONE]\n\n"
}

/// The event with `delta`.
pub(crate) fn delta(delta: &str) -> String {
    format!(
        r#"{{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"a-model-1","choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#
    )
}

/// The event with the stop reason.
pub(crate) fn finish(reason: &str) -> String {
    delta("{}").replace(r#""finish_reason":null"#, &format!(r#""finish_reason":"{reason}""#))
}

/// A whole stream with these deltas and this stop reason.
pub(crate) fn stream(deltas: &[&str], reason: &str) -> String {
    let mut events = deltas.iter().map(|one| delta(one)).collect::<Vec<_>>();
    events.push(finish(reason));
    ended(&events.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The events of a text.
pub(crate) fn text(words: &str) -> String {
    stream(&[&format!(r#"{{"role":"assistant","content":{words:?}}}"#)], "stop")
}

pub(crate) async fn answer_to(stream: &str) -> Answer {
    let server = Server::start([Reply::Whole(streamed([stream.as_bytes()]))]).await;
    Conversation::new("go").ask(&model(&server)).await.unwrap()
}

/// Shows an answer's blocks and its stop reason.
pub(crate) async fn check(stream: &str, expected: Expect) {
    expected.assert_eq(&shown(&answer_to(stream).await));
}

/// An answer's blocks, one per line, and its stop reason.
pub(crate) fn shown(answer: &Answer) -> String {
    let blocks = answer.content.iter().map(|block| serde_json::to_string(block).unwrap() + "\n");
    format!("{}{:?}\n", blocks.collect::<String>(), answer.stop)
}

/// The failure of the only call to a server with this reply.
pub(crate) async fn failure_of(reply: Reply) -> ModelFailure {
    let server = Server::start([reply]).await;
    Conversation::new("go").ask(&model(&server)).await.unwrap_err()
}

/// The failure of a stream.
pub(crate) async fn failure_in(stream: &str) -> ModelFailure {
    failure_of(Reply::Whole(streamed([stream.as_bytes()]))).await
}
