//! Reads an answer that passes through on its way to another client, with the readers that native agents use.

use std::collections::VecDeque;

use provost_event::{Block, Certainty, DeltaKind, ErrorClass, ModelFailure, ToolCall, Usage};
use provost_harness::DeltaSink;
use serde_json::{Value, json};

use crate::estimate::tokens_at_most;
use crate::failure::class_of;
use crate::provider::wire_of;
use crate::sse::Sse;
use crate::wire::{Progress, Reader};
use crate::{Deviations, ModelLimits, WireFormat};

/// Pieces of an answer aren't shown.
struct NoDeltas;

impl DeltaSink for NoDeltas {
    fn delta(&self, _: DeltaKind, _: &str) {}
}

/// What is known of an answer that has passed through.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedAnswer {
    /// The usage. Without a final report it is the larger of what was reported and a conservative estimate, and marked as
    /// estimated.
    pub usage: Usage,
    /// The tools that the model asked for; empty if the answer is incomplete.
    pub calls: Vec<ToolCall>,
    /// Why there is no complete answer.
    pub failure: Option<ModelFailure>,
}

/// Observes one answer, as a stream of events or as a whole.
pub struct StreamObserver {
    wire: WireFormat,
    reader: Box<dyn Reader>,
    sse: Sse,
    ready: VecDeque<String>,
    failure: Option<ModelFailure>,
    is_said: bool,
    is_done: bool,
}

impl StreamObserver {
    /// The observer of an answer in this wire format.
    #[must_use]
    pub fn new(wire: WireFormat) -> Self {
        let reader = wire_of(wire, (String::new(), None), Deviations::default()).reader(0, &NoDeltas);
        Self {
            wire,
            reader,
            sse: Sse::new(ModelLimits::default().event_bytes_max),
            ready: VecDeque::new(),
            failure: None,
            is_said: false,
            is_done: false,
        }
    }

    /// The next bytes of a stream of events.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.failure.is_some() || self.is_done {
            return;
        }
        if let Err(error) = self.sse.push(bytes, &mut self.ready) {
            self.failure = Some(ModelFailure::new(ErrorClass::MalformedResponse, error.to_string()));
            return;
        }
        while let Some(data) = self.ready.pop_front() {
            self.take(&data);
        }
    }

    /// The whole of an answer that isn't a stream.
    pub fn whole(&mut self, body: &str) {
        let Ok(answer) = serde_json::from_str::<Value>(body) else {
            let message = "the answer isn't JSON";
            self.failure = Some(ModelFailure::new(ErrorClass::MalformedResponse, message));
            return;
        };
        for event in events_of(self.wire, answer) {
            self.take(&event);
        }
    }

    /// Whether the answer is complete, though its usage may still follow.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.is_said || self.is_done
    }

    fn take(&mut self, data: &str) {
        match self.reader.take(data) {
            Ok(Progress::Nothing | Progress::Token) => {}
            Ok(Progress::Said) => self.is_said = true,
            Ok(Progress::Done) => (self.is_said, self.is_done) = (true, true),
            Err(_) if self.is_said => {}
            Err(failure) => self.failure = Some(failure),
        }
    }

    /// What was observed; `request_tokens` is the conservative estimate of the request. `is_cut` tells that the stream was
    /// broken off.
    #[must_use]
    pub fn finish(mut self, request_tokens: u64) -> ObservedAnswer {
        let written = self.reader.written_bytes();
        let reported = self.reader.usage();
        let is_complete = self.is_complete();
        let has_report = reported.prompt_tokens() > 0 && (reported.output_tokens > 0 || written == 0);
        let usage = match is_complete && has_report {
            true => reported,
            false => estimated(reported, request_tokens, written),
        };
        let failure = self.failure.or_else(|| {
            let message = "the stream ended before the answer did";
            (!is_complete).then(|| ModelFailure::new(ErrorClass::Cut, message))
        });
        let answer = if failure.is_none() { self.reader.finish("").ok() } else { None };
        let blocks = answer.map(|answer| answer.content).unwrap_or_default();
        let calls = blocks.into_iter().filter_map(|block| match block {
            Block::ToolCall(call) => Some(call),
            _ => None,
        });
        ObservedAnswer { usage, calls: calls.collect(), failure }
    }
}

/// A provider's error for a request that it didn't answer, in the common form.
#[must_use]
pub fn observed_error(wire: WireFormat, status: u16, body: &str) -> ModelFailure {
    let read = wire_of(wire, (String::new(), None), Deviations::default()).read_error();
    let said = read(body).unwrap_or_default();
    let message = if said.message.is_empty() { format!("HTTP {status}") } else { said.message };
    ModelFailure {
        status: Some(status),
        request_id: said.request_id,
        ..ModelFailure::new(class_of(status, said.class), message)
    }
}

/// The larger of what was reported and what may have been taken.
fn estimated(reported: Usage, request_tokens: u64, written_bytes: usize) -> Usage {
    let mut usage = reported;
    if usage.prompt_tokens() == 0 {
        usage.input_tokens = request_tokens;
    }
    usage.output_tokens = usage.output_tokens.max(tokens_at_most(written_bytes));
    usage.certainty = Certainty::Estimated;
    usage
}

/// The events of a stream that would give the same answer.
fn events_of(wire: WireFormat, mut answer: Value) -> Vec<String> {
    match wire {
        WireFormat::Gemini => vec![answer.to_string()],
        WireFormat::OpenaiResponses => {
            let kind = match answer.get("status").and_then(Value::as_str) {
                Some("failed") => "response.failed",
                Some("incomplete") => "response.incomplete",
                _ => "response.completed",
            };
            vec![json!({"type": kind, "response": answer}).to_string()]
        }
        WireFormat::OpenaiChat => {
            for choice in answer.get_mut("choices").and_then(Value::as_array_mut).into_iter().flatten() {
                let message = choice.get_mut("message").map(Value::take).unwrap_or_default();
                if let Some(choice) = choice.as_object_mut() {
                    choice.insert("delta".to_owned(), indexed(message));
                }
            }
            vec![answer.to_string(), "[DONE]".to_owned()]
        }
        WireFormat::Anthropic => anthropic_events(&mut answer).iter().map(Value::to_string).collect(),
    }
}

/// Streams number the tool calls of a message.
fn indexed(mut message: Value) -> Value {
    let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
    for (index, call) in calls.into_iter().flatten().enumerate() {
        if let Some(call) = call.as_object_mut() {
            call.entry("index").or_insert_with(|| json!(index));
        }
    }
    message
}

fn anthropic_events(answer: &mut Value) -> Vec<Value> {
    let content = answer.get_mut("content").map(Value::take);
    let blocks = content.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
    let stop = answer.get("stop_reason").cloned().unwrap_or_default();
    let usage = answer.get("usage").cloned().unwrap_or_default();
    let mut events = vec![json!({"type": "message_start", "message": answer})];
    for (index, block) in blocks.into_iter().enumerate() {
        events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": usage}));
    events.push(json!({"type": "message_stop"}));
    events
}
