//! The goal and the policy of a run, with the changes that apply since its start.

use std::path::Path;

use provost_event::{
    AgentPolicy, Entry, LifecycleEntry, ModelEntry, ModelPolicy, RunPolicy, RunPolicyChanged, RunStarted,
    SpawnBudget, StepPolicy, SubAgentPolicy, ToolEntry,
};
use serde::{Deserialize, Serialize};

use super::StepNumber;

/// The goal and the policy of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PolicyInForce {
    #[serde(skip)]
    goal: String,
    #[serde(skip)]
    policy: Option<RunPolicy>,
    /// The policy that replaces the one it was started with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changed: Option<Box<RunPolicy>>,
    /// The model that a later change names in place of the policy's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<Box<ModelPolicy>>,
    /// How long outages are waited out, if a later change replaces the policy's value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outage_max_ms: Option<u64>,
}

impl PolicyInForce {
    pub(super) fn goal(&self) -> &str {
        &self.goal
    }

    /// The policy; absent before the run has started.
    pub(super) const fn get(&self) -> Option<&RunPolicy> {
        self.policy.as_ref()
    }

    pub(super) const fn is_started(&self) -> bool {
        self.policy.is_some()
    }

    /// The model of agents that have none of their own.
    pub(super) fn model(&self) -> Option<&ModelPolicy> {
        self.changed_model().or_else(|| self.policy.as_ref().map(|policy| &policy.agent.model))
    }

    /// The model in place of the policy's, if it was changed.
    pub(super) fn changed_model(&self) -> Option<&ModelPolicy> {
        self.model.as_deref()
    }

    /// How long outages are waited out, in milliseconds.
    pub(super) fn outage_max_ms(&self) -> u64 {
        let of_policy = || self.policy.as_ref().map_or(0, |policy| policy.agent.limits.outage_max_ms);
        self.outage_max_ms.unwrap_or_else(of_policy)
    }

    /// Applies the changes of the model and of the wait to the policy of an agent.
    pub(super) fn apply_changes(&self, policy: &mut AgentPolicy) {
        let of_run = self.policy.as_ref().map(|run| &run.agent.model.name);
        if let Some(model) = self.changed_model().filter(|_| of_run == Some(&policy.model.name)) {
            policy.model = model.clone();
        }
        policy.limits.outage_max_ms = self.outage_max_ms();
    }

    pub(super) fn spawn_budget(&self) -> SpawnBudget {
        self.policy.as_ref().map(|policy| policy.spawn).unwrap_or_default()
    }

    /// The configured sub-agent of this name.
    pub(super) fn sub_agent(&self, name: &str) -> Option<&SubAgentPolicy> {
        self.policy.as_ref()?.agents.iter().find(|agent| agent.name == name)
    }

    pub(super) fn step(&self, step: StepNumber) -> Option<&StepPolicy> {
        self.policy.as_ref()?.flow.as_ref()?.steps.get(step)
    }

    /// The folder that worktrees are made in, if there is one.
    pub(super) fn worktrees(&self) -> Option<&Path> {
        self.policy.as_ref()?.worktrees.as_deref()
    }

    pub(super) fn apply(&mut self, entry: &Entry) {
        match entry {
            Entry::Lifecycle(LifecycleEntry::RunStarted(started)) => {
                self.goal.clone_from(&started.goal);
                self.policy = Some(started.policy.clone());
            }
            Entry::Model(ModelEntry::Changed(changed)) => self.model = Some(changed.to.clone()),
            Entry::Model(ModelEntry::OutageWaitChanged(changed)) => {
                self.outage_max_ms = Some(changed.outage_max_ms)
            }
            Entry::Lifecycle(LifecycleEntry::RunPolicyChanged(changed)) => self.change(changed),
            Entry::Tool(ToolEntry::Changed(changed)) => {
                if let Some(policy) = &mut self.policy {
                    policy.agent.tools = changed.applied_to(&policy.agent.tools);
                    self.changed = Some(Box::new(policy.clone()));
                }
            }
            _ => {}
        }
    }

    fn change(&mut self, changed: &RunPolicyChanged) {
        let new = &changed.policy;
        if self.policy.as_ref().is_some_and(|old| old.agent.model != new.agent.model) {
            // The new policy includes the model that was named before, or no longer uses it.
            self.model = None;
        }
        self.policy = Some(new.clone());
        self.changed = Some(Box::new(new.clone()));
    }

    /// Restores what a snapshot leaves out.
    pub(super) fn complete(&mut self, started: &RunStarted) {
        self.goal.clone_from(&started.goal);
        self.policy = Some(self.changed.as_deref().unwrap_or(&started.policy).clone());
    }
}
