//! A provider's model, whatever wire format it speaks.

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
use crate::stream::{EventStream, nonsense};
use crate::wire::{Body, Progress, Reader, Thoughts, Wire};
use crate::{ModelLimits, Provider, Reasoning, ResolveError, WireFormat};

/// Whom to ask, and as whom.
pub struct ProviderOptions {
    /// Who is asked.
    pub provider: Provider,
    /// The model, by the provider's name for it.
    pub model: String,
    /// The key, if it wants one. White space around it is ignored.
    pub key: Option<SecretString>,
    /// How the model is told to think; `None` if it doesn't, or nobody knows.
    pub reasoning: Option<Reasoning>,
    /// How long and how large answers may be.
    pub limits: ModelLimits,
    /// Tells when a stream has stalled, and how long a `Retry-After` date is away.
    pub clock: Arc<dyn Clock>,
}

/// A model of a provider.
///
/// Its connections are pooled: turns go over one connection, and many sessions may share it.
/// Proxies and certificate authorities are those of the environment (`HTTPS_PROXY`, `SSL_CERT_FILE` and their
/// like), except that addresses of this machine are never asked through a proxy. Redirects aren't followed.
///
/// The conversation is sent so that a turn's request begins with the last turn's, byte for byte, up to the end
/// of its messages, and cache breakpoints stand where the format has them.
///
/// What a provider doesn't count is estimated once an answer has begun, so that budgets bind also then.
pub struct ProviderModel {
    wire: Box<dyn Wire>,
    model: String,
    endpoint: Endpoint,
    url: Url,
}

impl ProviderModel {
    /// Sets up a client; connects to nothing yet.
    ///
    /// # Errors
    /// When the address or the key can't be ones, or the platform's certificates can't be read.
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

    /// The names of the models that the provider says it has, as it writes them. A real call, which costs nothing.
    ///
    /// # Errors
    /// Why they can't be had; not every provider lists them.
    ///
    /// # Cancellation
    /// Dropping the future closes the connection.
    pub async fn listed(&self) -> Result<Vec<String>, ModelFailure> {
        let text = self.endpoint.get(self.wire.models_url(self.endpoint.base())).await?;
        listing::names(&text).ok_or_else(|| nonsense("what the provider answers is no list of models"))
    }

    /// Asks, and reads the stream up to the end of the answer. A request that the provider finds wrong is sent once
    /// more without what the model thought before: the part of it that most often can't be sent back.
    async fn listen(
        &self,
        request: &ModelRequest<'_>,
        reader: &mut dyn Reader,
        has_begun: &AtomicBool,
    ) -> Result<Heard, ModelFailure> {
        let Body { bytes, mut prefix, has_thoughts } = self.wire.body(request, Thoughts::Sent);
        let mut posted = self.endpoint.post(self.url.clone(), bytes, request.patience).await;
        let is_wrong =
            |refused: &Refused| refused.failure.class == ErrorClass::InvalidRequest && has_thoughts;
        if posted.as_ref().is_err_and(is_wrong) {
            let bare = self.wire.body(request, Thoughts::LeftOut);
            prefix = bare.prefix;
            posted = self.endpoint.post(self.url.clone(), bare.bytes, request.patience).await;
        }
        let mut stream = match posted {
            Ok(stream) => stream,
            // An error that is about the answer, and tells it.
            Err(Refused { failure, body }) => {
                let is_answer = matches!(reader.take(&body), Ok(Progress::Done));
                return if is_answer { Ok(Heard { stream: None, prefix }) } else { Err(failure) };
            }
        };
        has_begun.store(true, Ordering::Relaxed);
        match read(&mut stream, reader).await {
            Ok(()) => Ok(Heard { stream: Some(stream), prefix }),
            Err(failure) => Err(stream.named(failure)),
        }
    }
}

fn speak(options: &ProviderOptions) -> Box<dyn Wire> {
    let (model, reasoning) = (options.model.clone(), options.reasoning);
    let deviations = options.provider.deviations;
    match options.provider.wire {
        WireFormat::Anthropic => Box::new(Anthropic::new(model, reasoning)),
        WireFormat::OpenaiChat if needs_responses(options) => {
            Box::new(OpenaiResponses::new(model, reasoning, deviations))
        }
        WireFormat::OpenaiResponses => Box::new(OpenaiResponses::new(model, reasoning, deviations)),
        WireFormat::OpenaiChat => Box::new(OpenaiChat::new(model, reasoning, deviations)),
        WireFormat::Gemini => Box::new(Gemini::new(model, reasoning)),
    }
}

/// Whether the model takes tools beside an effort only over Responses, which are spoken at the same address.
fn needs_responses(options: &ProviderOptions) -> bool {
    options.provider.responses_at.as_ref() == Some(&options.provider.base_url)
        && gpt_version(&options.model).is_some_and(|version| version >= TOOLS_WITHOUT_EFFORT_FROM)
}

/// A stream whose answer has been read.
struct Heard {
    /// Absent where the answer came as an error.
    stream: Option<EventStream>,
    /// What the request came to that it answers.
    prefix: Option<PrefixHash>,
}

/// Has what the model thought name the request that it was an answer to.
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
            // What it took would have been told; the answer counts without.
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
        let mut reader = self.wire.reader(&request, deltas);
        let has_begun = AtomicBool::new(false);
        let listened = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(ModelFailure::new(ErrorClass::Aborted, "cancelled while the model was answering")),
            listened = self.listen(&request, &mut *reader, &has_begun) => listened,
        };
        let usage = counted(&*reader, &request);
        let answer = match listened {
            Ok(Heard { stream, prefix }) => {
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
                let is_paid_for = has_begun.into_inner() && may_have_worked(failure.class);
                let usage = discarded(&*reader, &request, is_paid_for);
                Err(self.endpoint.presentable(failure, usage))
            }
        }
    }
}

/// What the provider reported; estimated where it has said something and reported nothing.
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

/// What a call took that gave no answer: without a final report the larger of what was reported so far and what it can
/// have come to at most.
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

/// Whether a call that failed like this, after the provider took it, may have had the model work: unless the provider
/// says itself that it failed.
const fn may_have_worked(class: ErrorClass) -> bool {
    matches!(class, ErrorClass::Cut | ErrorClass::Stalled | ErrorClass::Aborted | ErrorClass::Nonsense)
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
