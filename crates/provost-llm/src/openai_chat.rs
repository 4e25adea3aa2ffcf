//! OpenAI's Chat Completions API, streaming (`POST /v1/chat/completions`), and whatever is compatible with it.
//!
//! What servers do differently in their answers is read from all of them alike; what they want differently in
//! requests is told by [`Deviations`].

mod answer;
mod call;
mod detail;
mod error;
mod event;
mod message;
mod request;
mod usage;

use provost_harness::{DeltaSink, ModelRequest};
use reqwest::Url;
use reqwest::header::HeaderMap;

use crate::failure::ReadError;
use crate::key::Key;
use crate::openai;
use crate::wire::{Body, Reader, Thoughts, Wire};
use crate::{Deviations, Reasoning, WireFormat};
use answer::Reading;

/// The wire format, which marks the blocks that only it understands.
const WIRE: WireFormat = WireFormat::OpenaiChat;
/// Where it is asked; a base address may end in it already.
const PATH: &str = "/chat/completions";

/// The format as one model speaks it.
pub(crate) struct OpenaiChat {
    model: String,
    reasoning: Option<Reasoning>,
    deviations: Deviations,
}

impl OpenaiChat {
    /// How a model is told to think is the server's way here; whether it does is the model's.
    pub(crate) const fn new(model: String, reasoning: Option<Reasoning>, deviations: Deviations) -> Self {
        Self { model, reasoning, deviations }
    }
}

impl Wire for OpenaiChat {
    fn headers(&self, key: &Key) -> Option<HeaderMap> {
        openai::headers(key)
    }

    fn url(&self, base: &Url) -> Url {
        openai::url(base, PATH, ["chat", "completions"])
    }

    fn models_url(&self, base: &Url) -> Url {
        openai::url(base, PATH, ["models"])
    }

    fn body(&self, request: &ModelRequest<'_>, _: Thoughts) -> Body {
        Body::unbound(request::body(request, &self.model, self.reasoning, self.deviations))
    }

    fn reader<'a>(&self, request: &ModelRequest<'_>, deltas: &'a dyn DeltaSink) -> Box<dyn Reader + 'a> {
        Box::new(Reading::new(deltas, request.answers_before))
    }

    fn read_error(&self) -> ReadError {
        error::read_error
    }
}
