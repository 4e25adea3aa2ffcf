//! A provider's model, for all wire formats.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use provost_engine::Answer;
use provost_event::{Block, Certainty, ErrorClass, ModelFailure, PrefixHash, Usage};
use provost_harness::{Clock, DeltaSink, Model, ModelRequest};
use reqwest::Url;
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use crate::anthropic::Anthropic;
use crate::client::{Endpoint, EndpointSpec, Refused};
use crate::estimate::{request_bytes, tokens, tokens_at_most};
use crate::gemini::Gemini;
use crate::key::Key;
use crate::listing;
use crate::openai::{TOOLS_WITHOUT_EFFORT_FROM, gpt_version};
use crate::openai_chat::OpenaiChat;
use crate::openai_responses::OpenaiResponses;
use crate::sent::Sent;
use crate::stream::{EventStream, malformed};
use crate::wire::{Body, Progress, Reader, Thoughts, Wire};
use crate::{Deviations, ModelLimits, Provider, Reasoning, ResolveError, WireFormat};

/// The model to call, and how.
pub struct ProviderOptions {
    /// The provider.
    pub provider: Provider,
    /// The provider's name of the model.
    pub model: String,
    /// The key, if the provider needs one. Surrounding white space is ignored.
    pub key: Option<SecretString>,
    /// How thinking is configured; `None` if the model doesn't think, or that is unknown.
    pub reasoning: Option<Reasoning>,
    /// Limits on the time and size of answers.
    pub limits: ModelLimits,
    /// Measures stalls of streams, and the time until a `Retry-After` date.
    pub clock: Arc<dyn Clock>,
}

/// A model of a provider.
///
/// Its connections are pooled: turns share one connection, and sessions may share the pool. Proxies and
/// certificate authorities are those of the environment (`HTTPS_PROXY`, `SSL_CERT_FILE` and similar), except that
/// loopback addresses use no proxy. Redirects aren't followed.
///
/// A turn's request begins with the last turn's, byte for byte, up to the end of its messages, and has cache
/// breakpoints where the format supports them.
///
/// Usage that a provider doesn't report is estimated once an answer has begun, so that budgets apply anyway.
pub struct ProviderModel {
    wire: Box<dyn Wire>,
    model: String,
    endpoint: Endpoint,
    url: Url,
}

impl ProviderModel {
    /// Makes a client, without connecting.
    ///
    /// # Errors
    /// If the address or the key is invalid, or the platform's certificates can't be read.
    pub fn new(options: ProviderOptions) -> Result<Self, ResolveError> {
        let wire = speak(&options);
        let ProviderOptions { provider, model, .. } = options;
        let key = Key::new(options.key.as_ref());
        let headers = wire.headers(&key).ok_or(ResolveError::BadKey { provider: provider.name })?;
        let endpoint = Endpoint::new(EndpointSpec {
            base_url: &provider.base_url,
            key,
            key_env: provider.key_env.clone(),
            headers,
            read_error: wire.read_error(),
            limits: options.limits,
            clock: options.clock,
        })?;
        let url = wire.url(endpoint.base());
        Ok(Self { wire, model, endpoint, url })
    }

    /// Lists the provider's models, by its own names. This is a real request, without cost.
    ///
    /// # Errors
    /// If the request fails; not every provider lists its models.
    ///
    /// # Cancellation
    /// Dropping the future closes the connection.
    pub async fn listed(&self) -> Result<Vec<String>, ModelFailure> {
        let text = self.endpoint.get(self.wire.models_url(self.endpoint.base())).await?;
        listing::names(&text).ok_or_else(|| malformed("what the provider answers is no list of models"))
    }

    /// Sends the request, and reads the stream up to the end of the answer. A request that the provider finds
    /// invalid is sent once more without earlier thinking, which is the most frequent cause.
    async fn listen(
        &self,
        request: &ModelRequest<'_>,
        reader: &mut dyn Reader,
        sent: &Arc<AtomicBool>,
    ) -> Result<ReadAnswer, ModelFailure> {
        let Body { bytes, mut prefix, has_thoughts } = self.wire.body(request, Thoughts::Sent);
        let mut posted = self.endpoint.post(self.url.clone(), Sent::new(bytes, sent), request.patience).await;
        let is_wrong = |refused: &Refused| {
            let failure = &refused.failure;
            failure.class == ErrorClass::InvalidRequest && has_thoughts && !is_whole_answer(failure)
        };
        if posted.as_ref().is_err_and(is_wrong) {
            let bare = self.wire.body(request, Thoughts::LeftOut);
            prefix = bare.prefix;
            posted =
                self.endpoint.post(self.url.clone(), Sent::new(bare.bytes, sent), request.patience).await;
        }
        let mut stream = match posted {
            Ok(stream) => stream,
            // A failure of the answer that contains the answer.
            Err(Refused { failure, body }) => {
                let is_answer = matches!(reader.take(&body), Ok(Progress::Done));
                return if is_answer { Ok(ReadAnswer { stream: None, prefix }) } else { Err(failure) };
            }
        };
        match read(&mut stream, reader).await {
            Ok(()) => Ok(ReadAnswer { stream: Some(stream), prefix }),
            Err(failure) => Err(stream.named(failure)),
        }
    }
}

fn speak(options: &ProviderOptions) -> Box<dyn Wire> {
    let wire = match options.provider.wire {
        WireFormat::OpenaiChat if needs_responses(options) => WireFormat::OpenaiResponses,
        wire => wire,
    };
    wire_of(wire, (options.model.clone(), options.reasoning), options.provider.deviations)
}

/// The implementation of a wire format for one model.
pub(crate) fn wire_of(
    wire: WireFormat,
    (model, reasoning): (String, Option<Reasoning>),
    deviations: Deviations,
) -> Box<dyn Wire> {
    match wire {
        WireFormat::Anthropic => Box::new(Anthropic::new(model, reasoning)),
        WireFormat::OpenaiResponses => Box::new(OpenaiResponses::new(model, reasoning, deviations)),
        WireFormat::OpenaiChat => Box::new(OpenaiChat::new(model, reasoning, deviations)),
        WireFormat::Gemini => Box::new(Gemini::new(model, reasoning)),
    }
}

/// Whether the model accepts tools with an effort only over Responses, at the same address.
fn needs_responses(options: &ProviderOptions) -> bool {
    options.provider.responses_at.as_ref() == Some(&options.provider.base_url)
        && gpt_version(&options.model).is_some_and(|version| version >= TOOLS_WITHOUT_EFFORT_FROM)
}

/// A stream whose answer was read.
struct ReadAnswer {
    /// Absent if the answer came in an error.
    stream: Option<EventStream>,
    /// The hash of the request that it answers.
    prefix: Option<PrefixHash>,
}

/// Records the request's hash in the answer's thinking.
fn bind(mut answer: Answer, to: Option<&PrefixHash>) -> Answer {
    for block in &mut answer.content {
        if let Block::Thinking { prefix, .. } | Block::Opaque { prefix, .. } = block {
            *prefix = to.cloned();
        }
    }
    answer
}

/// Reads the stream up to the end of the answer.
async fn read(stream: &mut EventStream, reader: &mut dyn Reader) -> Result<(), ModelFailure> {
    let mut is_said = false;
    loop {
        let data = match stream.next().await {
            Ok(Some(data)) => data,
            // Only the usage was missing; the answer counts without it.
            Ok(None) | Err(_) if is_said => return Ok(()),
            Ok(None) => {
                return Err(ModelFailure::new(ErrorClass::Cut, "the stream ended before the answer did"));
            }
            Err(failure) => return Err(failure),
        };
        match reader.take(&data) {
            Ok(Progress::Nothing) => {}
            Ok(Progress::Token) => stream.token(),
            Ok(Progress::Said) => {
                is_said = true;
                stream.said();
            }
            Ok(Progress::Done) => return Ok(()),
            Err(_) if is_said => return Ok(()),
            Err(failure) => return Err(failure),
        }
    }
}

#[async_trait]
impl Model for ProviderModel {
    async fn answer(
        &self,
        request: ModelRequest<'_>,
        deltas: &dyn DeltaSink,
        cancel: &CancellationToken,
    ) -> Result<Answer, ModelFailure> {
        let mut reader = self.wire.reader(request.answers_before, deltas);
        let sent = Arc::<AtomicBool>::default();
        let listened = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(ModelFailure::new(ErrorClass::Aborted, "cancelled while the model was answering")),
            listened = self.listen(&request, &mut *reader, &sent) => listened,
        };
        let usage = counted(&*reader, &request);
        let answer = match listened {
            Ok(ReadAnswer { stream, prefix }) => {
                let answer = reader.finish(&self.model).map_err(|failure| match &stream {
                    Some(stream) => stream.named(failure),
                    None => failure,
                });
                let answer = answer.map(|answer| bind(answer, prefix.as_ref()));
                if let Some(stream) = stream {
                    tokio::select! {
                        () = cancel.cancelled() => {}
                        () = stream.drain() => {}
                    }
                }
                answer
            }
            Err(failure) => Err(failure),
        };
        match answer {
            Ok(answer) => Ok(Answer { usage, ..answer }),
            Err(failure) => {
                let may_have_worked = may_have_worked(failure.class) || is_whole_answer(&failure);
                let is_paid_for = sent.load(Ordering::Relaxed) && may_have_worked;
                let usage = discarded(&*reader, &request, is_paid_for);
                Err(self.endpoint.presentable(failure, usage))
            }
        }
    }
}

/// The reported usage; estimated if there is an answer without a report.
fn counted(reader: &dyn Reader, request: &ModelRequest<'_>) -> Usage {
    let (mut usage, written) = (reader.usage(), reader.written_bytes());
    if written > 0 && usage.prompt_tokens() == 0 {
        usage.input_tokens = tokens(request_bytes(request));
        usage.certainty = Certainty::Estimated;
    }
    if usage.output_tokens == 0 && written > 0 {
        usage.output_tokens = tokens(written);
        usage.certainty = Certainty::Estimated;
    }
    usage
}

/// The usage of a call without an answer: if there was no final report, the larger of the last report and the
/// possible maximum.
fn discarded(reader: &dyn Reader, request: &ModelRequest<'_>, is_paid_for: bool) -> Usage {
    let (mut usage, written) = (reader.usage(), reader.written_bytes());
    let is_final = usage.prompt_tokens() > 0 && usage.output_tokens >= tokens_at_most(written);
    if !is_paid_for && (is_final || (written == 0 && usage.total() == 0)) {
        return usage;
    }
    if usage.prompt_tokens() == 0 {
        usage.input_tokens = tokens_at_most(request_bytes(request));
    }
    usage.output_tokens = usage.output_tokens.max(tokens_at_most(written));
    usage.certainty = Certainty::Estimated;
    usage
}

/// Whether the model may have worked in a call that failed in this way after the request was sent: yes, unless the
/// provider itself reports a failure.
const fn may_have_worked(class: ErrorClass) -> bool {
    matches!(
        class,
        ErrorClass::Cut
            | ErrorClass::Stalled
            | ErrorClass::Silent
            | ErrorClass::Transport
            | ErrorClass::Aborted
            | ErrorClass::MalformedResponse
    )
}

/// Whether the provider answered, though not as the stream that was asked for.
fn is_whole_answer(failure: &ModelFailure) -> bool {
    let is_success = failure.status.is_some_and(|status| (200..300).contains(&status));
    is_success && failure.class == ErrorClass::InvalidRequest
}

impl fmt::Debug for ProviderModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.endpoint.place();
        f.debug_struct("ProviderModel")
            .field("model", &self.model)
            .field("place", &place)
            .finish_non_exhaustive()
    }
}
