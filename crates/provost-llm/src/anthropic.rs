//! Anthropic's Messages API, streaming (`POST /v1/messages`, version 2023-06-01).

mod answer;
mod event;
mod request;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use provost_engine::Answer;
use provost_event::{ErrorClass, ModelFailure};
use provost_harness::{Clock, DeltaSink, Model, ModelRequest};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use crate::client::{Endpoint, EndpointSpec};
use crate::key::Key;
use crate::stream::EventStream;
use crate::{ModelLimits, ResolveError};
use answer::{Progress, Reading};

/// The wire format's name, which marks the blocks that only it understands.
const WIRE: &str = "anthropic";
const VERSION: &str = "2023-06-01";

/// Where and as whom to ask.
pub struct AnthropicOptions {
    /// `http` or `https`, host, and whatever stands before `/v1/messages`; a `/v1` at its end doesn't matter.
    pub base_url: String,
    /// The key. White space around it is ignored.
    pub key: SecretString,
    /// How long and how large answers may be.
    pub limits: ModelLimits,
    /// Tells when a stream has stalled, and how long a `Retry-After` date is away.
    pub clock: Arc<dyn Clock>,
}

/// The models behind one address and key; which one, each request says.
///
/// Its connections are pooled: turns go over one connection, and many sessions may share one `AnthropicModel`.
/// Proxies and certificate authorities are those of the environment (`HTTPS_PROXY`, `SSL_CERT_FILE` and their
/// like), except that addresses of this machine are never asked through a proxy. Redirects aren't followed.
///
/// The conversation is sent so that a turn's request begins with the last turn's, byte for byte, up to the end
/// of its messages; cache breakpoints stand on the tools, on the system prompt and, set by the provider, on the
/// last message.
pub struct AnthropicModel {
    endpoint: Endpoint,
}

impl AnthropicModel {
    /// Sets up a client; connects to nothing yet.
    ///
    /// # Errors
    /// When the address or the key can't be ones, or the platform's certificates can't be read.
    pub fn new(options: AnthropicOptions) -> Result<Self, ResolveError> {
        let key = Key::new(&options.key);
        let mut headers = HeaderMap::new();
        headers.insert("x-api-key", key.header().ok_or(ResolveError::BadKey { provider: WIRE })?);
        headers.insert("anthropic-version", HeaderValue::from_static(VERSION));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let endpoint = Endpoint::new(EndpointSpec {
            base_url: &options.base_url,
            path: "v1/messages",
            key,
            headers,
            read_error: event::read_error,
            limits: options.limits,
            clock: options.clock,
        })?;
        Ok(Self { endpoint })
    }

    async fn exchange(
        &self,
        request: ModelRequest<'_>,
        reading: &mut Reading<'_>,
    ) -> Result<Answer, ModelFailure> {
        let mut stream = self.endpoint.post(request::body(&request)).await?;
        if let Err(failure) = read(&mut stream, reading).await {
            return Err(stream.named(failure));
        }
        let answer = reading.finish(request.model).map_err(|failure| stream.named(failure));
        stream.drain().await;
        answer
    }
}

/// Reads the stream up to the end of the answer.
async fn read(stream: &mut EventStream, reading: &mut Reading<'_>) -> Result<(), ModelFailure> {
    while let Some(data) = stream.next().await? {
        match reading.take(&data)? {
            Progress::Nothing => {}
            Progress::Token => stream.token(),
            Progress::Done => return Ok(()),
        }
    }
    Err(ModelFailure::new(ErrorClass::Cut, "the stream ended before the answer did"))
}

#[async_trait]
impl Model for AnthropicModel {
    async fn answer(
        &self,
        request: ModelRequest<'_>,
        deltas: &dyn DeltaSink,
        cancel: &CancellationToken,
    ) -> Result<Answer, ModelFailure> {
        let mut reading = Reading::new(deltas);
        let outcome = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(ModelFailure::new(ErrorClass::Aborted, "cancelled while the model was answering")),
            outcome = self.exchange(request, &mut reading) => outcome,
        };
        outcome.map_err(|failure| self.endpoint.presentable(failure, reading.usage()))
    }
}

impl fmt::Debug for AnthropicModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnthropicModel").field("place", &self.endpoint.place()).finish_non_exhaustive()
    }
}
