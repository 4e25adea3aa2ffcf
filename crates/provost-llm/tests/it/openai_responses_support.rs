//! OpenAI's models behind Responses, and their events on the wire.

use provost_engine::Answer;
use provost_event::ModelFailure;
use provost_llm::{ProviderModel, ProviderOptions, Reasoning, WireFormat};
use serde_json::{Value, json};

use crate::server::{Reply, Server, streamed};
use crate::support::{self, Conversation};

pub(crate) fn options(server: &Server) -> ProviderOptions {
    ProviderOptions {
        model: "gpt-test".to_owned(),
        ..support::options(WireFormat::OpenaiResponses, server.url())
    }
}

pub(crate) fn model(server: &Server) -> ProviderModel {
    ProviderModel::new(options(server)).unwrap()
}

/// A model that reasons, by this name.
pub(crate) fn reasoning_model(server: &Server, name: &str) -> ProviderModel {
    let reasoning = Some(Reasoning::Effort);
    ProviderModel::new(ProviderOptions { model: name.to_owned(), reasoning, ..options(server) }).unwrap()
}

/// Events in the format of a stream.
pub(crate) fn sse(events: &[Value]) -> String {
    let event = |event: &Value| match event["type"].as_str() {
        Some(kind) => format!("event: {kind}\ndata: {event}\n\n"),
        None => format!("data: {event}\n\n"),
    };
    events.iter().map(event).collect()
}

/// An event of this type with these fields.
pub(crate) fn event(kind: &str, mut fields: Value) -> Value {
    fields["type"] = kind.into();
    fields
}

pub(crate) fn added(index: u32, item: Value) -> Value {
    event("response.output_item.added", json!({"output_index": index, "item": item}))
}

pub(crate) fn done(index: u32, item: Value) -> Value {
    event("response.output_item.done", json!({"output_index": index, "item": item}))
}

/// A message's item.
pub(crate) fn message(id: &str, content: Value) -> Value {
    json!({"id": id, "type": "message", "status": "completed", "role": "assistant", "content": content})
}

pub(crate) fn output_text(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

/// A message from its beginning to its end.
pub(crate) fn text_item(index: u32, id: &str, pieces: &[&str]) -> Vec<Value> {
    let place = json!({"item_id": id, "output_index": index, "content_index": 0});
    let at = |kind: &str, field: &str, value: Value| {
        let mut fields = place.clone();
        fields[field] = value;
        event(kind, fields)
    };
    let whole = pieces.concat();
    let mut events = vec![added(index, message(id, json!([])))];
    events.push(at("response.content_part.added", "part", output_text("")));
    events.extend(pieces.iter().map(|piece| at("response.output_text.delta", "delta", json!(piece))));
    events.push(at("response.output_text.done", "text", json!(whole)));
    events.push(at("response.content_part.done", "part", output_text(&whole)));
    events.push(done(index, message(id, json!([output_text(&whole)]))));
    events
}

/// A call's item.
pub(crate) fn call(id: &str, call_id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function_call", "status": "completed", "call_id": call_id, "name": name, "arguments": arguments})
}

/// A call from its beginning to its end.
pub(crate) fn call_item(index: u32, call_id: &str, name: &str, pieces: &[&str]) -> Vec<Value> {
    let (id, whole) = (format!("fc_{index}"), pieces.concat());
    let mut events = vec![added(index, call(&id, call_id, name, ""))];
    events.extend(pieces.iter().map(|piece| {
        let fields = json!({"item_id": id, "output_index": index, "delta": piece});
        event("response.function_call_arguments.delta", fields)
    }));
    let fields = json!({"item_id": id, "output_index": index, "arguments": whole});
    events.push(event("response.function_call_arguments.done", fields));
    events.push(done(index, call(&id, call_id, name, &whole)));
    events
}

/// Reasoning from its beginning to its end, with a summary of these parts.
pub(crate) fn reasoning_item(index: u32, id: &str, parts: &[&str], seal: Option<&str>) -> Vec<Value> {
    let item = |parts: &[&str], seal: Option<&str>| {
        let summary = parts.iter().map(|text| json!({"type": "summary_text", "text": text}));
        let mut item = json!({"id": id, "type": "reasoning", "summary": summary.collect::<Vec<_>>()});
        if let Some(seal) = seal {
            item["encrypted_content"] = seal.into();
        }
        item
    };
    let mut events = vec![added(index, item(&[], seal.map(|_| "not yet")))];
    for (place, text) in parts.iter().enumerate() {
        let (a, b) = text.split_at(text.len() / 2);
        events.extend([a, b].map(|delta| {
            let fields =
                json!({"item_id": id, "output_index": index, "summary_index": place, "delta": delta});
            event("response.reasoning_summary_text.delta", fields)
        }));
    }
    events.push(done(index, item(parts, seal)));
    events
}

/// The last event, with these fields of the response.
pub(crate) fn ended(kind: &str, mut response: Value) -> Value {
    response["id"] = "resp_1".into();
    response["model"] = "gpt-test-2025-08-07".into();
    event(kind, json!({"response": response}))
}

pub(crate) fn completed() -> Value {
    ended("response.completed", json!({"status": "completed", "usage": usage()}))
}

pub(crate) fn usage() -> Value {
    json!({
        "input_tokens": 2125, "input_tokens_details": {"cached_tokens": 2000},
        "output_tokens": 40, "output_tokens_details": {"reasoning_tokens": 30}, "total_tokens": 2165,
    })
}

/// A whole stream around these items.
pub(crate) fn stream(items: &[Vec<Value>]) -> String {
    let begun =
        json!({"id": "resp_1", "status": "in_progress", "model": "gpt-test", "output": [], "usage": null});
    let mut events = vec![
        event("response.created", json!({"response": begun})),
        event("response.queued", json!({"response": begun})),
        event("response.in_progress", json!({"response": begun})),
        event("keepalive", json!({"sequence_number": 3})),
    ];
    events.extend(items.iter().flatten().cloned());
    events.push(completed());
    sse(&events)
}

/// The result of a call to a server that sends this stream.
pub(crate) async fn ask(stream: &str) -> Result<Answer, ModelFailure> {
    let server = Server::start([Reply::Whole(streamed([stream.as_bytes()]))]).await;
    Conversation::new("go").ask(&model(&server)).await
}

/// The failure of a call to a server with this reply.
pub(crate) async fn failure_of(reply: Reply) -> ModelFailure {
    let server = Server::start([reply]).await;
    Conversation::new("go").ask(&model(&server)).await.unwrap_err()
}
