//! The script's YAML format.

use std::fmt;
use std::marker::PhantomData;

use provost_event::{ErrorClass, StopReason};
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Unexpected, Visitor};
use serde_json::Value;
use serde_saphyr::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawScript {
    pub(super) model: Option<String>,
    pub(super) window_tokens: Option<Spanned<u64>>,
    pub(super) output_tokens_max: Option<Spanned<u32>>,
    pub(super) delay_ms: Option<Spanned<u64>>,
    pub(super) chunk_delay_ms: Option<Spanned<u64>>,
    pub(super) answers: Option<Vec<Spanned<RawEntry>>>,
    pub(super) summaries: Option<Vec<Spanned<RawEntry>>>,
    pub(super) final_summary: Option<Spanned<RawEntry>>,
    pub(super) verdicts: Option<Vec<Spanned<RawVerdict>>>,
    pub(super) hooks: Option<Vec<Spanned<RawEntry>>>,
    pub(super) agents: Option<Vec<Spanned<RawAgent>>>,
}

/// The lines of sub-agents with such a goal.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawAgent {
    pub(super) goal: Spanned<String>,
    pub(super) answers: Option<Vec<Spanned<RawEntry>>>,
    pub(super) summaries: Option<Vec<Spanned<RawEntry>>>,
    pub(super) final_summary: Option<Spanned<RawEntry>>,
    pub(super) verdicts: Option<Vec<Spanned<RawVerdict>>>,
    pub(super) hooks: Option<Vec<Spanned<RawEntry>>>,
}

/// An answer or a fault.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawEntry {
    pub(super) expect: Option<RawExpect>,
    pub(super) fault: Option<Spanned<RawFault>>,
    pub(super) text: Option<OneOrMany<String>>,
    pub(super) thinking: Option<OneOrMany<String>>,
    pub(super) tools: Option<Vec<Spanned<RawCall>>>,
    pub(super) usage: Option<RawUsage>,
    pub(super) delay_ms: Option<Spanned<u64>>,
    pub(super) chunk_delay_ms: Option<Spanned<u64>>,
    pub(super) stop: Option<Spanned<StopReason>>,
}

/// A judge's answer, or a fault.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawVerdict {
    pub(super) expect: Option<RawExpect>,
    pub(super) fault: Option<Spanned<RawFault>>,
    pub(super) text: Option<OneOrMany<String>>,
    pub(super) thinking: Option<OneOrMany<String>>,
    pub(super) achieved: Option<bool>,
    pub(super) confidence: Option<Spanned<f64>>,
    pub(super) reasoning: Option<String>,
    pub(super) suggestions: Option<OneOrMany<String>>,
    pub(super) usage: Option<RawUsage>,
    pub(super) delay_ms: Option<Spanned<u64>>,
    pub(super) chunk_delay_ms: Option<Spanned<u64>>,
    pub(super) stop: Option<Spanned<StopReason>>,
}

/// Its fields of a verdict.
pub(super) struct RawSaid {
    pub(super) achieved: Option<bool>,
    pub(super) confidence: Option<Spanned<f64>>,
    pub(super) reasoning: Option<String>,
    pub(super) suggestions: Option<OneOrMany<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawExpect {
    pub(super) turn: Option<u32>,
    pub(super) messages: Option<usize>,
    pub(super) contains: Option<OneOrMany<String>>,
    pub(super) not_contains: Option<OneOrMany<String>>,
    pub(super) system: Option<OneOrMany<String>>,
    pub(super) offers: Option<OneOrMany<String>>,
    pub(super) tool_result: Option<OneOrMany<RawResult>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawResult {
    pub(super) tool: Option<String>,
    pub(super) is_error: Option<bool>,
    pub(super) contains: Option<OneOrMany<String>>,
    pub(super) not_contains: Option<OneOrMany<String>>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawUsage {
    pub(super) input: Option<u64>,
    pub(super) output: Option<u64>,
    pub(super) cache_read: Option<u64>,
    pub(super) cache_write: Option<u64>,
}

/// A fault: its kind alone, or its fields.
pub(super) struct RawFault(pub(super) RawFaultFields);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFaultFields {
    pub(super) class: FaultClass,
    pub(super) status: Option<u16>,
    pub(super) message: Option<String>,
    pub(super) request_id: Option<String>,
    pub(super) retry_after_ms: Option<u64>,
    pub(super) usage: Option<RawUsage>,
    pub(super) text: Option<OneOrMany<String>>,
    pub(super) delay_ms: Option<u64>,
    pub(super) chunk_delay_ms: Option<u64>,
}

/// The faults of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FaultClass {
    Transport,
    Cut,
    Stalled,
    Silent,
    RateLimited,
    QuotaUsedUp,
    Overloaded,
    Server,
    MalformedResponse,
    InvalidRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    ContextTooLong,
    Empty,
}

impl FaultClass {
    /// The failure's class, or `None` for an empty answer, which is no failure; and its HTTP status.
    pub(super) const fn failure(self) -> (Option<ErrorClass>, Option<u16>) {
        match self {
            Self::Transport => (Some(ErrorClass::Transport), None),
            Self::Cut => (Some(ErrorClass::Cut), None),
            Self::Stalled => (Some(ErrorClass::Stalled), None),
            Self::Silent => (Some(ErrorClass::Silent), None),
            Self::QuotaUsedUp => (Some(ErrorClass::QuotaUsedUp), Some(429)),
            Self::RateLimited => (Some(ErrorClass::RateLimited), Some(429)),
            Self::Overloaded => (Some(ErrorClass::Overloaded), Some(529)),
            Self::Server => (Some(ErrorClass::Server), Some(500)),
            Self::MalformedResponse => (Some(ErrorClass::MalformedResponse), None),
            Self::InvalidRequest => (Some(ErrorClass::InvalidRequest), Some(400)),
            Self::Unauthorized => (Some(ErrorClass::Unauthorized), Some(401)),
            Self::Forbidden => (Some(ErrorClass::Forbidden), Some(403)),
            Self::NotFound => (Some(ErrorClass::NotFound), Some(404)),
            Self::ContextTooLong => (Some(ErrorClass::ContextTooLong), Some(400)),
            Self::Empty => (None, None),
        }
    }
}

impl<'de> Deserialize<'de> for RawFault {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form;
        impl<'de> Visitor<'de> for Form {
            type Value = RawFault;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a kind of fault such as `overloaded`, or a mapping with `class`")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<RawFault, E> {
                let class = FaultClass::deserialize(StrDeserializer::new(text))?;
                Ok(RawFault(RawFaultFields {
                    class,
                    status: None,
                    message: None,
                    request_id: None,
                    retry_after_ms: None,
                    usage: None,
                    text: None,
                    delay_ms: None,
                    chunk_delay_ms: None,
                }))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RawFault, A::Error> {
                RawFaultFields::deserialize(MapAccessDeserializer::new(map)).map(RawFault)
            }
        }
        deserializer.deserialize_any(Form)
    }
}

/// A tool call: `NAME: {arguments}`, `NAME` alone, or a mapping with `name`.
pub(super) struct RawCall {
    pub(super) name: String,
    pub(super) input: Value,
    pub(super) id: Option<String>,
    pub(super) malformed: Option<String>,
}

impl RawCall {
    const fn new(name: String, input: Value) -> Self {
        Self { name, input, id: None, malformed: None }
    }

    fn from_fields<E: Error>(fields: Vec<(String, Value)>) -> Result<Self, E> {
        let is_long = fields.iter().any(|(key, value)| key == "name" && value.is_string());
        if !is_long {
            return match <[_; 1]>::try_from(fields) {
                Ok([(name, input)]) => Ok(Self::new(name, input)),
                Err(_) => Err(E::custom("a tool call is `NAME: {arguments}`, or a mapping with `name`")),
            };
        }
        let mut call = Self::new(String::new(), Value::Null);
        for (key, value) in fields {
            match (key.as_str(), value) {
                ("name", Value::String(name)) => call.name = name,
                ("id", Value::String(id)) => call.id = Some(id),
                ("malformed", Value::String(text)) => call.malformed = Some(text),
                ("input", input) => call.input = input,
                ("id" | "malformed", _) => {
                    return Err(E::custom(format!("`{key}` of a tool call is a text")));
                }
                _ => return Err(E::unknown_field(&key, &["name", "input", "id", "malformed"])),
            }
        }
        Ok(call)
    }
}

impl<'de> Deserialize<'de> for RawCall {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form;
        impl<'de> Visitor<'de> for Form {
            type Value = RawCall;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a tool call such as `shell: {command: ls}`")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<RawCall, E> {
                Ok(RawCall::new(text.to_owned(), Value::Null))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawCall, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                RawCall::from_fields(fields)
            }
        }
        deserializer.deserialize_any(Form)
    }
}

/// A value that may stand alone instead of a list.
pub(super) trait One: Sized {
    /// A description of the expected value.
    const WANTED: &'static str;

    /// The value of a text, if a text is allowed.
    fn of_text(text: &str) -> Option<Self>;
}

impl One for String {
    const WANTED: &'static str = "a text or a list of texts";

    fn of_text(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }
}

impl One for RawResult {
    const WANTED: &'static str = "a mapping or a list of mappings";

    fn of_text(_: &str) -> Option<Self> {
        None
    }
}

/// One, or a list of them.
pub(super) struct OneOrMany<T>(pub(super) Vec<T>);

impl<'de, T: Deserialize<'de> + One> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de> + One> Visitor<'de> for Form<T> {
            type Value = OneOrMany<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(T::WANTED)
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                let one = T::of_text(text).ok_or_else(|| E::invalid_type(Unexpected::Str(text), &self))?;
                Ok(OneOrMany(vec![one]))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|one| OneOrMany(vec![one]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut many = Vec::new();
                while let Some(one) = seq.next_element()? {
                    many.push(one);
                }
                Ok(OneOrMany(many))
            }
        }
        deserializer.deserialize_any(Form(PhantomData))
    }
}
