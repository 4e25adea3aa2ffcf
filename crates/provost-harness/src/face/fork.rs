//! Starting a run with another agent's conversation.

use provost_engine::{ForkWish, RunEvent};
use provost_event::{RunId, RunPolicy, Seq, Worktree};

use super::{AgentHarness, Harness, Seen, pace_of};
use crate::lineage::ForkPoint;
use crate::{HarnessError, HomeError};

/// A run that is to go on with another agent's conversation.
#[derive(Debug, Clone)]
pub struct ForkRequest {
    /// The conversation.
    pub point: ForkPoint,
    /// What the run is to reach, for lists of runs.
    pub goal: String,
    /// What binds the run. Its agent's part binds the first agent as it is: nothing is put before its hooks.
    pub policy: RunPolicy,
    /// The worktree that is made for the first agent at its policy's workspace; absent where it works in a folder that
    /// is there.
    pub worktree: Option<Worktree>,
    /// What is said to it.
    pub text: Option<String>,
    /// Who wants it.
    pub by: String,
}

impl AgentHarness {
    /// Starts a run named `run` that goes on with the conversation of `request`, and works on it in this process. The
    /// conversation is referred to and not copied, nothing of it is charged again, and the log of the run that it comes
    /// from gets an entry that names the new one, in the same transaction. A process that works on that run isn't disturbed.
    ///
    /// # Errors
    /// When the log can't be written, or a money budget can't bind the model. Nothing has started then.
    pub async fn fork(&self, run: RunId, request: ForkRequest) -> Result<Harness, HarnessError> {
        let ForkRequest { point, goal, mut policy, worktree, text, by } = request;
        let must_be_priced = policy.budget.money.is_some() && !policy.allow_unpriced;
        if must_be_priced && policy.agent.model.price.is_none() {
            return Err(HarnessError::UnknownPrice { model: policy.agent.model.name });
        }
        for name in self.deps.observers.names() {
            if !policy.observers.iter().any(|known| known == name) {
                policy.observers.push(name.to_owned());
            }
        }
        let mut harness = self.claim(run, Seen::from([(run.into(), Seq::START)])).await?;
        harness.pace = pace_of(&policy);
        let agent_goal = point.goal.clone();
        let fork = Box::new(point.into_fork());
        let wish = ForkWish { goal, agent_goal, policy, fork, worktree, text, by };
        let posted =
            self.deps.home.post(run.into(), RunEvent::Fork(Box::new(wish)).into(), Some("start")).await?;
        if posted.changed { Ok(harness) } else { Err(HomeError::Conflict { actor: run.into() }.into()) }
    }
}
