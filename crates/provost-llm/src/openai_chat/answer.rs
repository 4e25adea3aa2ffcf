//! Assembles an answer from the events of its stream.

use provost_engine::Answer;
use provost_event::{DeltaKind, ErrorClass, ModelFailure, StopReason, Usage};
use provost_harness::DeltaSink;
use serde_json::Value;

use super::WIRE;
use super::call::{Call, CallPiece};
use super::detail::Details;
use super::error::{failed_call, failure_of};
use super::event::{WireChoice, WireDelta, parse, says_something, text};
use super::usage::Counts;
use crate::piece::{Facts, Piece, assemble};
use crate::stream::malformed;
use crate::wire::{Progress, Reader};

/// The end marker of the stream, if it has one.
const END: &str = "[DONE]";

/// A part of the answer, in order of their beginnings.
enum Part {
    Text(String),
    Thinking(String),
    Call(Call),
}

/// An unfinished answer.
pub(super) struct ChatReader<'a> {
    deltas: &'a dyn DeltaSink,
    model: Option<String>,
    counts: Counts,
    parts: Vec<Part>,
    /// The provider's seals of all the answer's reasoning.
    details: Details,
    stop: Option<String>,
    is_refused: bool,
    /// Events with a piece of the first choice.
    events: u64,
    answers_before: u32,
}

impl Reader for ChatReader<'_> {
    fn take(&mut self, data: &str) -> Result<Progress, ModelFailure> {
        if data.trim() == END {
            return self.end();
        }
        if data.trim().is_empty() {
            return Ok(Progress::Nothing);
        }
        let chunk = parse(data)?;
        let groq = chunk.x_groq.as_ref();
        let reports = [chunk.usage.as_ref(), groq.and_then(|groq| groq.get("usage"))];
        reports.into_iter().flatten().for_each(|report| self.counts.add(report));
        if chunk.is_error() || groq.and_then(|groq| groq.get("error")).is_some_and(says_something) {
            return match failed_call(data) {
                Some(written) => Ok(self.call_failed(&written)),
                None => Err(failure_of(data)),
            };
        }
        self.model = self.model.take().or_else(|| Some(text(chunk.model)).filter(|name| !name.is_empty()));
        let choices = chunk.choices.unwrap_or_default();
        if choices.is_empty() && self.stop.is_some() && chunk.usage.is_some() {
            return Ok(Progress::Done);
        }
        // The request is for one choice.
        match choices
            .into_iter()
            .find(|choice| choice.index.as_ref().and_then(Value::as_u64).unwrap_or(0) == 0)
        {
            Some(choice) => self.choice(choice),
            None => Ok(Progress::Nothing),
        }
    }

    fn usage(&self) -> Usage {
        self.counts.usage()
    }

    fn written_bytes(&self) -> usize {
        let bytes = |part: &Part| match part {
            Part::Text(text) | Part::Thinking(text) => text.len(),
            Part::Call(call) => call.written_bytes(),
        };
        self.parts.iter().map(bytes).sum()
    }

    fn finish(&mut self, asked: &str) -> Result<Answer, ModelFailure> {
        let said = self.stop.as_deref().ok_or_else(|| malformed("the answer doesn't say why it stopped"))?;
        let stop = if self.is_refused { StopReason::Refusal } else { stop_reason(said) };
        if self.parts.iter().any(|part| matches!(part, Part::Call(call) if call.is_nameless())) {
            return Err(malformed("a tool call names no tool"));
        }
        let facts = Facts {
            wire: WIRE,
            usage: self.counts.usage(),
            model: self.model.take().unwrap_or_else(|| asked.to_owned()),
            stop,
            answers_before: self.answers_before,
        };
        let mut seal = self.details.seal();
        let piece = |part| match part {
            Part::Text(text) => Piece::Text(text),
            Part::Thinking(text) => Piece::Thinking { text, signature: std::mem::take(&mut seal) },
            Part::Call(call) => call.into(),
        };
        assemble(std::mem::take(&mut self.parts).into_iter().map(piece).collect(), facts)
    }
}

impl<'a> ChatReader<'a> {
    pub(super) fn new(deltas: &'a dyn DeltaSink, answers_before: u32) -> Self {
        Self {
            deltas,
            model: None,
            counts: Counts::default(),
            parts: Vec::new(),
            details: Details::default(),
            stop: None,
            is_refused: false,
            events: 0,
            answers_before,
        }
    }

    /// The stream has ended. Some servers never send a stop reason.
    fn end(&mut self) -> Result<Progress, ModelFailure> {
        if self.events == 0 && self.stop.is_none() {
            return Err(malformed("the stream ended without an answer"));
        }
        self.stop.get_or_insert_with(|| "stop".to_owned());
        Ok(Progress::Done)
    }

    /// The server couldn't parse the model's call, and reports its text: the answer ends with that call.
    fn call_failed(&mut self, written: &str) -> Progress {
        self.parts.push(Part::Call(Call::failed(written)));
        self.stop.get_or_insert_with(|| "tool_calls".to_owned());
        Progress::Done
    }

    fn choice(&mut self, choice: WireChoice<'_>) -> Result<Progress, ModelFailure> {
        self.events += 1;
        if let Some(error) = choice.error.filter(says_something) {
            return Err(failure_of(&error.to_string()));
        }
        if let Some(report) = &choice.usage {
            self.counts.add(report);
        }
        // A message beside deltas repeats them.
        let message = choice.message.filter(|_| self.parts.is_empty());
        let has_more = choice.delta.or(message).is_some_and(|delta| self.delta(delta));
        let said = text(choice.finish_reason);
        if !said.is_empty() && self.stop.is_none() {
            if let Some(failure) = broken_off(&said) {
                return Err(failure);
            }
            self.stop = Some(said);
            return Ok(Progress::Said);
        }
        Ok(if has_more { Progress::Token } else { Progress::Nothing })
    }

    /// Applies the next pieces; returns whether there were any.
    fn delta(&mut self, delta: WireDelta<'_>) -> bool {
        let size = |reading: &Self| (reading.parts.len(), reading.written_bytes());
        let before = size(self);
        let details = match delta.reasoning_details {
            Some(Value::Array(all)) => all,
            _ => Vec::new(),
        };
        let has_details = !details.is_empty();
        let in_details = details.into_iter().map(|detail| self.details.add(detail)).collect::<String>();
        // Some servers repeat the same text in several fields.
        let spoken = [text(delta.reasoning_content), text(delta.reasoning), in_details];
        let spoken = spoken.into_iter().find(|words| !words.is_empty()).unwrap_or_default();
        self.think(&spoken);
        if has_details && !self.parts.iter().any(|part| matches!(part, Part::Thinking(_))) {
            self.parts.push(Part::Thinking(String::new()));
        }
        self.content(delta.content);
        self.refuse(&text(delta.refusal));
        for call in delta.tool_calls.into_iter().flatten() {
            self.call(CallPiece::of(call.index, call.id, call.function));
        }
        if let Some(function) = delta.function_call {
            self.call(CallPiece::of(None, None, Some(function)));
        }
        before != size(self)
    }

    /// A text, or a list of parts, of which some may be reasoning (Mistral).
    fn content(&mut self, content: Option<Value>) {
        match content {
            Some(Value::String(text)) => self.say(&text),
            Some(Value::Array(parts)) => parts.into_iter().for_each(|part| self.content_part(part)),
            _ => {}
        }
    }

    fn content_part(&mut self, mut part: Value) {
        let words = |value: Value| match value {
            Value::Array(parts) => {
                parts.into_iter().map(|mut part| text(part.get_mut("text").map(Value::take))).collect()
            }
            value => text(Some(value)),
        };
        let mut take = |field: &str| part.get_mut(field).map(Value::take).map(words).unwrap_or_default();
        let (thinking, said, refusal) = (take("thinking"), take("text"), take("refusal"));
        self.think(&thinking);
        self.say(&said);
        self.refuse(&refusal);
    }

    fn refuse(&mut self, words: &str) {
        self.is_refused |= !words.is_empty();
        self.say(words);
    }

    fn say(&mut self, words: &str) {
        if words.is_empty() {
            return;
        }
        match self.parts.last_mut() {
            Some(Part::Text(text)) => text.push_str(words),
            _ => self.parts.push(Part::Text(words.to_owned())),
        }
        self.deltas.delta(DeltaKind::Text, words);
    }

    fn think(&mut self, words: &str) {
        if words.is_empty() {
            return;
        }
        match self.parts.last_mut() {
            Some(Part::Thinking(text)) => text.push_str(words),
            _ => self.parts.push(Part::Thinking(words.to_owned())),
        }
        self.deltas.delta(DeltaKind::Thinking, words);
    }

    fn call(&mut self, piece: CallPiece) {
        let event = self.events;
        let mut calls = self
            .parts
            .iter_mut()
            .filter_map(|part| match part {
                Part::Call(call) => Some(call),
                Part::Text(_) | Part::Thinking(_) => None,
            })
            .collect::<Vec<_>>();
        match Call::place(&calls, &piece, event).and_then(|place| calls.get_mut(place)) {
            Some(call) => call.grow(piece, event),
            None => self.parts.push(Part::Call(Call::begun(piece, event))),
        }
    }
}

/// A stop reason that means a failure.
fn broken_off(said: &str) -> Option<ModelFailure> {
    let (class, words) = match said {
        // OpenRouter; Zhipu.
        "error" | "network_error" => (ErrorClass::Server, "the provider failed in the middle of the answer"),
        // DeepSeek.
        "insufficient_system_resource" => {
            (ErrorClass::Overloaded, "the provider had no room to end the answer")
        }
        // vLLM and SGLang.
        "abort" => (ErrorClass::Cut, "the server aborted the answer"),
        _ => return None,
    };
    Some(ModelFailure::new(class, words))
}

/// A full window ends an answer like the cap; later the conversation is found to be too long.
fn stop_reason(said: &str) -> StopReason {
    match said.to_ascii_lowercase().as_str() {
        "tool_calls" | "function_call" | "tool_use" => StopReason::ToolUse,
        "length" | "max_tokens" | "model_length" | "model_context_window_exceeded" => StopReason::OutputCap,
        "content_filter" | "refusal" | "sensitive" | "safety" => StopReason::Refusal,
        _ => StopReason::EndTurn,
    }
}
