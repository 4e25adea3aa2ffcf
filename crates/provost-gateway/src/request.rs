//! What a request to a model asks for: whether it can be bounded, its cap, and the same request with a lower one.

mod bounds;
mod cap;

use provost_llm::{Deviations, OutputCapField, WireFormat};
use serde_json::Value;

use crate::estimate::request_tokens;
use crate::json::{Members, edited};
use crate::refusal::Refusal;
use cap::CapRule;

/// The most answers that one request may ask for.
const COPIES_MAX: u32 = 16;

/// A request that can be bounded.
#[derive(Debug)]
pub(crate) struct ModelRequest {
    pub(crate) wire: WireFormat,
    pub(crate) model: String,
    /// Whether a stream of events is asked for.
    pub(crate) streams: bool,
    /// The cap of one answer, if the request has one.
    pub(crate) output_tokens_max: Option<u32>,
    /// The number of answers.
    pub(crate) copies: u32,
    pub(crate) input_tokens: u64,
    /// Whether the program itself asks for the usage of its stream.
    asks_for_usage: bool,
    body: String,
}

/// The request to forward.
pub(crate) struct Forwarded {
    pub(crate) body: String,
    /// Whether the usage in the answer's stream was asked for by the gateway, and is to be hidden.
    pub(crate) hides_usage: bool,
}

/// What is known of the request besides its body.
pub(crate) struct RequestPath {
    pub(crate) wire: WireFormat,
    pub(crate) model: Option<String>,
    pub(crate) streams: bool,
}

impl ModelRequest {
    /// Reads a request's body.
    ///
    /// # Errors
    /// If it isn't a request of this wire format, or can't be bounded.
    pub(crate) fn read(path: RequestPath, body: Vec<u8>) -> Result<Self, Refusal> {
        let bad = |error: &dyn std::fmt::Display| Refusal::bad(format!("the request can't be read: {error}"));
        let body = String::from_utf8(body).map_err(|error| bad(&error))?;
        let value = serde_json::from_str::<Value>(&body).map_err(|error| bad(&error))?;
        let members = Members::of(&body).map_err(|error| bad(&error))?;
        bounds::check(path.wire, &value)?;
        let own = value.get("model").and_then(Value::as_str).map(str::to_owned);
        let model = path.model.or(own).ok_or_else(|| Refusal::bad("the request names no model"))?;
        let rule = CapRule::of(path.wire, OutputCapField::default());
        let output_tokens_max = rule.cap(&members).map_err(|error| bad(&error))?;
        let copies = copies(path.wire, &value)?;
        let flag = |name: &str| value.pointer(name).and_then(Value::as_bool).unwrap_or_default();
        let streams = path.streams || flag("/stream");
        let asks_for_usage = flag("/stream_options/include_usage");
        let input_tokens = request_tokens(body.len(), &value);
        Ok(Self {
            wire: path.wire,
            model,
            streams,
            output_tokens_max,
            copies,
            input_tokens,
            asks_for_usage,
            body,
        })
    }

    /// The model without the collection that Gemini's API names it in.
    pub(crate) fn model_name(&self) -> &str {
        self.model.trim_start_matches("models/")
    }

    /// The body as it came.
    pub(crate) fn body(&self) -> &str {
        &self.body
    }

    /// The request with an output cap of `granted` tokens for all its answers together. A request whose own cap, or whose
    /// model's, is no higher stays as it is: `needs_cap` says whether neither is known.
    pub(crate) fn capped(&self, granted: u32, needs_cap: bool, deviations: Deviations) -> Forwarded {
        let Ok(members) = Members::of(&self.body) else {
            return Forwarded { body: self.body.clone(), hides_usage: false };
        };
        let each = (granted / self.copies.max(1)).max(1);
        let is_lower = self.output_tokens_max.map_or(needs_cap, |own| each < own);
        let mut edits = Vec::new();
        if is_lower {
            edits.extend(CapRule::of(self.wire, deviations.output_cap).lowered(&members, each));
        }
        let hides_usage = self.wire == WireFormat::OpenaiChat
            && self.streams
            && !self.asks_for_usage
            && !deviations.no_stream_options;
        if hides_usage {
            edits.extend(with_usage(&members));
        }
        Forwarded { body: edited(&self.body, edits), hides_usage }
    }
}

/// The stream option that asks for usage, beside others that the program sets.
fn with_usage(members: &Members<'_>) -> Option<crate::json::Edit> {
    const OPTIONS: &str = "stream_options";
    let Some(options) = members.get(OPTIONS).filter(|options| options.trim_start().starts_with('{')) else {
        return Some(members.set(OPTIONS, r#"{"include_usage":true}"#));
    };
    let inner = Members::of(options).ok()?;
    Some(inner.set("include_usage", "true").within(members.place(options)))
}

/// The number of answers that the request asks for. A server may read any number or text there as one.
fn copies(wire: WireFormat, value: &Value) -> Result<u32, Refusal> {
    let names: &[&str] = match wire {
        WireFormat::Gemini => &["/generationConfig/candidateCount", "/generation_config/candidate_count"],
        _ => &["/n", "/best_of"],
    };
    let mut copies = 1;
    for asked in names.iter().filter_map(|name| value.pointer(name)).filter(|asked| !asked.is_null()) {
        let number = asked.as_u64().and_then(|number| u32::try_from(number).ok());
        match number {
            Some(number) if number <= COPIES_MAX => copies = copies.max(number),
            _ => {
                let message = format!(
                    "the number of answers is a whole number of at most {COPIES_MAX}, and not {asked}"
                );
                return Err(Refusal::bad(message));
            }
        }
    }
    Ok(copies)
}
