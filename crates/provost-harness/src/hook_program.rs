//! The port to hooks that are programs: scripts, other executables, servers.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use provost_engine::{HookCall, StopCheck};
use provost_event::{HookDecision, HookPoint, HookPolicy, ModelPolicy, Record, SessionId};
use provost_process::Confinement;
use tokio_util::sync::CancellationToken;

/// A question to a hook program, before it is converted to the form of its contract.
#[derive(Debug, Clone)]
pub struct HookQuestion {
    /// The agent, the turn and the trigger.
    pub trigger: HookQuestionTrigger,
    /// The workspace, absolute and without symlinks.
    pub workspace: Arc<std::path::Path>,
    /// The agent's position and name.
    pub agent: HookAgent,
    /// The agent's model.
    pub model: ModelPolicy,
    /// The session's log as a file, one entry a line, roughly up to date; absent if no folder for it is
    /// configured.
    pub transcript_path: Option<PathBuf>,
    /// The same of the run's root; absent for the root itself, or if no folder for it is configured.
    pub root_transcript_path: Option<PathBuf>,
    /// The entries that the question's details refer to (results of tool calls), in their order.
    pub records: Vec<Arc<Record>>,
    /// What confines its program.
    pub confinement: Confinement,
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
}

impl HookAnswer {
    /// Only a decision.
    #[must_use]
    pub const fn only(decision: HookDecision) -> Self {
        Self { decision, reminders: Vec::new(), note: None }
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
