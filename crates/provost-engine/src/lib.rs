//! The decisions of Provost.
//!
//! An *actor* is the fold of its log. An [`Event`] comes in; `decide` commits entries to the state and names the
//! effects to perform. It does no I/O and reads neither clock nor randomness: both come with the event ([`Now`]).
//! A backend (embedded or a cluster) keeps the entries and the effects; an executor performs the effects and posts
//! their results as the next events.
//!
//! A result counts only if its effect is open. Duplicate and late results, also those of a process that lost its
//! lease, are ignored here, so that correctness doesn't depend on a lease.

mod actor;
mod call_form;
mod decision;
mod decision_time;
mod effect;
mod event;
mod permission;
mod reminder;
mod retry;
mod run;
mod session;
mod snapshot;
pub mod states;
mod tokens;
mod view;

pub use actor::{Actor, ActorStatus, ReplayError};
pub use call_form::{OwnCall, own_call};
pub use decision::{Decision, EffectRequest, HeldResult, Message};
pub use effect::{
    CallDetails, CallModel, CleanWorktree, Effect, HookCall, HookCallDetails, JudgeCall, RulesSought,
    StopCheck, ToolMemory, ToolRun, View, WantedAgent, WorktreeCheck, WorktreeOrder,
};
pub use event::{
    Answer, Event, ExternalCallRequest, ExternalCallResult, FolderRules, ForkStart, JudgeReport, LimitUse,
    Now, ReserveRequest, RunEvent, RunForkRequest, SessionEvent, SettleNote, StopCheckResult, SubAgentReport,
    ToolResult, WorktreeResult,
};
pub use permission::{
    Pattern, PatternError, PatternMismatch, Permissions, Ruling, ScriptNames, agent_names, narrowest_pattern,
    scripts_named,
};
pub use provost_event::RetryPolicy;
pub use reminder::{REMINDER_NAME, reminder, reminder_announcement, untagged};
pub use retry::{RetryTracker, restart_delay_ms, retry_delay_ms};
pub use run::{
    Acquired, AgentNumber, AgentState, AgentStatus, Attempt, ExecutionTracker, FINAL_SUMMARY_TOKENS,
    FlowProblem, Ledger, Refusal, RunState, SPAWN_ALIASES, SPAWN_TOOL, SlotMove, SpawnTracker, StepNumber,
    StepStatus, StepTracker, StepWait, Then, USEFUL_OUTPUT_TOKENS, Uncertain, agent_tool, check_flow,
    judged_spawn_tool, spawn_tool, told_of_goal, worktree_branch, worktree_name,
};
pub use session::{
    GoalStatus, JUDGE_TOKENS, PendingApproval, ProgressReport, ProgressState, SessionState, SessionStatus,
    kind_of_text,
};

pub use tokens::{IMAGE_TOKENS, tokens_of};
pub use view::{ResultText, image_line};
