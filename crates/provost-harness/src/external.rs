//! The port to other people's agents: programs that Provost gives words to, whose questions it answers, and that it ends.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use provost_engine::{Answer, Event, SessionEvent};
use provost_event::{
    Access, CallId, ErrorClass, Exit, ExternalPolicy, Json, ModelFailure, SessionId, TerminalNoted, ToolSpec,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{Home, HomeError, Redactor, ToolOutput, Words};

/// Bytes of an answer to a program's question that the log keeps.
const ANSWER_BYTES_MAX: usize = 4 * 1024;

/// What an external agent's program is asked for: everything until it needs somebody, or is done.
pub struct Exchange<'a> {
    /// Whose.
    pub session: SessionId,
    /// The program.
    pub policy: &'a ExternalPolicy,
    /// The folder that it works in, absolute.
    pub workspace: &'a Path,
    /// What it is yet to be told.
    pub words: &'a mut Words,
    /// Where what happens at its terminal is noted.
    pub log: TerminalLog,
    /// Takes secrets out of what is recorded and shown.
    pub redactor: Arc<Redactor>,
    /// Whether stop hooks or judges look at what it comes to.
    pub is_verified: bool,
}

/// Drives the programs of external agents, each from its session's first exchange until it is closed.
///
/// What a program does between two exchanges it does unasked: it is watched all the same.
#[async_trait]
pub trait ExternalAgents: Send + Sync {
    /// Starts the program if it isn't there, gives it what it is yet to be told, and waits until it needs somebody or is
    /// done. A question for consent is answered as one tool call, named by [`consent_tools`], with an id that
    /// no other question of the session has had; what it is done with, as a text.
    ///
    /// A question that the exchange before was answered with, and that [`answer`](Self::answer) wasn't called for, was
    /// refused: it is answered so first.
    ///
    /// # Errors
    /// `Program`: it can't be started, failed, or ended before it was done. `Unanswered`: it has waited for somebody for
    /// longer than its policy allows. `Aborted`: `cancel` fired. `Storage`: what happened couldn't be noted.
    ///
    /// # Cancellation
    /// When `cancel` fires it stops what the program does, and returns soon; the program is ended by `close`. Dropping
    /// the future leaves the program as it is.
    async fn exchange(
        &self,
        exchange: Exchange<'_>,
        cancel: &CancellationToken,
    ) -> Result<Answer, ModelFailure>;

    /// Consents to what the program asks with `call`, if it still asks that, and sees to it that the answer takes effect.
    ///
    /// # Cancellation
    /// When `cancel` fires it returns soon; what was typed stays typed.
    async fn answer(&self, session: SessionId, call: &CallId, cancel: &CancellationToken) -> ToolOutput;

    /// Ends the program of `session` with all that it started, and what an earlier process of Provost left of it.
    /// Returns how it ended, if one was there.
    ///
    /// # Cancellation
    /// When `cancel` fires the rest of its time to end by itself is over.
    async fn close(&self, session: SessionId, cancel: &CancellationToken) -> Option<Exit>;
}

/// Where what happens at a session's terminal is noted.
#[derive(Clone)]
pub struct TerminalLog {
    home: Arc<dyn Home>,
    session: SessionId,
}

impl TerminalLog {
    pub(crate) const fn new(home: Arc<dyn Home>, session: SessionId) -> Self {
        Self { home, session }
    }

    /// Whose.
    #[must_use]
    pub const fn session(&self) -> SessionId {
        self.session
    }

    /// Notes it; when it returns the entry is durable. A session that rests notes nothing.
    ///
    /// # Errors
    /// When it couldn't be made durable.
    pub async fn note(&self, noted: TerminalNoted) -> Result<(), HomeError> {
        self.post(SessionEvent::Terminal(Box::new(noted))).await
    }

    /// Says that the question of `call` is no longer asked, since somebody has answered it at the terminal.
    ///
    /// # Errors
    /// When it couldn't be made durable.
    pub async fn withdraw(&self, call: CallId) -> Result<(), HomeError> {
        self.post(SessionEvent::AskWithdrawn { call }).await
    }

    async fn post(&self, event: SessionEvent) -> Result<(), HomeError> {
        self.home.post(self.session.into(), Event::Session(event), None).await.map(|_| ())
    }
}

/// What an external agent's program can ask consent for, as its policy names it. The names are those of Provost's own
/// tools where they mean the same, so that the same permissions and hooks speak of both.
#[must_use]
pub fn consent_tools() -> Vec<ToolSpec> {
    let of = |name: &str, field: &str, access: Access, description: &str| ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema: Json::parse(
            json!({
                "type": "object",
                "properties": {field: {"type": "string"}, "question": {"type": "string"}},
                "required": [field],
            })
            .to_string(),
        )
        .unwrap_or_else(|_| Json::empty_object()),
        access,
        idempotent: false,
        timeout_ms: 60_000,
        output_bytes_max: ANSWER_BYTES_MAX,
    };
    vec![
        of("shell", "command", Access::Anything, "The program wants to run a command."),
        of("read_file", "path", Access::Anything, "The program wants to read a file."),
        of("edit_file", "path", Access::Anything, "The program wants to change a file."),
        of("fetch", "url", Access::Consents, "The program wants to fetch something from the network."),
        of("call_tool", "name", Access::Consents, "The program wants to call a tool of its own."),
        of("trust_folder", "path", Access::Consents, "The program asks whether the folder is to be trusted."),
        of("consent", "question", Access::Consents, "The program asks for consent to something else."),
    ]
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
