//! Sub-agents.

use provost_engine::{HookCallDetails, WantedAgent};
use provost_event::{CallId, HookDecision, HookPoint, HookTrigger, Outcome, Priority, SessionId};

use super::{HookAction, HookEvent, HookInput, beginning, call_of, hook_call, result_at, sealed};
use crate::hooks::SUMMARY_BYTES_MAX;
use crate::hooks::reminders::HookInvocation;

events! {
    /// An agent is about to spawn another: its call passed the [`PreToolCall`](crate::hooks::PreToolCall) hooks and the permissions, and
    /// hasn't been submitted for approval yet. Whether there is a slot and budget for the new agent is checked
    /// afterwards.
    OnSpawn: Spawn, OnSpawnInput => OnSpawnAction;
    may "OnSpawnAction::Deny(String::new())", must_not "OnSpawnAction::Abort(String::new())";

    /// A spawned agent is done, or was stopped, and its result is in its parent's log. Its hooks are called before
    /// those of [`PostToolCall`](crate::hooks::PostToolCall); they aren't called for agents that never started.
    OnChildEnd: ChildEnd, OnChildEndInput => OnChildEndAction;
    may "OnChildEndAction::Abort(String::new())", must_not "OnChildEndAction::Deny(String::new())";
}

inputs! {
    /// The input of [`OnSpawn`](crate::hooks::OnSpawn) hooks. The session is the calling agent's, which will be the new
    /// one's parent.
    OnSpawnInput {
        /// The call.
        call: &'a CallId,
        /// The configured sub-agent; absent for a copy of the parent.
        agent: Option<&'a str>,
        /// The new agent's name: the sub-agent's name, or a label; empty if there is none.
        name: &'a str,
        /// Its goal. Empty if the arguments are invalid: then no agent is spawned.
        goal: &'a str,
        /// Its priority; absent if not given: that of its parent, but normal at most.
        priority: Option<Priority>,
        /// Its nesting depth.
        depth: u32,
    }
    /// The input of [`OnChildEnd`](crate::hooks::OnChildEnd) hooks. The session is the parent's.
    OnChildEndInput {
        /// The call that spawned the agent.
        call: &'a CallId,
        /// The configured sub-agent; absent for a copy of the parent.
        agent: Option<&'a str>,
        /// The spawned agent.
        child: SessionId,
        /// Its outcome. If that isn't final, it was reported to the parent all the same: the agent isn't resumed.
        outcome: &'a Outcome,
        /// The beginning of what the parent sees, at most [`SUMMARY_BYTES_MAX`](crate::hooks::SUMMARY_BYTES_MAX) bytes,
        /// cut between characters.
        summary: &'a str,
        /// All that the parent sees.
        output: &'a str,
        /// The time since it was spawned, in milliseconds.
        duration_ms: u64,
    }
}

views! {
    OnSpawnInput: |asked, hook_call| {
        let call = call_of(hook_call)?;
        let WantedAgent { agent, name, goal, priority, depth } = call.wanted.as_deref()?;
        Some(Self {
            session: hook_call.session,
            call: &call.call,
            agent: agent.as_deref(),
            name,
            goal,
            priority: *priority,
            depth: *depth,
            asked,
        })
    };
    OnChildEndInput: |asked, hook_call| match (&hook_call.about, &hook_call.details) {
        (HookTrigger::ChildEnd { child, outcome, .. }, HookCallDetails::Result { call, finished }) => {
            let result = result_at(asked, *finished)?;
            Some(Self {
                session: hook_call.session,
                call: &call.call,
                agent: call.wanted.as_ref().and_then(|wanted| wanted.agent.as_deref()),
                child: *child,
                outcome,
                summary: beginning(&result.output, SUMMARY_BYTES_MAX),
                output: &result.output,
                duration_ms: result.duration_ms,
                asked,
            })
        }
        _ => None,
    };
}

/// The actions of [`OnSpawn`](crate::hooks::OnSpawn) hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OnSpawnAction {
    /// No objection.
    Continue,
    /// The agent isn't spawned; the calling model gets this reason as the call's result.
    Deny(String),
}

impl HookAction for OnSpawnAction {
    fn decision(self) -> HookDecision {
        match self {
            Self::Continue => HookDecision::Continue,
            Self::Deny(reason) => HookDecision::Deny(reason),
        }
    }
}

/// The actions of [`OnChildEnd`](crate::hooks::OnChildEnd) hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OnChildEndAction {
    /// No objection.
    Continue,
    /// The run ends now, for this reason.
    Abort(String),
}

impl HookAction for OnChildEndAction {
    fn decision(self) -> HookDecision {
        match self {
            Self::Continue => HookDecision::Continue,
            Self::Abort(reason) => HookDecision::Abort(reason),
        }
    }
}
