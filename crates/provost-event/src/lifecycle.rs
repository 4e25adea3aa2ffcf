//! The beginning, suspension, continuation and end of runs and sessions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::skip::is_default;
use crate::{
    AgentPolicy, Budget, Image, Outcome, RunPolicy, Seq, SessionFork, SessionId, WorkspaceBaseline, Worktree,
};

/// The first entry of a run's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunStarted {
    /// The goal.
    pub goal: String,
    /// The run's policy.
    pub policy: RunPolicy,
    /// The files of its workspace before it began; absent where they aren't in a git work tree or couldn't be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<WorkspaceBaseline>,
}

/// The first entry of a session's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionStarted {
    /// The session's goal.
    pub goal: String,
    /// Pictures that belong to the goal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// The agent's policy.
    pub policy: AgentPolicy,
    /// The agent that spawned it; absent for the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
    /// Nesting depth; 0 for the root.
    #[serde(default, skip_serializing_if = "is_default")]
    pub depth: u32,
    /// The entry of the parent's log with the call that spawned it; absent without a parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Seq>,
    /// The name of the configured sub-agent; absent for the root, and for a copy of the parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The worktree that is created before it starts; absent if it works in an existing folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Worktree>,
    /// Where its conversation begins if it is a fork; its own entries are numbered from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork: Option<Box<SessionFork>>,
    /// A random id in all of Provost's messages to this agent, so that no file, tool or person can imitate them.
    /// Empty: the messages carry no id.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reminder_id: String,
}

/// Some processes of the run could not be terminated before it was suspended or ended, and may still run. May
/// follow the run's last entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessesLeft {}

/// A stop request, recorded before anything in flight is stopped, so that a crash doesn't lose it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StopRequested {
    /// In a run's log: the agent to stop, with all agents below it; the whole run if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<SessionId>,
    /// The intended outcome.
    pub outcome: Outcome,
    /// Whether the only cause is that agents working for it are suspended.
    #[serde(default, skip_serializing_if = "is_default")]
    pub for_child: bool,
}

/// A suspension: `resume` begins the next segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Paused {
    /// The outcome that it is suspended with; never a final outcome.
    pub outcome: Outcome,
}

/// Why a log continues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResumeCause {
    /// It was requested.
    Asked {
        /// By whom.
        by: String,
    },
    /// The process that held the run was gone, and another took over.
    Interrupted,
    /// It had yielded to another agent, and has a slot again.
    SlotFree,
    /// It had failed, and is restarted.
    Retry {
        /// Which restart in a row this is, from 1.
        attempt: u32,
    },
    /// It was suspended, and is to end: only its outcome follows.
    ToEnd,
}

/// The beginning of a segment, or the end of an interruption.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resumed {
    /// Why.
    pub cause: ResumeCause,
    /// The limits from here on.
    #[serde(default)]
    pub budget: Budget,
    /// The new limit of turns, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns_max: Option<u32>,
    /// Whether the last segment had ended, rather than been suspended or interrupted.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reopens: bool,
}

/// The end of a segment. Only another segment and notes of forks can follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ended {
    /// Its outcome; always final ([`Outcome::is_final`]).
    pub outcome: Outcome,
}
