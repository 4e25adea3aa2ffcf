//! The requirements on every provider, for all wire formats: helpers of the tests called `matrix_*`.

use std::sync::Arc;

use async_trait::async_trait;
use provost_engine::Answer;
use provost_event::{Block, Certainty, Elapsed, ErrorClass, ModelFailure, Timestamp, Usage};
use provost_harness::{Clock, Model as _, Part, SimulatedClock};
use provost_llm::{ModelLimits, ProviderModel, ProviderOptions};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::server::{Reply, Server, chunk};
use crate::speaker::{Event, Neutral, Speaker, stream};
use crate::support::{self, Conversation, DeltaRecorder, in_time};

/// Turns each function into a test for each provider.
macro_rules! for_every_provider {
    ($($name:ident),+ $(,)?) => {
        $(mod $name {
            use crate::speaker::{Anthropic, Gemini, OpenaiChat, OpenaiResponses};

            #[tokio::test]
            async fn anthropic() {
                super::$name(&Anthropic).await;
            }

            #[tokio::test]
            async fn openai_responses() {
                super::$name(&OpenaiResponses).await;
            }

            #[tokio::test]
            async fn openai_chat() {
                super::$name(&OpenaiChat).await;
            }

            #[tokio::test]
            async fn gemini() {
                super::$name(&Gemini).await;
            }
        })+
    };
}
pub(crate) use for_every_provider;

/// A clock that stands still and counts its reads.
pub(crate) struct ReadClock {
    pub(crate) still: Arc<SimulatedClock>,
    reads: watch::Sender<usize>,
}

impl ReadClock {
    pub(crate) async fn until_read(&self, times: usize) {
        self.reads.subscribe().wait_for(|reads| *reads >= times).await.unwrap();
    }
}

#[async_trait]
impl Clock for ReadClock {
    fn now(&self) -> Timestamp {
        self.still.now()
    }

    fn monotonic(&self) -> Elapsed {
        self.reads.send_modify(|reads| *reads += 1);
        self.still.monotonic()
    }

    async fn sleep_until(&self, due: Elapsed) {
        self.still.sleep_until(due).await;
    }
}

/// A provider behind a server, a client, and its request.
pub(crate) struct Scene {
    pub(crate) server: Server,
    pub(crate) model: ProviderModel,
    pub(crate) conversation: Conversation,
}

impl Scene {
    pub(crate) async fn new(speaker: &dyn Speaker, replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::limited(speaker, replies, ModelLimits::default()).await
    }

    pub(crate) async fn limited(
        speaker: &dyn Speaker,
        replies: impl IntoIterator<Item = Reply>,
        limits: ModelLimits,
    ) -> Self {
        let server = Server::start(replies.into_iter().collect::<Vec<_>>()).await;
        let options = ProviderOptions { limits, ..options(speaker, &server.url()) };
        let model = ProviderModel::new(options).unwrap();
        Self { server, model, conversation: Conversation::new("go") }
    }

    /// With a clock that stands still.
    pub(crate) async fn timed(speaker: &dyn Speaker, reply: Reply) -> (Self, Arc<ReadClock>) {
        let server = Server::start([reply]).await;
        let clock = Arc::new(ReadClock { still: support::still_clock().0, reads: watch::Sender::new(0) });
        let by_clock: Arc<dyn Clock> = Arc::<ReadClock>::clone(&clock);
        let options = ProviderOptions { clock: by_clock, ..options(speaker, &server.url()) };
        let model = ProviderModel::new(options).unwrap();
        (Self { server, model, conversation: Conversation::new("go") }, clock)
    }

    pub(crate) async fn ask(&self) -> Result<Answer, ModelFailure> {
        self.conversation.ask(&self.model).await
    }

    /// Sends the request and receives the answer; can be cancelled.
    pub(crate) async fn hear(
        &self,
        heard: &DeltaRecorder,
        cancel: &CancellationToken,
    ) -> Result<Answer, ModelFailure> {
        in_time(self.model.answer(self.conversation.request(), heard, cancel)).await
    }

    /// Fails, and the client has closed the connection though the model still exists.
    pub(crate) async fn fails_and_closes(&self) -> ModelFailure {
        let failure = self.ask().await.unwrap_err();
        self.server.until(|seen| seen.closed == seen.accepted).await;
        failure
    }
}

pub(crate) fn options(speaker: &dyn Speaker, base_url: &str) -> ProviderOptions {
    ProviderOptions { provider: speaker.provider(base_url), ..support::options(speaker.wire(), base_url) }
}

/// The provider's request id in the response headers.
pub(crate) fn request_id(speaker: &dyn Speaker) -> Option<String> {
    speaker.request_id_header().map(|_| "req_head".to_owned())
}

/// The header with that id.
pub(crate) fn request_id_line(speaker: &dyn Speaker) -> String {
    speaker.request_id_header().map(|header| format!("{header}: req_head\r\n")).unwrap_or_default()
}

/// The head of a streamed answer.
pub(crate) fn head(speaker: &dyn Speaker) -> Vec<u8> {
    let id = request_id_line(speaker);
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{id}transfer-encoding: chunked\r\n\r\n")
        .into()
}

/// The beginning of a streamed answer that isn't over.
pub(crate) fn begun(speaker: &dyn Speaker, stream: impl AsRef<[u8]>) -> Vec<u8> {
    let mut out = head(speaker);
    if !stream.as_ref().is_empty() {
        out.extend(chunk(stream.as_ref()));
    }
    out
}

/// A streamed answer from beginning to end, in these chunks.
pub(crate) fn streamed<'a>(speaker: &dyn Speaker, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut out = head(speaker);
    chunks.into_iter().for_each(|bytes| out.extend(chunk(bytes)));
    out.extend_from_slice(b"0\r\n\r\n");
    out
}

pub(crate) fn whole(speaker: &dyn Speaker, events: &[Event]) -> Reply {
    Reply::Whole(streamed(speaker, [stream(events).as_bytes()]))
}

/// An answer's content, without provider-specific parts.
pub(crate) fn said(answer: &Answer) -> Vec<Neutral> {
    Neutral::of(&answer.content)
}

/// Estimated tokens of this many bytes.
pub(crate) fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(4) as u64
}

/// The usage of a call whose answer breaks off after `event`: as reported, and never less than the possible
/// maximum.
pub(crate) fn taken(event: Option<&Event>, conversation: &Conversation) -> Usage {
    let (mut usage, written) = event.map_or((Usage::default(), 0), |event| (event.usage, event.written));
    if usage.prompt_tokens() == 0 {
        usage.input_tokens = bytes_of(conversation).div_ceil(3) as u64;
    }
    usage.output_tokens = usage.output_tokens.max(written.div_ceil(3) as u64);
    Usage { certainty: Certainty::Estimated, ..usage }
}

/// The estimated usage of an answer without a report.
pub(crate) fn counted(event: &Event, conversation: &Conversation) -> Usage {
    let (input_tokens, output_tokens) = (tokens(bytes_of(conversation)), tokens(event.written));
    Usage { input_tokens, output_tokens, certainty: Certainty::Estimated, ..Usage::default() }
}

fn bytes_of(conversation: &Conversation) -> usize {
    let texts = conversation.messages.iter().flat_map(|message| &message.parts).map(|part| match part {
        Part::Block(Block::Text(text)) => text.len(),
        other => panic!("{other:?}"),
    });
    let tools = conversation.tools.iter().map(|tool| tool.description.len() + tool.input_schema.text().len());
    conversation.system.len() + texts.sum::<usize>() + tools.sum::<usize>()
}

/// Checks that `after` begins with `before` up to the end of its messages, followed by another one; returns the
/// common part, and the rest of `before`.
pub(crate) fn grown<'a>(before: &'a [u8], after: &[u8]) -> (&'a [u8], &'a [u8]) {
    let common = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    let (same, rest) = before.split_at(common);
    let (end, next) = (rest.first(), after.get(common));
    assert_eq!((end, next), (Some(&b']'), Some(&b',')), "{}", String::from_utf8_lossy(same));
    (same, rest)
}

/// The possible classes of a status.
pub(crate) const fn classes(status: u16) -> &'static [ErrorClass] {
    match status {
        401 => &[ErrorClass::Unauthorized],
        403 => &[ErrorClass::Forbidden],
        404 => &[ErrorClass::NotFound],
        408 | 409 | 500 | 502 => &[ErrorClass::Server],
        413 => &[ErrorClass::ContextTooLong],
        429 => &[ErrorClass::RateLimited],
        // Some providers send it when they are overloaded.
        503 => &[ErrorClass::Server, ErrorClass::Overloaded],
        529 => &[ErrorClass::Overloaded],
        _ => &[ErrorClass::InvalidRequest],
    }
}
