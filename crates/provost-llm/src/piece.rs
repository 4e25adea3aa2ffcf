//! The pieces of an unfinished answer, for all wire formats.

use provost_engine::Answer;
use provost_event::{Block, CallId, Json, ModelFailure, StopReason, ToolCall, Usage};

use crate::WireFormat;
use crate::failure::shorten;
use crate::stream::malformed;

/// Maximum characters kept of arguments that aren't a JSON object.
const MALFORMED_CHARS_MAX: usize = 500;

/// An unfinished block.
#[derive(Debug)]
pub(crate) enum Piece {
    Text(String),
    /// Reasoning, and the provider's seal over it; empty if there is none.
    Thinking {
        text: String,
        signature: String,
    },
    /// A tool call. `given` is the arguments if no text arrives.
    Call {
        id: String,
        name: String,
        given: Option<String>,
        written: String,
    },
    /// A provider-specific block.
    Opaque {
        json: String,
    },
}

/// Facts about an answer besides its pieces.
pub(crate) struct Facts {
    pub(crate) wire: WireFormat,
    pub(crate) usage: Usage,
    pub(crate) model: String,
    pub(crate) stop: StopReason,
    /// The number of earlier answers; distinguishes generated ids of calls.
    pub(crate) answers_before: u32,
}

impl Piece {
    /// Bytes of the model's text for it.
    pub(crate) fn written_bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Thinking { text, .. } => text.len(),
            Self::Call { name, written, .. } => name.len().saturating_add(written.len()),
            Self::Opaque { json } => json.len(),
        }
    }

    /// Whether it is a tool call whose arguments were cut off. A complete object can't be the beginning of
    /// another.
    fn is_cut_call(&self) -> bool {
        matches!(self, Self::Call { written, .. } if object(written).is_none())
    }

    /// The block for the conversation; `None` if it has no content. `place` replaces a missing id.
    fn block(self, place: usize, facts: &Facts) -> Option<Block> {
        match self {
            Self::Text(text) => (!text.is_empty()).then_some(Block::Text(text)),
            Self::Thinking { text, signature } if text.is_empty() && signature.is_empty() => None,
            Self::Thinking { text, signature } => Some(Block::Thinking {
                text,
                signature: Some(signature).filter(|seal| !seal.is_empty()),
                wire: Some(facts.wire.name().to_owned()),
                prefix: None,
            }),
            Self::Opaque { json } => Json::parse(without_line_ends(&json)).ok().map(|json| Block::Opaque {
                wire: facts.wire.name().to_owned(),
                json,
                prefix: None,
            }),
            Self::Call { id, name, given, written } => {
                let text = if written.trim().is_empty() {
                    given.unwrap_or_else(|| "{}".to_owned())
                } else {
                    written
                };
                let input = object(&text);
                let malformed = input.is_none().then(|| shorten(&text, MALFORMED_CHARS_MAX));
                let input = input.unwrap_or_else(Json::empty_object);
                let id = if id.is_empty() { made_up_id(place, facts) } else { id };
                Some(Block::ToolCall(ToolCall { id: id.as_str().into(), name, input, malformed }))
            }
        }
    }
}

fn made_up_id(place: usize, facts: &Facts) -> String {
    format!("call_{}_{place}", facts.answers_before.saturating_add(1))
}

/// The complete answer, without a call that the output cap has cut off.
///
/// # Errors
/// `MalformedResponse` if two calls have the same id.
pub(crate) fn assemble(mut pieces: Vec<Piece>, facts: Facts) -> Result<Answer, ModelFailure> {
    if facts.stop == StopReason::OutputCap && pieces.last().is_some_and(Piece::is_cut_call) {
        pieces.pop();
    }
    let blocks = pieces.into_iter().enumerate().filter_map(|(place, piece)| piece.block(place, &facts));
    let content = blocks.collect::<Vec<_>>();
    let ids = content.iter().filter_map(call_id).collect::<Vec<_>>();
    if ids.iter().enumerate().any(|(place, id)| ids.iter().take(place).any(|earlier| earlier == id)) {
        return Err(malformed("two tool calls have the same id"));
    }
    let stop = match facts.stop {
        // Some servers use one stop reason for every end.
        StopReason::EndTurn | StopReason::Commentary if !ids.is_empty() => StopReason::ToolUse,
        stop => stop,
    };
    Ok(Answer { cost: None, usage: facts.usage, model: facts.model, stop, content })
}

const fn call_id(block: &Block) -> Option<&CallId> {
    match block {
        Block::ToolCall(call) => Some(&call.id),
        Block::Text(_) | Block::Image(_) | Block::Thinking { .. } | Block::Opaque { .. } => None,
    }
}

/// `text` as JSON if it is an object, unchanged.
fn object(text: &str) -> Option<Json> {
    if text.trim_start().starts_with('{') { Json::parse(without_line_ends(text)).ok() } else { None }
}

/// The log keeps JSON unchanged on one line; in JSON a line end can only be between tokens.
pub(crate) fn without_line_ends(json: &str) -> String {
    json.replace(['\n', '\r'], " ")
}
