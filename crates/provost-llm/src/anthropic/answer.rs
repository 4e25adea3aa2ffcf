//! Puts an answer together from the events of its stream.

use provost_engine::Answer;
use provost_event::{Block, CallId, DeltaKind, ErrorClass, Json, ModelFailure, StopReason, ToolCall, Usage};
use provost_harness::DeltaSink;

use super::WIRE;
use super::event::{WireBlockStart, WireDelta, WireEvent, parse};
use crate::failure::shorten;
use crate::stream::nonsense;

/// Characters kept of arguments that are no JSON object.
const MALFORMED_CHARS_MAX: usize = 500;

/// What an event meant for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// A sign of life, or something before the first block.
    Nothing,
    /// A piece of the answer.
    Token,
    /// The answer is complete.
    Done,
}

/// A block while it is being written.
enum Piece {
    Text(String),
    Thinking { text: String, signature: String },
    Tool { id: String, name: String, given: Option<String>, written: String },
    Opaque { json: String },
}

struct Slot {
    index: u64,
    piece: Piece,
}

/// An answer while it is being written.
pub(super) struct Reading<'a> {
    deltas: &'a dyn DeltaSink,
    model: Option<String>,
    usage: Usage,
    slots: Vec<Slot>,
    stop: Option<String>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(deltas: &'a dyn DeltaSink) -> Self {
        Self { deltas, model: None, usage: Usage::default(), slots: Vec::new(), stop: None }
    }

    /// What the provider has reported as used so far.
    pub(super) const fn usage(&self) -> Usage {
        self.usage
    }

    /// Takes the next event.
    pub(super) fn take(&mut self, data: &str) -> Result<Progress, ModelFailure> {
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
                self.stop = event.delta.and_then(|delta| delta.stop_reason).or_else(|| self.stop.take());
                Ok(Progress::Token)
            }
            "message_stop" => Ok(Progress::Done),
            "error" => Err(failure(event)),
            _ => Ok(Progress::Nothing),
        }
    }

    fn start(&mut self, event: &WireEvent<'_>) -> Result<Progress, ModelFailure> {
        let (Some(index), Some(block)) = (event.index, event.content_block) else {
            return Err(incomplete("content_block_start"));
        };
        if self.slots.iter().any(|slot| slot.index == index) {
            return Err(nonsense(format!("block {index} begins twice")));
        }
        let start: WireBlockStart<'_> = serde_json::from_str(block.get())
            .map_err(|error| nonsense(format!("block {index} can't be read: {error}")))?;
        let piece = match start.r#type.as_ref() {
            "text" => Piece::Text(start.text.unwrap_or_default()),
            "thinking" => Piece::Thinking {
                text: start.thinking.unwrap_or_default(),
                signature: start.signature.unwrap_or_default(),
            },
            "tool_use" => Piece::Tool {
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
            Piece::Tool { .. } | Piece::Opaque { .. } => {}
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
            &mut slot.ok_or_else(|| nonsense(format!("block {index} goes on without a beginning")))?.piece;
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
            (Piece::Tool { written, .. }, "input_json_delta") => {
                written.push_str(&partial_json.unwrap_or_default());
            }
            (_, "text_delta" | "thinking_delta" | "signature_delta") => {
                return Err(nonsense(format!("block {index} goes on as something else")));
            }
            // Citations, and whatever is new: nothing that would have to go back.
            _ => {}
        }
        Ok(Progress::Token)
    }

    fn tell(&self, kind: DeltaKind, text: &str) {
        if !text.is_empty() {
            self.deltas.delta(kind, text);
        }
    }

    /// The complete answer. `asked` is the model's name where the answer says none.
    pub(super) fn finish(&mut self, asked: &str) -> Result<Answer, ModelFailure> {
        let said = self.stop.as_deref().ok_or_else(|| nonsense("the answer doesn't say why it stopped"))?;
        let stop = stop_reason(said);
        let mut slots = std::mem::take(&mut self.slots);
        if stop == StopReason::OutputCap && slots.last().is_some_and(|slot| slot.piece.is_cut_call()) {
            slots.pop();
        }
        let content = slots.into_iter().filter_map(|slot| slot.piece.block()).collect::<Vec<_>>();
        let ids = content.iter().filter_map(call_id).collect::<Vec<_>>();
        if ids.iter().enumerate().any(|(place, id)| ids.iter().take(place).any(|earlier| earlier == id)) {
            return Err(nonsense("two tool calls have the same id"));
        }
        let model = self.model.take().unwrap_or_else(|| asked.to_owned());
        Ok(Answer { content, usage: self.usage, model, stop })
    }
}

const fn call_id(block: &Block) -> Option<&CallId> {
    match block {
        Block::ToolCall(call) => Some(&call.id),
        Block::Text(_) | Block::Thinking { .. } | Block::Opaque { .. } => None,
    }
}

impl Piece {
    /// Whether it is a tool call whose arguments were cut off. A whole object can't be the beginning of another.
    fn is_cut_call(&self) -> bool {
        matches!(self, Self::Tool { written, .. } if object(written).is_none())
    }

    /// The block as it is kept; `None` for one without content.
    fn block(self) -> Option<Block> {
        match self {
            Self::Text(text) => (!text.is_empty()).then_some(Block::Text(text)),
            Self::Thinking { text, signature } if text.is_empty() && signature.is_empty() => None,
            Self::Thinking { text, signature } => {
                Some(Block::Thinking { text, signature: Some(signature).filter(|seal| !seal.is_empty()) })
            }
            Self::Opaque { json } => Json::parse(without_line_ends(&json))
                .ok()
                .map(|json| Block::Opaque { wire: WIRE.to_owned(), json }),
            Self::Tool { id, name, given, written } => {
                let text = if written.trim().is_empty() {
                    given.unwrap_or_else(|| "{}".to_owned())
                } else {
                    written
                };
                let input = object(&text);
                let malformed = input.is_none().then(|| shorten(&text, MALFORMED_CHARS_MAX));
                let input = input.unwrap_or_else(Json::empty_object);
                Some(Block::ToolCall(ToolCall { id: id.as_str().into(), name, input, malformed }))
            }
        }
    }
}

/// `text` as JSON if it is an object, as the model wrote it.
fn object(text: &str) -> Option<Json> {
    if text.trim_start().starts_with('{') { Json::parse(without_line_ends(text)).ok() } else { None }
}

/// The log keeps JSON as it is on one line, and in JSON a line can only end between tokens.
fn without_line_ends(json: &str) -> String {
    json.replace(['\n', '\r'], " ")
}

/// A paused turn is gone on with as one that was cut off; so is one that filled the window, which then is found
/// to be too long.
fn stop_reason(said: &str) -> StopReason {
    match said {
        "tool_use" => StopReason::ToolUse,
        "max_tokens" | "model_context_window_exceeded" | "pause_turn" => StopReason::OutputCap,
        "refusal" => StopReason::Refusal,
        _ => StopReason::EndTurn,
    }
}

fn incomplete(what: &str) -> ModelFailure {
    nonsense(format!("an event of the stream lacks a part of its {what}"))
}

fn failure(event: WireEvent<'_>) -> ModelFailure {
    let Some(error) = event.error else { return incomplete("error") };
    let said = error.said(event.request_id);
    let mut failure = ModelFailure::new(said.class.unwrap_or(ErrorClass::Server), said.message);
    failure.request_id = said.request_id;
    failure
}
