//! Where the answer to a call comes from.

use std::borrow::Cow;
use std::sync::Arc;

use provost_event::Price;
use provost_llm::{Deviations, Upstream, UpstreamError, UpstreamRequest};

use crate::gateway::Shared;
use crate::refusal::Refusal;
use crate::replay::{RecordedAnswer, ReplayedAnswer};
use crate::request::ModelRequest;
use crate::route::Family;

/// Where the answer to a call comes from.
pub(crate) enum CallSource {
    Provider(Arc<Upstream>),
    Recording(RecordedAnswer),
}

impl CallSource {
    /// The provider of the family, or the recording's answer to `asked`.
    ///
    /// # Errors
    /// If the provider can't be called, or the recording has no such call.
    pub(crate) async fn of(shared: &Shared, family: Family, asked: &ModelRequest) -> Result<Self, Refusal> {
        // A status that programs don't retry: nothing changes until the settings do.
        let recording = shared.recording().await.map_err(Refusal::bad)?;
        match recording {
            None => shared.upstream(family).map(Self::Provider).map_err(Refusal::bad),
            Some(recording) => {
                let answer = recording.take(shared, (asked.wire, asked.model_name()), asked.body())?;
                Ok(Self::Recording(answer))
            }
        }
    }

    /// The provider, unless a recording answers.
    pub(crate) fn provider(&self) -> Option<&Upstream> {
        match self {
            Self::Provider(upstream) => Some(upstream),
            Self::Recording(_) => None,
        }
    }

    /// The deviations of the provider's Chat Completions.
    pub(crate) fn deviations(&self) -> Deviations {
        match self {
            Self::Provider(upstream) => upstream.deviations(),
            Self::Recording(_) => Deviations::default(),
        }
    }

    /// The price of a call whose model costs `listed`.
    pub(crate) const fn price(&self, listed: Option<Price>) -> Option<Price> {
        match self {
            Self::Provider(_) => listed,
            Self::Recording(_) => Some(Price::FREE),
        }
    }

    /// Asks for the answer.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) async fn send(
        &self,
        shared: &Shared,
        request: UpstreamRequest,
    ) -> Result<reqwest::Response, UpstreamError> {
        let recorded = match self {
            Self::Provider(upstream) => return upstream.send(request).await,
            Self::Recording(recorded) => recorded.clone(),
        };
        let cause = match recorded.response(&*shared.options.backend).await {
            Ok(ReplayedAnswer::Response(response)) => return Ok(response),
            Ok(ReplayedAnswer::Unreachable(message)) | Err(message) => message,
        };
        Err(UpstreamError::Unreachable { place: "the recorded provider".to_owned(), cause })
    }

    /// `text` without the provider's key.
    pub(crate) fn scrub<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self {
            Self::Provider(upstream) => upstream.scrub(text).into(),
            Self::Recording(_) => text.into(),
        }
    }
}
