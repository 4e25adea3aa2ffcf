//! One model call from its grant to its charge. It runs in a task of its own, so that it is charged whatever becomes of
//! the program's connection.

use std::io;
use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{Response, StatusCode};
use bytes::Bytes;
use provost_engine::ExternalCallResult;
use provost_event::{
    Certainty, Elapsed, ErrorClass, ExternalCallEnd, Json, ModelFailure, RequestedTool, ToolCall, Usage,
};
use provost_harness::GatewayFailure;
use provost_llm::{
    KeyFilter, StreamObserver, Upstream, UpstreamError, UpstreamRequest, WireFormat, observed_error,
};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;

use crate::activity::{CallBeginning, CallEnd};
use crate::answer::{self, Head};
use crate::gateway::Shared;
use crate::refusal::Refusal;
use crate::session::ProgramAccess;
use crate::source::CallSource;
use crate::usage_filter::UsageFilter;

/// Headers in which providers name a request.
const REQUEST_IDS: [&str; 4] = ["request-id", "x-request-id", "x-goog-request-id", "cf-ray"];
/// Maximum characters of a failure's message in the log.
const MESSAGE_CHARS_MAX: usize = 1_000;
/// Maximum characters of a request id.
const REQUEST_ID_CHARS_MAX: usize = 200;

/// A call that has its budget.
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) wire: WireFormat,
    /// Whether a stream was asked for, which a provider ends with its connection. Any other answer is generated to its
    /// end, and paid, also where nothing waits for it: it is read to its end, too.
    pub(crate) streams: bool,
    pub(crate) input_tokens: u64,
    /// Whether the usage in the stream is hidden from the program.
    pub(crate) hides_usage: bool,
}

/// What performs a call.
pub(crate) struct Pump {
    pub(crate) shared: Arc<Shared>,
    pub(crate) program: Arc<ProgramAccess>,
    pub(crate) source: CallSource,
    pub(crate) call: Call,
    /// The request counts as open until this is dropped.
    pub(crate) _room: OwnedSemaphorePermit,
}

/// When a call began.
#[derive(Clone, Copy)]
struct CallStart {
    at: Elapsed,
    beginning: CallBeginning,
}

/// What the program gets first.
type FirstPart = Result<(Head, mpsc::Receiver<io::Result<Bytes>>), Refusal>;

/// What is known at the end of a call.
struct CallResult {
    end: ExternalCallEnd,
    usage: Usage,
    status: Option<u16>,
    request_id: Option<String>,
    calls: Vec<ToolCall>,
    /// The answer's bytes, as far as they are kept.
    kept: Vec<u8>,
}

impl CallResult {
    fn of(end: ExternalCallEnd, usage: Usage) -> Self {
        Self { end, usage, status: None, request_id: None, calls: Vec::new(), kept: Vec::new() }
    }
}

/// How the body of an answer ended.
enum BodyEnd {
    Complete,
    Cut(String),
    GivenUp,
}

impl Pump {
    /// Sends the request, and returns the answer once it has begun.
    pub(crate) async fn start(self, request: UpstreamRequest) -> Result<Response<Body>, Refusal> {
        let (head, first) = oneshot::channel();
        let calls = self.program.calls.clone();
        calls.spawn(self.run(request, head));
        match first.await {
            Ok(Ok((head, pieces))) => Ok(head.with(Body::from_stream(ReceiverStream::new(pieces)))),
            Ok(Err(refusal)) => Err(refusal),
            Err(_) => Err(Refusal::of_run("the run is being stopped, and the call was ended")),
        }
    }

    async fn run(self, request: UpstreamRequest, mut head: oneshot::Sender<FirstPart>) {
        let clock = &self.shared.options.clock;
        let started = CallStart { at: clock.monotonic(), beginning: self.program.activity.begins() };
        let response = tokio::select! {
            biased;
            () = self.program.cancel.cancelled() => None,
            () = head.closed(), if self.call.streams => None,
            response = self.source.send(&self.shared, request) => Some(response),
        };
        match response {
            None => self.settle(CallResult::of(ExternalCallEnd::Aborted, self.unanswered()), started).await,
            Some(Err(error)) => {
                let result = self.unreachable(&error);
                self.settle(result, started).await;
                // It is the call's own failure, which is recorded.
                let refusal = Refusal::new(StatusCode::BAD_GATEWAY, error.to_string());
                let _ = head.send(Err(Refusal { is_failure: false, ..refusal }));
            }
            Some(Ok(response)) => self.pass(response, head, started).await,
        }
    }

    /// Passes the answer on, and settles before the program sees its end.
    async fn pass(self, response: reqwest::Response, head: oneshot::Sender<FirstPart>, started: CallStart) {
        let status = response.status();
        let request_id = request_id(&response);
        let (sender, pieces) = mpsc::channel(self.shared.options.limits.pieces_max);
        let mut first = Head::of(&response, self.source.provider());
        if self.call.hides_usage {
            first.headers.remove(CONTENT_LENGTH);
        }
        let streams = is_stream(&response);
        if head.send(Ok((first, pieces))).is_err() && self.call.streams {
            let aborted = CallResult::of(ExternalCallEnd::Aborted, self.unanswered());
            return self.settle(CallResult { status: Some(status.as_u16()), ..aborted }, started).await;
        }
        let is_encoded = is_encoded(&response);
        let mut body = PassingBody::new(&self, streams && status.is_success());
        let end = body.pass(response, &sender).await;
        let mut result = body.result(status, end);
        if is_encoded && status.is_success() {
            result.usage = Usage::unconfirmed();
        }
        result.status = Some(status.as_u16());
        result.request_id = request_id;
        let broken = match &result.end {
            ExternalCallEnd::Failed { class: ErrorClass::Cut, message } => Some(message.clone()),
            _ => None,
        };
        self.settle(result, started).await;
        if let Some(message) = broken.filter(|_| status.is_success()) {
            let _ = sender.send(Err(io::Error::other(message))).await;
        }
    }

    /// The usage of a call that may have been worked on, and of whose answer nothing was seen. Without a stream it may
    /// be all that was granted.
    fn unanswered(&self) -> Usage {
        if !self.call.streams {
            return Usage::unconfirmed();
        }
        Usage { input_tokens: self.call.input_tokens, certainty: Certainty::Estimated, ..Usage::default() }
    }

    fn unreachable(&self, error: &UpstreamError) -> CallResult {
        let (class, usage) = match error {
            UpstreamError::Unreachable { .. } => (ErrorClass::Transport, Usage::default()),
            UpstreamError::Silent { .. } => (ErrorClass::Silent, self.unanswered()),
        };
        CallResult::of(ExternalCallEnd::Failed { class, message: error.to_string() }, usage)
    }

    async fn settle(&self, result: CallResult, started: CallStart) {
        let CallResult { end, usage, status, request_id, calls, kept } = result;
        let limits = self.shared.options.limits;
        let shown = match &end {
            ExternalCallEnd::Answered => CallEnd::Answered,
            ExternalCallEnd::Aborted | ExternalCallEnd::Lost => CallEnd::GivenUp,
            ExternalCallEnd::Failed { class, message } => {
                CallEnd::Failed(GatewayFailure { class: *class, status, message: self.shown(message) })
            }
        };
        let end = match end {
            ExternalCallEnd::Failed { class, message } => {
                ExternalCallEnd::Failed { class, message: self.shown(&message) }
            }
            end => end,
        };
        let body = answer::record(&self.shared, &kept).await;
        let tools = calls.into_iter().take(limits.tools_max).map(|call| self.requested(call)).collect();
        let duration_ms = self.shared.options.clock.monotonic().since_ms(started.at);
        let result = ExternalCallResult {
            usage,
            status,
            request_id,
            duration_ms,
            tools,
            body,
            ..ExternalCallResult::new(self.call.id.clone(), end)
        };
        self.program.activity.ends(started.beginning, shown);
        self.program.budget.settle(result).await;
    }

    fn shown(&self, message: &str) -> String {
        let message = self.source.scrub(message);
        let message = self.shared.options.redactor.redact(&message);
        message.chars().take(MESSAGE_CHARS_MAX).collect()
    }

    /// A requested tool for the log: without secrets, and not too long.
    fn requested(&self, call: ToolCall) -> RequestedTool {
        let redactor = &self.shared.options.redactor;
        let input = redactor.redact_json(call.input.text()).into_owned();
        let most = self.shared.options.limits.tool_bytes_max;
        let input = if input.len() <= most {
            input
        } else {
            let cut = input.chars().take(most / 4).collect::<String>();
            serde_json::Value::from(cut).to_string()
        };
        let input = Json::parse(input).unwrap_or_else(|_| Json::empty_object());
        RequestedTool { name: redactor.redact(&call.name).into_owned(), input }
    }
}

fn is_stream(response: &reqwest::Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream"))
}

/// Whether the answer is in an encoding that wasn't asked for, so that its usage can't be read.
fn is_encoded(response: &reqwest::Response) -> bool {
    response.headers().get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity")
}

fn request_id(response: &reqwest::Response) -> Option<String> {
    let text = |name: &str| response.headers().get(name)?.to_str().ok();
    let id = REQUEST_IDS.iter().find_map(|name| text(name))?;
    Some(id.chars().take(REQUEST_ID_CHARS_MAX).collect())
}

/// The body of one answer on its way.
struct PassingBody<'a> {
    pump: &'a Pump,
    observer: StreamObserver,
    streams: bool,
    key: KeyFilter,
    filter: Option<UsageFilter>,
    kept: Vec<u8>,
}

impl<'a> PassingBody<'a> {
    fn new(pump: &'a Pump, streams: bool) -> Self {
        let filter = (streams && pump.call.hides_usage).then(UsageFilter::default);
        let key = pump.source.provider().map(Upstream::key_filter).unwrap_or_default();
        Self { pump, observer: StreamObserver::new(pump.call.wire), streams, key, filter, kept: Vec::new() }
    }

    /// Passes each piece on as it arrives, without the key.
    async fn pass(
        &mut self,
        mut response: reqwest::Response,
        sender: &mpsc::Sender<io::Result<Bytes>>,
    ) -> BodyEnd {
        let gap = self.pump.shared.options.limits.gap;
        loop {
            let piece = tokio::select! {
                biased;
                () = self.pump.program.cancel.cancelled() => return BodyEnd::GivenUp,
                () = sender.closed(), if self.pump.call.streams => return BodyEnd::GivenUp,
                piece = tokio::time::timeout(gap, response.chunk()) => piece,
            };
            let piece = match piece {
                Ok(Ok(Some(piece))) => piece,
                Ok(Ok(None)) => break,
                Ok(Err(error)) => {
                    return BodyEnd::Cut(format!("the connection broke in the middle: {error}"));
                }
                Err(_) => return BodyEnd::Cut("nothing more arrived".to_owned()),
            };
            self.keep(&piece);
            let piece = self.key.push(piece);
            if !self.send(piece, sender).await {
                return BodyEnd::GivenUp;
            }
        }
        let rest = self.key.rest();
        let is_sent = self.send(rest, sender).await;
        let rest = self.filter.take().map(UsageFilter::rest).unwrap_or_default();
        match is_sent && self.send(rest.into(), sender).await {
            true => BodyEnd::Complete,
            false => BodyEnd::GivenUp,
        }
    }

    /// Returns whether the answer is still read.
    async fn send(&mut self, piece: Bytes, sender: &mpsc::Sender<io::Result<Bytes>>) -> bool {
        let piece = match &mut self.filter {
            Some(filter) => Bytes::from(filter.push(&piece)),
            None => piece,
        };
        if piece.is_empty() {
            return true;
        }
        tokio::select! {
            biased;
            () = self.pump.program.cancel.cancelled() => false,
            sent = sender.send(Ok(piece)) => sent.is_ok() || !self.pump.call.streams,
        }
    }

    fn keep(&mut self, piece: &[u8]) {
        if self.streams {
            self.observer.push(piece);
        }
        let limits = self.pump.shared.options.limits;
        let is_needed = !self.streams || self.pump.shared.options.records;
        if is_needed && self.kept.len().saturating_add(piece.len()) <= limits.answer_bytes_max {
            self.kept.extend_from_slice(piece);
        }
    }

    fn result(self, status: StatusCode, end: BodyEnd) -> CallResult {
        let Self { pump, mut observer, streams, kept, .. } = self;
        let text = String::from_utf8_lossy(&kept);
        if !status.is_success() {
            let failure = observed_error(pump.call.wire, status.as_u16(), &text);
            let end = ExternalCallEnd::Failed { class: failure.class, message: failure.message };
            return CallResult { kept, ..CallResult::of(end, Usage::default()) };
        }
        if !streams && matches!(end, BodyEnd::Complete) {
            observer.whole(&text);
        }
        let is_complete = observer.is_complete();
        let mut observed = observer.finish(pump.call.input_tokens);
        if !pump.call.streams && !is_complete {
            observed.usage = Usage::unconfirmed();
        }
        let end = match (end, observed.failure) {
            // A program may close the connection once it has the whole answer.
            (BodyEnd::GivenUp, _) if is_complete => ExternalCallEnd::Answered,
            (BodyEnd::GivenUp, _) => ExternalCallEnd::Aborted,
            (BodyEnd::Cut(_), _) if is_complete => ExternalCallEnd::Answered,
            (BodyEnd::Cut(message), _) => ExternalCallEnd::Failed { class: ErrorClass::Cut, message },
            (BodyEnd::Complete, Some(ModelFailure { class, message, .. })) => {
                ExternalCallEnd::Failed { class, message }
            }
            (BodyEnd::Complete, None) => ExternalCallEnd::Answered,
        };
        CallResult { calls: observed.calls, kept, ..CallResult::of(end, observed.usage) }
    }
}
