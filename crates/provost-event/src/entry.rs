//! The kinds of log entries. Names are past tense: an entry says what happened.

use serde::{Deserialize, Serialize};

use crate::{
    AgentAskedAgain, AgentFinished, AgentPolicy, AgentPolicyChanged, AgentResumeRequested,
    AgentRetryScheduled, AgentSpawned, AgentStarted, AgentSuspended, AgentYieldRequested, ApprovalRequested,
    ApprovalResolved, BlobId, Block, Budget, BudgetCharged, BudgetExhausted, BudgetReserved, CallId,
    Compacted, Dimension, ErrorClass, FinalSummaryFinished, Forked, GoalCheckStarted, GoalCleared,
    GoalJudged, GoalVerdict, HooksAsked, HooksDecided, Image, Json, MicroDollars, ModelChanged,
    OutageWaitChanged, Outcome, PermissionDecided, Plan, ProviderAwaited, Reprioritized, RunPolicy,
    RunPolicyChanged, Seq, SessionFork, SessionId, Snapshot, StepEnded, StopReport, SubAgentResumed,
    SubAgentSuspended, TerminalEnding, TerminalNoted, Usage, Worktree, WorktreeAsked, WorktreeFound,
    WorktreeMade, YieldRequested,
};

macro_rules! entries {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// The content of a record.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Entry {
            $($(#[$doc])* $kind($kind),)*
        }

        impl Entry {
            /// All kinds' names.
            pub const KINDS: &'static [&'static str] = &[$($name),*];

            /// The kind's name, as the `type` field has it.
            #[must_use]
            pub const fn kind(&self) -> &'static str {
                match self { $(Self::$kind(_) => $name,)* }
            }

            /// The entry's own fields as a JSON object.
            ///
            /// # Errors
            /// When a field has no JSON form; no current field can fail.
            pub fn body(&self) -> Result<String, serde_json::Error> {
                match self { $(Self::$kind(body) => serde_json::to_string(body),)* }
            }

            /// Reads the fields of an entry of kind `kind` from a JSON object, ignoring unknown fields. `None` for
            /// an unknown kind.
            #[must_use]
            pub fn from_body(kind: &str, body: &str) -> Option<Result<Self, serde_json::Error>> {
                match kind {
                    $($name => Some(serde_json::from_str(body).map(Self::$kind)),)*
                    _ => None,
                }
            }
        }

        $(impl From<$kind> for Entry {
            fn from(body: $kind) -> Self {
                Self::$kind(body)
            }
        })*
    };
}

entries! {
    /// First entry of a run's log.
    RunStarted = "run_started",
    /// First entry of a session's log.
    SessionStarted = "session_started",
    /// A message from the user, a program or the parent agent.
    UserMessage = "user_message",
    /// A message from Provost to the model.
    SystemItem = "system_item",
    /// The intent of a model call.
    ModelCalled = "model_called",
    /// The model answered.
    AssistantMessage = "assistant_message",
    /// A model call gave no usable answer and is retried.
    Retry = "retry",
    /// Another model is called from here on.
    ModelChanged = "model_changed",
    /// The maximum wait for provider outages has changed.
    OutageWaitChanged = "outage_wait_changed",
    /// A new policy applies to the run from its next segment on.
    RunPolicyChanged = "run_policy_changed",
    /// A new policy applies to the agent from its next segment on.
    AgentPolicyChanged = "agent_policy_changed",
    /// A session waits for its model's provider.
    ProviderAwaited = "provider_awaited",
    /// The intent of a hook call.
    HooksAsked = "hooks_asked",
    /// The hooks' decisions.
    HooksDecided = "hooks_decided",
    /// The permissions' decision on a tool call.
    PermissionDecided = "permission_decided",
    /// A tool call needs approval.
    ApprovalRequested = "approval_requested",
    /// An approval was given or denied, or timed out.
    ApprovalResolved = "approval_resolved",
    /// The intent of a tool call.
    ToolStarted = "tool_started",
    /// The one result of a tool call.
    ToolFinished = "tool_finished",
    /// A turn is complete.
    TurnEnded = "turn_ended",
    /// Part of the model's view of the log is replaced by a shorter form.
    Compacted = "compacted",
    /// The agent's final summary at a limit.
    FinalSummaryFinished = "final_summary_finished",
    /// A session's state as of this entry, to restore it from.
    Snapshot = "snapshot",
    /// The stop hooks' verdicts.
    StopVerdicts = "stop_verdicts",
    /// Verdicts of stop hooks that a stop interrupted.
    StopCheckCutShort = "stop_check_cut_short",
    /// A goal is being verified.
    GoalCheckStarted = "goal_check_started",
    /// A judge's answer.
    GoalJudged = "goal_judged",
    /// The result of a verification.
    GoalVerdict = "goal_verdict",
    /// The agent no longer has a goal.
    GoalCleared = "goal_cleared",
    /// A run was forked from another's conversation.
    Forked = "forked",
    /// Part of the budget is reserved for a call.
    BudgetReserved = "budget_reserved",
    /// A call was charged; the unused part of its reservation is released.
    BudgetCharged = "budget_charged",
    /// A limit was reached.
    BudgetExhausted = "budget_exhausted",
    /// An agent was spawned.
    AgentSpawned = "agent_spawned",
    /// An agent that has delivered its result is asked to continue.
    AgentAskedAgain = "agent_asked_again",
    /// An agent got a slot, and starts or continues.
    AgentStarted = "agent_started",
    /// An agent was asked to yield.
    AgentYieldRequested = "agent_yield_requested",
    /// An agent is suspended without a slot.
    AgentSuspended = "agent_suspended",
    /// A suspended agent is to be resumed.
    AgentResumeRequested = "agent_resume_requested",
    /// An agent has failed, and is restarted later.
    AgentRetryScheduled = "agent_retry_scheduled",
    /// An agent has finished.
    AgentFinished = "agent_finished",
    /// An agent's priority has changed.
    Reprioritized = "reprioritized",
    /// An attempt at a workflow step has ended.
    StepEnded = "step_ended",
    /// The session is to yield to another agent.
    YieldRequested = "yield_requested",
    /// A sub-agent that the session waits for is suspended.
    SubAgentSuspended = "sub_agent_suspended",
    /// A suspended sub-agent runs again.
    SubAgentResumed = "sub_agent_resumed",
    /// The session's worktree was created.
    WorktreeMade = "worktree_made",
    /// The intent of inspecting the session's worktree.
    WorktreeAsked = "worktree_asked",
    /// The changes in the session's worktree.
    WorktreeFound = "worktree_found",
    /// An event at the terminal of an external agent.
    TerminalNoted = "terminal_noted",
    /// The intent of terminating an external agent's program.
    TerminalEnding = "terminal_ending",
    /// Some processes of the run could not be terminated.
    ProcessesLeft = "processes_left",
    /// The session or run is to be suspended or ended as soon as everything in flight has stopped.
    StopRequested = "stop_requested",
    /// The session or run is suspended.
    Paused = "paused",
    /// The session or run is resumed.
    Resumed = "resumed",
    /// The session or run has ended; nothing follows.
    Ended = "ended",
}

impl Entry {
    /// The entry that precedes the log's first entry: the last entry of the forked conversation, or none.
    #[must_use]
    pub fn follows(&self) -> Seq {
        match self {
            Self::SessionStarted(started) => started.fork.as_ref().map_or(Seq::START, |fork| fork.through()),
            _ => Seq::START,
        }
    }

    /// The pictures that it contains, in order.
    #[must_use]
    pub fn images(&self) -> Vec<&Image> {
        match self {
            Self::SessionStarted(started) => started.images.iter().collect(),
            Self::ToolFinished(finished) => finished.images.iter().collect(),
            Self::UserMessage(message) => images_in(&message.content),
            Self::AssistantMessage(message) => images_in(&message.content),
            _ => Vec::new(),
        }
    }
}

fn images_in(content: &[Block]) -> Vec<&Image> {
    let images = content.iter().filter_map(|block| match block {
        Block::Image(image) => Some(image),
        _ => None,
    });
    images.collect()
}

/// The first entry of a run's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStarted {
    /// The goal.
    pub goal: String,
    /// The run's policy.
    pub policy: RunPolicy,
}

/// The first entry of a session's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    #[serde(default, skip_serializing_if = "is_zero")]
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

/// A message from outside: the user, a program or the parent agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserMessage {
    /// The message.
    pub content: Vec<Block>,
    /// The sender.
    pub by: String,
}

/// Why Provost sent a message to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemKind {
    /// The answer was cut off; the model is to continue.
    Continue,
    /// The answer was empty; the model is to answer.
    AnswerAgain,
    /// The same call with the same result, turn after turn.
    RepeatedCallNotice,
    /// No tool call succeeds.
    FailedCallsNotice,
    /// No measurable progress.
    NoProgressNotice,
    /// The stop hooks' reasons to continue.
    StopBlocked,
    /// The stop hooks' reasons if the agent is suspended instead of sent back.
    StopSuspended,
    /// The judges' reasons why the goal isn't reached.
    GoalNotReached,
    /// A hook's reminder to the model.
    Reminder,
    /// This turn is the last one.
    LastTurn,
    /// Another segment begins, with what has changed.
    Resumed,
    /// The agent's goal was set, replaced or removed.
    GoalGiven,
    /// A threshold of a limit was passed.
    LimitNotice {
        /// Which limit.
        dimension: Dimension,
        /// The threshold that was passed: 50, 80 or 95.
        percent: u8,
    },
}

/// The part of Provost that sent a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The engine.
    Engine,
    /// The stop hooks with these names.
    StopHooks(Vec<String>),
    /// The judges of the goal.
    Judges,
    /// The hook with this name.
    Hook(String),
}

/// A message from Provost to the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemItem {
    /// Its kind.
    pub item: ItemKind,
    /// The text, without the tags that the model sees around it.
    pub body: String,
    /// The sender.
    pub origin: Origin,
}

/// The purpose of a model call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The agent's next answer.
    #[default]
    Turn,
    /// A summary of the conversation, to replace its older part.
    Summary,
    /// A final summary at a limit. No tool is called after it.
    FinalSummary,
    /// A verdict on the goal. It is another model that is called, and it sees only the evidence.
    Judge,
}

impl Purpose {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape serde asks for")]
    pub(crate) fn is_turn(&self) -> bool {
        *self == Self::Turn
    }
}

/// A model call is about to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelCalled {
    /// The turn, from 1.
    pub turn: u32,
    /// The session's calls so far, this one included.
    pub call: u32,
    /// Which attempt at this answer, from 1.
    pub attempt: u32,
    /// Its purpose.
    #[serde(default, skip_serializing_if = "Purpose::is_turn")]
    pub purpose: Purpose,
    /// The cap on the answer, within the remaining budget.
    pub output_tokens_max: u32,
    /// The time left of the run's or the agent's time limit, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_left: Option<TimeLeft>,
}

/// The time left of a time limit, in milliseconds of worked time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeLeft {
    /// Until the agent is asked for its final summary.
    pub work_ms: u64,
    /// Until the limit is used up.
    pub limit_ms: u64,
}

/// Why the model stopped writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The answer is complete.
    EndTurn,
    /// It called tools.
    ToolUse,
    /// It reached the output cap.
    OutputCap,
    /// It declined.
    Refusal,
}

/// The model's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssistantMessage {
    /// The turn it belongs to.
    pub turn: u32,
    /// The call it answers.
    pub call: u32,
    /// Its content.
    pub content: Vec<Block>,
    /// Its usage.
    pub usage: Usage,
    /// Its cost; absent if the price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<MicroDollars>,
    /// The model that answered, by its own name.
    pub model: String,
    /// Why it stopped.
    pub stop: StopReason,
}

/// Why a model call is retried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryCause {
    /// It failed.
    Failed {
        /// The class of failure.
        class: ErrorClass,
        /// The error message.
        message: String,
        /// The HTTP status.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        /// The provider's request id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
    },
    /// The answer was empty.
    EmptyAnswer,
    /// Provost was interrupted before the answer was recorded.
    Interrupted,
    /// The conversation was too long, and is compacted before the retry.
    Compacted,
    /// The summary can't be used; the conversation is compacted by rule instead.
    UselessSummary {
        /// What is wrong with it.
        why: String,
    },
}

/// A model call is retried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// The call that gave no usable answer.
    pub call: u32,
    /// Why.
    pub cause: RetryCause,
    /// The wait before the next attempt, in milliseconds.
    pub delay_ms: u64,
    /// The usage of the discarded call.
    pub usage: Usage,
    /// Milliseconds since the first of the consecutive failed calls.
    #[serde(default, skip_serializing_if = "is_zero_ms")]
    pub outage_ms: u64,
    /// Whether `model_patience_ms` is exceeded: until the next attempt the session counts as suspended.
    #[serde(default, skip_serializing_if = "is_false")]
    pub suspended: bool,
}

impl Retry {
    /// A retry without a wait.
    #[must_use]
    pub const fn at_once(call: u32, cause: RetryCause, usage: Usage) -> Self {
        Self { call, cause, delay_ms: 0, usage, outage_ms: 0, suspended: false }
    }
}

/// A tool call is about to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolStarted {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// The arguments; an approval is bound to them.
    pub input: Json,
    /// True when an interrupted call is made a second time.
    #[serde(default, skip_serializing_if = "is_false")]
    pub again: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape serde asks for")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape serde asks for")]
fn is_zero_ms(ms: &u64) -> bool {
    *ms == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape serde asks for")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// How a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

/// Facts about a tool call beside its output: reported by the tool, or observed in the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallFacts {
    /// The exit status of the command that it ran to completion, if any; 128 plus the signal number if a signal
    /// ended it. A status is output: the call didn't fail as a tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_status: Option<i32>,
    /// It only waited for, or inspected, work that continues by itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub waited: bool,
    /// Fingerprints of the files that have changed since the workspace was last inspected, each of the path and of
    /// the content without numbers. Empty if it wasn't inspected.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_files: Vec<u64>,
    /// How many of the files weren't there at the last inspection, by their exact names, without temporary files.
    #[serde(skip_serializing_if = "is_zero")]
    pub new_files: u32,
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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

/// A complete turn: a model call and its tool calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnEnded {
    /// The turn, from 1.
    pub turn: u32,
    /// The number of tool calls.
    pub tool_calls: u32,
}

/// The stop hooks' verdicts on one stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopVerdicts {
    /// The turn that ended with the stop.
    pub turn: u32,
    /// Each hook's answer, in configured order.
    pub reports: Vec<StopReport>,
    /// A fingerprint of the workspace at that time; equal if nothing changed.
    pub evidence: String,
}

/// Verdicts of stop hooks that a stop interrupted. They decide nothing: a resume asks the hooks again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopCheckCutShort {
    /// The turn that ended with the stop.
    pub turn: u32,
    /// Each hook's answer, in configured order.
    pub reports: Vec<StopReport>,
}

/// Some processes of the run could not be terminated before it was suspended or ended, and may still run. May
/// follow the run's last entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessesLeft {}

/// A stop request, recorded before anything in flight is stopped, so that a crash doesn't lose it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopRequested {
    /// In a run's log: the agent to stop, with all agents below it; the whole run if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<SessionId>,
    /// The intended outcome.
    pub outcome: Outcome,
    /// Whether the only cause is that agents working for it are suspended.
    #[serde(default, skip_serializing_if = "is_false")]
    pub for_child: bool,
}

/// A suspension: `resume` begins the next segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paused {
    /// The outcome that it is suspended with; never a final outcome.
    pub outcome: Outcome,
}

/// Why a log continues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    #[serde(default, skip_serializing_if = "is_false")]
    pub reopens: bool,
}

/// The end of a segment. Only another segment and notes of forks can follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Its outcome; always final ([`Outcome::is_final`]).
    pub outcome: Outcome,
}
