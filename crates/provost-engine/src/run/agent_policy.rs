//! The policy of each agent of a run: its own, with no more than the agent above it has.

use provost_event::{
    Access, AgentPolicy, Brief, GoalPolicy, Isolation, KEEP_RUNNING, PermissionPolicy, RetryPolicy,
    SessionId, SessionStarted, StepMode, StepPolicy, Worktree,
};

use super::AgentNumber;
use super::agents::{Agent, Agents};
use super::policy::PolicyInForce;
use super::workflow::Workflow;
use crate::reminder::reminder_id;

/// The policies of a run's agents.
#[derive(Debug, Clone, Copy)]
pub(super) struct AgentPolicies<'a> {
    pub(super) run: &'a PolicyInForce,
    pub(super) agents: &'a Agents,
    pub(super) workflow: &'a Workflow,
}

impl AgentPolicies<'_> {
    /// The effective policy of an agent.
    pub(super) fn of(&self, number: AgentNumber) -> Option<AgentPolicy> {
        let run = self.run.get()?;
        let agent = self.agents.get(number)?;
        let Some(brief) = agent.brief() else {
            return Some(run.agent.clone());
        };
        // The agent of a step has no parent: it is the run's own, or restricted to what the run's own would have.
        let above = match agent.parent() {
            Some(parent) => AgentPolicy { stop_hooks: Vec::new(), goal: None, ..self.of(parent)? },
            None => AgentPolicy { goal: None, ..run.agent.clone() },
        };
        let mut policy = match brief.agent.as_deref().and_then(|name| self.run.sub_agent(name)) {
            Some(named) => narrowed(named.agent.clone(), &above),
            None => above,
        };
        if policy.external.is_none() {
            policy.preamble.clone_from(&run.agent.preamble);
            policy.folder_rules_bytes = run.agent.folder_rules_bytes;
        }
        if let Some(step) = self.step_of(agent) {
            bind_to_step(step, &mut policy);
        }
        if let Some(tools) = &brief.tools {
            policy.tools.retain(|tool| tools.contains(&tool.name));
        }
        if agent.depth() >= run.spawn.max_depth {
            policy.tools.retain(|tool| tool.access != Access::Delegates);
        }
        if let Some(instructions) = &brief.instructions {
            policy.system_prompt = format!("{}\n\n{instructions}", policy.system_prompt);
        }
        if let Some(condition) = &brief.done_when
            && let Some(judging) = &run.judging
        {
            policy.goal = Some(Box::new(GoalPolicy { condition: condition.clone(), ..*judging.clone() }));
        }
        if let Some(worktree) = self.worktree_of(number) {
            self.move_into(&worktree, number, &mut policy);
        }
        self.run.apply_changes(&mut policy);
        policy.limits.turns_max = brief.turns_max.unwrap_or(u32::MAX).min(policy.limits.turns_max);
        policy.step_mode = StepMode::Free;
        Some(policy)
    }

    /// The policy for restarts of an agent. A step may set the limit.
    pub(super) fn restarts_of(&self, number: AgentNumber) -> Option<RetryPolicy> {
        let mut policy = self.of(number)?.limits.retry;
        let step = self.agents.get(number).and_then(|agent| self.step_of(agent));
        if let Some(attempts_max) = step.and_then(|step| step.restarts_max) {
            policy.attempts_max = attempts_max;
        }
        Some(policy)
    }

    /// The step that an agent works on, if any.
    fn step_of(&self, agent: &Agent) -> Option<&StepPolicy> {
        self.run.step(self.workflow.step_of(agent)?)
    }

    /// Whether an agent was requested by a name that the settings no longer have: it keeps what it was given.
    pub(super) fn lacks_settings(&self, number: AgentNumber) -> bool {
        let brief = self.agents.get(number).and_then(Agent::live_brief);
        let name = brief.and_then(|brief| brief.agent.as_deref());
        name.is_some_and(|name| self.run.sub_agent(name).is_none())
    }

    /// The first entry of an agent that begins.
    pub(super) fn opening(&self, number: AgentNumber, entropy: u64) -> Option<SessionStarted> {
        let agent = self.agents.get(number)?;
        let Brief { goal, agent: kind, .. } = agent.brief()?;
        Some(SessionStarted {
            goal: goal.clone(),
            images: Vec::new(),
            policy: told_of_goal(self.of(number)?),
            parent: agent.parent().map(|parent| self.agents.table().session(parent)),
            depth: agent.depth(),
            call: agent.call(),
            agent: kind.clone(),
            worktree: self.worktree_of(number),
            fork: None,
            reminder_id: reminder_id(entropy, number),
        })
    }

    /// The worktree to make for an agent, if it gets its own: from its parent's folder.
    fn worktree_of(&self, number: AgentNumber) -> Option<Worktree> {
        let agent = self.agents.get(number)?;
        if agent.brief()?.isolation != Isolation::Worktree {
            return None;
        }
        let from = match agent.parent() {
            Some(parent) => self.of(parent)?.workspace,
            None => self.run.get()?.agent.workspace.clone(),
        };
        let branch = worktree_branch(self.agents.table().session(number));
        Some(Worktree { from, branch, commit: None })
    }

    /// Lets an agent work in its worktree, and tells it so: its prompt was written for another folder.
    fn move_into(&self, worktree: &Worktree, number: AgentNumber, policy: &mut AgentPolicy) {
        let Some(folder) = self.run.worktrees() else { return };
        policy.workspace = folder.join(worktree_name(self.agents.table().session(number)));
        policy.system_prompt.push_str(&format!(
            "\n\nWhatever is said of a workspace above, yours is {}: a git worktree of your own, on the branch {}, made \
             from the last commit in {}. Commit your work there before you stop: your work is taken \
             over from that branch.",
            policy.workspace.display(),
            worktree.branch,
            worktree.from.display(),
        ));
    }
}

/// The name of a session's worktree, which is unique: no two agents of a run share a number, and no two runs an id.
#[must_use]
pub fn worktree_name(session: SessionId) -> String {
    format!("{}-{}", session.run, session.agent)
}

/// The branch of that worktree.
#[must_use]
pub fn worktree_branch(session: SessionId) -> String {
    format!("provost/{}", worktree_name(session))
}

/// Adds to an agent's policy what its step requires.
fn bind_to_step(step: &StepPolicy, policy: &mut AgentPolicy) {
    for hook in &step.stop_hooks {
        if !policy.stop_hooks.iter().any(|known| known.name == hook.name) {
            policy.stop_hooks.push(hook.clone());
        }
    }
}

/// `policy` of an agent that begins: if the agent has a goal, its system prompt gets a paragraph on it, with the
/// condition. Its sub-agents get none of that, unless they have a goal of their own.
#[must_use]
pub fn told_of_goal(mut policy: AgentPolicy) -> AgentPolicy {
    // A fork's prompt already has this paragraph, about the other run's goal.
    if let Some((before, _)) = policy.system_prompt.split_once(GOAL_IN_PROMPT) {
        policy.system_prompt = before.to_owned();
    }
    if let Some(goal) = &policy.goal {
        policy.system_prompt = format!("{}{GOAL_IN_PROMPT}{}", policy.system_prompt, goal.condition);
    }
    policy
}

/// The text between an agent's instructions and its goal.
const GOAL_IN_PROMPT: &str = "\n\nWhen you say that you are done, that is not believed but verified: independent \
    judges look at the evidence (your calls and what came of them, the files that changed, the checks that ran); what \
    you say yourself proves nothing. You are done once this is true:\n\n";

/// `policy` restricted to the tools of `above` and to what its permissions allow.
fn narrowed(mut policy: AgentPolicy, above: &AgentPolicy) -> AgentPolicy {
    let is_external = policy.external.is_some();
    policy.tools.retain(|tool| {
        above.tools.iter().any(|known| known.name == tool.name)
            || (is_external && tool.access == Access::Consents)
    });
    let bounds = above.bounds.iter().chain([&above.permissions]);
    // What goes on after the run is never allowed by default, so that an open policy limits that, too.
    let keeps = policy.permissions.allow.iter().any(|pattern| pattern.trim_start().starts_with(KEEP_RUNNING));
    let bounds = bounds.filter(|bound| (keeps || !bound.is_open()) && **bound != policy.permissions);
    policy.bounds = distinct(bounds.cloned());
    policy.workspace.clone_from(&above.workspace);
    if policy.sandbox.mode.strictness() < above.sandbox.mode.strictness() {
        policy.sandbox.clone_from(&above.sandbox);
    }
    policy
}

fn distinct(policies: impl Iterator<Item = PermissionPolicy>) -> Vec<PermissionPolicy> {
    policies.fold(Vec::new(), |mut all, policy| {
        if !all.contains(&policy) {
            all.push(policy);
        }
        all
    })
}
