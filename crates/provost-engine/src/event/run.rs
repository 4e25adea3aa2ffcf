//! Events of a run.

use provost_event::{
    Budget, EffectId, Forked, Image, Json, ModelPolicy, Outcome, Priority, ProviderAwaited, RunPolicy,
    RunPolicyChanged, Seq, SessionFork, SessionId, ToolsChanged, WorkspaceBaseline, Worktree,
};
use serde::{Deserialize, Serialize};

use super::{ReserveRequest, SettleNote};

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEvent {
    /// Starts the run; ignored once it has started.
    Start {
        /// The goal.
        goal: String,
        /// Images that belong to the goal.
        #[serde(default)]
        images: Vec<Image>,
        /// The policy.
        policy: Box<RunPolicy>,
        /// The files of the workspace.
        #[serde(default)]
        baseline: Option<WorkspaceBaseline>,
    },
    /// Starts the run as a fork of another agent's conversation; ignored once it has started.
    Fork(Box<RunForkRequest>),
    /// A run was forked from the conversation of one of this run's agents.
    Forked(Forked),
    /// Some processes of the run could not be ended. Counts at any time.
    ProcessesLeft,
    /// A session requests budget before a model call. A repeated request for a call gets the same answer.
    Reserve(ReserveRequest),
    /// A session reports the usage of a model call.
    Settle(SettleNote),
    /// A session has ended or was suspended.
    SessionStopped {
        /// The session.
        session: SessionId,
        /// The outcome.
        outcome: Outcome,
        /// The agent's last text.
        #[serde(default)]
        text: String,
        /// Whether it is suspended only because its sub-agents are.
        #[serde(default)]
        for_child: bool,
    },
    /// An agent requests a sub-agent. Only the first request of a call counts.
    Spawn {
        /// The session that requests it.
        parent: SessionId,
        /// The entry of its log that started the call.
        call: Seq,
        /// The tool that was called: determines the kind of agent.
        tool: String,
        /// Its arguments.
        input: Json,
    },
    /// Changes the priority of an agent.
    Reprioritize {
        /// The agent.
        agent: u32,
        /// The new priority.
        priority: Priority,
        /// Who requested it.
        by: String,
    },
    /// A timer of the run is due.
    TimerFired {
        /// The effect that set it.
        seq: Seq,
    },
    /// A message to an agent.
    Say {
        /// The agent; the root is 0.
        #[serde(default)]
        agent: u32,
        /// The message.
        text: String,
        /// Who sent it.
        by: String,
    },
    /// Clears an agent's goal.
    ClearGoal {
        /// The agent; the root is 0.
        #[serde(default)]
        agent: u32,
        /// Who requested it.
        by: String,
    },
    /// Suspends the run, or an agent and those below it.
    Pause {
        /// Only this agent and those below it; the whole run if absent.
        #[serde(default)]
        agent: Option<u32>,
        /// Who requested it.
        by: String,
    },
    /// Ends the run, or an agent and those below it.
    Cancel {
        /// Only this agent and those below it; the whole run if absent.
        #[serde(default)]
        agent: Option<u32>,
        /// Who requested it.
        by: String,
    },
    /// Changes the model, or how long outages are waited out, from here on. A suspended run stays suspended.
    Retune {
        /// The model in place of the run's own. An agent with its own model gets it only if that model gives no
        /// answer.
        #[serde(default)]
        model: Option<Box<ModelPolicy>>,
        /// How long outages are waited out, in milliseconds.
        #[serde(default)]
        outage_max_ms: Option<u64>,
        /// Who requested it.
        by: String,
    },
    /// Changes the tools from here on: those of the run's own agent, and of each agent that has its tools from there.
    /// A suspended run stays suspended.
    ChangeTools(Box<ToolsChanged>),
    /// Changes the policy or the goal from the run's next segment on. A suspended run stays suspended; ignored
    /// while the run is worked on.
    ChangePolicy(Box<RunPolicyChanged>),
    /// A session waits for its model's provider.
    AwaitsProvider(Box<ProviderAwaited>),
    /// Begins another segment of a run that is suspended or has ended, or resumes one suspended agent; ignored
    /// while the run or that agent is worked on.
    Resume {
        /// Only this agent, while the others keep working; the whole run if absent.
        #[serde(default)]
        agent: Option<u32>,
        /// Who requested it.
        by: String,
        /// Limits that replace those of the same name.
        budget: Budget,
        /// A new limit of the root agent's turns.
        turns_max: Option<u32>,
        /// A message to the root agent.
        #[serde(default)]
        text: Option<String>,
    },
    /// A backend took the run over from a process that is gone. No process performs its open effects any more.
    Recover {
        /// Open effects that no process has begun: they will still be performed.
        fresh: Vec<EffectId>,
    },
}

/// The start of a run as a fork of another agent's conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunForkRequest {
    /// The run's goal.
    pub goal: String,
    /// The first agent's goal: the one that the conversation began with.
    pub agent_goal: String,
    /// The policy. Its agent part applies to the first agent unchanged.
    pub policy: RunPolicy,
    /// Where the conversation comes from.
    pub fork: Box<SessionFork>,
    /// The worktree to make for the run, if it gets its own.
    #[serde(default)]
    pub worktree: Option<Worktree>,
    /// The files of the workspace, unless it gets its own worktree.
    #[serde(default)]
    pub baseline: Option<WorkspaceBaseline>,
    /// A message to its agent.
    #[serde(default)]
    pub text: Option<String>,
    /// Who requested it.
    pub by: String,
}
