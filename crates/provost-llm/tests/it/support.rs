//! Requests, listeners and models to test with.

use std::sync::{Arc, Mutex};

use provost_engine::Answer;
use provost_event::{
    Access, Block, CallId, DeltaKind, Json, ModelFailure, RunId, SessionId, Timestamp, ToolSpec,
};
use provost_harness::{
    Clock, DeltaSink, Message, Model, ModelRequest, Part, Role, SimulatedClock, SystemClock,
};
use provost_llm::{AnthropicModel, AnthropicOptions, ModelLimits};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::server::{Reply, Server};

pub(crate) const KEY: &str = "sk-ant-secret-0123456789";

/// A session's conversation, with everything a request needs.
pub(crate) struct Conversation {
    pub(crate) session: SessionId,
    pub(crate) turn: u32,
    pub(crate) answers_before: u32,
    pub(crate) system: String,
    pub(crate) tools: Arc<[ToolSpec]>,
    pub(crate) messages: Vec<Arc<Message>>,
    pub(crate) output_tokens_max: u32,
}

impl Conversation {
    pub(crate) fn new(goal: &str) -> Self {
        let mut conversation = Self {
            session: SessionId::root(RunId::from_entropy(7)),
            turn: 1,
            answers_before: 0,
            system: "You are careful.".to_owned(),
            tools: vec![tool("search"), tool("shell")].into(),
            messages: Vec::new(),
            output_tokens_max: 1024,
        };
        conversation.say(goal);
        conversation
    }

    pub(crate) fn request(&self) -> ModelRequest<'_> {
        ModelRequest {
            session: self.session,
            turn: self.turn,
            answers_before: self.answers_before,
            model: "claude-test",
            system: &self.system,
            tools: &self.tools,
            messages: &self.messages,
            output_tokens_max: self.output_tokens_max,
        }
    }

    pub(crate) fn push(&mut self, role: Role, parts: Vec<Part>) {
        self.messages.push(Arc::new(Message::new(role, parts)));
    }

    pub(crate) fn say(&mut self, text: &str) {
        self.push(Role::User, vec![Part::Block(Block::Text(text.to_owned()))]);
    }

    /// The answer is committed, and its tool calls have this result.
    pub(crate) fn answered(&mut self, answer: &Answer, output: &str) {
        self.push(Role::Assistant, answer.content.iter().cloned().map(Part::Block).collect());
        let call = |block: &Block| match block {
            Block::ToolCall(call) => Some(result(&call.id, &call.name, output, false)),
            _ => None,
        };
        let results = answer.content.iter().filter_map(call).collect::<Vec<_>>();
        if results.is_empty() {
            self.say(output)
        } else {
            self.push(Role::User, results)
        }
        self.turn += 1;
        self.answers_before += 1;
    }

    pub(crate) async fn ask(&self, model: &dyn Model) -> Result<Answer, ModelFailure> {
        model.answer(self.request(), &Heard::default(), &CancellationToken::new()).await
    }
}

pub(crate) fn result(call: &CallId, tool: &str, output: &str, is_error: bool) -> Part {
    Part::ToolResult { call: call.clone(), tool: tool.to_owned(), output: output.to_owned(), is_error }
}

pub(crate) fn tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: format!("Does {name}."),
        input_schema: Json::parse(
            r#"{"type":"object","properties":{"pattern":{"type":"string"}}}"#.to_owned(),
        )
        .unwrap(),
        access: Access::Reads,
        idempotent: true,
        timeout_ms: 1000,
        output_bytes_max: 1000,
    }
}

/// Hears the deltas.
#[derive(Default)]
pub(crate) struct Heard {
    pieces: Mutex<Vec<(DeltaKind, String)>>,
    news: Notify,
}

impl DeltaSink for Heard {
    fn delta(&self, kind: DeltaKind, text: &str) {
        self.pieces.lock().unwrap().push((kind, text.to_owned()));
        self.news.notify_one();
    }
}

impl Heard {
    pub(crate) fn pieces(&self) -> Vec<(DeltaKind, String)> {
        self.pieces.lock().unwrap().clone()
    }

    pub(crate) fn text(&self, wanted: DeltaKind) -> String {
        self.pieces().into_iter().filter(|(kind, _)| *kind == wanted).map(|(_, text)| text).collect()
    }

    /// Waits until the first piece was heard.
    pub(crate) async fn until_first(&self) {
        while self.pieces().is_empty() {
            self.news.notified().await;
        }
    }
}

pub(crate) fn options(server: &Server) -> AnthropicOptions {
    AnthropicOptions {
        base_url: server.url(),
        key: KEY.into(),
        limits: ModelLimits::default(),
        clock: Arc::new(SystemClock),
    }
}

pub(crate) fn model(server: &Server) -> AnthropicModel {
    AnthropicModel::new(options(server)).unwrap()
}

pub(crate) fn limited(server: &Server, limits: ModelLimits) -> AnthropicModel {
    AnthropicModel::new(AnthropicOptions { limits, ..options(server) }).unwrap()
}

/// A model by a clock that stands still, and the clock.
pub(crate) fn timed(server: &Server) -> (AnthropicModel, Arc<SimulatedClock>) {
    // Sun, 06 Nov 1994 08:49:37 GMT
    let clock = Arc::new(SimulatedClock::at(Timestamp(784_111_777_000)));
    let by_clock = Arc::clone(&clock) as Arc<dyn Clock>;
    (AnthropicModel::new(AnthropicOptions { clock: by_clock, ..options(server) }).unwrap(), clock)
}

/// Events as they stand in a stream.
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

/// How the only call to a server with this reply fails.
pub(crate) async fn failure_of(reply: Reply) -> ModelFailure {
    let server = Server::start([reply]).await;
    Conversation::new("go").ask(&model(&server)).await.unwrap_err()
}

/// The body of an error.
pub(crate) fn refusal(kind: &str, message: &str) -> String {
    json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_body"})
        .to_string()
}
