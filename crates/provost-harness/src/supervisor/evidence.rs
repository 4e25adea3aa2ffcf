//! What speaks for and against a goal: typed, from the log and the workspace, not from what the agent makes of it.

use provost_event::{PlanItem, StopReport, ToolStatus};

/// Everything that a judge gets to see. Lists have the newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Evidence {
    /// What the agent was asked to do.
    pub task: String,
    /// The conversation in short; empty if there is nothing to say.
    pub summary: String,
    /// What was done.
    pub actions: Vec<Action>,
    /// What the stop hooks said last.
    pub stop_hooks: Vec<HookResult>,
    /// The files that differ from where the work began.
    pub files: ChangedFiles,
    /// The steps of its plan that the agent hasn't ticked.
    pub open_steps: Vec<PlanItem>,
    /// What the agent says itself; it proves nothing.
    pub claim: String,
}

/// A tool call and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// The tool.
    pub tool: String,
    /// Its arguments, in short.
    pub arguments: String,
    /// How it ended.
    pub status: ToolStatus,
    /// What came of it, in short.
    pub result: String,
}

/// What a stop hook said.
pub type HookResult = StopReport;

/// The files that were changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangedFiles {
    /// A diffstat, a line each; empty where nothing changed or nobody can tell.
    pub diffstat: Vec<String>,
}
