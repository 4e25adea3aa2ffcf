//! Simulated providers: a model's answer, independent of the wire format, becomes the provider's stream; and a
//! request's body becomes a list of messages.
//!
//! Written from the providers' public API documentation, and not from the tested code.

mod anthropic;
mod gemini;
mod openai_chat;
mod openai_responses;

use provost_event::{Block, Certainty, ErrorClass, StopReason, Usage};
use provost_llm::{Provider, WireFormat};
use serde_json::Value;

pub(crate) use anthropic::Anthropic;
pub(crate) use gemini::Gemini;
pub(crate) use openai_chat::OpenaiChat;
pub(crate) use openai_responses::OpenaiResponses;

/// The model's name in every stream.
pub(crate) const SPEAKING: &str = "model-as-released";

/// One per wire format.
pub(crate) const SPEAKERS: [&dyn Speaker; 4] = [&Anthropic, &OpenaiResponses, &OpenaiChat, &Gemini];

/// A model's answer: reasoning and its seal, then text, then calls.
#[derive(Debug, Clone)]
pub(crate) struct Spoken {
    pub(crate) thought: Option<Thought>,
    /// The pieces of the text; no text if there are none.
    pub(crate) text: Vec<String>,
    pub(crate) calls: Vec<Called>,
    pub(crate) usage: Usage,
    pub(crate) end: End,
}

#[derive(Debug, Clone)]
pub(crate) struct Thought {
    pub(crate) pieces: Vec<String>,
    pub(crate) seal: String,
}

#[derive(Debug, Clone)]
pub(crate) struct Called {
    pub(crate) id: String,
    pub(crate) name: String,
    /// The pieces of the arguments, together a JSON object.
    pub(crate) pieces: Vec<String>,
}

/// The stop reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum End {
    /// The answer is complete; with calls it waits for their results.
    #[default]
    Done,
    Cap,
    /// A refusal; the text explains it.
    Refused,
}

/// One event of a stream.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    /// Its text in the stream.
    pub(crate) text: String,
    /// The usage reported up to and including this event.
    pub(crate) usage: Usage,
    /// Bytes of the answer up to and including this event: reasoning, text, tools' names, arguments.
    pub(crate) written: usize,
    /// Whether the answer counts if the stream ends after it.
    pub(crate) is_said: bool,
}

/// Failures in the middle of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    Overloaded,
    RateLimited,
    InvalidRequest,
    TooLong,
}

impl Trouble {
    pub(crate) const ALL: [Self; 4] =
        [Self::Overloaded, Self::RateLimited, Self::InvalidRequest, Self::TooLong];

    /// The possible classes: not every provider distinguishes overload from other failures.
    pub(crate) const fn classes(self) -> &'static [ErrorClass] {
        match self {
            Self::Overloaded => &[ErrorClass::Overloaded, ErrorClass::Server],
            Self::RateLimited => &[ErrorClass::RateLimited],
            Self::InvalidRequest => &[ErrorClass::InvalidRequest],
            Self::TooLong => &[ErrorClass::ContextTooLong],
        }
    }
}

/// The content of a request, in order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Line {
    System(String),
    Person(String),
    /// The model's text.
    Said(String),
    Call {
        id: String,
        name: String,
        arguments: Value,
    },
    Result {
        id: String,
        output: String,
    },
    /// The seal of reasoning.
    Seal(String),
}

/// A simulated provider.
pub(crate) trait Speaker: Sync {
    fn wire(&self) -> WireFormat;

    /// The provider at `base_url`.
    fn provider(&self, base_url: &str) -> Provider {
        Provider::new(self.wire().name(), self.wire(), base_url)
    }

    /// The name of the request id's header, if it has one.
    fn request_id_header(&self) -> Option<&'static str>;

    /// The stream of an answer.
    fn events(&self, spoken: &Spoken) -> Vec<Event>;

    /// The stream's keep-alive.
    fn ping(&self) -> &'static str;

    /// An event with a text piece that can be repeated, once the first of `events` were sent.
    fn more_text(&self, text: &str) -> String;

    /// The number of events before the first piece of an answer with text only.
    fn before_text(&self) -> usize;

    /// An event that ends the stream with `trouble`.
    fn trouble(&self, trouble: Trouble, message: &str) -> String;

    /// The body of an error.
    fn refusal(&self, status: u16, message: &str) -> String;

    /// The error body for a request that exceeds the window.
    fn too_long(&self) -> String;

    /// The messages in a request.
    fn read(&self, body: &Value) -> Vec<Line>;

    /// Whether some of its models give calls no ids.
    fn names_no_calls(&self) -> bool {
        false
    }

    /// The part of `usage` that the provider reports.
    fn tells(&self, usage: Usage) -> Usage;
}

impl Default for Spoken {
    /// An empty answer, with usage.
    fn default() -> Self {
        Self { thought: None, text: Vec::new(), calls: Vec::new(), usage: usage(), end: End::Done }
    }
}

impl Spoken {
    /// A text in these pieces.
    pub(crate) fn text(pieces: &[&str]) -> Self {
        Self { text: owned(pieces), ..Self::default() }
    }

    /// All kinds of content.
    pub(crate) fn everything() -> Self {
        let call = |id: &str, name: &str, pieces: &[&str]| Called {
            id: id.to_owned(),
            name: name.to_owned(),
            pieces: owned(pieces),
        };
        Self {
            thought: Some(Thought { pieces: owned(&["Hm… ", "\"so\"\n"]), seal: "c2VhbA+/==".to_owned() }),
            text: owned(&["grüße ", "an\nalle 🦀"]),
            calls: vec![
                call("call_1", "search", &["{\"pattern\":\"fn ", "add\\n\",\"n\":1.50}"]),
                call("call_2", "shell", &["{\"command\"", ":\"ls\"}"]),
            ],
            ..Self::default()
        }
    }

    pub(crate) fn whole_text(&self) -> String {
        self.text.concat()
    }

    /// The stop reason of such an answer.
    pub(crate) const fn stop(&self) -> StopReason {
        match self.end {
            End::Cap => StopReason::OutputCap,
            End::Refused => StopReason::Refusal,
            End::Done if self.calls.is_empty() => StopReason::EndTurn,
            End::Done => StopReason::ToolUse,
        }
    }

    /// The blocks in the log, without seals.
    pub(crate) fn blocks(&self) -> Vec<Neutral> {
        let thought = self.thought.as_ref().map(|thought| Neutral::Thought(thought.pieces.concat()));
        let text = Some(Neutral::Text(self.whole_text()));
        let calls = self.calls.iter().map(|call| Neutral::Call {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments(),
        });
        let blocks = thought.into_iter().chain(text).chain(calls);
        blocks.filter(|block| !block.is_empty()).collect()
    }

    /// The lines that the next request must have.
    pub(crate) fn lines(&self) -> Vec<Line> {
        let text = Some(self.whole_text()).filter(|text| !text.is_empty()).map(Line::Said);
        let calls = self.calls.iter().map(|call| Line::Call {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: serde_json::from_str(&call.pieces.concat()).unwrap(),
        });
        text.into_iter().chain(calls).collect()
    }
}

impl Called {
    /// The arguments as written.
    pub(crate) fn arguments(&self) -> String {
        self.pieces.concat()
    }
}

/// A block without provider-specific parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Neutral {
    Thought(String),
    Text(String),
    Call { id: String, name: String, arguments: String },
}

impl Neutral {
    /// The content of `blocks`, without seals.
    pub(crate) fn of(blocks: &[Block]) -> Vec<Self> {
        let neutral = |block: &Block| match block {
            Block::Text(text) => Some(Self::Text(text.clone())),
            Block::Thinking { text, .. } => Some(Self::Thought(text.clone())),
            Block::ToolCall(call) => Some(Self::Call {
                id: call.id.0.to_string(),
                name: call.name.clone(),
                arguments: call.input.text().to_owned(),
            }),
            Block::Opaque { .. } => None,
            Block::Image(_) => panic!("an unexpected picture"),
        };
        blocks.iter().filter_map(neutral).filter(|block| !block.is_empty()).collect()
    }

    const fn is_empty(&self) -> bool {
        match self {
            Self::Thought(text) | Self::Text(text) => text.is_empty(),
            Self::Call { .. } => false,
        }
    }
}

/// Counts that differ in every kind of token.
pub(crate) const fn usage() -> Usage {
    Usage {
        input_tokens: 25,
        output_tokens: 4_000,
        cache_read_tokens: 2_000,
        cache_write_tokens: 100,
        reasoning_tokens: 300,
        certainty: Certainty::Reported,
    }
}

pub(crate) fn owned(pieces: &[&str]) -> Vec<String> {
    pieces.iter().map(|&piece| piece.to_owned()).collect()
}

/// The stream of these events.
pub(crate) fn stream(events: &[Event]) -> String {
    events.iter().map(|event| event.text.as_str()).collect()
}

/// Builds a stream, and counts the answer's bytes and reported usage.
#[derive(Default)]
struct Stream {
    events: Vec<Event>,
    usage: Usage,
    written: usize,
    is_said: bool,
}

impl Stream {
    /// Adds an event, with the given name if events have names here.
    fn push(&mut self, name: Option<&str>, data: &Value) {
        self.push_text(name, &data.to_string());
    }

    fn push_text(&mut self, name: Option<&str>, data: &str) {
        let name = name.map(|name| format!("event: {name}\n")).unwrap_or_default();
        let (usage, written, is_said) = (self.usage, self.written, self.is_said);
        self.events.push(Event { text: format!("{name}data: {data}\n\n"), usage, written, is_said });
    }
}

/// A text, where formats allow a text or a list of parts with texts.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
