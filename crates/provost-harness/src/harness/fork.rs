//! Starting a run with another agent's conversation.

use std::sync::Arc;

use provost_engine::{RunEvent, RunForkRequest};
use provost_event::{RunId, RunPolicy, Worktree};

use super::{AgentHarness, Harness, LogPositions, lacks_price, step_mode_of};
use crate::executor::RemoteWorktrees;
use crate::lineage::ForkPoint;
use crate::{BackendError, HarnessError, RunPosition};

/// A run that continues another agent's conversation.
#[derive(Debug, Clone)]
pub struct ForkRequest {
    /// The conversation.
    pub point: ForkPoint,
    /// The run's goal, for lists of runs.
    pub goal: String,
    /// The run's policy. The first agent gets its agent's part unchanged: nothing is put before its hooks.
    pub policy: RunPolicy,
    /// The worktree that is created for the first agent at its policy's workspace; absent if it works in an
    /// existing folder.
    pub worktree: Option<Worktree>,
    /// A message to it.
    pub text: Option<String>,
    /// Who requests it.
    pub by: String,
}

impl AgentHarness {
    /// Starts a run named `run` that continues the conversation of `request`, and serves it in this process. The
    /// conversation is referred to and not copied, nothing of it is charged again, and the log of the source run
    /// gets an entry that names the new one, in the same transaction. A process that serves the source run isn't
    /// disturbed.
    ///
    /// # Errors
    /// When the log can't be written, or a money budget can't limit the model. Nothing has started then.
    pub async fn fork(&self, run: RunId, request: ForkRequest) -> Result<Harness, HarnessError> {
        let ForkRequest { point, goal, mut policy, worktree, text, by } = request;
        let must_be_priced = policy.budget.money.is_some() && !policy.allow_unpriced;
        if must_be_priced && lacks_price(&policy.agent) {
            return Err(HarnessError::UnknownPrice { model: policy.agent.model.name });
        }
        for name in self.deps.observers.names() {
            if !policy.observers.iter().any(|known| known == name) {
                policy.observers.push(name.to_owned());
            }
        }
        let remote = RemoteWorktrees::of(&policy, Arc::clone(&self.deps.clock));
        let mut harness = self.claim(run, remote, RunPosition::START, LogPositions::new()).await?;
        harness.step_mode = step_mode_of(&policy);
        let agent_goal = point.goal.clone();
        let fork = Box::new(point.into_fork());
        let baseline = if worktree.is_none() { self.baseline(&policy.agent.workspace).await } else { None };
        let wish = RunForkRequest { goal, agent_goal, policy, fork, worktree, baseline, text, by };
        let posted =
            self.deps.backend.post(run.into(), RunEvent::Fork(Box::new(wish)).into(), Some("start")).await?;
        if posted.changed { Ok(harness) } else { Err(BackendError::Conflict { actor: run.into() }.into()) }
    }
}
