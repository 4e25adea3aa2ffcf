//! The port to hooks that are programs: scripts, other executables, servers.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use provost_engine::{Event, HookCall, SessionEvent, StopCheck};
use provost_event::{
    HookContract, HookDecision, HookPoint, HookPolicy, Json, ModelPolicy, Record, SessionId,
};
use provost_process::Confinement;
use tokio_util::sync::CancellationToken;

use crate::Backend;

/// A question to a hook program, before it is converted to the form of its contract.
#[derive(Debug, Clone)]
pub struct HookQuestion {
    /// The agent, the turn and the trigger.
    pub trigger: HookQuestionTrigger,
    /// The workspace, absolute and without symlinks.
    pub workspace: Arc<std::path::Path>,
    /// The agent's current folder: that of its shell, or else the workspace.
    pub folder: Arc<std::path::Path>,
    /// The agent's position and name.
    pub agent: HookAgent,
    /// The agent's model.
    pub model: ModelPolicy,
    /// The session's log as a file, in the form that hooks of this contract read, roughly up to date; absent if no
    /// folder for it is configured.
    pub transcript_path: Option<PathBuf>,
    /// The same of the run's root; absent for the root itself, or if no folder for it is configured.
    pub root_transcript_path: Option<PathBuf>,
    /// A file to which a hook may append `export NAME=value` lines, for the agent's later commands: at a session's
    /// start.
    pub env_file: Option<PathBuf>,
    /// The entries that the question's details refer to (results of tool calls), in their order.
    pub records: Vec<Arc<Record>>,
    /// What confines its program.
    pub confinement: Confinement,
    /// For what a hook says that nothing waits for; absent where it can't be passed on.
    pub voice: Option<HookVoice>,
}

/// Passes on what a hook says when nothing waits for its answer any more.
#[derive(Clone)]
pub struct HookVoice {
    backend: Arc<dyn Backend>,
    session: SessionId,
}

impl fmt::Debug for HookVoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookVoice").field("session", &self.session).finish_non_exhaustive()
    }
}

/// How urgent what a hook says is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookUrgency {
    /// The model gets it with its next call, if there is one.
    Reminds,
    /// The agent doesn't end before it has received it.
    Wakes,
}

impl HookVoice {
    pub(crate) fn of(backend: Arc<dyn Backend>, session: SessionId) -> Self {
        Self { backend, session }
    }

    /// Tells the model `body` in the name of `hook`. It is lost if the session is suspended or over.
    pub async fn say(&self, hook: &str, body: String, urgency: HookUrgency) {
        let wakes = urgency == HookUrgency::Wakes;
        let said = SessionEvent::HookSaid { hook: hook.to_owned(), body, wakes };
        if let Err(error) = self.backend.post(self.session.into(), Event::Session(said), None).await {
            tracing::warn!(%error, "what a hook said couldn't be passed on");
        }
    }
}

/// An agent's position and name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookAgent {
    /// The parent; absent for the root.
    pub parent: Option<SessionId>,
    /// Nesting depth.
    pub depth: u32,
    /// The configured sub-agent; absent for the root, and for a copy of the parent.
    pub name: Option<String>,
}

/// The trigger of a question.
#[derive(Debug, Clone)]
pub enum HookQuestionTrigger {
    /// A trigger other than a stop.
    HookCall(HookCall),
    /// A stop.
    Stop(StopCheck),
}

/// A hook program's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookAnswer {
    /// Its decision. At a stop, `Deny` makes the agent continue and `Abort` ends the run.
    pub decision: HookDecision,
    /// Its reminders to the model.
    pub reminders: Vec<String>,
    /// A note for the user: its own message, or the part of its answer that was ignored.
    pub note: Option<String>,
    /// The arguments that the call is to be made with instead of its own.
    pub replacement: Option<Json>,
}

impl HookAnswer {
    /// Only a decision.
    #[must_use]
    pub const fn only(decision: HookDecision) -> Self {
        Self { decision, reminders: Vec::new(), note: None, replacement: None }
    }
}

/// A session's log, entry by entry, in the form that the hooks of a contract read.
pub trait HookTranscript: Send {
    /// Appends the lines for the conversation's next entry, each with a line terminator; often none.
    fn add(&mut self, record: &Record, lines: &mut String);
}

/// The form of Provost's own contract: each entry as the log has it.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogTranscript;

impl HookTranscript for LogTranscript {
    fn add(&mut self, record: &Record, lines: &mut String) {
        // No current entry fails to be written.
        if let Ok(line) = record.to_line() {
            lines.push_str(&line);
            lines.push('\n');
        }
    }
}

/// Runs hooks that are programs.
#[async_trait]
pub trait HookPrograms: Send + Sync {
    /// Whether `hook` at `point` is to be asked this: its matcher and its condition.
    fn wants(&self, hook: &HookPolicy, question: &HookQuestion, point: HookPoint) -> bool;

    /// Asks `hook`, within the hook's timeout.
    ///
    /// # Cancellation
    /// When `cancel` fires it returns soon, with nothing left running.
    async fn ask(
        &self,
        hook: &HookPolicy,
        question: &HookQuestion,
        point: HookPoint,
        cancel: &CancellationToken,
    ) -> HookAnswer;

    /// What `hook`, which is a model, is asked.
    ///
    /// # Errors
    /// Why it can't be asked.
    fn prompt(&self, hook: &HookPolicy, question: &HookQuestion, point: HookPoint) -> Result<String, String> {
        let _ = (hook, question, point);
        Err("the program that runs this agent can't ask hooks that are models".to_owned())
    }

    /// The meaning of the answer of `hook`, which is a model; no answer if it can't be read.
    fn read(&self, hook: &HookPolicy, question: &HookQuestion, point: HookPoint, text: &str) -> HookAnswer {
        let _ = (hook, question, point, text);
        let reason = "the program that runs this agent can't read the answers of models".to_owned();
        HookAnswer::only(HookDecision::Broken(reason))
    }

    /// The session has ended, or is suspended with its run: what still runs in the background for it is ended. Must
    /// not block; may be called repeatedly, and for a session without hooks.
    fn session_over(&self, session: SessionId) {
        let _ = session;
    }

    /// Waits until the hooks that run in the background for the session, and may wake its agent, are over: each for its
    /// own timeout at most.
    async fn waking_over(&self, session: SessionId) {
        let _ = session;
    }

    /// The name of a session in a contract: also that of its log's file.
    fn session_name(&self, contract: HookContract, session: SessionId) -> String {
        let _ = contract;
        session.to_string()
    }

    /// The log of `session` from its first entry on, in the form that hooks of `contract` read.
    fn transcript(&self, contract: HookContract, session: SessionId) -> Box<dyn HookTranscript> {
        let _ = (contract, session);
        Box::new(LogTranscript)
    }
}

/// Runs none: no hook program of a policy gives an answer.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHookPrograms;

#[async_trait]
impl HookPrograms for NoHookPrograms {
    fn wants(&self, _: &HookPolicy, _: &HookQuestion, _: HookPoint) -> bool {
        true
    }

    async fn ask(&self, _: &HookPolicy, _: &HookQuestion, _: HookPoint, _: &CancellationToken) -> HookAnswer {
        let reason = "the program that runs this agent can't run hook programs".to_owned();
        HookAnswer::only(HookDecision::Broken(reason))
    }
}
