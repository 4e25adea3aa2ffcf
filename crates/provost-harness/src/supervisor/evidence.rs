//! The evidence about a goal: typed, from the log and the workspace, not from the agent's own account.

use provost_event::{GoalTrigger, HookReport, PlanItem, ToolStatus};

/// Default maximum of estimated tokens of evidence for a judge.
const TOKENS_MAX_DEFAULT: u32 = 8_000;

/// Everything that a judge sees besides the condition. Lists have the newest first.
///
/// Texts may have any length and content: they are quoted, and what doesn't fit is left out, the oldest first,
/// with a note of how much. Secrets must already be removed by the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// Why the judge is called. Default: because of a claim.
    pub trigger: GoalTrigger,
    /// Maximum estimated tokens ([`tokens_of`](provost_engine::tokens_of)) of all of it, quotes and headings
    /// included. Default 8,000; at 0 the judge sees only the condition.
    pub tokens_max: u32,
    /// The agent's task.
    pub task: String,
    /// Later messages to it.
    pub told: Vec<String>,
    /// A summary of the conversation; empty if there is none.
    pub summary: String,
    /// The agent's actions.
    pub actions: Vec<Action>,
    /// What the model of an external agent's program asked it to run, the newest first: the tool and its arguments. Whether
    /// it was run isn't known.
    pub requested: Vec<(String, String)>,
    /// Turns before the oldest action here, whose actions are left out.
    pub earlier_turns: u32,
    /// The stop hooks' verdicts in this verification.
    pub stop_hooks: Vec<HookResult>,
    /// The files that differ from the start of the work.
    pub files: ChangedFiles,
    /// The unfinished steps of the agent's plan, in the plan's order.
    pub open_steps: Vec<PlanItem>,
    /// The agent's last message; it proves nothing.
    pub claim: String,
}

impl Default for Evidence {
    fn default() -> Self {
        Self {
            trigger: GoalTrigger::Claim,
            tokens_max: TOKENS_MAX_DEFAULT,
            task: String::new(),
            told: Vec::new(),
            summary: String::new(),
            actions: Vec::new(),
            requested: Vec::new(),
            earlier_turns: 0,
            stop_hooks: Vec::new(),
            files: ChangedFiles::default(),
            open_steps: Vec::new(),
            claim: String::new(),
        }
    }
}

/// A tool call and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// The tool.
    pub tool: String,
    /// Its arguments, shortened.
    pub arguments: String,
    /// How it ended.
    pub status: ToolStatus,
    /// Its result, shortened.
    pub result: String,
}

/// A stop hook's verdict.
pub type HookResult = HookReport;

/// The changed files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangedFiles {
    /// The base of the comparison.
    pub since: Since,
    /// A diffstat, a line for each file; deleted files first, then the latest changes.
    pub diffstat: Vec<String>,
    /// The number of files left out.
    pub more: u32,
    /// The changed lines of the latest changes.
    pub hunks: Vec<FileHunks>,
}

/// The changed lines of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileHunks {
    /// Its path, relative to the workspace.
    pub path: String,
    /// The hunks of a unified diff, without a head.
    pub hunks: String,
}

/// The base of the comparison of files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Since {
    /// Unknown: there is nothing to compare with.
    #[default]
    Unknown,
    /// The commit that the agent's worktree was made with.
    WorktreeMade,
    /// The files before the run began.
    RunBegan,
    /// The last commit before the agent began: how the files were then isn't known.
    AgentBegan,
    /// Nothing: they are the files that the agent wrote with its tools, in their current state.
    Written,
}
