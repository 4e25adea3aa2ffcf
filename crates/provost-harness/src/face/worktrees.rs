//! Worktrees that are gone when their agents go on.

use std::path::PathBuf;

use provost_engine::{Actor, RunEvent};

use super::{AgentHarness, Harness};
use crate::HarnessError;
use crate::executor::make_again;

/// Who tells an agent that its worktree was gone.
const BY: &str = "provost";

/// A worktree that was gone and is there again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemadeWorktree {
    /// The number of the agent that works in it.
    pub agent: u32,
    /// Where it is.
    pub path: PathBuf,
    /// The branch that it is on.
    pub branch: String,
    /// The commit that it begins with now.
    pub commit: String,
}

impl AgentHarness {
    /// Makes the worktrees of these agents again that aren't there, for a run that isn't worked on.
    pub(super) async fn remake_worktrees(agents: &[&Actor]) -> Result<Vec<RemadeWorktree>, HarnessError> {
        let mut remade = Vec::new();
        for agent in agents {
            let Actor::Session(state) = agent else { continue };
            let Some((order, made)) = state.worktree_made() else { continue };
            if state.has_ended() || order.path.exists() {
                continue;
            }
            let commit = make_again(&order, made).await.map_err(|why| HarnessError::WorktreeGone {
                agent: order.session.agent,
                path: order.path.clone(),
                why,
            })?;
            let agent = order.session.agent;
            remade.push(RemadeWorktree { agent, path: order.path, branch: order.branch, commit });
        }
        Ok(remade)
    }
}

impl Harness {
    /// The worktrees that were gone when the run was opened, and were made again.
    #[must_use]
    pub fn remade_worktrees(&self) -> &[RemadeWorktree] {
        &self.remade
    }

    /// Has the agents know.
    pub(super) async fn tell_of_remade(&self) -> Result<(), HarnessError> {
        for RemadeWorktree { agent, branch, commit, .. } in &self.remade {
            let text = format!(
                "Your git worktree was gone and was made again, on branch {branch} at commit {commit}. Changes that \
                 weren't committed are lost: look what is there before you go on."
            );
            self.to_run(RunEvent::Say { agent: *agent, text, by: BY.to_owned() }).await?;
        }
        Ok(())
    }
}
