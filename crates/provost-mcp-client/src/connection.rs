//! A connection to a server, in whichever revision of the protocol it understands.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::Duration;

use provost_event::Exit;
use provost_process::Confinement;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientRequest, ElicitResult, ElicitationAction,
    InputRequest, ListToolsRequest, PaginatedRequestParams, ProtocolVersion, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, RoleClient, RunningService,
    ServiceError,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::{sleep, timeout};

use crate::definition::Listed;
use crate::handler::{Handler, Question, question_of};
use crate::http::{HttpTransport, login_trouble};
use crate::oauth::tokens;
use crate::setup::{Reach, ServerSetup};
use crate::shown::revealed;
use crate::stdio::{NotSent, ProgramReport, ProgramTransport, with_causes};

/// How long a server may take to answer whether it speaks the current revision. Older ones may not answer at all.
const DISCOVER_MAX: Duration = Duration::from_secs(3);
/// How long a server may take to begin; it may be fetched first.
const BEGIN_MAX: Duration = Duration::from_secs(60);
/// How long a server may take to list its tools.
const LIST_MAX: Duration = Duration::from_secs(60);
/// Pages of a list of tools.
const PAGES_MAX: usize = 100;
/// How often a server may ask the user in one call.
const ASKED_MAX: u32 = 10;
/// Questions that it may ask at the same time.
const QUESTIONS_MAX: usize = 10;
/// Bytes of the state that a server wants back; it is kept in the log.
const STATE_BYTES_MAX: usize = 256 * 1024;
/// How often a call is made again for a server that only wants to be asked later.
const LATER_MAX: u32 = 5;
const LATER: Duration = Duration::from_secs(1);
/// Characters of a server's texts in errors.
const ERROR_CHARS_MAX: usize = 2_000;

/// How a connection begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lifecycle {
    /// As of 2026-07-28: the server is asked what it is, and each request says the rest.
    Discover,
    /// As before: a handshake.
    Initialize,
}

impl Lifecycle {
    fn mode(self) -> ClientLifecycleMode {
        match self {
            Self::Discover => {
                ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
            }
            Self::Initialize => ClientLifecycleMode::Initialize,
        }
    }
}

/// A server can't be connected to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the MCP server {server} can't be reached: {why}")]
pub struct ConnectError {
    /// The server.
    pub server: String,
    /// Why, with the end of what its program wrote on standard error.
    pub why: String,
}

/// A call that got no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallFailure {
    /// The server answered that it failed.
    Answered(String),
    /// The connection is gone: whether the call was made isn't known.
    Lost(String),
    /// The request couldn't be sent: the call wasn't made.
    Unsent(String),
}

/// What a call led to.
pub(crate) enum CallEnd {
    Done(Box<CallToolResult>),
    /// The server asks the user something first.
    Asks(Waiting),
    /// The server asked for what it isn't given, and ended the call.
    Refused(String, Box<CallToolResult>),
}

/// A call that waits for answers of the user; kept as the tool's state meanwhile, for days if need be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Waiting {
    /// The server's state, handed back as it is.
    request_state: Option<String>,
    /// The answers so far.
    given: BTreeMap<String, Value>,
    /// What is still asked, the next first.
    open: Vec<(String, Question)>,
    /// Whether the server asks by itself during the call, which is then made anew.
    is_older: bool,
    /// How often it has asked in this call.
    #[serde(default)]
    times: u32,
}

/// The fields of the user's answer to a question of a server. One that declines isn't passed on: the call isn't made
/// again.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct UsersAnswer(pub(crate) Value);

impl UsersAnswer {
    fn result(&self) -> ElicitResult {
        ElicitResult::new(ElicitationAction::Accept).with_content(self.0.clone())
    }
}

impl Waiting {
    /// The question that is next.
    pub(crate) fn question(&self) -> Option<&Question> {
        self.open.first().map(|(_, question)| question)
    }

    /// Takes the answer to the next question. Returns whether others are open.
    pub(crate) fn answer(&mut self, answer: &UsersAnswer) -> bool {
        if !self.open.is_empty() && !self.is_older {
            let (key, _) = self.open.remove(0);
            self.given.insert(key, serde_json::to_value(answer.result()).unwrap_or_default());
        }
        !self.open.is_empty() && !self.is_older
    }

    fn prepared(&self, answer: &UsersAnswer) -> Option<(Question, ElicitResult)> {
        let (_, question) = self.open.first().filter(|_| self.is_older)?;
        Some((question.clone(), answer.result()))
    }
}

/// A call of a tool.
pub(crate) struct Call {
    pub(crate) tool: String,
    pub(crate) arguments: Map<String, Value>,
    /// What the call waited for, with the user's last answer.
    pub(crate) waited: Option<(Waiting, UsersAnswer)>,
}

/// A connection to a server.
pub(crate) struct Connection {
    server: String,
    reach: Reach,
    service: RunningService<RoleClient, Handler>,
    handler: Handler,
    report: ProgramReport,
    pub(crate) lifecycle: Lifecycle,
    /// The revision of the protocol.
    pub(crate) protocol: String,
    /// What the server calls itself, with its version.
    pub(crate) calls_itself: String,
}

/// An attempt to connect that failed.
struct Failed {
    why: String,
    kind: FailureKind,
}

/// What an attempt to connect failed at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FailureKind {
    /// The server answered, and only not as this way of connecting wants it.
    Answer,
    /// The user's login: no other way of connecting gets further.
    Login,
    /// Anything else.
    Other,
}

impl Connection {
    /// Connects, first in the way that worked before. Any failure of the current revision's way leads to the older one.
    ///
    /// # Errors
    /// When no way works.
    pub(crate) async fn open(
        setup: &ServerSetup,
        confinement: &Confinement,
        remembered: Option<Lifecycle>,
    ) -> Result<Self, ConnectError> {
        let begin = |lifecycle, limit| Self::begin(setup, confinement, lifecycle, limit);
        let (first, second) = match remembered {
            Some(Lifecycle::Initialize) => (Lifecycle::Initialize, Lifecycle::Discover),
            Some(Lifecycle::Discover) | None => (Lifecycle::Discover, Lifecycle::Initialize),
        };
        let limit = if remembered.is_some() { BEGIN_MAX } else { DISCOVER_MAX };
        match begin(first, limit).await {
            Ok(connection) => return Ok(connection),
            Err(error) if error.kind == FailureKind::Login => {
                return Err(ConnectError { server: setup.name.clone(), why: error.why });
            }
            Err(error) => {
                tracing::debug!(server = setup.name, why = error.why, "connecting by {first:?} failed");
            }
        }
        let mut found = begin(second, BEGIN_MAX).await;
        if remembered.is_none() && found.as_ref().is_err_and(|error| error.kind == FailureKind::Answer) {
            // It was only slow to begin.
            found = begin(first, BEGIN_MAX).await;
        }
        found.map_err(|error| ConnectError { server: setup.name.clone(), why: error.why })
    }

    async fn begin(
        setup: &ServerSetup,
        confinement: &Confinement,
        lifecycle: Lifecycle,
        limit: Duration,
    ) -> Result<Self, Failed> {
        let report = ProgramReport::default();
        let handler = Handler::default();
        let unstarted = |why: String| Failed { why, kind: FailureKind::Other };
        let begun = match &setup.reach {
            Reach::Program { .. } => {
                let transport =
                    ProgramTransport::start(&setup.reach, confinement.clone(), ProgramReport::clone(&report));
                let transport = transport.await.map_err(unstarted)?;
                timeout(limit, handler.clone().serve_with_lifecycle(transport, lifecycle.mode())).await
            }
            Reach::Http { url, headers, login } => {
                let transport = HttpTransport::new(url, headers, login).await.map_err(unstarted)?;
                let handler = handler.clone();
                match transport {
                    HttpTransport::Plain(transport) => {
                        timeout(limit, handler.serve_with_lifecycle(transport, lifecycle.mode())).await
                    }
                    HttpTransport::LoggedIn(transport) => {
                        timeout(limit, handler.serve_with_lifecycle(transport, lifecycle.mode())).await
                    }
                }
            }
        };
        let service = match begun {
            Ok(Ok(service)) => service,
            Ok(Err(error)) => return Err(failed_to_begin(&error, &setup.name, &report).await),
            Err(_) => {
                let why = format!("it didn't answer within {} s", limit.as_secs());
                return Err(Failed { why: with_stderr(why, &report).await, kind: FailureKind::Other });
            }
        };
        let info = service.peer_info();
        let named = info.as_ref().and_then(|info| info.server_info.as_ref());
        let named = named.map(|it| revealed(&format!("{} {}", it.name, it.version)).replace('\n', "\\n"));
        Ok(Self {
            server: setup.name.clone(),
            reach: setup.reach.clone(),
            protocol: info.as_ref().map(|info| info.protocol_version.to_string()).unwrap_or_default(),
            calls_itself: named.unwrap_or_default().chars().take(120).collect(),
            service,
            handler,
            report,
            lifecycle,
        })
    }

    /// Whether the server is gone.
    pub(crate) fn is_closed(&self) -> bool {
        self.service.is_transport_closed()
    }

    /// Whether the server has said that its tools are others, since the last time.
    pub(crate) fn take_list_changed(&self) -> bool {
        self.handler.news.take_list_changed()
    }

    /// The end of what its program wrote on standard error, and how it ended; empty while it runs.
    pub(crate) async fn last_words(&self) -> String {
        with_stderr(String::new(), &self.report).await
    }

    /// Lists its tools.
    ///
    /// # Errors
    /// Why that isn't possible.
    pub(crate) async fn list(&self) -> Result<Listed, CallFailure> {
        let late =
            |_| CallFailure::Answered(format!("it didn't list its tools within {} s", LIST_MAX.as_secs()));
        timeout(LIST_MAX, self.listed()).await.map_err(late)?
    }

    async fn listed(&self) -> Result<Listed, CallFailure> {
        let tokens = tokens(&self.reach);
        let mut listed = Listed::default();
        let mut cursor = None;
        for _ in 0..PAGES_MAX {
            let params = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
            let request = ListToolsRequest { params, ..ListToolsRequest::default() };
            let page = self.service.send_request(ClientRequest::ListToolsRequest(request)).await;
            let page = raw_page(page.map_err(|error| failure(error, &self.server))?);
            listed.read(&self.server, &page.0, &tokens);
            match page.1 {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        Ok(listed)
    }

    /// Calls a tool. When this is dropped the server is told that the call is cancelled.
    ///
    /// # Errors
    /// A call without a result.
    pub(crate) async fn call(&self, call: Call) -> Result<CallEnd, CallFailure> {
        let times = call.waited.as_ref().map_or(0, |(waiting, _)| waiting.times).saturating_add(1);
        let prepared = call.waited.as_ref().and_then(|(waiting, answer)| waiting.prepared(answer));
        let _open = self.handler.news.begin(prepared);
        let mut params = CallToolRequestParams::new(call.tool).with_arguments(call.arguments);
        if let Some((waiting, _)) = call.waited.filter(|(waiting, _)| !waiting.is_older) {
            params.input_responses = Some(waiting.given);
            params.request_state = waiting.request_state;
        }
        for _ in 0..LATER_MAX {
            let answer = self.service.call_tool_once(params.clone()).await;
            match answer.map_err(|error| failure(error, &self.server))? {
                CallToolResponse::Complete(result) => return self.end_of(Box::new(result), times),
                CallToolResponse::InputRequired(required) => {
                    let requests = required.input_requests.unwrap_or_default();
                    if !requests.is_empty() {
                        return asked(requests, required.request_state, times);
                    }
                    params.request_state = required.request_state;
                    sleep(LATER).await;
                }
                _ => {
                    let why = "it answered with a task, which Provost doesn't follow";
                    return Err(CallFailure::Answered(why.to_owned()));
                }
            }
        }
        Err(CallFailure::Answered("it only asks to be called later".to_owned()))
    }

    fn end_of(&self, result: Box<CallToolResult>, times: u32) -> Result<CallEnd, CallFailure> {
        match self.handler.news.take_question() {
            None => Ok(CallEnd::Done(result)),
            Some(Err(why)) => Ok(CallEnd::Refused(why, result)),
            Some(Ok(_)) if times > ASKED_MAX => Err(asks_on()),
            Some(Ok(question)) => Ok(CallEnd::Asks(Waiting {
                request_state: None,
                given: BTreeMap::new(),
                open: vec![(String::new(), question)],
                is_older: true,
                times,
            })),
        }
    }

    /// Ends the connection, and the server's program with it.
    pub(crate) async fn end(mut self) {
        let _ = self.service.close().await;
    }
}

fn asks_on() -> CallFailure {
    CallFailure::Answered(format!("it has asked the user {ASKED_MAX} times in this call, and asks on"))
}

fn asked(
    requests: BTreeMap<String, InputRequest>,
    request_state: Option<String>,
    times: u32,
) -> Result<CallEnd, CallFailure> {
    if times > ASKED_MAX || requests.len() > QUESTIONS_MAX {
        return Err(asks_on());
    }
    if request_state.as_ref().is_some_and(|state| state.len() > STATE_BYTES_MAX) {
        let why = format!("the state that it wants back has more than {STATE_BYTES_MAX} bytes");
        return Err(CallFailure::Answered(why));
    }
    let mut open = Vec::new();
    for (key, request) in requests {
        match request {
            InputRequest::Elicitation(request) => match question_of(&request.params) {
                Ok(question) => open.push((key, question)),
                Err(why) => return Err(CallFailure::Answered(why)),
            },
            _ => {
                let why = "it asks for a model's answer or for folders, which Provost gives no server";
                return Err(CallFailure::Answered(why.to_owned()));
            }
        }
    }
    Ok(CallEnd::Asks(Waiting { request_state, given: BTreeMap::new(), open, is_older: false, times }))
}

/// The definitions of a page as they were sent, and where the next one begins. A page with something that the protocol
/// doesn't know is read too: each tool is judged by itself.
fn raw_page(result: ServerResult) -> (Vec<Value>, Option<String>) {
    let value = match result {
        ServerResult::CustomResult(custom) => custom.0,
        other => serde_json::to_value(other).unwrap_or_default(),
    };
    let tools = value.get("tools").and_then(Value::as_array).cloned().unwrap_or_default();
    let next = value.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
    (tools, next)
}

fn failure(error: ServiceError, server: &str) -> CallFailure {
    if let ServiceError::TransportSend(error) = &error
        && let Some(why) = login_trouble(&*error.error, server)
    {
        return CallFailure::Answered(why);
    }
    match error {
        ServiceError::McpError(error) => CallFailure::Answered(shortened(&error.message)),
        ServiceError::TransportSend(error) if error.error.is::<NotSent>() => {
            CallFailure::Unsent(NotSent.to_string())
        }
        ServiceError::TransportClosed => CallFailure::Lost("the connection was closed".to_owned()),
        ServiceError::UnexpectedResponse => {
            CallFailure::Answered("its answer isn't one to this request".to_owned())
        }
        other => CallFailure::Lost(shortened(&with_causes(&other))),
    }
}

fn shortened(text: &str) -> String {
    revealed(text).chars().take(ERROR_CHARS_MAX).collect()
}

async fn failed_to_begin(error: &ClientInitializeError, server: &str, report: &ProgramReport) -> Failed {
    if let ClientInitializeError::TransportError { error, .. } = error
        && let Some(why) = login_trouble(&*error.error, server)
    {
        return Failed { why, kind: FailureKind::Login };
    }
    let is_answer = matches!(
        error,
        ClientInitializeError::JsonRpcError(_)
            | ClientInitializeError::ExpectedInitResult(_)
            | ClientInitializeError::NoCompatibleProtocolVersion { .. }
    );
    let kind = if is_answer { FailureKind::Answer } else { FailureKind::Other };
    let why = match error {
        ClientInitializeError::ConnectionClosed(_) => "its program ended before it answered".to_owned(),
        ClientInitializeError::ExpectedInitResult(_) | ClientInitializeError::ExpectedInitResponse(_) => {
            "its answer isn't one of the protocol".to_owned()
        }
        other => shortened(&with_causes(other)),
    };
    Failed { why: with_stderr(why, report).await, kind }
}

fn ended(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("with the exit status {code}"),
        Exit::Signal(signal) => format!("by the signal {signal}"),
        Exit::Unseen => "unseen".to_owned(),
    }
}

/// `why`, with how the program ended and the last lines of its standard error.
async fn with_stderr(why: String, report: &ProgramReport) -> String {
    // The program is ended on a task of its own.
    for _ in 0..20 {
        if report.lock().unwrap_or_else(PoisonError::into_inner).exit.is_some() {
            break;
        }
        sleep(Duration::from_millis(10)).await;
    }
    let end = report.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut text = why;
    if let Some(exit) = end.exit {
        let gap = if text.is_empty() { "" } else { "; " };
        text.push_str(&format!("{gap}its program ended {}", ended(exit)));
    }
    let lines = end.stderr.lines().rev().take(5).collect::<Vec<_>>();
    if !lines.is_empty() {
        let last = lines.into_iter().rev().map(revealed).collect::<Vec<_>>().join("\n");
        text.push_str(&format!("; it wrote:\n{last:.1000}"));
    }
    text
}
