//! The port to stop hooks: who decides whether an agent may stop.

use std::path::PathBuf;

use async_trait::async_trait;
use provost_event::{RunId, SessionId, StopHookVerdict};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

/// What a stop hook is told. As JSON it is what a hook program reads; `hook_event_name`, `stop_hook_active`,
/// `tool_calls_made` and `last_assistant_message` are there for scripts that were written for other agents' stop hooks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StopHookContext {
    /// Always `Stop`.
    pub hook_event_name: &'static str,
    /// The run.
    pub run_id: RunId,
    /// The agent that wants to stop.
    pub session_id: SessionId,
    /// The folder it works in.
    pub cwd: PathBuf,
    /// Its log up to now, one entry a line; absent where no folder for it is configured.
    pub transcript_path: Option<PathBuf>,
    /// What it said last; `None`, as JSON null, if it said nothing.
    pub final_text: Option<String>,
    /// The same, empty if it said nothing.
    pub last_assistant_message: String,
    /// Turns it took, this one included.
    pub iterations: u32,
    /// Tools it called.
    pub tool_calls: u32,
    /// The same, by the name that other harnesses have for it.
    pub tool_calls_made: u32,
    /// Why it is asked: `end_turn` when the agent thinks that it is done; `interval` and `limit` where the goal of one that
    /// has not said so is verified, after so many turns or because a limit ends the work.
    pub stop_reason: &'static str,
    /// True if stop hooks have already made it go on.
    pub stop_hook_active: bool,
}

/// Decides whether an agent may stop.
#[async_trait]
pub trait StopHookHandler: Send + Sync {
    /// Its name, by which policies refer to it.
    fn name(&self) -> &str;

    /// Decides. A panic counts as an error verdict; so does running longer than the policy allows.
    ///
    /// # Cancellation
    /// When `cancel` fires it returns soon, with nothing left running.
    async fn evaluate(&self, context: &StopHookContext, cancel: &CancellationToken) -> StopHookVerdict;
}
