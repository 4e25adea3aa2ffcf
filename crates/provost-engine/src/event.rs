//! What can happen to an actor.

use provost_event::{
    AgentPolicyChanged, ApprovalAnswer, BlobId, Block, Budget, CallFacts, CallId, Dimension, EffectId,
    Elapsed, Exhausted, Exit, Forked, HookReport, Image, Json, JudgeAnswer, LimitOwner, MicroDollars,
    ModelFailure, ModelPolicy, NamedScript, Outcome, Plan, Priority, ProviderAwaited, Purpose, RunPolicy,
    RunPolicyChanged, Seq, SessionFork, SessionId, SessionStarted, StopReason, StopReport, TerminalNoted,
    TimeLeft, Timestamp, ToolStatus, Usage, Worktree, WorktreeLeft, WorktreeMade,
};
use serde::{Deserialize, Serialize};

/// What a decision may know of the world at its moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Now {
    /// The time by the wall clock: shown, and never subtracted.
    pub at: Timestamp,
    /// The run's elapsed time, which never decreases while it is decided for a run.
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

/// What can happen to a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEvent {
    /// Somebody wants it; ignored by a run that already is.
    Start {
        /// What is to be reached.
        goal: String,
        /// Pictures that belong to it.
        #[serde(default)]
        images: Vec<Image>,
        /// What binds it.
        policy: Box<RunPolicy>,
    },
    /// Somebody wants it, to go on with another agent's conversation; ignored by a run that already is.
    Fork(Box<ForkWish>),
    /// A run was forked from the conversation of one of this run's agents.
    Forked(Forked),
    /// Some of what the run started could not be ended. Counts at any time.
    ProcessesLeft,
    /// A session asks for budget before a model call. Asked twice for the same call, it gets the same answer.
    Reserve(ReserveRequest),
    /// A session reports what a model call took.
    Settle(SettleNote),
    /// A session ended or came to rest.
    SessionRests {
        /// Which.
        session: SessionId,
        /// How.
        outcome: Outcome,
        /// What its agent said last.
        #[serde(default)]
        text: String,
        /// Whether it rests only because agents do that work for it.
        #[serde(default)]
        for_child: bool,
    },
    /// An agent wants another to work for it. Asked twice for the same call, only the first counts.
    Spawn {
        /// Who asks.
        parent: SessionId,
        /// The entry of its log that started the call.
        call: Seq,
        /// The tool that was called: what kind of agent is wanted.
        tool: String,
        /// Its arguments.
        input: Json,
    },
    /// Somebody gives an agent another priority.
    Reprioritize {
        /// Which.
        agent: u32,
        /// The new one.
        priority: Priority,
        /// Who.
        by: String,
    },
    /// A timer of the run is due.
    TimerFired {
        /// The effect that set it.
        seq: Seq,
    },
    /// Somebody says something to an agent.
    Say {
        /// To which; the root is 0.
        #[serde(default)]
        agent: u32,
        /// What.
        text: String,
        /// Who.
        by: String,
    },
    /// Somebody clears an agent's goal.
    ClearGoal {
        /// Whose; the root is 0.
        #[serde(default)]
        agent: u32,
        /// Who.
        by: String,
    },
    /// Somebody wants it to rest.
    Pause {
        /// Only this agent and those below it; the whole run if absent.
        #[serde(default)]
        agent: Option<u32>,
        /// Who.
        by: String,
    },
    /// Somebody wants it to end.
    Cancel {
        /// Only this agent and those below it; the whole run if absent.
        #[serde(default)]
        agent: Option<u32>,
        /// Who.
        by: String,
    },
    /// Somebody wants another model to be asked from here on, or outages to be waited out longer or shorter. A run that
    /// rests stays at rest.
    Retune {
        /// The model in place of the run's own; that of agents with a model of their own only where it gives no answer.
        #[serde(default)]
        model: Option<Box<ModelPolicy>>,
        /// How long outages are waited out, in milliseconds.
        #[serde(default)]
        outage_max_ms: Option<u64>,
        /// Who.
        by: String,
    },
    /// Somebody wants another policy, or another goal, to bind the run from its next segment on. A run that rests stays at
    /// rest; ignored by one that is worked on.
    ChangePolicy(Box<RunPolicyChanged>),
    /// A session waits for its model's provider.
    AwaitsProvider(Box<ProviderAwaited>),
    /// Somebody wants another segment of a run that is suspended or has ended, or one of its suspended agents to go on;
    /// ignored where that is worked on.
    Resume {
        /// Only this agent, while the others work; the whole run if absent.
        #[serde(default)]
        agent: Option<u32>,
        /// Who.
        by: String,
        /// Limits that replace those of the same name.
        budget: Budget,
        /// A new limit of the root agent's turns.
        turns_max: Option<u32>,
        /// What is said to the root agent with it.
        #[serde(default)]
        text: Option<String>,
    },
    /// A home took the run over from a process that is gone: what was being done, nobody does any more.
    Recover {
        /// Open effects that nobody has begun: they are still going to be performed.
        fresh: Vec<EffectId>,
    },
}

/// A run that is to go on with another agent's conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkWish {
    /// What the run is to reach.
    pub goal: String,
    /// What the first agent is to reach: what the conversation began with.
    pub agent_goal: String,
    /// What binds it. Its agent's part binds the first agent as it is.
    pub policy: RunPolicy,
    /// Where the conversation comes from.
    pub fork: Box<SessionFork>,
    /// The worktree that is made for it, if it is to have one of its own.
    #[serde(default)]
    pub worktree: Option<Worktree>,
    /// What is said to its agent.
    #[serde(default)]
    pub text: Option<String>,
    /// Who wants it.
    pub by: String,
}

/// The beginning of a session that goes on with another's conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkStart {
    /// What it is given.
    pub started: Box<SessionStarted>,
    /// Whether somebody's words follow.
    pub is_told_more: bool,
}

/// A wish for budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReserveRequest {
    /// Whose.
    pub session: SessionId,
    /// For which of its calls.
    pub call: u32,
    /// In which turn.
    #[serde(default)]
    pub turn: u32,
    /// The model that is to be asked, by the policy's name.
    #[serde(default)]
    pub model: String,
    /// Tokens of the request: what the provider reported last and what was added since, and no less than the estimate.
    pub input_tokens: u64,
    /// The same by our own estimate alone; 0 if nobody knows.
    #[serde(default)]
    pub estimated_tokens: u64,
    /// Whether a provider has counted this conversation before.
    #[serde(default)]
    pub is_counted: bool,
    /// The cap on the answer.
    pub output_tokens_max: u32,
    /// What the model's tokens cost, if known.
    pub price: Option<provost_event::Price>,
    /// Whether enough must be left for the session's last words at a limit.
    #[serde(default)]
    pub keeps_back: bool,
    /// Tokens that the model may think for before the final summary, if anything is kept back.
    #[serde(default)]
    pub thinking_tokens: u32,
    /// Tokens that must be left besides, if anything is kept back.
    #[serde(default)]
    pub kept_tokens: u64,
    /// Money that must be left besides.
    #[serde(default)]
    pub kept_cost: MicroDollars,
    /// Hundredths of each of the run's limits that judges may take, all of them together, and that are kept for them.
    #[serde(default)]
    pub judges_percent: u8,
    /// Whether the work ends where there is none; the others do without.
    #[serde(default)]
    pub ends_work: bool,
    /// What for.
    #[serde(default)]
    pub purpose: Purpose,
}

/// How much of a limit is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitUse {
    /// Which limit.
    pub dimension: Dimension,
    /// What was used, in the dimension's unit.
    pub used: u64,
    /// The limit.
    pub limit: u64,
    /// Whose.
    pub owner: LimitOwner,
}

impl LimitUse {
    /// Percent from which on an agent is told.
    pub(crate) const NEAR: u8 = 50;

    /// Percent of the limit that are used, 100 at most.
    #[must_use]
    pub fn percent(&self) -> u8 {
        let percent = u128::from(self.used) * 100 / u128::from(self.limit.max(1));
        u8::try_from(percent.min(100)).unwrap_or(100)
    }
}

/// What a model call took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettleNote {
    /// Whose.
    pub session: SessionId,
    /// Which of its calls.
    pub call: u32,
    /// In which turn.
    pub turn: u32,
    /// Which model was asked, by the policy's name.
    #[serde(default)]
    pub model: String,
    /// What the provider reported.
    pub usage: Usage,
    /// What that cost, if known.
    pub cost: Option<MicroDollars>,
}

/// What can happen to a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionEvent {
    /// The run wants it; ignored by a session that already is.
    Start(Box<SessionStarted>),
    /// The run wants it, to go on with another's conversation; ignored by a session that already is.
    Fork(Box<ForkStart>),
    /// The run set budget aside for call number `call`.
    Reserved {
        /// The call.
        call: u32,
        /// What it is for.
        #[serde(default)]
        purpose: Purpose,
        /// The cap on the answer that the budget allows.
        output_tokens_max: u32,
        /// What is left of the time of the run or of the agent, if that is limited.
        time_left: Option<TimeLeft>,
        /// The limits that are half used up or more: of each dimension the one that is nearest to its end.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        limits: Vec<LimitUse>,
        /// No other turn fits the turns that the run, or an agent above, may take.
        #[serde(default)]
        is_last_turn: bool,
    },
    /// The run has no budget for call number `call`.
    Refused {
        /// The call.
        call: u32,
        /// What it was for.
        #[serde(default)]
        purpose: Purpose,
        /// The limit in the way.
        exhausted: Exhausted,
        /// Whether that is only the judges' part of the run's.
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
        /// How.
        failure: ModelFailure,
    },
    /// A tool call came to its end.
    ToolDone {
        /// The effect.
        seq: Seq,
        /// With what.
        result: ToolResult,
    },
    /// The stop hooks answered.
    StopChecked {
        /// The effect.
        seq: Seq,
        /// What.
        result: StopCheckResult,
    },
    /// A judge answered, or couldn't.
    Judged {
        /// The effect.
        seq: Seq,
        /// What.
        report: JudgeReport,
    },
    /// Nobody wants the agent's goal any more: what is in flight stops, and it rests.
    ClearGoal {
        /// Who says so.
        by: String,
    },
    /// The hooks answered.
    HooksAnswered {
        /// The effect.
        seq: Seq,
        /// What each that was asked said, in the order in which they were asked.
        reports: Vec<HookReport>,
        /// The scripts that the call names that they were asked about, as they are now.
        scripts: Option<Vec<NamedScript>>,
    },
    /// The session's worktree is there, or can't be made.
    WorktreeReady {
        /// The effect.
        seq: Seq,
        /// Which.
        result: WorktreeResult,
    },
    /// What the session has done to its worktree is known, as far as it can be.
    WorktreeChecked {
        /// The effect.
        seq: Seq,
        /// What.
        left: WorktreeLeft,
    },
    /// Something happened at the session's terminal.
    Terminal(Box<TerminalNoted>),
    /// The question that the call is about is no longer asked: somebody has answered it at the terminal.
    AskWithdrawn {
        /// The call.
        call: CallId,
    },
    /// The program at the session's terminal has ended, and nothing of it is left.
    TerminalClosed {
        /// The effect.
        seq: Seq,
        /// How; absent where that has been noted, or no program was there.
        exit: Option<Exit>,
    },
    /// Somebody says whether a tool call may be made; ignored when the question has its answer.
    Resolve {
        /// The entry that asked.
        asked: Seq,
        /// The answer.
        answer: ApprovalAnswer,
        /// Who gives it.
        by: String,
    },
    /// A timer is due.
    TimerFired {
        /// The effect that set it.
        seq: Seq,
    },
    /// Somebody spoke to the agent.
    Say {
        /// What.
        text: String,
        /// Who.
        by: String,
    },
    /// A stepped session may take turn number `turn`; ignored if it isn't waiting for that one.
    Proceed {
        /// The turn, from 1.
        turn: u32,
    },
    /// It shall stop what it does and come to this outcome.
    Stop {
        /// The outcome.
        outcome: Outcome,
    },
    /// Another model is to be asked from here on, or outages are waited out longer or shorter.
    Retune {
        /// The model.
        #[serde(default)]
        model: Option<Box<ModelPolicy>>,
        /// How long outages are waited out, in milliseconds.
        #[serde(default)]
        outage_max_ms: Option<u64>,
        /// Who wants it.
        by: String,
    },
    /// Another policy, or another goal, binds it from its next segment on; ignored by a session that is worked on.
    ChangePolicy(Box<AgentPolicyChanged>),
    /// A session that is suspended or has ended shall go on; ignored by one that is worked on.
    Resume {
        /// Who wants it.
        by: String,
        /// The new limit of turns, if there is one.
        turns_max: Option<u32>,
        /// What is said to the agent with it.
        #[serde(default)]
        text: Option<String>,
        /// Whether the run had ended. A session that has ended goes on only then: its run may not know yet that it has.
        #[serde(default)]
        reopens: bool,
    },
    /// It has failed, and is restarted; ignored by one that is worked on.
    Restart {
        /// Which restart in a row this is, from 1.
        attempt: u32,
        /// Restarts in a row that it may have.
        attempts_max: u32,
    },
    /// The agent that was asked for by the entry `started` is done, or there is none.
    ChildDone {
        /// The entry.
        started: Seq,
        /// What came of it.
        report: ChildReport,
    },
    /// The agent that was asked for by the entry `started` rests before it is done.
    ChildRests {
        /// The entry.
        started: Seq,
        /// At what.
        outcome: Outcome,
    },
    /// The agent that was asked for by the entry `started` rested, and works again or will.
    ChildGoesOn {
        /// The entry.
        started: Seq,
    },
    /// It shall make way for another agent at its next check.
    MakeWay {
        /// For whom, if for somebody.
        to: Option<SessionId>,
        /// After so many milliseconds a model call in flight is no longer waited for.
        grace_ms: u64,
    },
    /// It had made way, and has a slot again; ignored by one that rests for another reason.
    SlotFree,
    /// Whoever performed its open effects is gone; timers stay.
    Recover {
        /// The effects that nobody has begun: they are still going to be performed.
        fresh: Vec<Seq>,
    },
}

/// A model's complete answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// What it said; blocks that were cut off in the middle of a tool call are not among it.
    pub content: Vec<Block>,
    /// What it consumed.
    pub usage: Usage,
    /// What that cost, where whoever answered says so itself; counts in place of what the price would come to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<MicroDollars>,
    /// The model by its own name.
    pub model: String,
    /// Why it stopped.
    pub stop: StopReason,
}

/// A tool call's end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// How it ended.
    pub status: ToolStatus,
    /// What the model shall see, already cut to size.
    pub output: String,
    /// Pictures that the model shall see besides.
    #[serde(default)]
    pub images: Vec<Image>,
    /// Where the whole output is, if that is only part of it.
    pub whole: Option<BlobId>,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
    /// What the tool wants to be told next time.
    pub memory: Option<Json>,
    /// The agent's plan from here on, if the call has changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Box<Plan>>,
    /// What is known of it beside its output.
    #[serde(default, skip_serializing_if = "CallFacts::is_empty")]
    pub facts: CallFacts,
}

/// A judge's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgeReport {
    /// What it said; failed as aborted where it was told to stop.
    pub answer: JudgeAnswer,
    /// What it consumed.
    pub usage: Usage,
    /// The model by its own name; empty if it failed.
    pub model: String,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// A fingerprint of the workspace; empty where there is none.
    pub evidence: String,
}

/// What came of making a worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorktreeResult {
    /// It is there.
    Made(WorktreeMade),
    /// It isn't, and nothing is left of the attempt, as far as that could be seen to.
    Failed {
        /// Why, and what to do about it.
        message: String,
    },
}

/// What came of a call for another agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildReport {
    /// How the call counts.
    pub status: ToolStatus,
    /// What the asking agent shall see.
    pub text: String,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// The agent, and what it came to; absent where there was none.
    #[serde(default)]
    pub ended: Option<(SessionId, Outcome)>,
}

/// The stop hooks' answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopCheckResult {
    /// Each hook's, in configured order.
    pub reports: Vec<StopReport>,
    /// A fingerprint of the workspace.
    pub evidence: String,
}
