//! Unfinished items of an answer, and the matching of events to them.

use std::borrow::Cow;

use provost_event::{DeltaKind, Freeform, ModelFailure};
use serde_json::json;
use serde_json::value::RawValue;

use super::event::{WireCall, WireItemHead, WireMessage, WirePart, WireReasoning, read};
use super::{CUSTOM, PHASE};
use crate::piece::{Piece, without_line_ends};

pub(super) const MESSAGE: &str = "message";
pub(super) const REASONING: &str = "reasoning";
pub(super) const CALL: &str = "function_call";
/// A call whose argument the model writes as it is.
pub(super) const CUSTOM_CALL: &str = "custom_tool_call";
/// Separates the parts of reasoning.
const BREAK: &str = "\n\n";

/// The kind of a part of a message or of reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartKind {
    Text,
    Refusal,
    Summary,
    Thought,
}

impl PartKind {
    const fn delta(self) -> DeltaKind {
        match self {
            Self::Text | Self::Refusal => DeltaKind::Text,
            Self::Summary | Self::Thought => DeltaKind::Thinking,
        }
    }
}

/// A part of a message or of reasoning.
pub(super) struct Part {
    kind: PartKind,
    index: Option<i64>,
    text: String,
}

/// The content of an item.
pub(super) enum Body {
    Message {
        phase: Option<String>,
        parts: Vec<Part>,
    },
    /// `sealed` is the whole item to send back, if that is possible.
    Reasoning {
        parts: Vec<Part>,
        sealed: Option<String>,
    },
    Call {
        id: String,
        name: String,
        written: String,
        is_final: bool,
        form: CallWriting,
    },
    Other {
        kind: String,
        json: String,
    },
}

/// How a call's arguments are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallWriting {
    Json,
    /// The one argument as it is.
    AsIs,
}

/// An unfinished item.
pub(super) struct Item {
    pub(super) id: Option<String>,
    pub(super) index: Option<i64>,
    /// More of it may arrive.
    pub(super) is_open: bool,
    /// Its first event has arrived.
    pub(super) is_announced: bool,
    /// The response's last event lists it.
    pub(super) is_listed: bool,
    pub(super) body: Body,
}

/// An item in an event, with its JSON.
pub(super) struct ReceivedItem<'a> {
    pub(super) kind: Cow<'a, str>,
    pub(super) id: Option<String>,
    raw: &'a RawValue,
}

impl<'a> ReceivedItem<'a> {
    pub(super) fn read(raw: &'a RawValue) -> Result<Self, ModelFailure> {
        let WireItemHead { r#type, id } = read("an item of the answer", raw)?;
        Ok(Self { kind: r#type, id: id.filter(|id| !id.is_empty()), raw })
    }

    /// The call's id in the conversation.
    pub(super) fn call_id(&self) -> Option<String> {
        let call: WireCall<'_> =
            if is_call(&self.kind) { read("a call", self.raw).ok()? } else { return None };
        call.call_id.filter(|id| !id.is_empty())
    }
}

impl Item {
    /// An item of which only the type and position are known.
    pub(super) fn new(kind: &str, id: Option<&str>, index: Option<i64>) -> Self {
        let body = match kind {
            MESSAGE => Body::Message { phase: None, parts: Vec::new() },
            REASONING => Body::Reasoning { parts: Vec::new(), sealed: None },
            CALL | CUSTOM_CALL => Body::Call {
                id: String::new(),
                name: String::new(),
                written: String::new(),
                is_final: false,
                form: if kind == CALL { CallWriting::Json } else { CallWriting::AsIs },
            },
            kind => Body::Other { kind: kind.to_owned(), json: String::new() },
        };
        let id = id.map(str::to_owned);
        Self { id, index, is_open: true, is_announced: false, is_listed: false, body }
    }

    /// Its type on the wire.
    pub(super) fn kind(&self) -> &str {
        match &self.body {
            Body::Message { .. } => MESSAGE,
            Body::Reasoning { .. } => REASONING,
            Body::Call { form: CallWriting::Json, .. } => CALL,
            Body::Call { form: CallWriting::AsIs, .. } => CUSTOM_CALL,
            Body::Other { kind, .. } => kind,
        }
    }

    /// Whether it is a call with another id than this one.
    pub(super) fn is_other_call(&self, wanted: Option<&str>) -> bool {
        matches!((&self.body, wanted), (Body::Call { id, .. }, Some(wanted)) if !id.is_empty() && id != wanted)
    }

    /// Appends the next piece of a part and emits it. A piece without an index belongs to the last part of its
    /// kind.
    pub(super) fn grow(
        &mut self,
        kind: PartKind,
        index: Option<i64>,
        text: &str,
        tell: &dyn Fn(DeltaKind, &str),
    ) {
        let (Body::Message { parts, .. } | Body::Reasoning { parts, .. }) = &mut self.body else { return };
        let known =
            parts.iter().rposition(|part| part.kind == kind && (index.is_none() || part.index == index));
        let at = known.unwrap_or_else(|| {
            parts.push(Part { kind, index, text: String::new() });
            parts.len() - 1
        });
        add(parts, at, text, tell);
    }

    /// Appends to a call's arguments.
    pub(super) fn write(&mut self, more: &str) {
        if let Body::Call { written, .. } = &mut self.body {
            written.push_str(more);
        }
    }

    /// Replaces a call's arguments by the whole ones. Missing ones don't count: some servers leave them out when
    /// they repeat the call.
    pub(super) fn set_arguments(&mut self, arguments: String) {
        if let Body::Call { written, is_final, .. } = &mut self.body
            && !arguments.trim().is_empty()
        {
            *written = arguments;
            *is_final = true;
        }
    }

    /// Applies the item's first event, except its text, which is repeated later.
    pub(super) fn announce(&mut self, told: &ReceivedItem<'_>) -> Result<(), ModelFailure> {
        self.is_announced = true;
        match &mut self.body {
            Body::Message { phase, .. } => {
                *phase = read::<WireMessage>("a message of the answer", told.raw)?.phase;
            }
            Body::Call { id, name, .. } => {
                let wire: WireCall<'_> = read("a call of the answer", told.raw)?;
                *id = wire.call_id.unwrap_or_default();
                *name = wire.name.unwrap_or_default();
            }
            Body::Reasoning { .. } => {}
            Body::Other { json, .. } => *json = told.raw.get().to_owned(),
        }
        Ok(())
    }

    /// Applies what an event says about the item and isn't known yet. Text that arrived differently in pieces
    /// stays.
    pub(super) fn settle(
        &mut self,
        told: &ReceivedItem<'_>,
        tell: &dyn Fn(DeltaKind, &str),
    ) -> Result<(), ModelFailure> {
        let is_open = self.is_open;
        match &mut self.body {
            Body::Message { phase, parts } => {
                let wire: WireMessage = read("a message of the answer", told.raw)?;
                *phase = wire.phase.or_else(|| phase.take());
                let content = wire.content.unwrap_or_default();
                fill(parts, PartKind::Text, content.iter().filter_map(|part| part.text.as_deref()), tell);
                fill(
                    parts,
                    PartKind::Refusal,
                    content.iter().filter_map(|part| part.refusal.as_deref()),
                    tell,
                );
            }
            Body::Reasoning { parts, sealed } => {
                let wire: WireReasoning = read("reasoning of the answer", told.raw)?;
                let texts = |parts: Option<Vec<WirePart>>| {
                    parts.into_iter().flatten().filter_map(|part| part.text).collect::<Vec<_>>()
                };
                fill(parts, PartKind::Summary, texts(wire.summary).iter().map(String::as_str), tell);
                fill(parts, PartKind::Thought, texts(wire.content).iter().map(String::as_str), tell);
                // Without its seal it can't be sent back to a provider that keeps no state.
                if (is_open || sealed.is_none())
                    && wire.encrypted_content.is_some_and(|seal| !seal.is_empty())
                {
                    *sealed = Some(without_line_ends(told.raw.get()));
                }
            }
            Body::Call { id, name, .. } => {
                let wire: WireCall<'_> = read("a call of the answer", told.raw)?;
                let newer = |known: &mut String, told: Option<String>| {
                    *known = told.filter(|told| !told.is_empty()).unwrap_or_else(|| std::mem::take(known));
                };
                let arguments = wire.input.clone().unwrap_or_else(|| wire.arguments());
                newer(id, wire.call_id);
                newer(name, wire.name);
                self.set_arguments(arguments);
            }
            Body::Other { json, .. } if is_open => *json = told.raw.get().to_owned(),
            Body::Other { .. } => {}
        }
        Ok(())
    }

    /// Bytes of the model's text for it.
    pub(super) fn written_bytes(&self) -> usize {
        match &self.body {
            Body::Message { parts, .. } | Body::Reasoning { parts, .. } => {
                parts.iter().map(|part| part.text.len()).sum()
            }
            Body::Call { name, written, .. } => name.len().saturating_add(written.len()),
            Body::Other { json, .. } => json.len(),
        }
    }

    /// Whether the model refuses in it.
    pub(super) fn declines(&self) -> bool {
        matches!(&self.body, Body::Message { parts, .. }
            if parts.iter().any(|part| part.kind == PartKind::Refusal && !part.text.is_empty()))
    }

    /// Whether it is a comment on the work and not an answer; absent unless it is a message with text.
    pub(super) fn is_comment(&self) -> Option<bool> {
        let Body::Message { phase, parts } = &self.body else { return None };
        let has_text = parts.iter().any(|part| !part.text.trim().is_empty());
        has_text.then(|| phase.as_deref() == Some("commentary"))
    }

    /// The pieces of the answer from this item.
    pub(super) fn pieces(self) -> Vec<Piece> {
        match self.body {
            Body::Message { phase, parts } => {
                let phase = phase.filter(|_| parts.iter().any(|part| !part.text.trim().is_empty()));
                let phase = phase.map(|phase| json!({"type": PHASE, "phase": phase}).to_string());
                let phase = phase.map(|json| Piece::Opaque { json });
                phase.into_iter().chain(parts.into_iter().map(|part| Piece::Text(part.text))).collect()
            }
            Body::Reasoning { parts, sealed } => {
                let texts = parts.iter().map(|part| part.text.as_str()).filter(|text| !text.is_empty());
                let text = texts.collect::<Vec<_>>().join(BREAK);
                vec![Piece::Thinking { text, signature: sealed.unwrap_or_default() }]
            }
            Body::Call { id, name, written, form: CallWriting::Json, .. } => {
                vec![Piece::Call { id, name, given: None, written }]
            }
            // What is missing of one that was cut off can't be seen in its text.
            Body::Call { id, name, written, is_final: false, form: CallWriting::AsIs } if self.is_open => {
                vec![Piece::Call { id, name, given: None, written }]
            }
            Body::Call { id, name, written, form: CallWriting::AsIs, .. } => {
                let written = json!({ (Freeform::FIELD): written }).to_string();
                let marked = json!({ "type": CUSTOM, "call_id": id }).to_string();
                vec![Piece::Opaque { json: marked }, Piece::Call { id, name, given: None, written }]
            }
            Body::Other { json, .. } => vec![Piece::Opaque { json }],
        }
    }
}

/// Whether items of this type are calls of tools.
pub(super) fn is_call(kind: &str) -> bool {
    matches!(kind, CALL | CUSTOM_CALL)
}

/// Appends to a part and emits the text, with a separator from the part before.
fn add(parts: &mut [Part], at: usize, text: &str, tell: &dyn Fn(DeltaKind, &str)) {
    let has_earlier = parts.iter().take(at).any(|part| !part.text.is_empty());
    let Some(part) = parts.get_mut(at).filter(|_| !text.is_empty()) else { return };
    let delta = part.kind.delta();
    if has_earlier && part.text.is_empty() && delta == DeltaKind::Thinking {
        tell(delta, &format!("{BREAK}{text}"));
    } else {
        tell(delta, text);
    }
    part.text.push_str(text);
}

/// Appends what parts of one kind lack of their whole texts. A part whose text isn't a prefix of the whole one
/// stays unchanged.
fn fill<'a>(
    parts: &mut Vec<Part>,
    kind: PartKind,
    whole: impl Iterator<Item = &'a str>,
    tell: &dyn Fn(DeltaKind, &str),
) {
    for (place, text) in whole.enumerate() {
        let known = parts.iter().enumerate().filter(|(_, part)| part.kind == kind).nth(place);
        let at = known.map(|(at, _)| at).unwrap_or_else(|| {
            parts.push(Part { kind, index: None, text: String::new() });
            parts.len() - 1
        });
        let have = parts.get(at).map_or("", |part| part.text.as_str());
        let rest = text.strip_prefix(have).unwrap_or_default().to_owned();
        add(parts, at, &rest, tell);
    }
}
