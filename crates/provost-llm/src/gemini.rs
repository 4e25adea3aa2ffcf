//! Google's Gemini API, streaming (`POST /v1beta/models/MODEL:streamGenerateContent`).

mod answer;
mod error;
mod event;
mod message;
mod request;
mod thinking;
mod usage;

use provost_harness::{DeltaSink, ModelRequest};
use reqwest::Url;
use reqwest::header::HeaderMap;

use crate::client::below;
use crate::failure::ReadError;
use crate::key::Key;
use crate::wire::{Body, Reader, Thoughts, Wire};
use crate::{Reasoning, WireFormat};
use answer::GeminiReader;

/// The wire format, which marks the provider-specific blocks.
const WIRE: WireFormat = WireFormat::Gemini;
/// The API version with thinking, and full JSON schemas.
const VERSION: &str = "v1beta";
/// The provider's prefix of model names in lists.
const COLLECTION: &str = "models/";
/// The prefix of generated ids for calls without one; they are never sent to the provider.
const UNNAMED: &str = "unnamed_";

/// The wire format for one model.
pub(crate) struct Gemini {
    model: String,
    reasoning: Option<Reasoning>,
}

impl Gemini {
    pub(crate) const fn new(model: String, reasoning: Option<Reasoning>) -> Self {
        Self { model, reasoning }
    }
}

impl Wire for Gemini {
    fn headers(&self, key: &Key) -> Option<HeaderMap> {
        let mut headers = HeaderMap::new();
        if !key.is_empty() {
            headers.insert("x-goog-api-key", key.header("")?);
        }
        Some(headers)
    }

    fn url(&self, base: &Url) -> Url {
        let model = self.model.strip_prefix(COLLECTION).unwrap_or(&self.model);
        let method = format!("{model}:streamGenerateContent");
        let is_old = base.path().trim_end_matches('/').ends_with("/v1");
        let version = if is_old { "/v1" } else { "/v1beta" };
        let mut url = below(base, version, [VERSION, "models", &method]);
        url.set_query(Some("alt=sse"));
        url
    }

    fn models_url(&self, base: &Url) -> Url {
        let is_old = base.path().trim_end_matches('/').ends_with("/v1");
        let mut url = below(base, if is_old { "/v1" } else { "/v1beta" }, [VERSION, "models"]);
        url.set_query(Some("pageSize=1000"));
        url
    }

    fn body(&self, request: &ModelRequest<'_>, _: Thoughts) -> Body {
        Body::unbound(request::body(request, &self.model, self.reasoning))
    }

    fn reader<'a>(&self, answers_before: u32, deltas: &'a dyn DeltaSink) -> Box<dyn Reader + 'a> {
        Box::new(GeminiReader::new(deltas, answers_before))
    }

    fn read_error(&self) -> ReadError {
        error::read_error
    }
}
