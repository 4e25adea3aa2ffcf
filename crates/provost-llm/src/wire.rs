//! What the shared client needs to know of a wire format.

use std::fmt;

use provost_engine::Answer;
use provost_event::{ModelFailure, PrefixHash, Usage};
use provost_harness::{DeltaSink, ModelRequest};
use reqwest::Url;
use reqwest::header::HeaderMap;
use serde::{Deserialize, Serialize};

use crate::failure::ReadError;
use crate::key::Key;

/// The wire formats there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WireFormat {
    /// Anthropic's Messages.
    Anthropic,
    /// OpenAI's Responses.
    OpenaiResponses,
    /// OpenAI's Chat Completions, and whatever is compatible with it.
    OpenaiChat,
    /// Google's Gemini API (`generateContent`).
    Gemini,
}

impl WireFormat {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::OpenaiResponses, Self::OpenaiChat, Self::Gemini];

    /// Its name, which also marks the blocks that only it understands.
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

/// Whether what the model thought goes back to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thoughts {
    /// As far as the provider accepts it.
    Sent,
    /// Not at all: the provider has refused the request with it.
    LeftOut,
}

/// A request as it is sent.
pub(crate) struct Body {
    pub(crate) bytes: Vec<u8>,
    /// What it comes to, where the provider accepts thinking back only behind the same request.
    pub(crate) prefix: Option<PrefixHash>,
    /// Whether it holds thinking that it could do without.
    pub(crate) has_thoughts: bool,
}

impl Body {
    /// A request in which thinking isn't bound to anything.
    pub(crate) const fn unbound(bytes: Vec<u8>) -> Self {
        Self { bytes, prefix: None, has_thoughts: false }
    }
}

/// One wire format.
pub(crate) trait Wire: Send + Sync {
    /// The headers that every request carries, the key's among them; `None` if the key can't be in one.
    fn headers(&self, key: &Key) -> Option<HeaderMap>;

    /// Where a request goes.
    fn url(&self, base: &Url) -> Url;

    /// Where the provider lists its models.
    fn models_url(&self, base: &Url) -> Url;

    /// The request. Its bytes begin with those of the turn before, up to the end of its messages.
    fn body(&self, request: &ModelRequest<'_>, thoughts: Thoughts) -> Body;

    /// Reads one answer.
    fn reader<'a>(&self, request: &ModelRequest<'_>, deltas: &'a dyn DeltaSink) -> Box<dyn Reader + 'a>;

    /// Reads an error's body.
    fn read_error(&self) -> ReadError;
}

/// What an event meant for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// A sign of life, or something before the first piece.
    Nothing,
    /// A piece of the answer.
    Token,
    /// All is said, but what it took may still be told; the stream may end now.
    Said,
    /// The answer is complete.
    Done,
}

/// Puts an answer together from the events of its stream.
pub(crate) trait Reader: Send {
    /// Takes the next event's data.
    ///
    /// # Errors
    /// What the provider says went wrong, or `Nonsense`.
    fn take(&mut self, data: &str) -> Result<Progress, ModelFailure>;

    /// What the provider has reported as used so far.
    fn usage(&self) -> Usage;

    /// Bytes of what the model has written so far.
    fn written_bytes(&self) -> usize;

    /// The answer, once it is said or done. `asked` is the model's name where the answer says none.
    ///
    /// # Errors
    /// `Nonsense` for an answer that contradicts itself.
    fn finish(&mut self, asked: &str) -> Result<Answer, ModelFailure>;
}
