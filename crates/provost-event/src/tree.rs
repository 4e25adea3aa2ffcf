//! The agents of a run: who may be asked to work for another, and what happened to each, as the run's log has it.

use serde::{Deserialize, Serialize};

use crate::{AgentPolicy, Budget, Outcome, Priority, Seq, SessionId};

/// A sub-agent that a run's agents may ask to work for them, by a tool of its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubAgentPolicy {
    /// Its name, and that of the tool that asks for it; unique within the policy.
    pub name: String,
    /// What it is. Whoever asks for it gets no more: of its tools, those that the other has too; what the other's
    /// permissions deny or ask about, its calls are denied or asked about too.
    pub agent: AgentPolicy,
    /// How urgent its work is.
    #[serde(default)]
    pub priority: Priority,
    /// What it and those below it may spend of the run's budget; its time counts while it holds a slot.
    #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
    pub budget: Budget,
    /// How long whoever asked waits for it, in milliseconds from its first start, while it holds a slot; then it is
    /// cancelled. For ever if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_timeout_ms: Option<u64>,
    /// Where it works.
    #[serde(default)]
    pub isolation: Isolation,
}

/// Where a sub-agent works.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// In the folder of the agent that asked for it.
    #[default]
    Shared,
    /// In a git worktree of its own, on a branch of its own. Where none can be made, it fails.
    Worktree,
}

/// How a new agent comes by its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlotWish {
    /// One is free.
    Free,
    /// This one makes way for it.
    After(SessionId),
    /// It waits in the line for one.
    InLine,
}

/// What an agent is given for one task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Brief {
    /// What it is called: the configured sub-agent's name, or a label that the asking agent chose.
    pub name: String,
    /// What it is to reach.
    pub goal: String,
    /// The configured sub-agent that it is; absent for one like the agent that asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// What it is told besides, behind the system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The tools it is left with; all that it could have if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// What it and those below it may spend.
    #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
    pub budget: Budget,
    /// A limit of its turns; as its policy has it if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns_max: Option<u32>,
    /// How long it is waited for, in milliseconds during which it holds a slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_timeout_ms: Option<u64>,
    /// Where it works.
    #[serde(default)]
    pub isolation: Isolation,
    /// What must be confirmed before it counts as done; as its policy has it if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_when: Option<String>,
}

/// An agent was asked for, and will get a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildSpawned {
    /// The new agent.
    pub child: SessionId,
    /// Who asked for it; absent where nobody but the run did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
    /// The entry of the parent's log that has the call; absent without a parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Seq>,
    /// How many agents stand above it.
    pub depth: u32,
    /// What it was given.
    pub brief: Brief,
    /// How urgent its work is.
    pub priority: Priority,
    /// How it comes by its slot.
    pub slot: SlotWish,
}

/// An agent has a slot, and begins or goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildStarted {
    /// Which.
    pub child: SessionId,
}

/// An agent was told to make way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildYields {
    /// Which.
    pub child: SessionId,
    /// For whom; absent where it has fallen behind those who wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<SessionId>,
}

/// An agent has come to rest and given up its slot, but for the root, which keeps it; nobody has had its result yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildPaused {
    /// Which.
    pub child: SessionId,
    /// At what; never a final outcome.
    pub outcome: Outcome,
    /// Whether it rests only because agents do that work for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub for_child: bool,
}

/// Somebody wants an agent that rests to go on as soon as there is a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildResumed {
    /// Which.
    pub child: SessionId,
    /// Who.
    pub by: String,
}

/// An agent has failed and given up its slot. It is restarted in its own session when it is due and there is a slot;
/// nobody has had a result of it yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRetryScheduled {
    /// Which.
    pub agent: SessionId,
    /// How it failed; may be final.
    pub outcome: Outcome,
    /// Which restart in a row comes next, from 1.
    pub attempt: u32,
    /// Restarts in a row that it may have.
    pub attempts_max: u32,
    /// The wait before it, in milliseconds.
    pub delay_ms: u64,
    /// When that is over.
    pub due: crate::Timestamp,
}

/// An agent that has delivered its result is asked to go on in its own session, and will get a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentAskedAgain {
    /// Which.
    pub child: SessionId,
    /// The agent that asks: the one that asked for it first.
    pub parent: SessionId,
    /// The entry of that agent's log that has the call.
    pub call: Seq,
    /// What it is told.
    pub text: String,
    /// Turns that its session may have from here on, those before included. Its other limits count from here, too.
    pub turns_max: u32,
    /// How urgent its work is.
    pub priority: Priority,
    /// How it comes by its slot.
    pub slot: SlotWish,
}

/// An agent's work is over, and whoever asked for it has its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildFinished {
    /// Which.
    pub child: SessionId,
    /// How. One that isn't final has been reported as it is; the agent's log ends after it all the same.
    pub outcome: Outcome,
    /// How often it was restarted after a failure, since it was last asked.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub restarts: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands the field over like this")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Somebody gave an agent another priority.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reprioritized {
    /// Which.
    pub agent: SessionId,
    /// The new one.
    pub priority: Priority,
    /// Who.
    pub by: String,
}

/// An agent shall make way for another at its next check: before a model call, and before a call of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct YieldRequested {
    /// For whom, if for somebody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<SessionId>,
    /// When a model call in flight is no longer waited for; absent when it is so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<crate::Timestamp>,
}

/// A sub-agent rests before its work is done. The call that asked for it still waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildRested {
    /// The entry that started the call.
    pub started: Seq,
    /// At what it rests.
    pub outcome: Outcome,
}

/// A sub-agent that rested works again, or will.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildGoesOn {
    /// The entry that started the call.
    pub started: Seq,
}
