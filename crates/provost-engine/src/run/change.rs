//! A policy or a goal that replaces the one that the run was started with.

use provost_event::{AgentPolicyChanged, Budget, RunPolicy, RunPolicyChanged};

use super::agents::ROOT;
use super::brief::told_of_goal;
use super::{AgentNumber, Deciding, RunState};
use crate::SessionEvent;

impl Deciding<'_> {
    /// Applies another policy to the run and to each of its agents that may still work.
    pub(super) fn change_policy(&mut self, changed: RunPolicyChanged) {
        if self.state.outcome.is_none() {
            return;
        }
        let goal = changed.goal.clone();
        let by = changed.by.clone();
        let before = self.state.policy.clone();
        self.commit(changed);
        if self.state.policy == before && goal.is_none() {
            return;
        }
        let begun = self.state.agents.iter();
        let begun = begun.filter(|(number, agent)| agent.has_begun && (*number == ROOT || agent.is_live()));
        for number in begun.map(|(number, _)| number).collect::<Vec<_>>() {
            if self.state.lacks_its_settings(number) {
                continue;
            }
            let Some(policy) = self.state.policy_of(number).map(told_of_goal) else { continue };
            let goal = goal.clone().filter(|_| number == ROOT);
            let changed = AgentPolicyChanged { policy, goal, by: by.clone() };
            let session = self.state.agents.session(number);
            self.tell(session, SessionEvent::ChangePolicy(Box::new(changed)));
        }
    }
}

impl RunState {
    /// Whether an agent was requested by a name that the settings no longer have: it keeps what it was given.
    fn lacks_its_settings(&self, number: AgentNumber) -> bool {
        let brief = self.agents.get(number).and_then(|agent| agent.live_brief());
        brief.and_then(|brief| brief.agent.as_deref()).is_some_and(|name| self.sub_agent(name).is_none())
    }

    pub(super) fn policy_changed(&mut self, changed: &RunPolicyChanged) {
        let new = &changed.policy;
        if let Some(old) = &self.policy {
            self.budget = self.budget.under(old.budget, new.budget);
            if old.agent.model != new.agent.model {
                // The new policy includes the model that was named before, or no longer uses it.
                self.model = None;
            }
            if old.agent.limits.turns_max != new.agent.limits.turns_max {
                self.turns_max = new.agent.limits.turns_max;
            }
        }
        self.clock.limit_ms = self.budget.wall_time_ms;
        self.agents.slots.limit(new.spawn);
        if let (Some(steps), Some(flow)) = (&mut self.flow, &new.flow) {
            steps.policy_changed(flow);
        }
        self.policy = Some(new.clone());
        self.changed = Some(Box::new(new.clone()));
    }
}

impl RunState {
    /// The limits that apply once `policy` does.
    #[must_use]
    pub fn budget_under(&self, policy: &RunPolicy) -> Budget {
        match &self.policy {
            Some(old) => self.budget.under(old.budget, policy.budget),
            None => policy.budget,
        }
    }

    /// The turn limit of the root agent once `policy` applies.
    #[must_use]
    pub fn turns_max_under(&self, policy: &RunPolicy) -> u32 {
        let (old, new) =
            (self.policy.as_ref().map(|old| old.agent.limits.turns_max), policy.agent.limits.turns_max);
        if old == Some(new) { self.turns_max } else { new }
    }
}
