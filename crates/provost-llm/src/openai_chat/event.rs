//! The events of the stream on the wire. Servers differ in the types of small fields, so these accept any value;
//! unknown fields are ignored.

use provost_event::ModelFailure;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::stream::malformed;

/// An event: a piece of the answer, its usage, or an error.
#[derive(Deserialize)]
pub(super) struct WireChunk<'a> {
    object: Option<Value>,
    pub(super) model: Option<Value>,
    #[serde(borrow)]
    pub(super) choices: Option<Vec<WireChoice<'a>>>,
    pub(super) usage: Option<Value>,
    /// Groq's own reports.
    pub(super) x_groq: Option<Value>,
    error: Option<Value>,
    message: Option<Value>,
    detail: Option<Value>,
}

impl WireChunk<'_> {
    /// Whether it is an error. Some servers have an `error` without content in every event.
    pub(super) fn is_error(&self) -> bool {
        let has_none = self.choices.is_none();
        self.error.as_ref().is_some_and(says_something)
            || self.object.as_ref().is_some_and(|object| object == "error")
            || has_none && (self.message.is_some() || self.detail.is_some())
    }
}

#[derive(Deserialize)]
pub(super) struct WireChoice<'a> {
    pub(super) index: Option<Value>,
    #[serde(borrow)]
    pub(super) delta: Option<WireDelta<'a>>,
    /// The whole answer, from servers that don't stream.
    #[serde(borrow)]
    pub(super) message: Option<WireDelta<'a>>,
    pub(super) finish_reason: Option<Value>,
    /// Moonshot's position of the usage.
    pub(super) usage: Option<Value>,
    pub(super) error: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct WireDelta<'a> {
    pub(super) content: Option<Value>,
    pub(super) reasoning_content: Option<Value>,
    pub(super) reasoning: Option<Value>,
    pub(super) reasoning_details: Option<Value>,
    pub(super) refusal: Option<Value>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<Vec<WireCall<'a>>>,
    /// The single call of the API before it supported several.
    #[serde(borrow)]
    pub(super) function_call: Option<WireFunction<'a>>,
}

#[derive(Deserialize)]
pub(super) struct WireCall<'a> {
    pub(super) index: Option<Value>,
    pub(super) id: Option<Value>,
    #[serde(borrow)]
    pub(super) function: Option<WireFunction<'a>>,
}

#[derive(Deserialize)]
pub(super) struct WireFunction<'a> {
    pub(super) name: Option<Value>,
    /// A text that is JSON, or JSON itself.
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
}

/// Parses an event.
pub(super) fn parse(data: &str) -> Result<WireChunk<'_>, ModelFailure> {
    serde_json::from_str(data)
        .map_err(|error| malformed(format!("an event of the stream can't be read: {error}")))
}

/// The text in `value`; empty if it isn't a text.
pub(super) fn text(value: Option<Value>) -> String {
    match value {
        Some(Value::String(text)) => text,
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

/// Whether it has any content.
pub(super) fn says_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) => false,
        Value::Number(_) => true,
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(all) => !all.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}
