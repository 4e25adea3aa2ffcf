//! The agents of a run: the configured sub-agents, and the run log's entries about each agent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::skip::is_default;
use crate::{AgentPolicy, Budget, Outcome, Priority, Seq, SessionId};

/// A configured sub-agent that a run's agents can spawn by a tool of its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubAgentPolicy {
    /// Its name, and that of its tool; unique within the policy.
    pub name: String,
    /// Its policy, restricted by its parent's: it gets only tools that the parent has too, and calls that the
    /// parent's permissions deny or ask about are denied or asked about too.
    pub agent: AgentPolicy,
    /// Its priority.
    #[serde(default)]
    pub priority: Priority,
    /// What it and the agents below it may spend of the run's budget; its time counts while it holds a slot.
    #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
    pub budget: Budget,
    /// How long its parent waits for it, in milliseconds from its first start, while it holds a slot; then it is
    /// cancelled. Unlimited if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_timeout_ms: Option<u64>,
    /// Where it works.
    #[serde(default)]
    pub isolation: Isolation,
}

impl SubAgentPolicy {
    /// A sub-agent of this name in its parent's folder, with the default priority, and without a budget or a time limit
    /// of its own.
    #[must_use]
    pub fn new(name: impl Into<String>, agent: AgentPolicy) -> Self {
        Self {
            name: name.into(),
            agent,
            priority: Priority::default(),
            budget: Budget::default(),
            ask_timeout_ms: None,
            isolation: Isolation::default(),
        }
    }
}

/// Where a sub-agent works.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// In the folder of the agent that asked for it.
    #[default]
    Shared,
    /// In its own git worktree, on its own branch. If none can be created, it fails.
    Worktree,
}

/// How a new agent gets its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SlotAssignment {
    /// A free slot.
    Free,
    /// The slot of this agent, which yields.
    After(SessionId),
    /// It is queued for one.
    Queued,
}

/// The task of a spawned agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Brief {
    /// Its name: the configured sub-agent's, or a label that the parent chose.
    pub name: String,
    /// Its goal.
    pub goal: String,
    /// The configured sub-agent; absent for a copy of the parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Additional instructions, after the system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The tools that it keeps; all available ones if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// What it and the agents below it may spend.
    #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
    pub budget: Budget,
    /// Its turn limit; the policy's if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns_max: Option<u32>,
    /// How long its parent waits for it, in milliseconds during which it holds a slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_timeout_ms: Option<u64>,
    /// Where it works.
    #[serde(default)]
    pub isolation: Isolation,
    /// What must be confirmed before it counts as done; the policy's condition if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_when: Option<String>,
}

/// An agent was spawned, and will get a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentSpawned {
    /// The new agent.
    pub child: SessionId,
    /// Its parent; absent if the run itself spawned it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
    /// The entry of the parent's log with the call; absent without a parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Seq>,
    /// Its nesting depth.
    pub depth: u32,
    /// Its task.
    pub brief: Brief,
    /// Its priority.
    pub priority: Priority,
    /// How it gets its slot.
    pub slot: SlotAssignment,
}

/// An agent got a slot, and starts or continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentStarted {
    /// The agent.
    pub child: SessionId,
}

/// An agent was asked to yield.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentYieldRequested {
    /// The agent.
    pub child: SessionId,
    /// The agent that gets the slot; absent if it has fallen behind queued agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<SessionId>,
}

/// An agent is suspended and has given up its slot (the root keeps it); its result hasn't been delivered yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentSuspended {
    /// The agent.
    pub child: SessionId,
    /// Its outcome; never final.
    pub outcome: Outcome,
    /// Whether the only cause is that agents working for it are suspended.
    #[serde(default, skip_serializing_if = "is_default")]
    pub for_child: bool,
}

/// A suspended agent is to continue as soon as a slot is free.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentResumeRequested {
    /// The agent.
    pub child: SessionId,
    /// Who resumed it.
    pub by: String,
}

/// An agent has failed and given up its slot. It is restarted in its own session when it is due and a slot is
/// free; its result hasn't been delivered yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentRetryScheduled {
    /// The agent.
    pub agent: SessionId,
    /// Its outcome; may be final.
    pub outcome: Outcome,
    /// The number of the next consecutive restart, from 1.
    pub attempt: u32,
    /// Maximum consecutive restarts.
    pub attempts_max: u32,
    /// The wait before the restart, in milliseconds.
    pub delay_ms: u64,
    /// When the wait ends.
    pub due: crate::Timestamp,
}

/// An agent that has delivered its result is asked to continue in its own session, and will get a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentAskedAgain {
    /// The agent.
    pub child: SessionId,
    /// The agent that asks: its parent.
    pub parent: SessionId,
    /// The entry of the parent's log with the call.
    pub call: Seq,
    /// The message to it.
    pub text: String,
    /// Its turn limit from here on, earlier turns included. Its other limits restart here, too.
    pub turns_max: u32,
    /// Its priority.
    pub priority: Priority,
    /// How it gets its slot.
    pub slot: SlotAssignment,
}

/// An agent has finished, and its result was delivered to its parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentFinished {
    /// The agent.
    pub child: SessionId,
    /// Its outcome. If that isn't final, it was reported as it is, and the agent's log still ends there.
    pub outcome: Outcome,
    /// Restarts after failures since it was last asked.
    #[serde(default, skip_serializing_if = "is_default")]
    pub restarts: u32,
}

/// An agent's priority has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reprioritized {
    /// The agent.
    pub agent: SessionId,
    /// The new priority.
    pub priority: Priority,
    /// Who changed it.
    pub by: String,
}

/// An agent is to yield to another at its next check: before a model call or a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct YieldRequested {
    /// The other agent, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<SessionId>,
    /// When a model call in flight is abandoned; absent if that time has come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<crate::Timestamp>,
}

/// A sub-agent is suspended before its work is done. The call that spawned it still waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubAgentSuspended {
    /// The entry that started the call.
    pub started: Seq,
    /// The sub-agent's outcome.
    pub outcome: Outcome,
}

/// A suspended sub-agent runs again, or will.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubAgentResumed {
    /// The entry that started the call.
    pub started: Seq,
}
