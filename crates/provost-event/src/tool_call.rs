//! Tool calls and their results.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::skip::is_default;
use crate::{BlobId, CallId, Image, Json, Plan, ServiceKept};

/// A tool call is about to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolStarted {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// The arguments; an approval is bound to them.
    pub input: Json,
    /// True when a call is made a second time: it was interrupted, or its tool's question is answered.
    #[serde(default, skip_serializing_if = "is_default")]
    pub again: bool,
    /// True when it runs outside of the agent's sandbox, which a person approved.
    #[serde(default, skip_serializing_if = "is_default")]
    pub outside: bool,
    /// The hook that has put these arguments in the place of the model's own; absent if they are the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<String>,
}

/// How a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// The call succeeded.
    Ok,
    /// The call failed.
    Error,
    /// The call was not run: unknown tool or invalid arguments.
    Rejected,
    /// The call was not run: denied by a hook, the permissions or an approver.
    Denied,
    /// The call exceeded its time limit.
    TimedOut,
    /// The call was cancelled.
    Cancelled,
    /// Provost was interrupted while it ran: its effects are unknown.
    Unknown,
}

impl ToolStatus {
    /// Whether it is reported to the model as an error.
    #[must_use]
    pub const fn is_error(self) -> bool {
        !matches!(self, Self::Ok)
    }
}

/// A command that ended by itself while no call ran it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndedCommand {
    /// The command line.
    pub command: String,
    /// Its exit status; absent if a signal ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_status: Option<i32>,
}

/// Facts about a tool call beside its output: reported by the tool, or observed in the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CallFacts {
    /// The exit status of the command that it ran to completion, if any; 128 plus the signal number if a signal
    /// ended it. A status is output: the call didn't fail as a tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_status: Option<i32>,
    /// The agent's workspace wasn't there when it ended: no later call can work in it.
    #[serde(skip_serializing_if = "is_default")]
    pub workspace_gone: bool,
    /// It only waited for, or inspected, work that continues by itself.
    #[serde(skip_serializing_if = "is_default")]
    pub waited: bool,
    /// The background commands of the agent that run after it, each by name and command; absent if it has nothing to
    /// do with them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs: Option<Vec<String>>,
    /// Commands of the agent in the background or at a terminal that have ended, each told once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<EndedCommand>,
    /// The service that it started: a command that goes on after the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<Box<ServiceKept>>,
    /// Fingerprints of the files that have changed since the workspace was last inspected, each of the path and of
    /// the content without numbers. Empty if it wasn't inspected.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_files: Vec<u64>,
    /// How many of the files weren't there at the last inspection, by their exact names, without temporary files.
    #[serde(skip_serializing_if = "is_default")]
    pub new_files: u32,
    /// What the sandbox denied to it, each as a sentence.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
}

impl CallFacts {
    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The facts of a command that ended with this exit status.
    #[must_use]
    pub fn exited(status: i32) -> Self {
        Self { exit_status: Some(status), ..Self::default() }
    }
}

/// The one result of a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolFinished {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// How it ended.
    pub status: ToolStatus,
    /// The output that the model sees.
    pub output: String,
    /// Pictures for the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// The blob with the whole output, if the model sees only part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<BlobId>,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
    /// State that the tool gets back at its next call in this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Json>,
    /// The agent's plan from here on, if the call changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Box<Plan>>,
    /// Facts beside its output.
    #[serde(default, skip_serializing_if = "CallFacts::is_empty")]
    pub facts: CallFacts,
}
