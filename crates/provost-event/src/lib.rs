//! Provost's events: written to a log, streamed to observers and printed by `--json`.
//!
//! This crate has only data. A [`Record`] is one committed [`Entry`] of one actor's log; its JSON line is the only
//! serialized form, versioned by [`FORMAT_VERSION`], and the same in the store, on a stream and in an export.

mod budget;
mod chain;
mod change;
mod content;
mod context;
mod conversation;
mod entry;
mod external_call;
mod failure;
mod flow;
mod fork;
mod goal;
mod hook;
mod hook_model;
mod hook_report;
mod id;
mod json;
mod lifecycle;
mod model_call;
mod money;
mod number;
mod outcome;
mod patch;
mod permission;
mod plan;
mod policy;
mod record;
mod sandbox;
mod service;
mod skip;
mod spawn;
mod stop;
mod terminal;
mod tool;
mod tool_call;
mod tool_form;
mod tree;
mod trouble;
mod verdict;
mod verification;
mod worktree;

pub use budget::{BudgetCharged, BudgetExhausted, BudgetReserved};
pub use chain::{ChainContext, DepthExceeded};
pub use change::{AgentPolicyChanged, PolicyDifference, RunPolicyChanged};
pub use content::{Block, Image, ImageKind, PrefixHash, ToolCall};
pub use context::{AsideCall, Compacted, CompactionKind, FinalSummaryFinished, Snapshot};
pub use conversation::{
    AssistantMessage, ItemKind, Origin, QuotedRules, StopReason, SystemItem, TurnEnded, UserMessage,
};
pub use entry::{
    AgentEntry, BudgetEntry, ConversationEntry, Entry, GateEntry, GoalEntry, LifecycleEntry, ModelEntry,
    TerminalEntry, ToolEntry, WorktreeEntry,
};
pub use external_call::{
    ExternalCall, ExternalCallEnd, ExternalModelAnswered, ExternalModelCalled, ExternalModelQueued,
    ExternalModelRefused, Metering, RequestedTool,
};
pub use failure::{ErrorClass, ModelFailure};
pub use flow::{FlowPolicy, OnStepFailure, StepEnd, StepEnded, StepPolicy};
pub use fork::{ForkBase, Forked, SessionFork};
pub use goal::{
    Confidence, GoalCheckStarted, GoalCleared, GoalFinding, GoalJudged, GoalPolicy, GoalState, GoalTrigger,
    GoalVerdict, JudgeAnswer, OnHookError, SupervisorError, SupervisorVerdict,
};
pub use hook::{
    HookContract, HookPoint, HookPolicy, HookProgram, HookSetup, HookStage, HookTimes, HookTrigger,
    HookWaiting, OnFailure, PointRefusal, SessionSource,
};
pub use hook_model::{HookModel, HookModelWork};
pub use hook_report::{HookDecision, HookReport, HooksAsked, HooksDecided};
pub use id::{ActorKey, BlobId, CallId, EffectId, Elapsed, IdError, RunId, Seq, SessionId, Timestamp};
pub use json::Json;
pub use lifecycle::{
    Ended, Paused, ProcessesLeft, ResumeCause, Resumed, RunStarted, SessionStarted, StopRequested,
};
pub use model_call::{ModelCalled, Purpose, Retry, RetryCause, TimeLeft};
pub use money::{Certainty, LongPrice, MicroDollars, Price, Usage};
pub use number::{counted, grouped};
pub use outcome::{Dimension, Exhausted, LimitOwner, Outcome, PauseReason, Shortfall, Unsummarized};
pub use patch::{PATCH_HEADERS, patched_paths};
pub use permission::{
    ApprovalAnswer, ApprovalRequested, ApprovalResolved, ApprovalScope, CallQuestion, NamedScript,
    OutsideSandbox, Permission, PermissionDecided, PermissionPolicy, QuestionAnswer, Unanswered,
};
pub use plan::{Plan, PlanItem, PlanStatus};
pub use policy::{
    AgentPolicy, Budget, Effort, GivenFlag, Limits, ModelPolicy, RetryPolicy, RunPolicy, StepMode,
    StopHookPolicy,
};
pub use record::{Delta, DeltaKind, FORMAT_VERSION, FormatError, Record, RecordHead};
pub use sandbox::{SandboxLimits, SandboxMode, SandboxNetwork, SandboxPolicy};
pub use service::{KEEP_RUNNING, ProcessStamp, ServiceEvent, ServiceKept, ServiceNoted};
pub use spawn::{Priority, PriorityError, SpawnBudget};
pub use stop::{StopCheckCutShort, StopHookVerdict, StopVerdicts};
pub use terminal::{
    AskKind, AskOption, Blocker, Channel, CompletionScope, EvidenceSource, Exit, ExternalPolicy,
    OptionMeaning, ProgramActivity, ProgramCall, ProgramChange, TerminalAsk, TerminalEnding, TerminalEvent,
    TerminalEvidence, TerminalNoted, TerminalState, WindowSize,
};
pub use tool::{Access, Freeform, ToolIdentity, ToolSpec, ToolSubject, ToolsChanged};
pub use tool_call::{CallFacts, EndedCommand, ToolFinished, ToolStarted, ToolStatus};
pub use tool_form::{CallForm, FieldForm, SelectingField, ValueForm};
pub use tree::{
    AgentAskedAgain, AgentFinished, AgentResumeRequested, AgentRetryScheduled, AgentSpawned, AgentStarted,
    AgentSuspended, AgentYieldRequested, Brief, Isolation, Reprioritized, SlotAssignment, SubAgentPolicy,
    SubAgentResumed, SubAgentSuspended, YieldRequested,
};
pub use trouble::{
    ModelChange, ModelChanged, ModelTrouble, OutageWaitChanged, ProviderAwaited, TroubleCause,
};
pub use verdict::Verdict;
pub use verification::Verification;
pub use worktree::{
    PushedBranch, RemoteRepository, WorkspaceBaseline, Worktree, WorktreeAsked, WorktreeFound, WorktreeLeft,
    WorktreeMade,
};
