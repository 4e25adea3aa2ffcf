//! What speaks for and against a goal: typed, from the log and the workspace, not from what the agent makes of it.

use provost_event::{GoalTrigger, PlanItem, StopReport, ToolStatus};

/// Estimated tokens of evidence that a judge is shown, unless told otherwise.
const TOKENS_MAX_DEFAULT: u32 = 8_000;

/// Everything that a judge gets to see besides the condition. Lists have the newest first.
///
/// Texts may be of any length and say anything: they are quoted, and what doesn't fit is left out, the oldest first,
/// and the judge is told how much that is. Nothing takes secrets out of them any more: whoever makes it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// Why the judge is asked. Default: because of a claim.
    pub trigger: GoalTrigger,
    /// Estimated tokens ([`tokens_of`](provost_engine::tokens_of)) that all of it may take, quotes and headings
    /// included. Default 8,000; at 0 the judge sees nothing but the condition.
    pub tokens_max: u32,
    /// What the agent was asked to do.
    pub task: String,
    /// What it was told since.
    pub told: Vec<String>,
    /// The conversation in short; empty if there is nothing to say.
    pub summary: String,
    /// What was done.
    pub actions: Vec<Action>,
    /// Turns before those of the oldest action here, whose actions aren't here.
    pub earlier_turns: u32,
    /// What the stop hooks said in this verification.
    pub stop_hooks: Vec<HookResult>,
    /// The files that differ from where the work began.
    pub files: ChangedFiles,
    /// The steps of its plan that the agent hasn't ticked, in the plan's order.
    pub open_steps: Vec<PlanItem>,
    /// What the agent said last; it proves nothing.
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
    /// What they were compared with.
    pub since: Since,
    /// A diffstat, a line for each file; those that are gone first, then the ones that changed last.
    pub diffstat: Vec<String>,
    /// Files that aren't in it.
    pub more: u32,
}

/// What files are compared with to tell whether they changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Since {
    /// Nothing: nobody can tell.
    #[default]
    Unknown,
    /// The commit that the agent's worktree was made with.
    WorktreeMade,
    /// The last commit before the agent began.
    AgentBegan,
    /// Nothing: they are what the agent wrote with its tools, as it is now.
    Written,
}
