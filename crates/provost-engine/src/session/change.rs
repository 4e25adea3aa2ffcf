//! A policy or a goal that replaces the one that the session was started with.

use provost_event::{AgentPolicyChanged, ToolsChanged};

use super::{Deciding, SessionState};

pub(in crate::session) fn change_policy(deciding: &mut Deciding<'_>, changed: AgentPolicyChanged) {
    let is_news = changed.goal.is_some() || deciding.state.assignment.policy() != Some(&changed.policy);
    if deciding.state.lifecycle.outcome().is_some() && is_news {
        deciding.commit(changed);
    }
}

/// Changes the tools, as far as they aren't so already.
pub(in crate::session) fn change_tools(deciding: &mut Deciding<'_>, changed: &ToolsChanged) {
    let tools = deciding.state.assignment.tools_to_come();
    if let Some(changed) = ToolsChanged::between(&tools, &changed.applied_to(&tools), &changed.by) {
        deciding.commit(changed);
    }
}

/// Notifies the agent of a goal that was set or cleared while it was suspended or had ended.
pub(in crate::session) fn tell_of_changed_goal(deciding: &mut Deciding<'_>) {
    if let Some((item, notice)) = deciding.state.goal.notice(&deciding.state.assignment) {
        deciding.say(item, notice);
    }
}

pub(in crate::session) fn policy_changed(state: &mut SessionState, changed: &AgentPolicyChanged) {
    let new = &changed.policy;
    if let Some(old) = state.assignment.policy().cloned() {
        if old.model != new.model {
            state.models.policy_changed();
        }
        if old.limits.turns_max != new.limits.turns_max {
            state.turns.limited_to(new.limits.turns_max);
        }
        state.conversation.policy_changed(&old, new);
        if state.goal.policy_changed(&old, changed) {
            state.objections.goal_given();
            state.lifecycle.told();
        }
    }
    state.assignment.policy_changed(changed, state.head);
    state.calls.bound_by(&state.assignment);
}

/// The calls of an answer that was given with the tools before are still made with those.
pub(in crate::session) fn tools_changed(state: &mut SessionState, changed: &ToolsChanged) {
    state.assignment.tools_will_change(changed);
    if state.calls.of_answer().is_empty() {
        change_tools_now(state);
    }
}

/// Applies the changes of the tools that came during the turn.
pub(in crate::session) fn change_tools_now(state: &mut SessionState) {
    let Some(old) = state.assignment.change_tools(state.head) else { return };
    if let Some(new) = state.assignment.policy() {
        state.conversation.policy_changed(&old, new);
    }
    state.calls.bound_by(&state.assignment);
}
