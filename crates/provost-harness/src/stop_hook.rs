//! The port to stop hooks, which decide whether an agent may stop.

use std::path::PathBuf;

use async_trait::async_trait;
use provost_event::{RunId, SessionId, StopHookVerdict};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

/// The input of a stop hook. In JSON form it is the input of a hook program; `hook_event_name`,
/// `stop_hook_active`, `tool_calls_made` and `last_assistant_message` are there for scripts that were written for
/// other agents' stop hooks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StopHookContext {
    /// Always `Stop`.
    pub hook_event_name: &'static str,
    /// The run.
    pub run_id: RunId,
    /// The agent.
    pub session_id: SessionId,
    /// The agent's workspace.
    pub cwd: PathBuf,
    /// Its log up to now, one entry a line; absent if no folder for it is configured.
    pub transcript_path: Option<PathBuf>,
    /// Its last message; `None`, JSON null, if there is none.
    pub final_text: Option<String>,
    /// The same, empty if there is none.
    pub last_assistant_message: String,
    /// Its turns, this one included.
    pub iterations: u32,
    /// Its tool calls.
    pub tool_calls: u32,
    /// The same, by the name in other harnesses.
    pub tool_calls_made: u32,
    /// Why the hook is called: `end_turn` when the agent claims to be done; `interval` and `limit` when a goal is
    /// verified without a claim, after an interval of turns or because a limit ends the work.
    pub stop_reason: &'static str,
    /// True if stop hooks have already made it continue.
    pub stop_hook_active: bool,
}

/// Decides whether an agent may stop.
#[async_trait]
pub trait StopHookHandler: Send + Sync {
    /// Its name, by which policies refer to it.
    fn name(&self) -> &str;

    /// Decides. A panic counts as an error verdict; so does exceeding the policy's time limit.
    ///
    /// # Cancellation
    /// When `cancel` fires it returns soon, with nothing left running.
    async fn evaluate(&self, context: &StopHookContext, cancel: &CancellationToken) -> StopHookVerdict;
}
