//! Performs effects: calls models, runs tools, calls stop hooks. Decides nothing.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use provost_engine::{Effect, Event, SessionEvent};
use provost_event::EffectId;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, field};

use crate::harness::{Deltas, LiveTools};
use crate::power::{REASON, wait_after};
use crate::session_cache::SessionCache;
use crate::spans::{TurnSpans, span};
use crate::{Backend, HarnessDeps};

mod beside;
mod call_model;
mod external;
mod hook_model;
mod hooks;
mod judge;
mod links;
mod log_file;
mod masked;
mod remote;
mod rules;
mod scripts;
mod stop;
mod tool;
mod worktree;

pub(crate) use log_file::LogFile;
pub(crate) use worktree::{RemoteWorktrees, changed_files, commit_at, make_again};

/// Performs effects. A backend calls it at least once for each; the id is the idempotency key.
#[async_trait]
pub trait Executor: Send + Sync {
    /// Performs `effect` and returns its result as the event to post. Never called for timers.
    ///
    /// # Cancellation
    /// When `cancel` fires it stops and returns soon, with an event that says so. Dropping the future stops it
    /// too, with nothing left running, but no event is posted then.
    async fn run(&self, id: EffectId, effect: Effect, cancel: CancellationToken) -> Event;
}

/// The executor of one run with the dependencies of a harness.
pub(crate) struct HarnessExecutor {
    pub(crate) deps: Arc<HarnessDeps>,
    /// Those of `deps`, and those that were added while the run lives.
    pub(crate) tools: Arc<LiveTools>,
    pub(crate) known: Arc<SessionCache>,
    pub(crate) deltas: Arc<Deltas>,
    pub(crate) turns: Arc<TurnSpans>,
    /// The worktrees of a run with a remote repository.
    pub(crate) remote: Option<RemoteWorktrees>,
}

#[async_trait]
impl Executor for HarnessExecutor {
    async fn run(&self, id: EffectId, effect: Effect, cancel: CancellationToken) -> Event {
        let awake = self.deps.power.hold(REASON);
        let turn = self.turns.of(&effect);
        let event = match &self.remote {
            None => self.perform(id, effect, &cancel).instrument(turn).await,
            Some(remote) => {
                Box::pin(self.perform_with_remote(remote, id, effect, &cancel)).instrument(turn).await
            }
        };
        if let Some(wait) = wait_after(&event) {
            awake.release_after(wait);
        }
        event
    }
}

impl HarnessExecutor {
    fn backend(&self) -> &dyn Backend {
        &*self.deps.backend
    }

    // The futures of rare effects are boxed: each effect would take the memory of the largest, and move it.
    async fn perform(&self, id: EffectId, effect: Effect, cancel: &CancellationToken) -> Event {
        let seq = id.seq;
        let event = match effect {
            Effect::CallModel(model_call) => match self.call_model(seq, &model_call, cancel).await {
                Ok(answer) => SessionEvent::Answered { seq, answer },
                Err(failure) => SessionEvent::ModelFailed { seq, failure },
            },
            Effect::RunTool(run) => {
                let span = span!("tool.call", tool = run.tool, status = field::Empty);
                let result = self.run_tool(id, &run, cancel).instrument(span.clone()).await;
                span.record("status", field::debug(result.status));
                self.tell_of_rules(&run, &result).await;
                SessionEvent::ToolDone { seq, result }
            }
            Effect::CheckStop(check) => {
                SessionEvent::StopChecked { seq, result: self.check_stop(id, &check, cancel).await }
            }
            Effect::Judge(call) => {
                SessionEvent::Judged { seq, report: Box::pin(self.judge(&call, cancel)).await }
            }
            Effect::AskHooks(hook_call) => {
                let scripts = self.scripts_of(&hook_call).await;
                let reports = self.ask_hooks(id, &hook_call, cancel).await;
                SessionEvent::HooksAnswered { seq, reports, scripts }
            }
            Effect::MakeWorktree(order) => {
                let result = Box::pin(self.make_worktree(&order, cancel)).await;
                SessionEvent::WorktreeReady { seq, result }
            }
            Effect::CheckWorktree(check) => {
                let left = Box::pin(self.check_worktree(&check, cancel)).await;
                SessionEvent::WorktreeChecked { seq, left }
            }
            Effect::CloseTerminal { session, limit_ms } => {
                let limit = limit_ms.map(Duration::from_millis);
                SessionEvent::TerminalClosed { seq, exit: self.close_terminal(session, limit, cancel).await }
            }
            // The backend waits itself; if it calls this anyway, the wait is over by then.
            Effect::Timer { remaining_ms, .. } => {
                self.deps.clock.sleep(Duration::from_millis(remaining_ms)).await;
                SessionEvent::TimerFired { seq }
            }
        };
        Event::Session(masked::masked(event, &self.deps.redactor))
    }
}
