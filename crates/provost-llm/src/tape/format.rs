//! The lines of a recording.

use std::borrow::Cow;

use provost_engine::Answer;
use provost_event::{Block, CallId, ErrorClass, Json, ModelFailure, Purpose, RunId, StopReason, ToolCall};
use provost_harness::{ModelRequest, Redactor};
use serde::{Deserialize, Serialize};

/// The version of the format. It is increased when the meaning of existing fields changes.
pub(super) const VERSION: u32 = 1;
/// The maximum size of a recording to replay.
pub(super) const FILE_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// The maximum length of a line: more than the maximum answer on the wire.
pub(super) const LINE_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// The maximum length of a header.
pub(super) const HEADER_BYTES_MAX: u64 = 64 * 1024;
/// The beginning of a header, including an incomplete one.
pub(super) const HEADER_BEGINNING: &[u8] = br#"{"provost_recording":"#;

/// The first line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) provost_recording: u32,
    pub(super) run: RunId,
    /// The model, by its name in the policy.
    pub(super) model: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) window_tokens: Option<u64>,
    pub(super) output_tokens_max: u32,
    /// Whether it accepted pictures.
    #[serde(default)]
    pub(super) images: bool,
}

/// Why a line isn't a header.
pub(super) enum NoHeader {
    /// Other content.
    Foreign,
    /// A header of a later version.
    Newer { needs: u32 },
}

impl Header {
    pub(super) fn read(line: &[u8]) -> Result<Self, NoHeader> {
        #[derive(Deserialize)]
        struct Version {
            provost_recording: u32,
        }
        let version = serde_json::from_slice::<Version>(line).map_err(|_| NoHeader::Foreign)?;
        match version.provost_recording {
            0 => Err(NoHeader::Foreign),
            1..=VERSION => serde_json::from_slice(line).map_err(|_| NoHeader::Foreign),
            needs => Err(NoHeader::Newer { needs }),
        }
    }
}

/// Every other line: a finished call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Call {
    /// The session's number within the run.
    pub(super) session: u32,
    pub(super) answers_before: u32,
    pub(super) turn: u32,
    /// The purpose of the call.
    #[serde(default)]
    pub(super) purpose: Purpose,
    #[serde(default)]
    pub(super) summaries_before: u32,
    /// The number of messages in the conversation.
    pub(super) messages: usize,
    /// The conversation's fingerprint.
    pub(super) digest: String,
    pub(super) outcome: Outcome,
}

/// The key of a call: the session's number, the purpose, and the number of earlier calls for that purpose.
pub(super) type TapeKey = (u32, Purpose, u32);

impl Call {
    /// Whether the session continues with it; after any other outcome the call is repeated. A judge's failed call
    /// counts, and the next one is another call.
    pub(super) fn is_final(&self) -> bool {
        matches!(self.purpose, Purpose::Judge | Purpose::Hook) || self.outcome.is_final()
    }

    pub(super) const fn place(&self) -> TapeKey {
        (self.session, self.purpose, position(self.purpose, self.answers_before, self.summaries_before))
    }
}

/// The key of `request`'s answer.
pub(super) const fn place_of(request: &ModelRequest<'_>) -> TapeKey {
    let ModelRequest { session, purpose, answers_before, summaries_before, .. } = *request;
    (session.agent, purpose, position(purpose, answers_before, summaries_before))
}

const fn position(purpose: Purpose, answers_before: u32, summaries_before: u32) -> u32 {
    match purpose {
        Purpose::Summary => summaries_before,
        Purpose::Turn | Purpose::FinalSummary | Purpose::Judge | Purpose::External | Purpose::Hook => {
            answers_before
        }
    }
}

/// How a call ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    Answer(Answer),
    Failure(ModelFailure),
}

impl Outcome {
    /// The outcome of a call for `purpose`, without secrets; `None` for a cancelled call that its session doesn't
    /// count. The call of a judge or a hook that was cancelled, because it took too long, counts.
    pub(super) fn of(
        outcome: &Result<Answer, ModelFailure>,
        purpose: Purpose,
        redactor: &Redactor,
    ) -> Option<Self> {
        match outcome {
            Ok(answer) => Some(Self::Answer(clean_answer(answer, redactor))),
            Err(failure)
                if failure.class == ErrorClass::Aborted
                    && !matches!(purpose, Purpose::Judge | Purpose::Hook) =>
            {
                None
            }
            Err(failure) => Some(Self::Failure(clean_failure(failure, redactor))),
        }
    }

    /// Whether it is an answer with content.
    fn is_final(&self) -> bool {
        let Self::Answer(answer) = self else { return false };
        let says_something = answer.content.iter().any(|block| match block {
            Block::Text(text) => !text.trim().is_empty(),
            Block::ToolCall(_) => true,
            Block::Thinking { .. } | Block::Opaque { .. } | Block::Image(_) => false,
        });
        says_something || matches!(answer.stop, StopReason::OutputCap | StopReason::Refusal)
    }
}

fn clean_answer(answer: &Answer, redactor: &Redactor) -> Answer {
    let Answer { content, usage, cost, model, stop } = answer;
    let content = content.iter().map(|block| clean_block(block, redactor)).collect();
    Answer { cost: *cost, content, usage: *usage, model: clean(model, redactor), stop: *stop }
}

fn clean_failure(failure: &ModelFailure, redactor: &Redactor) -> ModelFailure {
    let ModelFailure { class, status, message, request_id, retry_after_ms, hint, usage } = failure;
    ModelFailure {
        class: *class,
        status: *status,
        message: clean(message, redactor),
        request_id: request_id.as_deref().map(|id| clean(id, redactor)),
        retry_after_ms: *retry_after_ms,
        hint: clean(hint, redactor),
        usage: *usage,
    }
}

fn clean_block(block: &Block, redactor: &Redactor) -> Block {
    let each = |text: &Option<String>| text.as_deref().map(|text| clean(text, redactor));
    match block {
        Block::Text(text) => Block::Text(clean(text, redactor)),
        Block::Image(image) => Block::Image(image.clone()),
        Block::Thinking { text, signature, wire, prefix } => {
            let text = clean(text, redactor);
            Block::Thinking { text, signature: each(signature), wire: wire.clone(), prefix: prefix.clone() }
        }
        Block::Opaque { wire, json, prefix } => {
            let json = clean_json(json, redactor);
            Block::Opaque { wire: wire.clone(), json, prefix: prefix.clone() }
        }
        Block::ToolCall(ToolCall { id, name, input, malformed }) => Block::ToolCall(ToolCall {
            id: CallId::from(&*redactor.redact(&id.0)),
            name: clean(name, redactor),
            input: clean_json(input, redactor),
            malformed: each(malformed),
        }),
    }
}

fn clean(text: &str, redactor: &Redactor) -> String {
    redactor.redact(text).into_owned()
}

fn clean_json(json: &Json, redactor: &Redactor) -> Json {
    match redactor.redact_json(json.text()) {
        Cow::Borrowed(_) => json.clone(),
        // Redaction leaves valid JSON; if not, the original text must not stay.
        Cow::Owned(text) => Json::parse(text).unwrap_or_else(|_| Json::empty_object()),
    }
}
