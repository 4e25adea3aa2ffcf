//! Agents that work in a git worktree of their own: its path, and what they are told about it.

use std::path::Path;

use provost_event::{AgentPolicy, Isolation, Worktree};

use super::{AgentNumber, RunState};

impl RunState {
    /// The folder that worktrees are made in, if there is one.
    pub(super) fn worktrees(&self) -> Option<&Path> {
        self.policy.as_ref()?.worktrees.as_deref()
    }

    /// The worktree to make for an agent, if it gets its own: from its parent's folder.
    pub(super) fn worktree_of(&self, agent: AgentNumber) -> Option<Worktree> {
        let one = self.agents.get(agent)?;
        if one.brief.as_ref()?.isolation != Isolation::Worktree {
            return None;
        }
        let from = match one.parent {
            Some(parent) => self.policy_of(parent)?.workspace,
            None => self.policy.as_ref()?.agent.workspace.clone(),
        };
        let branch = format!("provost/{}", self.worktree_name(agent));
        Some(Worktree { from, branch, commit: None })
    }

    /// A unique name: no two agents of a run share a number, and no two runs an id.
    fn worktree_name(&self, agent: AgentNumber) -> String {
        format!("{}-{agent}", self.run)
    }

    /// Lets an agent work in its worktree, and tells it so: its prompt was written for another folder.
    pub(super) fn move_into(&self, worktree: &Worktree, agent: AgentNumber, policy: &mut AgentPolicy) {
        let Some(folder) = self.worktrees() else { return };
        policy.workspace = folder.join(self.worktree_name(agent));
        policy.system_prompt.push_str(&format!(
            "\n\nWhatever is said of a workspace above, yours is {}: a git worktree of your own, on the branch {}, made \
             from the last commit in {}. Commit your work there before you stop: whoever gave you the goal takes it \
             over from that branch.",
            policy.workspace.display(),
            worktree.branch,
            worktree.from.display(),
        ));
    }
}
