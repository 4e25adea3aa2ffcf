//! Anthropic's Messages API, streaming (`POST /v1/messages`, version 2023-06-01).

mod answer;
mod binding;
mod event;
mod request;

use provost_harness::{DeltaSink, ModelRequest};
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderValue};

use crate::client::below;
use crate::failure::ReadError;
use crate::key::Key;
use crate::wire::{Body, Reader, Thoughts, Wire};
use crate::{Reasoning, WireFormat};
use answer::AnthropicReader;

/// The wire format, which marks the provider-specific blocks.
const WIRE: WireFormat = WireFormat::Anthropic;
const VERSION: &str = "2023-06-01";
/// Lets models with a thinking budget also think between tool calls; others ignore it.
const BETWEEN_CALLS: &str = "interleaved-thinking-2025-05-14";

/// The wire format for one model.
pub(crate) struct Anthropic {
    model: String,
    reasoning: Option<Reasoning>,
}

impl Anthropic {
    pub(crate) const fn new(model: String, reasoning: Option<Reasoning>) -> Self {
        Self { model, reasoning }
    }
}

impl Wire for Anthropic {
    fn headers(&self, key: &Key) -> Option<HeaderMap> {
        let mut headers = HeaderMap::new();
        headers.insert("anthropic-version", HeaderValue::from_static(VERSION));
        if self.reasoning == Some(Reasoning::Budget) {
            headers.insert("anthropic-beta", HeaderValue::from_static(BETWEEN_CALLS));
        }
        if !key.is_empty() {
            headers.insert("x-api-key", key.header("")?);
        }
        Some(headers)
    }

    fn url(&self, base: &Url) -> Url {
        below(base, "/v1", ["v1", "messages"])
    }

    fn models_url(&self, base: &Url) -> Url {
        let mut url = below(base, "/v1", ["v1", "models"]);
        url.set_query(Some("limit=1000"));
        url
    }

    fn body(&self, request: &ModelRequest<'_>, thoughts: Thoughts) -> Body {
        request::body(request, &self.model, self.reasoning, thoughts)
    }

    fn reader<'a>(&self, answers_before: u32, deltas: &'a dyn DeltaSink) -> Box<dyn Reader + 'a> {
        Box::new(AnthropicReader::new(deltas, answers_before))
    }

    fn read_error(&self) -> ReadError {
        event::read_error
    }
}
