//! The kinds of entries a log is made of. Names are past tense: an entry says what happened.

use serde::{Deserialize, Serialize};

use crate::{
    AgentAskedAgain, AgentPolicy, AgentPolicyChanged, AgentRetryScheduled, ApprovalRequested,
    ApprovalResolved, BlobId, Block, Budget, BudgetCharged, BudgetExhausted, BudgetReserved, CallId,
    ChildFinished, ChildGoesOn, ChildPaused, ChildRested, ChildResumed, ChildSpawned, ChildStarted,
    ChildYields, Compacted, Dimension, ErrorClass, Forked, GoalCheckStarted, GoalCleared, GoalJudged,
    GoalVerdict, HooksAsked, HooksDecided, Image, Json, MicroDollars, ModelChanged, OutageWaitChanged,
    Outcome, PermissionDecided, Plan, ProviderAwaited, Reprioritized, RunPolicy, RunPolicyChanged, Seq,
    SessionFork, SessionId, Snapshot, StepEnded, StopReport, TerminalEnding, TerminalNoted, Usage, Worktree,
    WorktreeAsked, WorktreeFound, WorktreeMade, WrappedUp, YieldRequested,
};

macro_rules! entries {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// What one record says.
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
            /// When a field has no JSON form; none of today's can fail.
            pub fn body(&self) -> Result<String, serde_json::Error> {
                match self { $(Self::$kind(body) => serde_json::to_string(body),)* }
            }

            /// Reads the fields of an entry of kind `kind` out of a JSON object, ignoring fields it doesn't know.
            /// `None` for an unknown kind.
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
    /// A person, a program or the parent agent spoke.
    UserMessage = "user_message",
    /// Provost spoke to the model.
    SystemItem = "system_item",
    /// The intent of a model call.
    ModelCalled = "model_called",
    /// The model answered.
    AssistantMessage = "assistant_message",
    /// A model call gave no usable answer and is made again.
    Retry = "retry",
    /// Another model is asked from here on.
    ModelChanged = "model_changed",
    /// Outages are waited out for another time from here on.
    OutageWaitChanged = "outage_wait_changed",
    /// Another policy binds the run from its next segment on.
    RunPolicyChanged = "run_policy_changed",
    /// Another policy binds the agent from its next segment on.
    AgentPolicyChanged = "agent_policy_changed",
    /// A session waits for its model's provider.
    ProviderAwaited = "provider_awaited",
    /// The intent of asking hooks.
    HooksAsked = "hooks_asked",
    /// What they said.
    HooksDecided = "hooks_decided",
    /// What the permissions say of a tool call.
    PermissionDecided = "permission_decided",
    /// Somebody is asked whether a tool call may be made.
    ApprovalRequested = "approval_requested",
    /// Somebody has answered, or nobody has in time.
    ApprovalResolved = "approval_resolved",
    /// The intent of a tool call.
    ToolStarted = "tool_started",
    /// The one result of a tool call.
    ToolFinished = "tool_finished",
    /// A turn is complete.
    TurnEnded = "turn_ended",
    /// The model no longer sees a part of the log, but what stands for it.
    Compacted = "compacted",
    /// At a limit the agent has said how far the work has come.
    WrappedUp = "wrapped_up",
    /// What the log comes to up to here, so that it can be read back from here.
    Snapshot = "snapshot",
    /// What the stop hooks said.
    StopVerdicts = "stop_verdicts",
    /// What stop hooks said that a stop cut short.
    StopCheckCutShort = "stop_check_cut_short",
    /// A goal is being verified.
    GoalCheckStarted = "goal_check_started",
    /// What one judge answered.
    GoalJudged = "goal_judged",
    /// What the verification came to.
    GoalVerdict = "goal_verdict",
    /// The agent no longer has a goal.
    GoalCleared = "goal_cleared",
    /// A run was forked from another's conversation.
    Forked = "forked",
    /// Part of the budget is set aside for a call.
    BudgetReserved = "budget_reserved",
    /// A call was paid; what was set aside for it and not used is free again.
    BudgetCharged = "budget_charged",
    /// A limit was reached.
    BudgetExhausted = "budget_exhausted",
    /// An agent was asked for.
    ChildSpawned = "child_spawned",
    /// An agent that has delivered its result is asked to go on.
    AgentAskedAgain = "agent_asked_again",
    /// An agent has a slot, and begins or goes on.
    ChildStarted = "child_started",
    /// An agent was told to make way.
    ChildYields = "child_yields",
    /// An agent rests without a slot.
    ChildPaused = "child_paused",
    /// An agent that rests shall go on.
    ChildResumed = "child_resumed",
    /// An agent has failed, and is restarted later.
    AgentRetryScheduled = "agent_retry_scheduled",
    /// An agent's work is over.
    ChildFinished = "child_finished",
    /// An agent has another priority.
    Reprioritized = "reprioritized",
    /// An attempt at a step of a flow is over.
    StepEnded = "step_ended",
    /// The session shall make way for another agent.
    YieldRequested = "yield_requested",
    /// A sub-agent that the session waits for rests.
    ChildRested = "child_rested",
    /// A sub-agent that rested works again.
    ChildGoesOn = "child_goes_on",
    /// The session's worktree is there.
    WorktreeMade = "worktree_made",
    /// The intent of looking at what the session has done to its worktree.
    WorktreeAsked = "worktree_asked",
    /// What it has done to it.
    WorktreeFound = "worktree_found",
    /// Something happened at the terminal of an external agent.
    TerminalNoted = "terminal_noted",
    /// The intent of ending its program.
    TerminalEnding = "terminal_ending",
    /// Some of what the run started could not be ended.
    ProcessesLeft = "processes_left",
    /// The session or run shall come to an end or a rest as soon as what is in flight has stopped.
    StopRequested = "stop_requested",
    /// The session or run rests.
    Paused = "paused",
    /// It goes on.
    Resumed = "resumed",
    /// It ended; nothing follows.
    Ended = "ended",
}

impl Entry {
    /// The entry behind which a log begins with it: the last one of another's conversation that it goes on with, or
    /// none.
    #[must_use]
    pub fn follows(&self) -> Seq {
        match self {
            Self::SessionStarted(started) => started.fork.as_ref().map_or(Seq::START, |fork| fork.through()),
            _ => Seq::START,
        }
    }

    /// The pictures it speaks of, in order.
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

/// A run and what it was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStarted {
    /// What is to be reached.
    pub goal: String,
    /// What binds it.
    pub policy: RunPolicy,
}

/// An agent and what it was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStarted {
    /// What it is to reach.
    pub goal: String,
    /// Pictures that belong to the goal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// What binds it.
    pub policy: AgentPolicy,
    /// The agent that asked for it; absent for the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
    /// How many agents stand above it; 0 for the root.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub depth: u32,
    /// The entry of its parent's log that has the call it works for; absent without a parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Seq>,
    /// The configured sub-agent that it is; absent for the root, and for one like the agent that asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The worktree that is made for it before it begins; absent where it works in a folder that is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Worktree>,
    /// Where its conversation begins, if that is another's; its own entries are numbered on from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork: Option<Box<SessionFork>>,
    /// The random name that Provost's own words to this agent carry, so that no file, tool or person can pose as Provost. Empty:
    /// they carry none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reminder_id: String,
}

/// Words of somebody outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserMessage {
    /// What was said.
    pub content: Vec<Block>,
    /// Who said it.
    pub by: String,
}

/// Why Provost spoke to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemKind {
    /// The answer was cut off; go on.
    Continue,
    /// The answer was empty; answer.
    AnswerAgain,
    /// The same call with the same result, turn after turn.
    RepeatedCallNotice,
    /// No tool call succeeds.
    FailedCallsNotice,
    /// Nothing measurable moves the work on.
    NoProgressNotice,
    /// The stop hooks' reasons to go on.
    StopBlocked,
    /// The stop hooks' reasons, where the agent isn't sent back with them but suspended.
    StopSuspended,
    /// What the judges miss.
    GoalNotReached,
    /// A hook wants the model to know something.
    Reminder,
    /// No turn comes after this one.
    LastTurn,
    /// Another segment begins, and what there is to know of it.
    Resumed,
    /// The agent was given a goal, or another one, or its goal was taken away.
    GoalGiven,
    /// So much of a limit is used.
    LimitNotice {
        /// Which limit.
        dimension: Dimension,
        /// The threshold that was passed: 50, 80 or 95.
        percent: u8,
    },
}

/// Who inside Provost spoke.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The engine.
    Engine,
    /// The stop hooks with these names.
    StopHooks(Vec<String>),
    /// Those who judge whether the goal is reached.
    Judges,
    /// The hook with this name.
    Hook(String),
}

/// Words of Provost to the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemItem {
    /// Why.
    pub item: ItemKind,
    /// The words, without the tags that the model sees around them.
    pub body: String,
    /// Who.
    pub origin: Origin,
}

/// What a model is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The agent's next answer.
    #[default]
    Turn,
    /// A summary of the conversation so far, to stand for its older part.
    Summary,
    /// At a limit: how far the work has come. No tool is called any more.
    WrapUp,
    /// Whether the goal is reached. It is another model that is asked, which sees the evidence alone.
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
    /// What for.
    #[serde(default, skip_serializing_if = "Purpose::is_turn")]
    pub purpose: Purpose,
    /// The cap on the answer, after what the budget left of it.
    pub output_tokens_max: u32,
    /// What is left of the time of the run or of its agent, if that is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_left: Option<TimeLeft>,
}

/// What is left of a time limit, in milliseconds that are worked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeLeft {
    /// Until the agent is asked for its final summary.
    pub work_ms: u64,
    /// Until all of the limit is used up.
    pub limit_ms: u64,
}

/// Why the model stopped writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It was done.
    EndTurn,
    /// It waits for tools.
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
    /// What it said.
    pub content: Vec<Block>,
    /// What it consumed.
    pub usage: Usage,
    /// What that cost; absent where the price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<MicroDollars>,
    /// The model that answered, by its own name.
    pub model: String,
    /// Why it stopped.
    pub stop: StopReason,
}

/// Why a model call is made again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryCause {
    /// It failed.
    Failed {
        /// How.
        class: ErrorClass,
        /// In whose words.
        message: String,
        /// With which HTTP status.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        /// The provider's name for the request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
    },
    /// The answer was empty.
    EmptyAnswer,
    /// Provost was interrupted before the answer was recorded.
    Interrupted,
    /// The conversation was too long, and is compacted first.
    Compacted,
    /// A summary that was asked for can't stand for anything; the conversation is compacted by rule instead.
    UselessSummary {
        /// What is wrong with it.
        why: String,
    },
}

/// A model call that is made again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// The call that gave nothing.
    pub call: u32,
    /// Why.
    pub cause: RetryCause,
    /// The wait before the next attempt, in milliseconds.
    pub delay_ms: u64,
    /// What the discarded call consumed.
    pub usage: Usage,
    /// Milliseconds since the first of the calls in a row that failed.
    #[serde(default, skip_serializing_if = "is_zero_ms")]
    pub outage_ms: u64,
    /// Whether patience is over: until then the session counts as suspended.
    #[serde(default, skip_serializing_if = "is_false")]
    pub suspended: bool,
}

impl Retry {
    /// One that nothing is waited for.
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
    /// The arguments; what an approval would be bound to.
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
    /// It did what it was asked.
    Ok,
    /// It couldn't.
    Error,
    /// It was not run: no such tool, or arguments that make no sense.
    Rejected,
    /// It was not run: a hook, the permissions or a person said no.
    Denied,
    /// It ran longer than it may.
    TimedOut,
    /// It was cancelled.
    Cancelled,
    /// Provost was interrupted while it ran: nobody knows what it did.
    Unknown,
}

impl ToolStatus {
    /// Whether the model is told of an error.
    #[must_use]
    pub const fn is_error(self) -> bool {
        !matches!(self, Self::Ok)
    }
}

/// What is known of a tool call beside its output: what the tool itself says, and what was seen of the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallFacts {
    /// The exit status of the command that it ran, where it ran one to its end; 128 and the signal's number where a
    /// signal ended it. A status is output: the call didn't fail as a tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_status: Option<i32>,
    /// It only waited for, or looked at, work that goes on by itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub waited: bool,
    /// Fingerprints of the files that were found changed since the workspace was last looked at, each of its path and
    /// of its content without numbers. Empty where nobody looked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_files: Vec<u64>,
}

impl CallFacts {
    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Those of a command that ended with this exit status.
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
    /// What the model sees.
    pub output: String,
    /// Pictures that the model sees besides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// Where the whole output is, if the model sees only part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<BlobId>,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
    /// What the tool wants to be told at its next call in this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Json>,
    /// The agent's plan from here on, if the call has changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Box<Plan>>,
    /// What is known of it beside its output.
    #[serde(default, skip_serializing_if = "CallFacts::is_empty")]
    pub facts: CallFacts,
}

/// A complete Think→Act cycle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnEnded {
    /// The turn, from 1.
    pub turn: u32,
    /// How many tools it called.
    pub tool_calls: u32,
}

/// What the stop hooks said of one wish to stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopVerdicts {
    /// The turn that wished to stop.
    pub turn: u32,
    /// Each hook's answer, in configured order.
    pub reports: Vec<StopReport>,
    /// A fingerprint of the workspace at that moment; equal when nothing changed.
    pub evidence: String,
}

/// What stop hooks said while a stop cut them short. It decides nothing: a resume asks them again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopCheckCutShort {
    /// The turn that wanted to stop.
    pub turn: u32,
    /// Each hook's answer, in configured order.
    pub reports: Vec<StopReport>,
}

/// Some of what the run started could not be ended by the time the run was suspended or over, and may still run. Also after the
/// run's last entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessesLeft {}

/// A wish to stop, recorded before anything in flight is stopped, so that a crash doesn't lose it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopRequested {
    /// In a run's log: the agent that shall stop, with all below it; the whole run if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<SessionId>,
    /// What it shall come to.
    pub outcome: Outcome,
    /// Whether that is only because agents rest that work for it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub for_child: bool,
}

/// A suspension: `resume` begins the next segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paused {
    /// At what it came to rest; never a final outcome.
    pub outcome: Outcome,
}

/// Why a log goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResumeCause {
    /// Somebody asked for it.
    Asked {
        /// Who.
        by: String,
    },
    /// Whoever worked on it was gone, and another took over.
    Interrupted,
    /// It had made way for another agent, and has a slot again.
    SlotFree,
    /// It had failed, and is restarted.
    Retry {
        /// Which retry in a row this is, from 1.
        attempt: u32,
    },
    /// It was suspended, and is to end: nothing but its outcome follows.
    ToEnd,
}

/// The beginning of a segment, or the end of an interruption.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumed {
    /// Why.
    pub cause: ResumeCause,
    /// Limits that are new from here on.
    #[serde(default)]
    pub budget: Budget,
    /// The new limit of turns, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns_max: Option<u32>,
    /// Whether the last segment had ended, and wasn't only suspended or interrupted.
    #[serde(default, skip_serializing_if = "is_false")]
    pub reopens: bool,
}

/// The end of a segment. Nothing follows but another segment, and notes of forks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// How; always an end ([`Outcome::is_final`]).
    pub outcome: Outcome,
}
