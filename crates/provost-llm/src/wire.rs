//! The interface of a wire format to the shared client.

use std::fmt;

use provost_engine::Answer;
use provost_event::{ModelFailure, PrefixHash, Usage};
use provost_harness::{DeltaSink, ModelRequest};
use reqwest::Url;
use reqwest::header::HeaderMap;
use serde::{Deserialize, Serialize};

use crate::failure::ReadError;
use crate::key::Key;

/// The wire formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WireFormat {
    /// Anthropic's Messages.
    Anthropic,
    /// OpenAI's Responses.
    OpenaiResponses,
    /// OpenAI's Chat Completions, and compatible APIs.
    OpenaiChat,
    /// Google's Gemini API (`generateContent`).
    Gemini,
}

impl WireFormat {
    /// All formats.
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::OpenaiResponses, Self::OpenaiChat, Self::Gemini];

    /// Its name, which also marks its provider-specific blocks.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenaiResponses => "openai-responses",
            Self::OpenaiChat => "openai-chat",
            Self::Gemini => "gemini",
        }
    }
}

impl fmt::Display for WireFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether the model's thinking is sent back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thoughts {
    /// As far as the provider accepts it.
    Sent,
    /// Not at all: the provider has refused the request with it.
    LeftOut,
}

/// An encoded request.
pub(crate) struct Body {
    pub(crate) bytes: Vec<u8>,
    /// Its hash, if the provider only accepts thinking after the same request.
    pub(crate) prefix: Option<PrefixHash>,
    /// Whether it contains thinking that could be left out.
    pub(crate) has_thoughts: bool,
}

impl Body {
    /// A request whose thinking isn't bound to a prefix.
    pub(crate) const fn unbound(bytes: Vec<u8>) -> Self {
        Self { bytes, prefix: None, has_thoughts: false }
    }
}

/// One wire format.
pub(crate) trait Wire: Send + Sync {
    /// The headers of every request, including the key; `None` if the key isn't a valid header value.
    fn headers(&self, key: &Key) -> Option<HeaderMap>;

    /// The address of a request.
    fn url(&self, base: &Url) -> Url;

    /// The address of the provider's list of models.
    fn models_url(&self, base: &Url) -> Url;

    /// The request. Its bytes begin with those of the turn before, up to the end of its messages.
    fn body(&self, request: &ModelRequest<'_>, thoughts: Thoughts) -> Body;

    /// The reader of one answer; `answers_before` are the agent's earlier ones.
    fn reader<'a>(&self, answers_before: u32, deltas: &'a dyn DeltaSink) -> Box<dyn Reader + 'a>;

    /// The parser of an error's body.
    fn read_error(&self) -> ReadError;
}

/// The effect of an event on the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// A keep-alive, or an event before the first piece.
    Nothing,
    /// A piece of the answer.
    Token,
    /// The answer is complete, but its usage may follow; the stream may end now.
    Said,
    /// The answer is complete.
    Done,
}

/// Assembles an answer from the events of its stream.
pub(crate) trait Reader: Send + Sync {
    /// Applies the next event's data.
    ///
    /// # Errors
    /// The provider's error, or `MalformedResponse`.
    fn take(&mut self, data: &str) -> Result<Progress, ModelFailure>;

    /// The usage reported so far.
    fn usage(&self) -> Usage;

    /// Bytes of the model's text so far.
    fn written_bytes(&self) -> usize;

    /// The answer, once it is complete. `asked` is the model's name if the answer has none.
    ///
    /// # Errors
    /// `MalformedResponse` for a contradictory answer.
    fn finish(&mut self, asked: &str) -> Result<Answer, ModelFailure>;
}
