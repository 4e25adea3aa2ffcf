//! Anthropic's models, and their events on the wire.

use provost_event::ModelFailure;
use provost_llm::{ProviderModel, ProviderOptions, WireFormat};
use serde_json::{Value, json};

use crate::server::{Reply, Server};
use crate::support::{self, Conversation};

pub(crate) fn options(server: &Server) -> ProviderOptions {
    ProviderOptions {
        model: "claude-test".to_owned(),
        ..support::options(WireFormat::Anthropic, server.url())
    }
}

pub(crate) fn model(server: &Server) -> ProviderModel {
    ProviderModel::new(options(server)).unwrap()
}

/// Events in the format of a stream.
pub(crate) fn sse(events: &[Value]) -> String {
    let event = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    events.iter().map(event).collect()
}

pub(crate) fn start() -> Value {
    json!({"type": "message_start", "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-test-20250101", "content": [],
        "stop_reason": null,
        "usage": {"input_tokens": 25, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 2000, "output_tokens": 1},
    }})
}

pub(crate) fn block(index: u32, block: Value, deltas: &[Value]) -> Vec<Value> {
    let mut events = vec![json!({"type": "content_block_start", "index": index, "content_block": block})];
    events.extend(
        deltas.iter().map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta})),
    );
    events.push(json!({"type": "content_block_stop", "index": index}));
    events
}

pub(crate) fn text_block(index: u32, pieces: &[&str]) -> Vec<Value> {
    let deltas = pieces.iter().map(|text| json!({"type": "text_delta", "text": text})).collect::<Vec<_>>();
    block(index, json!({"type": "text", "text": ""}), &deltas)
}

pub(crate) fn tool_block(index: u32, id: &str, name: &str, pieces: &[&str]) -> Vec<Value> {
    let deltas = pieces.iter().map(|piece| json!({"type": "input_json_delta", "partial_json": piece}));
    block(
        index,
        json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
        &deltas.collect::<Vec<_>>(),
    )
}

pub(crate) fn end(stop: &str) -> Vec<Value> {
    vec![
        json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null}, "usage": {"output_tokens": 40}}),
        json!({"type": "message_stop"}),
    ]
}

/// A whole stream around these blocks.
pub(crate) fn stream(blocks: &[Vec<Value>], stop: &str) -> String {
    let mut events = vec![start(), json!({"type": "ping"})];
    events.extend(blocks.iter().flatten().cloned());
    events.extend(end(stop));
    sse(&events)
}

/// The failure of the only call to a server with this reply.
pub(crate) async fn failure_of(reply: Reply) -> ModelFailure {
    let server = Server::start([reply]).await;
    Conversation::new("go").ask(&model(&server)).await.unwrap_err()
}

/// The body of an error.
pub(crate) fn refusal(kind: &str, message: &str) -> String {
    json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_body"})
        .to_string()
}
