//! A policy or a goal that replaces the one that the session was started with.

use provost_event::{AgentPolicyChanged, ItemKind};

use super::{Deciding, SessionState};

pub(in crate::session) fn change_policy(deciding: &mut Deciding<'_>, changed: AgentPolicyChanged) {
    let is_news = changed.goal.is_some() || deciding.state.assignment.policy() != Some(&changed.policy);
    if deciding.state.lifecycle.outcome().is_some() && is_news {
        deciding.commit(changed);
    }
}

/// Notifies the agent of a goal that was set or cleared while it was suspended or had ended.
pub(in crate::session) fn tell_of_changed_goal(deciding: &mut Deciding<'_>) {
    if let Some(notice) = deciding.state.goal.notice(&deciding.state.assignment) {
        deciding.say(ItemKind::GoalGiven, notice);
    }
}

impl SessionState {
    pub(super) fn policy_changed(&mut self, changed: &AgentPolicyChanged) {
        let new = &changed.policy;
        if let Some(old) = self.assignment.policy().cloned() {
            if old.model != new.model {
                self.models.policy_changed();
            }
            if old.limits.turns_max != new.limits.turns_max {
                self.turns.limited_to(new.limits.turns_max);
            }
            self.conversation.policy_changed(&old, new);
            if self.goal.policy_changed(&old, changed) {
                self.objections.goal_given();
                self.lifecycle.told();
            }
        }
        self.assignment.policy_changed(changed);
        self.calls.bound_by(&self.assignment);
    }
}
