//! The port to external agents: programs that Provost prompts, whose questions it answers, and that it ends.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use provost_engine::{Answer, Event, SessionEvent};
use provost_event::{
    Access, AskKind, CallId, ErrorClass, Exit, ExternalPolicy, Json, ModelFailure, SessionId, TerminalNoted,
    ToolSpec, ToolSubject,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{AgentSandbox, Backend, BackendError, PromptQueue, Redactor, ToolOutput};

/// Maximum bytes of an answer to a program's question in the log.
const ANSWER_BYTES_MAX: usize = 4 * 1024;

/// One exchange with an external agent's program: until it needs an answer, or is done.
pub struct Exchange<'a> {
    /// The session.
    pub session: SessionId,
    /// The program.
    pub policy: &'a ExternalPolicy,
    /// The workspace, absolute.
    pub workspace: &'a Path,
    /// The pending messages to it.
    pub words: &'a mut PromptQueue,
    /// Records the events at its terminal.
    pub log: TerminalLog,
    /// Removes secrets from what is recorded and shown.
    pub redactor: Arc<Redactor>,
    /// Whether stop hooks or judges check its result.
    pub is_verified: bool,
    /// What confines the program.
    pub sandbox: Arc<dyn AgentSandbox>,
}

/// Drives the programs of external agents, each from its session's first exchange until it is closed.
///
/// A program may also work between two exchanges: it is observed all the same.
#[async_trait]
pub trait ExternalAgents: Send + Sync {
    /// Starts the program if it isn't running, submits the pending messages, and waits until it needs an answer or
    /// is done. A question for consent is returned as one tool call, named by [`consent_tools`], with an id that
    /// is unique in the session; its final answer as a text.
    ///
    /// A question of the previous exchange for which [`answer`](Self::answer) wasn't called was denied: the
    /// program gets that answer first.
    ///
    /// # Errors
    /// `Program`: it can't be started, failed, or ended before it was done. `Unanswered`: it has waited for input
    /// for longer than its policy allows. `Aborted`: `cancel` fired. `Storage`: an event couldn't be recorded.
    ///
    /// # Cancellation
    /// When `cancel` fires it stops the program's current work, and returns soon; the program is ended by `close`.
    /// Dropping the future leaves the program as it is.
    async fn exchange(
        &self,
        exchange: Exchange<'_>,
        cancel: &CancellationToken,
    ) -> Result<Answer, ModelFailure>;

    /// Approves the program's question `call`, if it still asks that, and waits until the answer takes effect.
    ///
    /// # Cancellation
    /// When `cancel` fires it returns soon; typed input isn't taken back.
    async fn answer(&self, session: SessionId, call: &CallId, cancel: &CancellationToken) -> ToolOutput;

    /// Ends the program of `session` with all its processes, and what an earlier process of Provost left of it.
    /// Returns how it ended, if there was one.
    ///
    /// # Cancellation
    /// When `cancel` fires its grace period ends.
    async fn close(&self, session: SessionId, cancel: &CancellationToken) -> Option<Exit>;
}

/// Records events at a session's terminal.
#[derive(Clone)]
pub struct TerminalLog {
    backend: Arc<dyn Backend>,
    session: SessionId,
}

impl TerminalLog {
    pub(crate) const fn new(backend: Arc<dyn Backend>, session: SessionId) -> Self {
        Self { backend, session }
    }

    /// The session.
    #[must_use]
    pub const fn session(&self) -> SessionId {
        self.session
    }

    /// Records an event; when it returns the entry is durable. A suspended session records nothing.
    ///
    /// # Errors
    /// When it couldn't be made durable.
    pub async fn note(&self, noted: TerminalNoted) -> Result<(), BackendError> {
        self.post(SessionEvent::Terminal(Box::new(noted))).await
    }

    /// Records that the question of `call` is no longer open, since it was answered at the terminal.
    ///
    /// # Errors
    /// When it couldn't be made durable.
    pub async fn withdraw(&self, call: CallId) -> Result<(), BackendError> {
        self.post(SessionEvent::AskWithdrawn { call }).await
    }

    async fn post(&self, event: SessionEvent) -> Result<(), BackendError> {
        self.backend.post(self.session.into(), Event::Session(event), None).await.map(|_| ())
    }
}

/// A kind of consent that an external agent's program can ask for: the call that stands for it.
#[derive(Debug, Clone, Copy)]
pub struct ConsentTool {
    /// What the program asks about.
    pub kind: AskKind,
    /// The tool of the call. It is the name of Provost's own tool where that does the same, so that the same
    /// permissions and hooks apply to both.
    pub name: &'static str,
    /// The argument with the subject of the question.
    pub field: &'static str,
    description: &'static str,
}

impl ConsentTool {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::new(AskKind::Command, "shell", "command", "The program wants to run a command."),
        Self::new(AskKind::Read, "read_file", "path", "The program wants to read a file."),
        Self::new(AskKind::Edit, "edit_file", "path", "The program wants to change a file."),
        Self::new(AskKind::Edits, "apply_patch", "input", "The program wants to change several files."),
        Self::new(AskKind::Network, "fetch", "url", "The program wants to fetch something from the network."),
        Self::new(AskKind::Tool, "call_tool", "name", "The program wants to call a tool of its own."),
        Self::new(
            AskKind::Trust,
            "trust_folder",
            "path",
            "The program asks whether the folder is to be trusted.",
        ),
        Self::new(AskKind::Other, "consent", "question", "The program asks for consent to something else."),
    ];

    const fn new(kind: AskKind, name: &'static str, field: &'static str, description: &'static str) -> Self {
        Self { kind, name, field, description }
    }

    fn subject(&self) -> ToolSubject {
        let field = self.field.to_owned();
        match self.kind {
            AskKind::Command => ToolSubject::Command { field, keeps: None, leaves: None },
            AskKind::Read | AskKind::Trust => ToolSubject::read_path(self.field),
            AskKind::Edit => ToolSubject::path_written_anywhere(self.field),
            AskKind::Edits => ToolSubject::Patch { field },
            AskKind::Network => ToolSubject::Url { field },
            AskKind::Tool | AskKind::Other => ToolSubject::Opaque,
        }
    }

    fn aliases(&self) -> &'static [&'static str] {
        match self.kind {
            AskKind::Command => &["Bash"],
            AskKind::Read => &["Read"],
            AskKind::Edit => &["Edit", "MultiEdit"],
            AskKind::Edits => &["Edit", "MultiEdit", "edit_file"],
            AskKind::Network => &["WebFetch"],
            AskKind::Tool | AskKind::Trust | AskKind::Other => &[],
        }
    }

    fn spec(&self) -> ToolSpec {
        let field = self.field;
        let schema = json!({
            "type": "object",
            "properties": {field: {"type": "string"}, "question": {"type": "string"}},
            "required": [field],
        });
        let access = match self.kind {
            AskKind::Command | AskKind::Read | AskKind::Edit | AskKind::Edits => Access::Anything,
            AskKind::Network | AskKind::Tool | AskKind::Trust | AskKind::Other => Access::Consents,
        };
        ToolSpec {
            name: self.name.to_owned(),
            description: self.description.to_owned(),
            input_schema: Json::parse(schema.to_string()).unwrap_or_else(|_| Json::empty_object()),
            access,
            subject: self.subject(),
            aliases: self.aliases().iter().map(|&alias| alias.to_owned()).collect(),
            forms: Vec::new(),
            freeform: None,
            summary_field: Some(field.to_owned()),
            idempotent: false,
            timeout_ms: 60_000,
            output_bytes_max: ANSWER_BYTES_MAX,
        }
    }
}

/// The tools of an external agent's policy: one for each kind of consent that its program can ask for.
#[must_use]
pub fn consent_tools() -> Vec<ToolSpec> {
    ConsentTool::ALL.iter().map(ConsentTool::spec).collect()
}

/// Drives nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoExternalAgents;

#[async_trait]
impl ExternalAgents for NoExternalAgents {
    async fn exchange(&self, exchange: Exchange<'_>, _: &CancellationToken) -> Result<Answer, ModelFailure> {
        let message =
            format!("`{}` can't be run here: there is nothing to drive it", exchange.policy.program);
        Err(ModelFailure::new(ErrorClass::Program, message))
    }

    async fn answer(&self, _: SessionId, _: &CallId, _: &CancellationToken) -> ToolOutput {
        ToolOutput::error("There is no program that asks.")
    }

    async fn close(&self, _: SessionId, _: &CancellationToken) -> Option<Exit> {
        None
    }
}
