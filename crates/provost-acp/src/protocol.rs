//! Version 1 of the Agent Client Protocol: the only file that knows its types. Version 2 is a draft.

use std::path::PathBuf;
use std::sync::Arc;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, CancelNotification, CloseSessionRequest, CloseSessionResponse, ContentBlock,
    ContentChunk, Cost, Diff as ShownDiff, EmbeddedResourceResource, Implementation, InitializeRequest,
    InitializeResponse, ListSessionsRequest, ListSessionsResponse, LoadSessionRequest, LoadSessionResponse,
    McpServer, McpServerStdio, NewSessionRequest, NewSessionResponse, PermissionOption, PermissionOptionKind,
    Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus, PromptRequest, PromptResponse,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse, ResumeSessionRequest,
    ResumeSessionResponse, SessionCapabilities, SessionCloseCapabilities, SessionInfo, SessionInfoUpdate,
    SessionListCapabilities, SessionNotification, SessionResumeCapabilities, SessionUpdate, StopReason,
    SystemPrompt, ToolCall, ToolCallContent, ToolCallLocation, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields, ToolKind, UsageUpdate,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Client, Error, Lines};
use async_trait::async_trait;
use provost_event::{PlanItem, PlanStatus, RunId};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, ListedSession, Opened, SessionList};
use crate::editor::{
    Answer, Call, CallChange, CallKind, CallState, Choice, Content, Editor, Question, Text, Update, Used,
};
use crate::ending::{EndReason, Ending, Trouble, TroubleKind};
use crate::follow::Shown;
use crate::transport::{OnTheWay, incoming, outgoing};
use crate::{AcpError, AcpOptions, EditorServer, EditorServerReach};

/// The member of an answer's `_meta` with the reason of a denial.
const REASON: &str = "reason";
/// Currency of all costs.
const CURRENCY: &str = "USD";

type Done = Result<(), Error>;

/// Registers a request that is fulfilled beside others.
macro_rules! on {
    ($builder:expr, $serving:expr, $request:ty, $fulfil:path) => {{
        let serving: Serving = $serving.clone();
        $builder.on_receive_request(
            async move |request: $request, responder, connection: ConnectionTo<Client>| {
                let serving = serving.clone();
                let editor = serving.editor(&connection);
                connection.spawn(async move { respond(responder, $fulfil(serving, editor, request).await) })
            },
            agent_client_protocol::on_receive_request!(),
        )
    }};
}

/// Serves one editor.
pub(crate) async fn serve(
    options: AcpOptions,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), AcpError> {
    let serving = Serving { agent: Arc::new(Agent::new(options)), way: Arc::default() };
    let lines = Lines::new(outgoing(output, serving.way.clone()), incoming(input));
    let builder = agent_client_protocol::Agent.v1().name("provost");
    let builder = on!(builder, serving, InitializeRequest, initialize);
    let builder = on!(builder, serving, NewSessionRequest, new_session);
    let builder = on!(builder, serving, LoadSessionRequest, load_session);
    let builder = on!(builder, serving, ResumeSessionRequest, resume_session);
    let builder = on!(builder, serving, ListSessionsRequest, list_sessions);
    let builder = on!(builder, serving, CloseSessionRequest, close_session);
    let prompting = serving.clone();
    let builder = builder.on_receive_request(
        async move |request: PromptRequest,
                    responder: Responder<PromptResponse>,
                    connection: ConnectionTo<Client>| {
            let prompting = prompting.clone();
            connection.spawn(prompt(prompting, request, responder))
        },
        agent_client_protocol::on_receive_request!(),
    );
    let builder = builder.on_receive_notification(
        async move |cancelled: CancelNotification, connection: ConnectionTo<Client>| {
            let serving = serving.clone();
            connection.spawn(async move { cancel(&serving, &cancelled.session_id.0).await })
        },
        agent_client_protocol::on_receive_notification!(),
    );
    builder.connect_to(lines).await.map_err(|error| AcpError::Connection(error.to_string()))
}

/// What all requests share.
#[derive(Clone)]
struct Serving {
    agent: Arc<Agent>,
    way: Arc<OnTheWay>,
}

impl Serving {
    fn editor(&self, connection: &ConnectionTo<Client>) -> Arc<dyn Editor> {
        Arc::new(ConnectedEditor { connection: connection.clone(), way: self.way.clone() })
    }
}

/// Answers a request. A connection that is gone needs no answer.
fn respond<T: agent_client_protocol::JsonRpcResponse>(
    responder: Responder<T>,
    result: Result<T, Trouble>,
) -> Done {
    let _ = responder.respond_with_result(result.map_err(error));
    Ok(())
}

fn error(trouble: Trouble) -> Error {
    let Trouble { kind, words } = trouble;
    let code = match kind {
        TroubleKind::Unfit => -32602,
        TroubleKind::NoSession => -32002,
        TroubleKind::Failed => -32603,
    };
    Error::new(code, words)
}

async fn initialize(
    _: Serving,
    _: Arc<dyn Editor>,
    _: InitializeRequest,
) -> Result<InitializeResponse, Trouble> {
    let sessions = SessionCapabilities::new()
        .list(SessionListCapabilities::new())
        .resume(SessionResumeCapabilities::new())
        .close(SessionCloseCapabilities::new());
    let capabilities = AgentCapabilities::new().load_session(true).session_capabilities(sessions);
    let about = Implementation::new("provost", env!("CARGO_PKG_VERSION")).title("Provost".to_owned());
    // An editor that speaks another version ends the connection.
    Ok(InitializeResponse::new(ProtocolVersion::V1).agent_capabilities(capabilities).agent_info(about))
}

async fn new_session(
    serving: Serving,
    editor: Arc<dyn Editor>,
    request: NewSessionRequest,
) -> Result<NewSessionResponse, Trouble> {
    let NewSessionRequest { cwd, additional_directories, mcp_servers, system_prompt, .. } = request;
    let opened = opened(cwd, &mcp_servers, &additional_directories, system_prompt.as_ref());
    Ok(NewSessionResponse::new(serving.agent.open(&opened, editor)?.to_string()))
}

async fn load_session(
    serving: Serving,
    editor: Arc<dyn Editor>,
    request: LoadSessionRequest,
) -> Result<LoadSessionResponse, Trouble> {
    let LoadSessionRequest { session_id, cwd, additional_directories, mcp_servers, system_prompt, .. } =
        request;
    let opened = opened(cwd, &mcp_servers, &additional_directories, system_prompt.as_ref());
    serving.agent.attach(&session_id.0, &opened, editor, Shown::All).await?;
    Ok(LoadSessionResponse::new())
}

async fn resume_session(
    serving: Serving,
    editor: Arc<dyn Editor>,
    request: ResumeSessionRequest,
) -> Result<ResumeSessionResponse, Trouble> {
    let ResumeSessionRequest { session_id, cwd, additional_directories, mcp_servers, system_prompt, .. } =
        request;
    let opened = opened(cwd, &mcp_servers, &additional_directories, system_prompt.as_ref());
    serving.agent.attach(&session_id.0, &opened, editor, Shown::Nothing).await?;
    Ok(ResumeSessionResponse::new())
}

fn opened(
    folder: PathBuf,
    servers: &[McpServer],
    directories: &[PathBuf],
    system_prompt: Option<&SystemPrompt>,
) -> Opened {
    let directories = (!directories.is_empty()).then_some("additionalDirectories");
    let unknown = directories.into_iter().chain(system_prompt.map(|_| "systemPrompt")).collect();
    Opened { folder, mcp_servers: servers.iter().map(server).collect(), unknown }
}

fn server(server: &McpServer) -> EditorServer {
    let (name, reach) = match server {
        McpServer::Http(server) => {
            (server.name.clone(), Some(EditorServerReach::Address(server.url.clone())))
        }
        McpServer::Sse(server) => (server.name.clone(), None),
        McpServer::Stdio(server) => {
            let McpServerStdio { name, command, args, .. } = server;
            let reach = EditorServerReach::Program { command: command.clone(), args: args.clone() };
            (name.clone(), Some(reach))
        }
        _ => ("a server of an unknown kind".to_owned(), None),
    };
    EditorServer { name, reach }
}

async fn list_sessions(
    serving: Serving,
    _: Arc<dyn Editor>,
    request: ListSessionsRequest,
) -> Result<ListSessionsResponse, Trouble> {
    let SessionList { sessions, next } = serving.agent.list(request.cwd, request.cursor).await?;
    let info = |session: ListedSession| {
        let at = i64::try_from(session.updated_at.0).ok();
        let at = at.and_then(|at| jiff::Timestamp::from_millisecond(at).ok()).map(|at| at.to_string());
        SessionInfo::new(session.run.to_string(), session.folder).title(session.title).updated_at(at)
    };
    Ok(ListSessionsResponse::new(sessions.into_iter().map(info).collect()).next_cursor(next))
}

async fn close_session(
    serving: Serving,
    _: Arc<dyn Editor>,
    request: CloseSessionRequest,
) -> Result<CloseSessionResponse, Trouble> {
    serving.agent.close(&request.session_id.0).await?;
    Ok(CloseSessionResponse::new())
}

async fn cancel(serving: &Serving, session: &str) -> Done {
    if let Err(trouble) = serving.agent.cancel(session).await {
        tracing::warn!(session, "can't cancel: {}", trouble.words);
    }
    Ok(())
}

async fn prompt(serving: Serving, request: PromptRequest, responder: Responder<PromptResponse>) -> Done {
    let session = request.session_id.0.clone();
    let given_up = responder.cancellation();
    let work = async {
        let text = prompt_text(&request.prompt)?;
        serving.agent.prompt(&session, text).await
    };
    let mut work = std::pin::pin!(work);
    let ended = tokio::select! {
        ended = &mut work => ended,
        // A request that is given up is one that is to be cancelled, and has the same answer.
        () = given_up.cancelled() => {
            cancel(&serving, &session).await?;
            work.await
        }
    };
    respond(responder, ended.map(|ending| prompt_response(&ending)))
}

fn prompt_response(ending: &Ending) -> PromptResponse {
    let reason = match ending.reason {
        EndReason::Completed => StopReason::EndTurn,
        EndReason::Tokens => StopReason::MaxTokens,
        EndReason::Turns => StopReason::MaxTurnRequests,
        EndReason::Refused => StopReason::Refusal,
        EndReason::Cancelled => StopReason::Cancelled,
    };
    let meta = serde_json::Map::from_iter([("outcome".to_owned(), Value::from(ending.words.as_str()))]);
    PromptResponse::new(reason).meta(meta)
}

/// A prompt as text. The agent reads files by their names.
fn prompt_text(blocks: &[ContentBlock]) -> Result<String, Trouble> {
    let part = |block: &ContentBlock| match block {
        ContentBlock::Text(text) => Ok(text.text.clone()),
        ContentBlock::ResourceLink(link) => {
            let path = link.uri.strip_prefix("file://").unwrap_or(&link.uri);
            Ok(format!("[{}]({path})", link.name))
        }
        ContentBlock::Resource(embedded) => match &embedded.resource {
            EmbeddedResourceResource::TextResourceContents(text) => {
                Ok(format!("{}:\n{}\n", text.uri.strip_prefix("file://").unwrap_or(&text.uri), text.text))
            }
            _ => Err(Trouble::unfit("prompt: only text can be embedded")),
        },
        ContentBlock::Image(_) | ContentBlock::Audio(_) => Err(Trouble::unfit(
            "prompt: pictures and sounds can't be sent; `provost run --image` takes a picture",
        )),
        _ => Err(Trouble::unfit("prompt: it has a block of an unknown kind")),
    };
    blocks.iter().map(part).collect::<Result<String, _>>()
}

struct ConnectedEditor {
    connection: ConnectionTo<Client>,
    way: Arc<OnTheWay>,
}

#[async_trait]
impl Editor for ConnectedEditor {
    async fn show(&self, run: RunId, update: Update) {
        self.way.enter().await;
        let shown = SessionNotification::new(run.to_string(), session_update(update));
        // An editor that is gone sees nothing more, and everything again when it loads the session.
        let _ = self.connection.send_notification(shown);
    }

    async fn ask(&self, run: RunId, question: Question, withdrawn: CancellationToken) -> Option<Choice> {
        let request = permission_request(run, question);
        // Dropping what waits for the answer sends `$/cancel_request`.
        let answered = self.connection.send_request(request).block_task();
        let response = withdrawn.run_until_cancelled(answered).await?;
        response.inspect_err(|error| tracing::warn!("the editor can't ask: {error}")).ok().and_then(chosen)
    }
}

fn permission_request(run: RunId, question: Question) -> RequestPermissionRequest {
    let Question { call, why, options } = question;
    let option = |option: crate::editor::AnswerOption| {
        let (id, kind) = option_id(option.answer);
        PermissionOption::new(id, option.name, kind)
    };
    let call = ToolCall::new(call.id.clone(), call.title.clone())
        .content(vec![ToolCallContent::from(why)])
        .kind(tool_kind(call.kind))
        .locations(locations(&call.paths))
        .name(call.tool)
        .raw_input(call.input);
    let options = options.into_iter().map(option).collect();
    RequestPermissionRequest::new(run.to_string(), ToolCallUpdate::from(call), options)
}

const fn option_id(answer: Answer) -> (&'static str, PermissionOptionKind) {
    match answer {
        Answer::Once => ("allow_once", PermissionOptionKind::AllowOnce),
        Answer::Run => ("allow_run", PermissionOptionKind::AllowAlways),
        Answer::Always => ("allow_always", PermissionOptionKind::AllowAlways),
        Answer::Deny => ("deny", PermissionOptionKind::RejectOnce),
    }
}

/// What was chosen; nothing where the editor closed the question.
fn chosen(response: RequestPermissionResponse) -> Option<Choice> {
    let RequestPermissionOutcome::Selected(selected) = response.outcome else { return None };
    let answers = [Answer::Once, Answer::Run, Answer::Always, Answer::Deny];
    let answer = answers.into_iter().find(|answer| option_id(*answer).0 == &*selected.option_id.0)?;
    let metas = [selected.meta, response.meta];
    let reason = metas.iter().flatten().find_map(|meta| meta.get(REASON)?.as_str());
    Some(Choice { answer, reason: reason.unwrap_or_default().trim().to_owned() })
}

fn session_update(update: Update) -> SessionUpdate {
    match update {
        Update::Titled(title) => SessionUpdate::SessionInfoUpdate(SessionInfoUpdate::new().title(title)),
        Update::Said(text) => SessionUpdate::UserMessageChunk(chunk(text)),
        Update::Answered(text) => SessionUpdate::AgentMessageChunk(chunk(text)),
        Update::Thought(text) => SessionUpdate::AgentThoughtChunk(chunk(text)),
        Update::CallBegun(call) => SessionUpdate::ToolCall(tool_call(*call)),
        Update::CallChanged(change) => SessionUpdate::ToolCallUpdate(tool_call_update(*change)),
        Update::Planned(items) => SessionUpdate::Plan(Plan::new(items.iter().map(plan_entry).collect())),
        Update::Used(used) => SessionUpdate::UsageUpdate(usage(used)),
    }
}

fn chunk(text: Text) -> ContentChunk {
    ContentChunk::new(ContentBlock::from(text.text)).message_id(text.message.as_str())
}

fn tool_call(call: Call) -> ToolCall {
    ToolCall::new(call.id, call.title)
        .kind(tool_kind(call.kind))
        .locations(locations(&call.paths))
        .name(call.tool)
        .raw_input(call.input)
}

fn tool_call_update(change: CallChange) -> ToolCallUpdate {
    let CallChange { id, state, input, content, output } = change;
    let status = match state {
        CallState::Running => ToolCallStatus::InProgress,
        CallState::Done => ToolCallStatus::Completed,
        CallState::Failed => ToolCallStatus::Failed,
    };
    let part = |part: Content| match part {
        Content::Text(text) => ToolCallContent::from(text),
        Content::Diff(diff) => {
            ToolCallContent::Diff(ShownDiff::new(diff.path, diff.after).old_text(diff.before))
        }
    };
    let content = content.map(|parts| parts.into_iter().map(part).collect::<Vec<_>>());
    let fields = ToolCallUpdateFields::new().status(status).content(content);
    ToolCallUpdate::new(id, fields.raw_input(input).raw_output(output))
}

const fn tool_kind(kind: CallKind) -> ToolKind {
    match kind {
        CallKind::Reads => ToolKind::Read,
        CallKind::Edits => ToolKind::Edit,
        CallKind::Searches => ToolKind::Search,
        CallKind::Runs => ToolKind::Execute,
        CallKind::Fetches => ToolKind::Fetch,
        CallKind::Other => ToolKind::Other,
    }
}

fn locations(paths: &[PathBuf]) -> Vec<ToolCallLocation> {
    paths.iter().map(ToolCallLocation::new).collect()
}

fn plan_entry(item: &PlanItem) -> PlanEntry {
    let status = match item.status {
        PlanStatus::Pending => PlanEntryStatus::Pending,
        PlanStatus::InProgress => PlanEntryStatus::InProgress,
        PlanStatus::Done => PlanEntryStatus::Completed,
    };
    PlanEntry::new(provost_view::safe(&item.text), PlanEntryPriority::Medium, status)
}

fn usage(used: Used) -> UsageUpdate {
    #[expect(clippy::cast_precision_loss, reason = "costs are far below 2^53 millionths")]
    let dollars = used.cost.0 as f64 / 1e6;
    UsageUpdate::new(used.tokens, used.window).cost(Cost::new(dollars, CURRENCY))
}
