//! Worktrees that are gone when their agents continue.

use std::path::PathBuf;

use provost_engine::{Actor, RunEvent};

use super::{AgentHarness, Harness};
use crate::HarnessError;
use crate::executor::make_again;

/// The sender of the message about a recreated worktree.
const BY: &str = "provost";

/// A worktree that was gone and was created again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemadeWorktree {
    /// The number of its agent.
    pub agent: u32,
    /// Its path.
    pub path: PathBuf,
    /// Its branch.
    pub branch: String,
    /// The commit that it starts at now.
    pub commit: String,
}

impl AgentHarness {
    /// Creates the missing worktrees of these agents again, for a run that isn't active.
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
    /// The worktrees that were gone when the run was opened, and were created again.
    #[must_use]
    pub fn remade_worktrees(&self) -> &[RemadeWorktree] {
        &self.remade
    }

    /// Sends the agents a message about it.
    pub(super) async fn tell_of_remade(&mut self) -> Result<(), HarnessError> {
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
