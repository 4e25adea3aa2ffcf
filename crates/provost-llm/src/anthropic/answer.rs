//! Assembles an answer from the events of its stream.

use provost_engine::Answer;
use provost_event::{DeltaKind, ErrorClass, ModelFailure, StopReason, Usage};
use provost_harness::DeltaSink;

use super::WIRE;
use super::event::{WireBlockStart, WireDelta, WireEvent, WireStopDetails, parse};
use crate::piece::{Facts, Piece, assemble};
use crate::stream::malformed;
use crate::wire::{Progress, Reader};

struct Slot {
    index: u64,
    piece: Piece,
}

/// An unfinished answer.
pub(super) struct AnthropicReader<'a> {
    deltas: &'a dyn DeltaSink,
    model: Option<String>,
    usage: Usage,
    slots: Vec<Slot>,
    stop: Option<String>,
    /// The provider's reason for a refusal.
    why: Option<String>,
    answers_before: u32,
}

impl Reader for AnthropicReader<'_> {
    fn take(&mut self, data: &str) -> Result<Progress, ModelFailure> {
        let Some(event) = parse(data)? else { return Ok(Progress::Nothing) };
        match event.r#type.as_ref() {
            "message_start" => {
                let message = event.message.ok_or_else(|| incomplete("message_start"))?;
                if let Some(usage) = message.usage {
                    usage.add_to(&mut self.usage);
                }
                self.model = message.model;
                Ok(Progress::Nothing)
            }
            "content_block_start" => self.start(&event),
            "content_block_delta" => self.grow(event),
            "message_delta" => {
                if let Some(usage) = &event.usage {
                    usage.add_to(&mut self.usage);
                }
                if let Some(delta) = event.delta {
                    self.stop = delta.stop_reason.or_else(|| self.stop.take());
                    self.why = delta.stop_details.map(WireStopDetails::words).or_else(|| self.why.take());
                }
                Ok(Progress::Token)
            }
            "message_stop" => Ok(Progress::Done),
            "error" => Err(failure(event)),
            _ => Ok(Progress::Nothing),
        }
    }

    fn usage(&self) -> Usage {
        self.usage
    }

    fn written_bytes(&self) -> usize {
        self.slots.iter().map(|slot| slot.piece.written_bytes()).sum()
    }

    fn finish(&mut self, asked: &str) -> Result<Answer, ModelFailure> {
        let said = self.stop.as_deref().ok_or_else(|| malformed("the answer doesn't say why it stopped"))?;
        let facts = Facts {
            wire: WIRE,
            usage: self.usage,
            model: self.model.take().unwrap_or_else(|| asked.to_owned()),
            stop: stop_reason(said),
            answers_before: self.answers_before,
        };
        let mut pieces =
            std::mem::take(&mut self.slots).into_iter().map(|slot| slot.piece).collect::<Vec<_>>();
        let why = self.why.take().filter(|why| facts.stop == StopReason::Refusal && !why.is_empty());
        pieces.extend(why.map(Piece::Text));
        assemble(pieces, facts)
    }
}

impl<'a> AnthropicReader<'a> {
    pub(super) fn new(deltas: &'a dyn DeltaSink, answers_before: u32) -> Self {
        Self {
            deltas,
            model: None,
            usage: Usage::default(),
            slots: Vec::new(),
            stop: None,
            why: None,
            answers_before,
        }
    }

    fn start(&mut self, event: &WireEvent<'_>) -> Result<Progress, ModelFailure> {
        let (Some(index), Some(block)) = (event.index, event.content_block) else {
            return Err(incomplete("content_block_start"));
        };
        if self.slots.iter().any(|slot| slot.index == index) {
            return Err(malformed(format!("block {index} begins twice")));
        }
        let start: WireBlockStart<'_> = serde_json::from_str(block.get())
            .map_err(|error| malformed(format!("block {index} can't be read: {error}")))?;
        let piece = match start.r#type.as_ref() {
            "text" => Piece::Text(start.text.unwrap_or_default()),
            "thinking" => Piece::Thinking {
                text: start.thinking.unwrap_or_default(),
                signature: start.signature.unwrap_or_default(),
            },
            "tool_use" => Piece::Call {
                id: start.id.filter(|id| !id.is_empty()).ok_or_else(|| incomplete("tool_use"))?,
                name: start.name.ok_or_else(|| incomplete("tool_use"))?,
                given: start.input.map(|input| input.get().to_owned()),
                written: String::new(),
            },
            _ => Piece::Opaque { json: block.get().to_owned() },
        };
        match &piece {
            Piece::Text(text) => self.tell(DeltaKind::Text, text),
            Piece::Thinking { text, .. } => self.tell(DeltaKind::Thinking, text),
            Piece::Call { .. } | Piece::Opaque { .. } => {}
        }
        self.slots.push(Slot { index, piece });
        Ok(Progress::Token)
    }

    fn grow(&mut self, event: WireEvent<'_>) -> Result<Progress, ModelFailure> {
        let (Some(index), Some(delta)) = (event.index, event.delta) else {
            return Err(incomplete("content_block_delta"));
        };
        let slot = self.slots.iter_mut().rfind(|slot| slot.index == index);
        let piece =
            &mut slot.ok_or_else(|| malformed(format!("block {index} goes on without a beginning")))?.piece;
        let WireDelta { r#type, text, thinking, signature, partial_json, .. } = delta;
        match (piece, r#type.as_deref().unwrap_or_default()) {
            (Piece::Text(all), "text_delta") => {
                let text = text.unwrap_or_default();
                all.push_str(&text);
                self.tell(DeltaKind::Text, &text);
            }
            (Piece::Thinking { text: all, .. }, "thinking_delta") => {
                let thinking = thinking.unwrap_or_default();
                all.push_str(&thinking);
                self.tell(DeltaKind::Thinking, &thinking);
            }
            (Piece::Thinking { signature: all, .. }, "signature_delta") => {
                all.push_str(&signature.unwrap_or_default());
            }
            (Piece::Call { written, .. }, "input_json_delta") => {
                written.push_str(&partial_json.unwrap_or_default());
            }
            (_, "text_delta" | "thinking_delta" | "signature_delta") => {
                return Err(malformed(format!("block {index} goes on as something else")));
            }
            // Citations, and unknown types: none of them has to be sent back.
            _ => {}
        }
        Ok(Progress::Token)
    }

    fn tell(&self, kind: DeltaKind, text: &str) {
        if !text.is_empty() {
            self.deltas.delta(kind, text);
        }
    }
}

/// A paused turn continues like one that was cut off; so does one that filled the window, which is then found to
/// be too long.
fn stop_reason(said: &str) -> StopReason {
    match said {
        "tool_use" => StopReason::ToolUse,
        "max_tokens" | "model_context_window_exceeded" | "pause_turn" => StopReason::OutputCap,
        "refusal" => StopReason::Refusal,
        _ => StopReason::EndTurn,
    }
}

fn incomplete(what: &str) -> ModelFailure {
    malformed(format!("an event of the stream lacks a part of its {what}"))
}

fn failure(event: WireEvent<'_>) -> ModelFailure {
    let Some(error) = event.error else { return incomplete("error") };
    let said = error.said(event.request_id);
    let mut failure = ModelFailure::new(said.class.unwrap_or(ErrorClass::Server), said.message);
    failure.request_id = said.request_id;
    failure
}
