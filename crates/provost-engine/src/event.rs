//! Events of actors.

use provost_event::{
    AgentPolicyChanged, ApprovalAnswer, BlobId, Block, Budget, CallFacts, CallId, Dimension, EffectId,
    Elapsed, Exhausted, Exit, Forked, HookReport, Image, Json, JudgeAnswer, LimitOwner, MicroDollars,
    ModelFailure, ModelPolicy, NamedScript, Outcome, Plan, Priority, ProviderAwaited, Purpose, RunPolicy,
    RunPolicyChanged, Seq, SessionFork, SessionId, SessionStarted, StopReason, StopReport, TerminalNoted,
    TimeLeft, Timestamp, ToolStatus, Usage, Worktree, WorktreeLeft, WorktreeMade,
};
use serde::{Deserialize, Serialize};

/// The time and randomness that a decision may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Now {
    /// The wall-clock time: shown, never subtracted.
    pub at: Timestamp,
    /// The run's elapsed time, which never decreases within a run.
    pub elapsed: Elapsed,
    /// Fresh random bits.
    pub entropy: u64,
}

/// An event, for the actor of its kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// For a run's actor.
    Run(RunEvent),
    /// For a session's actor.
    Session(SessionEvent),
}

impl From<RunEvent> for Event {
    fn from(event: RunEvent) -> Self {
        Self::Run(event)
    }
}

impl From<SessionEvent> for Event {
    fn from(event: SessionEvent) -> Self {
        Self::Session(event)
    }
}

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
    /// A message to its agent.
    #[serde(default)]
    pub text: Option<String>,
    /// Who requested it.
    pub by: String,
}

/// The start of a session as a fork of another conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkStart {
    /// The session's first entry.
    pub started: Box<SessionStarted>,
    /// Whether a message to the agent follows.
    pub is_told_more: bool,
}

/// A request for budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReserveRequest {
    /// The session.
    pub session: SessionId,
    /// The number of the session's call.
    pub call: u32,
    /// The turn.
    #[serde(default)]
    pub turn: u32,
    /// The model to call, by the policy's name.
    #[serde(default)]
    pub model: String,
    /// Tokens of the request: the provider's last count plus what was added since, and at least the estimate.
    pub input_tokens: u64,
    /// The same by our own estimate alone; 0 if unknown.
    #[serde(default)]
    pub estimated_tokens: u64,
    /// Whether a provider has counted this conversation before.
    #[serde(default)]
    pub is_counted: bool,
    /// The cap on the answer.
    pub output_tokens_max: u32,
    /// What the model's tokens cost, if known.
    pub price: Option<provost_event::Price>,
    /// Whether to keep back budget for a final summary at a limit.
    #[serde(default)]
    pub keeps_back: bool,
    /// Thinking tokens for the final summary, if anything is kept back.
    #[serde(default)]
    pub thinking_tokens: u32,
    /// Additional tokens that must be left, if anything is kept back.
    #[serde(default)]
    pub kept_tokens: u64,
    /// Additional money that must be left.
    #[serde(default)]
    pub kept_cost: MicroDollars,
    /// The percentage of each of the run's limits that all judges together may use and that is kept for them.
    #[serde(default)]
    pub judges_percent: u8,
    /// Whether the work ends without this budget; other calls are skipped.
    #[serde(default)]
    pub ends_work: bool,
    /// The purpose of the call.
    #[serde(default)]
    pub purpose: Purpose,
}

/// How much of a limit is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitUse {
    /// The dimension of the limit.
    pub dimension: Dimension,
    /// The amount used, in the dimension's unit.
    pub used: u64,
    /// The limit.
    pub limit: u64,
    /// Whose limit it is.
    pub owner: LimitOwner,
}

impl LimitUse {
    /// The percentage of use from which an agent is notified.
    pub(crate) const NEAR: u8 = 50;

    /// The percentage of the limit that is used, at most 100.
    #[must_use]
    pub fn percent(&self) -> u8 {
        let percent = u128::from(self.used) * 100 / u128::from(self.limit.max(1));
        u8::try_from(percent.min(100)).unwrap_or(100)
    }
}

/// The usage of a model call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettleNote {
    /// The session.
    pub session: SessionId,
    /// The number of the session's call.
    pub call: u32,
    /// The turn.
    pub turn: u32,
    /// The model that was called, by the policy's name.
    #[serde(default)]
    pub model: String,
    /// The usage that the provider reported.
    pub usage: Usage,
    /// The cost, if known.
    pub cost: Option<MicroDollars>,
}

/// An event of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionEvent {
    /// Starts the session; ignored once it has started.
    Start(Box<SessionStarted>),
    /// Starts the session as a fork of another conversation; ignored once it has started.
    Fork(Box<ForkStart>),
    /// The run reserved budget for call number `call`.
    Reserved {
        /// The call.
        call: u32,
        /// The purpose of the call.
        #[serde(default)]
        purpose: Purpose,
        /// The cap on the answer that the budget allows.
        output_tokens_max: u32,
        /// The remaining time of the run or of the agent, if that is limited.
        time_left: Option<TimeLeft>,
        /// The limits that are at least half used: for each dimension the one that is nearest to its end.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        limits: Vec<LimitUse>,
        /// No further turn fits the turn limits of the run or of the agents above.
        #[serde(default)]
        is_last_turn: bool,
    },
    /// The run has no budget for call number `call`.
    Refused {
        /// The call.
        call: u32,
        /// The purpose of the call.
        #[serde(default)]
        purpose: Purpose,
        /// The exhausted limit.
        exhausted: Exhausted,
        /// Whether only the judges' part of the run's limit is exhausted.
        #[serde(default)]
        is_judges: bool,
    },
    /// The model answered.
    Answered {
        /// The effect.
        seq: Seq,
        /// The answer.
        answer: Answer,
    },
    /// The model call failed.
    ModelFailed {
        /// The effect.
        seq: Seq,
        /// The failure.
        failure: ModelFailure,
    },
    /// A tool call finished.
    ToolDone {
        /// The effect.
        seq: Seq,
        /// The result.
        result: ToolResult,
    },
    /// The stop hooks answered.
    StopChecked {
        /// The effect.
        seq: Seq,
        /// The result.
        result: StopCheckResult,
    },
    /// A judge answered or failed.
    Judged {
        /// The effect.
        seq: Seq,
        /// The report.
        report: JudgeReport,
    },
    /// Clears the agent's goal: what is in flight stops, and the session is suspended.
    ClearGoal {
        /// Who requested it.
        by: String,
    },
    /// Hooks answered.
    HooksAnswered {
        /// The effect.
        seq: Seq,
        /// The answer of each hook that was called, in the order of the calls.
        reports: Vec<HookReport>,
        /// The current state of the scripts that the call names and that the hooks were asked about.
        scripts: Option<Vec<NamedScript>>,
    },
    /// The session's worktree is ready, or can't be made.
    WorktreeReady {
        /// The effect.
        seq: Seq,
        /// The result.
        result: WorktreeResult,
    },
    /// The session's changes to its worktree are known, as far as possible.
    WorktreeChecked {
        /// The effect.
        seq: Seq,
        /// What is left in the worktree.
        left: WorktreeLeft,
    },
    /// Something happened at the session's terminal.
    Terminal(Box<TerminalNoted>),
    /// The question about the call is withdrawn: a person has answered it at the terminal.
    AskWithdrawn {
        /// The call.
        call: CallId,
    },
    /// The program at the session's terminal has ended, with all its processes.
    TerminalClosed {
        /// The effect.
        seq: Seq,
        /// The exit; absent if it was already recorded, or no program was running.
        exit: Option<Exit>,
    },
    /// The answer to an approval question; ignored if the question already has one.
    Resolve {
        /// The entry that asked.
        asked: Seq,
        /// The answer.
        answer: ApprovalAnswer,
        /// Who gave it.
        by: String,
    },
    /// A timer is due.
    TimerFired {
        /// The effect that set it.
        seq: Seq,
    },
    /// A message to the agent.
    Say {
        /// The message.
        text: String,
        /// Who sent it.
        by: String,
    },
    /// A stepped session may take turn number `turn`; ignored if it isn't waiting for that one.
    Proceed {
        /// The turn, from 1.
        turn: u32,
    },
    /// Stops the session's work with this outcome.
    Stop {
        /// The outcome.
        outcome: Outcome,
    },
    /// Changes the model, or how long outages are waited out, from here on.
    Retune {
        /// The model.
        #[serde(default)]
        model: Option<Box<ModelPolicy>>,
        /// How long outages are waited out, in milliseconds.
        #[serde(default)]
        outage_max_ms: Option<u64>,
        /// Who requested it.
        by: String,
    },
    /// Changes the policy or the goal from the next segment on; ignored while the session is worked on.
    ChangePolicy(Box<AgentPolicyChanged>),
    /// Resumes a session that is suspended or has ended; ignored while it is worked on.
    Resume {
        /// Who requested it.
        by: String,
        /// The new limit of turns, if there is one.
        turns_max: Option<u32>,
        /// A message to the agent.
        #[serde(default)]
        text: Option<String>,
        /// Whether the run had ended. A session that has ended is resumed only then: its run may not know yet that
        /// it has.
        #[serde(default)]
        reopens: bool,
    },
    /// Restarts the session after a failure; ignored while it is worked on.
    Restart {
        /// The number of this restart in a row, from 1.
        attempt: u32,
        /// The maximum number of restarts in a row.
        attempts_max: u32,
    },
    /// The agent that the entry `started` requested is done, or there is none.
    SubAgentFinished {
        /// The entry.
        started: Seq,
        /// The agent's report.
        report: SubAgentReport,
    },
    /// The agent that the entry `started` requested is suspended.
    SubAgentSuspended {
        /// The entry.
        started: Seq,
        /// The agent's outcome.
        outcome: Outcome,
    },
    /// The agent that the entry `started` requested was suspended, and works again or is about to.
    SubAgentResumed {
        /// The entry.
        started: Seq,
    },
    /// The session yields its slot at its next check.
    YieldSlot {
        /// The agent that gets the slot, if any.
        to: Option<SessionId>,
        /// Milliseconds after which a model call in flight is aborted.
        grace_ms: u64,
    },
    /// The session yielded its slot and has one again; ignored if it is suspended for another reason.
    SlotFree,
    /// The process that performed its open effects is gone; timers stay.
    Recover {
        /// The effects that no process has begun: they will still be performed.
        fresh: Vec<Seq>,
    },
}

/// A model's complete answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The content; blocks that were cut off in the middle of a tool call are left out.
    pub content: Vec<Block>,
    /// The usage.
    pub usage: Usage,
    /// The cost as the provider reported it; replaces the cost computed from the price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<MicroDollars>,
    /// The model by its own name.
    pub model: String,
    /// Why it stopped.
    pub stop: StopReason,
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The status.
    pub status: ToolStatus,
    /// The output for the model, already truncated.
    pub output: String,
    /// Images for the model besides the output.
    #[serde(default)]
    pub images: Vec<Image>,
    /// The blob with the whole output, if `output` is truncated.
    pub whole: Option<BlobId>,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
    /// The state that the tool gets at its next call.
    pub memory: Option<Json>,
    /// The agent's new plan, if the call changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Box<Plan>>,
    /// Further facts about the call.
    #[serde(default, skip_serializing_if = "CallFacts::is_empty")]
    pub facts: CallFacts,
}

/// A judge's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgeReport {
    /// The answer; an `aborted` failure if the judge was stopped.
    pub answer: JudgeAnswer,
    /// The usage.
    pub usage: Usage,
    /// The model by its own name; empty if it failed.
    pub model: String,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// A fingerprint of the workspace; empty where there is none.
    pub evidence: String,
}

/// The result of making a worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorktreeResult {
    /// The worktree is ready.
    Made(WorktreeMade),
    /// There is no worktree; what the attempt made is removed as far as possible.
    Failed {
        /// The reason and the remedy.
        message: String,
    },
}

/// The result of a call for another agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubAgentReport {
    /// The status of the call.
    pub status: ToolStatus,
    /// The text for the requesting agent.
    pub text: String,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// The agent with its outcome; absent if there was none.
    #[serde(default)]
    pub ended: Option<(SessionId, Outcome)>,
}

/// The stop hooks' answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopCheckResult {
    /// The report of each hook, in configured order.
    pub reports: Vec<StopReport>,
    /// A fingerprint of the workspace.
    pub evidence: String,
}
