//! The port to hooks that are programs: scripts, other executables, servers.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use provost_engine::{Consult, StopCheck};
use provost_event::{HookDecision, HookMoment, HookPolicy, ModelPolicy, Record, SessionId};
use tokio_util::sync::CancellationToken;

/// What a hook program is asked, before it is put in the form of its contract.
#[derive(Debug, Clone)]
pub struct HookQuestion {
    /// Whose hooks, in which turn, about what.
    pub subject: HookQuestionSubject,
    /// The folder the agent works in, absolute and without symlinks.
    pub workspace: Arc<std::path::Path>,
    /// Who the agent is.
    pub agent: HookAgent,
    /// The model the agent thinks with.
    pub model: ModelPolicy,
    /// The session's log as a file, one entry a line, up to about now; absent where no folder for it is configured.
    pub transcript_path: Option<PathBuf>,
    /// The same of the run's root; absent where the agent is that, or where no folder for it is configured.
    pub root_transcript_path: Option<PathBuf>,
    /// The entries that the question's details point at (results of tool calls), in their order.
    pub records: Vec<Arc<Record>>,
}

/// Who an agent is, among those of its run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookAgent {
    /// Who asked for it; absent for the root.
    pub parent: Option<SessionId>,
    /// How many agents stand above it.
    pub depth: u32,
    /// The configured sub-agent that it is; absent for the root, and for one like the agent that asked.
    pub name: Option<String>,
}

/// What hooks are asked about.
#[derive(Debug, Clone)]
pub enum HookQuestionSubject {
    /// Anything but a wish to stop.
    Consult(Consult),
    /// A wish to stop.
    Stop(StopCheck),
}

/// What a hook program said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookAnswer {
    /// Its decision. At a wish to stop, `Deny` sends the agent on and `Abort` ends the run.
    pub decision: HookDecision,
    /// What it wants the model to be reminded of.
    pub reminders: Vec<String>,
    /// What a person should know: its own message, or what of its answer couldn't be taken.
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
    /// Whether `hook`, which is asked at `moment`, wants to be asked this: its matcher and its condition.
    fn wants(&self, hook: &HookPolicy, question: &HookQuestion, moment: HookMoment) -> bool;

    /// Asks `hook`. Keeps to the hook's timeout by itself.
    ///
    /// # Cancellation
    /// When `cancel` fires it returns soon, with nothing left running.
    async fn ask(
        &self,
        hook: &HookPolicy,
        question: &HookQuestion,
        moment: HookMoment,
        cancel: &CancellationToken,
    ) -> HookAnswer;
}

/// Runs none: each hook program that a policy names gives no answer.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHookPrograms;

#[async_trait]
impl HookPrograms for NoHookPrograms {
    fn wants(&self, _: &HookPolicy, _: &HookQuestion, _: HookMoment) -> bool {
        true
    }

    async fn ask(
        &self,
        _: &HookPolicy,
        _: &HookQuestion,
        _: HookMoment,
        _: &CancellationToken,
    ) -> HookAnswer {
        let reason = "the program that runs this agent can't run hook programs".to_owned();
        HookAnswer::only(HookDecision::Failed(reason))
    }
}
