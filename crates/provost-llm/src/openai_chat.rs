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
use reqwest::header::{AUTHORIZATION, HeaderMap};

use crate::client::below;
use crate::failure::ReadError;
use crate::key::Key;
use crate::wire::{Reader, Wire};
use crate::{Deviations, Reasoning, WireFormat};
use answer::Reading;

/// The wire format, which marks the blocks that only it understands.
const WIRE: WireFormat = WireFormat::OpenaiChat;

/// The format as one model speaks it.
pub(crate) struct OpenaiChat {
    model: String,
    deviations: Deviations,
}

impl OpenaiChat {
    /// How a model is told to think is the server's way here, not the model's: no `Reasoning` makes a difference.
    pub(crate) const fn new(model: String, _: Option<Reasoning>, deviations: Deviations) -> Self {
        Self { model, deviations }
    }
}

impl Wire for OpenaiChat {
    fn headers(&self, key: &Key) -> Option<HeaderMap> {
        let mut headers = HeaderMap::new();
        if !key.is_empty() {
            headers.insert(AUTHORIZATION, key.header("Bearer ")?);
        }
        Some(headers)
    }

    fn url(&self, base: &Url) -> Url {
        let path = ["v1", "chat", "completions"];
        let is_bare = base.path().trim_matches('/').is_empty();
        below(base, "/chat/completions", path.into_iter().skip(usize::from(!is_bare)))
    }

    fn models_url(&self, base: &Url) -> Url {
        let path = ["v1", "models"];
        let is_bare = base.path().trim_matches('/').is_empty();
        below(base, "/chat/completions", path.into_iter().skip(usize::from(!is_bare)))
    }

    fn body(&self, request: &ModelRequest<'_>) -> Vec<u8> {
        request::body(request, &self.model, self.deviations)
    }

    fn reader<'a>(&self, request: &ModelRequest<'_>, deltas: &'a dyn DeltaSink) -> Box<dyn Reader + 'a> {
        Box::new(Reading::new(deltas, request.answers_before))
    }

    fn read_error(&self) -> ReadError {
        error::read_error
    }
}
