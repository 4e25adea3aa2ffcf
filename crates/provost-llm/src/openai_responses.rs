//! OpenAI's Responses API, streaming (`POST /v1/responses`), without state at the provider.

mod answer;
mod error;
mod event;
mod item;
mod request;

use provost_harness::{DeltaSink, ModelRequest};
use reqwest::Url;
use reqwest::header::HeaderMap;

use crate::failure::ReadError;
use crate::key::Key;
use crate::openai;
use crate::wire::{Body, Reader, Thoughts, Wire};
use crate::{Deviations, Reasoning, WireFormat};
use answer::ResponsesReader;
use request::Ways;

/// The wire format, which marks the provider-specific blocks.
const WIRE: WireFormat = WireFormat::OpenaiResponses;
/// The API's path; a base address may end with it already.
const PATH: &str = "/responses";
/// The type of Provost's own block that keeps a message's phase, before its text. It is never sent.
const PHASE: &str = "provost_message_phase";
/// The type of Provost's own block before a call whose argument the model wrote as it is. It is never sent.
const CUSTOM: &str = "provost_custom_call";

/// The wire format for one model.
pub(crate) struct OpenaiResponses {
    model: String,
    reasoning: Option<Reasoning>,
    deviations: Deviations,
}

impl OpenaiResponses {
    pub(crate) const fn new(model: String, reasoning: Option<Reasoning>, deviations: Deviations) -> Self {
        Self { model, reasoning, deviations }
    }
}

impl Wire for OpenaiResponses {
    fn headers(&self, key: &Key) -> Option<HeaderMap> {
        openai::headers(key)
    }

    fn url(&self, base: &Url) -> Url {
        openai::url(base, PATH, ["responses"])
    }

    fn models_url(&self, base: &Url) -> Url {
        openai::url(base, PATH, ["models"])
    }

    fn body(&self, request: &ModelRequest<'_>, thoughts: Thoughts) -> Body {
        let ways = Ways { reasoning: self.reasoning, deviations: self.deviations, thoughts };
        request::body(request, &self.model, ways)
    }

    fn reader<'a>(&self, answers_before: u32, deltas: &'a dyn DeltaSink) -> Box<dyn Reader + 'a> {
        Box::new(ResponsesReader::new(deltas, answers_before))
    }

    fn read_error(&self) -> ReadError {
        error::read_error
    }
}
