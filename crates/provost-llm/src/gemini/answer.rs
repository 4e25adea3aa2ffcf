//! Assembles an answer from the chunks of its stream.

use provost_engine::Answer;
use provost_event::{DeltaKind, ModelFailure, StopReason, Usage};
use provost_harness::DeltaSink;
use serde::Serialize;
use serde_json::value::RawValue;

use super::event::{WireCall, WireCandidate, WireFeedback, WirePart, parse, part};
use super::usage::WireUsage;
use super::{UNNAMED, WIRE};
use crate::piece::{Facts, Piece, assemble};
use crate::stream::malformed;
use crate::wire::{Progress, Reader};

/// The end of some gateways' streams.
const END: &str = "[DONE]";
/// The name for a missing reason.
const UNSPECIFIED: &str = "UNSPECIFIED";

/// Why the answer stopped.
enum Stop {
    Told(StopReason),
    /// The model's tool call was malformed; with the provider's message.
    Failed(String),
}

/// A seal without content of its own.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Bare<'a> {
    text: &'a str,
    thought_signature: &'a str,
}

/// An unfinished answer.
pub(super) struct GeminiReader<'a> {
    deltas: &'a dyn DeltaSink,
    model: Option<String>,
    counts: WireUsage,
    pieces: Vec<Piece>,
    written_bytes: usize,
    /// Whether the last piece is a text that the next part may continue.
    goes_on: bool,
    /// The seal of an empty text, until something follows it.
    loose: Option<String>,
    stop: Option<Stop>,
    answers_before: u32,
}

impl Reader for GeminiReader<'_> {
    fn take(&mut self, data: &str) -> Result<Progress, ModelFailure> {
        if data.trim() == END {
            return Ok(if self.stop.is_some() { Progress::Done } else { Progress::Nothing });
        }
        let mut chunk = match parse(data) {
            // The answer is complete, and later chunks can't be part of it.
            Err(_) if self.stop.is_some() => return Ok(Progress::Done),
            chunk => chunk?,
        };
        self.counts.add(chunk.usage_metadata.take().unwrap_or_default());
        self.model = chunk.model_version.take().filter(|name| !name.is_empty()).or_else(|| self.model.take());
        let candidate = chunk.first();
        if let Some(feedback) = chunk.prompt_feedback {
            self.blocked(feedback);
        }
        let pieces = match candidate {
            Some(candidate) => self.candidate(candidate)?,
            None => 0,
        };
        Ok(match self.stop {
            Some(_) => Progress::Said,
            None if pieces > 0 => Progress::Token,
            None => Progress::Nothing,
        })
    }

    fn usage(&self) -> Usage {
        self.counts.usage()
    }

    fn written_bytes(&self) -> usize {
        self.written_bytes
    }

    fn finish(&mut self, asked: &str) -> Result<Answer, ModelFailure> {
        let stop = match self.stop.take() {
            None => return Err(malformed("the answer doesn't say why it stopped")),
            Some(Stop::Told(stop)) => stop,
            // The engine handles an empty answer: it asks again, with a notice.
            Some(Stop::Failed(_)) if !self.says_something() => StopReason::EndTurn,
            Some(Stop::Failed(why)) => return Err(malformed(why)),
        };
        if let Some(seal) = self.loose.take() {
            self.seal(seal);
        }
        let facts = Facts {
            wire: WIRE,
            usage: self.counts.usage(),
            model: self.model.take().unwrap_or_else(|| asked.to_owned()),
            stop,
            answers_before: self.answers_before,
        };
        assemble(std::mem::take(&mut self.pieces), facts)
    }
}

impl<'a> GeminiReader<'a> {
    pub(super) fn new(deltas: &'a dyn DeltaSink, answers_before: u32) -> Self {
        Self {
            deltas,
            model: None,
            counts: WireUsage::default(),
            pieces: Vec::new(),
            written_bytes: 0,
            goes_on: false,
            loose: None,
            stop: None,
            answers_before,
        }
    }

    /// Returns the number of parts.
    fn candidate(&mut self, candidate: WireCandidate<'_>) -> Result<usize, ModelFailure> {
        let parts = candidate.content.and_then(|content| content.parts).unwrap_or_default();
        for raw in &parts {
            self.part(raw)?;
        }
        if let Some(reason) = candidate.finish_reason.filter(|reason| is_told(reason)) {
            let message = candidate.finish_message.filter(|message| !message.trim().is_empty());
            self.stopped(&reason, message);
        }
        Ok(parts.len())
    }

    fn part(&mut self, raw: &RawValue) -> Result<(), ModelFailure> {
        let WirePart { text, thought, thought_signature, function_call } = part(raw)?;
        let seal = thought_signature.filter(|seal| !seal.is_empty());
        match (text, function_call) {
            (_, Some(call)) => self.call(call, seal)?,
            (Some(text), None) if thought == Some(true) => self.thought(&text, seal.is_some(), raw),
            (Some(text), None) => self.text(&text, seal),
            (None, None) if seal.is_some() && is_only_sealed(raw) => self.text("", seal),
            (None, None) if raw.get().trim() == "{}" => {}
            (None, None) => self.unknown(raw),
        }
        Ok(())
    }

    fn text(&mut self, text: &str, seal: Option<String>) {
        let Some(seal) = seal else {
            if !text.is_empty() {
                self.keep_loose();
                self.grow(text);
            }
            return;
        };
        self.keep_loose();
        if text.is_empty() {
            self.loose = Some(seal);
            self.goes_on = false;
            return;
        }
        // A part with a seal is joined neither to the one before nor to the one after.
        self.seal(seal);
        self.goes_on = false;
        self.grow(text);
        self.goes_on = false;
    }

    fn grow(&mut self, text: &str) {
        match self.pieces.last_mut() {
            Some(Piece::Text(all)) if self.goes_on => all.push_str(text),
            _ => self.pieces.push(Piece::Text(text.to_owned())),
        }
        self.goes_on = true;
        self.tell(DeltaKind::Text, text);
    }

    /// A thought is shown. One with a seal of its own is also sent back unchanged.
    fn thought(&mut self, text: &str, is_sealed: bool, raw: &RawValue) {
        self.keep_loose();
        self.goes_on = false;
        if !text.is_empty() {
            match self.pieces.last_mut() {
                Some(Piece::Thinking { text: all, signature }) if signature.is_empty() => all.push_str(text),
                _ => self.pieces.push(Piece::Thinking { text: text.to_owned(), signature: String::new() }),
            }
            self.tell(DeltaKind::Thinking, text);
        }
        if is_sealed {
            self.pieces.push(Piece::Opaque { json: raw.get().to_owned() });
        }
    }

    fn call(&mut self, call: WireCall<'_>, seal: Option<String>) -> Result<(), ModelFailure> {
        let name = call.name.filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| malformed("a tool call lacks the tool's name"))?;
        self.keep_loose();
        self.goes_on = false;
        if let Some(seal) = seal {
            self.seal(seal);
        }
        let (turn, place) = (self.answers_before.saturating_add(1), self.pieces.len());
        let id = call.id.filter(|id| !id.is_empty()).unwrap_or_else(|| format!("{UNNAMED}{turn}_{place}"));
        let args = call.args.map(RawValue::get).filter(|args| *args != "null");
        let written = args.unwrap_or_default().to_owned();
        let piece = Piece::Call { id, name, given: None, written };
        self.written_bytes = self.written_bytes.saturating_add(piece.written_bytes());
        self.pieces.push(piece);
        Ok(())
    }

    fn unknown(&mut self, raw: &RawValue) {
        self.keep_loose();
        self.goes_on = false;
        self.written_bytes = self.written_bytes.saturating_add(raw.get().len());
        self.pieces.push(Piece::Opaque { json: raw.get().to_owned() });
    }

    /// The seal of the next part, or of the last one. It is attached to its thoughts, if they are shown.
    fn seal(&mut self, seal: String) {
        match self.pieces.last_mut() {
            Some(Piece::Thinking { signature, .. }) if signature.is_empty() => *signature = seal,
            _ => self.pieces.push(Piece::Thinking { text: String::new(), signature: seal }),
        }
    }

    /// A part follows that the seal doesn't belong to: the seal stays a part of its own.
    fn keep_loose(&mut self) {
        if let Some(seal) = self.loose.take() {
            let mut json = Vec::new();
            crate::json::put(&mut json, &Bare { text: "", thought_signature: &seal });
            let json = String::from_utf8_lossy(&json).into_owned();
            self.pieces.push(Piece::Opaque { json });
        }
    }

    fn stopped(&mut self, reason: &str, message: Option<String>) {
        let stop = stop_reason(reason, message.as_deref());
        if matches!(stop, Stop::Told(StopReason::Refusal)) && !self.is_refused() {
            self.refuse(message, || format!("The provider stopped the answer: {reason}."));
        }
        self.stop = Some(stop);
    }

    fn blocked(&mut self, feedback: WireFeedback) {
        let reason = feedback.block_reason.filter(|reason| is_told(reason) && !self.is_refused());
        if let Some(reason) = reason {
            let message = feedback.block_reason_message.filter(|message| !message.trim().is_empty());
            self.refuse(message, || format!("The provider blocked the request: {reason}."));
            self.stop = Some(Stop::Told(StopReason::Refusal));
        }
    }

    /// Whether the request was refused; some servers repeat the reason.
    const fn is_refused(&self) -> bool {
        matches!(self.stop, Some(Stop::Told(StopReason::Refusal)))
    }

    /// The message of a refusal: the provider's after the model's text, Provost's only if there is neither.
    fn refuse(&mut self, message: Option<String>, ours: impl FnOnce() -> String) {
        let has_text =
            self.pieces.iter().any(|piece| matches!(piece, Piece::Text(text) if !text.trim().is_empty()));
        let words = match message {
            Some(message) if has_text => format!("\n{message}"),
            Some(message) => message,
            None if has_text => return,
            None => ours(),
        };
        self.keep_loose();
        self.goes_on = false;
        self.grow(&words);
    }

    fn says_something(&self) -> bool {
        self.pieces.iter().any(|piece| match piece {
            Piece::Text(text) => !text.trim().is_empty(),
            Piece::Call { .. } => true,
            Piece::Thinking { .. } | Piece::Opaque { .. } => false,
        })
    }

    fn tell(&mut self, kind: DeltaKind, text: &str) {
        self.written_bytes = self.written_bytes.saturating_add(text.len());
        self.deltas.delta(kind, text);
    }
}

/// Whether a reason is given.
fn is_told(reason: &str) -> bool {
    !reason.is_empty() && !reason.ends_with(UNSPECIFIED)
}

/// Whether a part has only a seal.
fn is_only_sealed(raw: &RawValue) -> bool {
    serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(raw.get())
        .is_ok_and(|fields| fields.keys().all(|field| field == "thoughtSignature" || field == "thought"))
}

/// The reasons are those of ai.google.dev/api/generate-content, "FinishReason"; Model Armor is Vertex AI's.
fn stop_reason(said: &str, message: Option<&str>) -> Stop {
    match said {
        "MAX_TOKENS" => Stop::Told(StopReason::OutputCap),
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "MODEL_ARMOR"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => Stop::Told(StopReason::Refusal),
        "MALFORMED_FUNCTION_CALL"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "MALFORMED_RESPONSE"
        | "MISSING_THOUGHT_SIGNATURE" => {
            let words = message.map(|message| format!(": {message}")).unwrap_or_default();
            Stop::Failed(format!("the model's answer broke off ({said}){words}"))
        }
        _ => Stop::Told(StopReason::EndTurn),
    }
}
