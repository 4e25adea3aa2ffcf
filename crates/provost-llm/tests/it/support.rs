//! Requests, delta sinks and models for tests.

use std::sync::{Arc, Mutex};

use provost_engine::Answer;
use provost_event::{
    Access, Block, CallId, DeltaKind, Effort, Json, ModelFailure, Purpose, RunId, SessionId, Timestamp,
    ToolSpec, ToolSubject,
};
use provost_harness::{
    Clock, DeltaSink, ImageData, Message, Model, ModelRequest, Part, Role, SimulatedClock, SystemClock,
    ToolChoice,
};
use provost_llm::{ModelLimits, Provider, ProviderModel, ProviderOptions, WireFormat};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::server::{DEADLINE, Server};

pub(crate) const KEY: &str = "sk-ant-secret-0123456789";
/// The default model.
pub(crate) const MODEL: &str = "a-model";

/// A session's conversation, with everything a request needs.
pub(crate) struct Conversation {
    pub(crate) session: SessionId,
    pub(crate) turn: u32,
    pub(crate) purpose: Purpose,
    pub(crate) answers_before: u32,
    pub(crate) summaries_before: u32,
    pub(crate) system: String,
    pub(crate) tools: Arc<[ToolSpec]>,
    pub(crate) messages: Vec<Arc<Message>>,
    pub(crate) output_tokens_max: u32,
    pub(crate) effort: Option<Effort>,
    pub(crate) tool_choice: ToolChoice,
}

impl Conversation {
    pub(crate) fn new(goal: &str) -> Self {
        let mut conversation = Self {
            session: SessionId::root(RunId::from_entropy(7)),
            turn: 1,
            purpose: Purpose::Turn,
            answers_before: 0,
            summaries_before: 0,
            system: "You are careful.".to_owned(),
            tools: vec![tool("search"), tool("shell")].into(),
            messages: Vec::new(),
            output_tokens_max: 1024,
            effort: None,
            tool_choice: ToolChoice::Auto,
        };
        conversation.say(goal);
        conversation
    }

    /// The request to a judge after this many earlier calls.
    pub(crate) fn to_judge(question: &str, asked_before: u32) -> Self {
        Self {
            purpose: Purpose::Judge,
            answers_before: asked_before,
            tools: Vec::new().into(),
            tool_choice: ToolChoice::None,
            ..Self::new(question)
        }
    }

    pub(crate) fn request(&self) -> ModelRequest<'_> {
        ModelRequest {
            session: self.session,
            turn: self.turn,
            purpose: self.purpose,
            answers_before: self.answers_before,
            summaries_before: self.summaries_before,
            system: &self.system,
            tools: &self.tools,
            messages: &self.messages,
            output_tokens_max: self.output_tokens_max,
            effort: self.effort,
            patience: 1,
            tool_choice: self.tool_choice,
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
        in_time(model.answer(self.request(), &DeltaRecorder::default(), &CancellationToken::new())).await
    }
}

/// The result of `future`, which must finish soon.
pub(crate) async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future).await.expect("in time")
}

pub(crate) fn result(call: &CallId, tool: &str, output: &str, is_error: bool) -> Part {
    Part::ToolResult {
        call: call.clone(),
        tool: tool.to_owned(),
        output: output.to_owned(),
        images: Vec::new(),
        is_error,
    }
}

/// A picture with only a valid signature.
pub(crate) fn image() -> ImageData {
    ImageData::new(b"GIF89a.".as_slice()).unwrap()
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
        subject: ToolSubject::Opaque,
        aliases: Vec::new(),
        forms: Vec::new(),
        freeform: None,
        summary_field: None,
        idempotent: true,
        timeout_ms: 1000,
        output_bytes_max: 1000,
    }
}

/// Records the deltas.
#[derive(Default)]
pub(crate) struct DeltaRecorder {
    pieces: Mutex<Vec<(DeltaKind, String)>>,
    news: Notify,
}

impl DeltaSink for DeltaRecorder {
    fn delta(&self, kind: DeltaKind, text: &str) {
        self.pieces.lock().unwrap().push((kind, text.to_owned()));
        self.news.notify_one();
    }
}

impl DeltaRecorder {
    pub(crate) fn pieces(&self) -> Vec<(DeltaKind, String)> {
        self.pieces.lock().unwrap().clone()
    }

    pub(crate) fn text(&self, wanted: DeltaKind) -> String {
        self.pieces().into_iter().filter(|(kind, _)| *kind == wanted).map(|(_, text)| text).collect()
    }

    /// Waits until the first piece has arrived.
    pub(crate) async fn until_first(&self) {
        while self.pieces().is_empty() {
            self.news.notified().await;
        }
    }
}

/// The options for a provider at `base_url` with the format `wire`.
pub(crate) fn options(wire: WireFormat, base_url: impl Into<String>) -> ProviderOptions {
    ProviderOptions {
        provider: Provider::new(wire.name(), wire, base_url),
        model: MODEL.to_owned(),
        key: Some(KEY.into()),
        reasoning: None,
        limits: ModelLimits::default(),
        clock: Arc::new(SystemClock),
    }
}

pub(crate) fn model(wire: WireFormat, server: &Server) -> ProviderModel {
    ProviderModel::new(options(wire, server.url())).unwrap()
}

/// A clock that stands still, as the handle that moves it and as the clock that is read.
pub(crate) fn still_clock() -> (Arc<SimulatedClock>, Arc<dyn Clock>) {
    // Sun, 06 Nov 1994 08:49:37 GMT
    let clock = Arc::new(SimulatedClock::at(Timestamp(784_111_777_000)));
    (Arc::clone(&clock), clock)
}
