//! A policy or a goal that replaces the one that the session was started with.

use provost_event::{AgentPolicy, AgentPolicyChanged, ItemKind};

use super::{Deciding, SessionState};
use crate::permission::Permissions;

impl Deciding<'_> {
    pub(super) fn change_policy(&mut self, changed: AgentPolicyChanged) {
        let is_news = changed.goal.is_some() || self.state.assignment.policy() != Some(&changed.policy);
        if self.state.outcome.is_some() && is_news {
            self.commit(changed);
        }
    }

    /// Notifies the agent of a goal that was set or cleared while it was suspended or had ended.
    pub(super) fn tell_of_changed_goal(&mut self) {
        if self.state.lost_goal {
            let body = "The condition for being done is taken away: judges no longer verify it. Do what you are asked.";
            return self.say(ItemKind::GoalGiven, body);
        }
        let Some(goal) = self.state.goal_track.as_ref().filter(|track| track.is_untold) else { return };
        let again = if goal.had_another { "another goal, in place of the one before" } else { "a goal" };
        let condition =
            self.state.assignment.goal_policy().map(|goal| goal.condition.as_str()).unwrap_or_default();
        let body = format!(
            "You are given {again}. You are done once this is true, and independent judges verify it against the \
             evidence:\n\n{condition}"
        );
        self.say(ItemKind::GoalGiven, body);
    }
}

impl SessionState {
    /// Applies the permissions of the policy, with the approvals of the run added.
    pub(super) fn grant_permissions(&mut self) {
        let Some(policy) = self.assignment.policy() else { return };
        let mut permissions = Permissions::of_agent(policy, &policy.workspace);
        self.approved.iter().for_each(|pattern| permissions.approve(pattern));
        self.permissions = Some(permissions);
    }

    pub(super) fn policy_changed(&mut self, changed: &AgentPolicyChanged) {
        let new = &changed.policy;
        if let Some(old) = self.assignment.policy().cloned() {
            if old.model != new.model {
                self.models.policy_changed();
            }
            if old.limits.turns_max != new.limits.turns_max {
                self.turns_max = new.limits.turns_max;
            }
            self.conversation.policy_changed(&old, new);
            let condition = |policy: &AgentPolicy| policy.goal.as_ref().map(|goal| goal.condition.clone());
            let before = condition(&old);
            let after = condition(new);
            if changed.goal.is_some() {
                self.goal_given(before.is_some() && before != after);
            } else if before.is_none() && after.is_some() {
                self.goal_given(false);
            } else if after.is_none() {
                self.goal_track = None;
            }
            self.lost_goal = (self.lost_goal || before.is_some()) && after.is_none();
        }
        self.assignment.policy_changed(changed);
        self.grant_permissions();
    }

    /// The judges begin anew with a goal that the agent doesn't know yet; findings on another goal don't count.
    fn goal_given(&mut self, had_another: bool) {
        let mut track = self.goal_track.take().unwrap_or_default();
        *track = super::GoalTrack {
            generation: track.generation.saturating_add(1),
            asked: std::mem::take(&mut track.asked),
            is_untold: true,
            had_another,
            ..super::GoalTrack::default()
        };
        self.goal_track = Some(track);
        self.block = None;
        self.unanswered.clear();
        self.done_before = None;
    }
}
