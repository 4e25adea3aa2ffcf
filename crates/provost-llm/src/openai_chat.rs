//! OpenAI's Chat Completions API, streaming (`POST /v1/chat/completions`), and compatible APIs.
//!
//! Differences in servers' answers are handled for all servers alike; differences in requests are configured by
//! [`Deviations`].

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
use answer::ChatReader;

/// The wire format, which marks the provider-specific blocks.
const WIRE: WireFormat = WireFormat::OpenaiChat;
/// The API's path; a base address may end with it already.
const PATH: &str = "/chat/completions";

/// The wire format for one model.
pub(crate) struct OpenaiChat {
    model: String,
    reasoning: Option<Reasoning>,
    deviations: Deviations,
}

impl OpenaiChat {
    /// How thinking is configured depends on the server here; whether there is any, on the model.
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

    fn reader<'a>(&self, answers_before: u32, deltas: &'a dyn DeltaSink) -> Box<dyn Reader + 'a> {
        Box::new(ChatReader::new(deltas, answers_before))
    }

    fn read_error(&self) -> ReadError {
        error::read_error
    }
}
