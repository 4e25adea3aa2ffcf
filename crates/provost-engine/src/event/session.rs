//! Events of a session.

use provost_event::{
    AgentPolicyChanged, ApprovalAnswer, CallId, Exhausted, Exit, HookReport, ModelFailure, ModelPolicy,
    NamedScript, Outcome, Purpose, Seq, ServiceNoted, SessionId, SessionStarted, TerminalNoted, TimeLeft,
    ToolsChanged, WorktreeLeft,
};
use serde::{Deserialize, Serialize};

use super::{
    Answer, ExternalCallRequest, ExternalCallResult, FolderRules, JudgeReport, LimitUse, StopCheckResult,
    SubAgentReport, ToolResult, WorktreeResult,
};

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
    /// A call works in folders that have rules for agents of their own; ignored for those that the agent knows.
    RulesFound(Vec<FolderRules>),
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
    /// A hook that no turn waits for has said something.
    HookSaid {
        /// The hook.
        hook: String,
        /// What the model is told.
        body: String,
        /// Whether the agent must get it before it may end.
        wakes: bool,
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
    /// An external agent's program wants to call a model, through the gateway, or a hook that is a model is to be asked.
    ExternalCall(Box<ExternalCallRequest>),
    /// The run reserved budget for call number `number` beside the conversation.
    ExternalReserved {
        /// The request.
        request: Box<ExternalCallRequest>,
        /// The number of the call.
        number: u32,
        /// The cap on the answer that the budget allows.
        output_tokens_max: u32,
    },
    /// The run has no budget for a call beside the conversation.
    ExternalRefused {
        /// The request.
        request: Box<ExternalCallRequest>,
        /// The exhausted limit; absent if money is limited and the model's price is unknown.
        exhausted: Option<Exhausted>,
    },
    /// A model call beside the conversation is over.
    ExternalAnswered(Box<ExternalCallResult>),
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
    /// Changes the agent's tools from its next turn on.
    ChangeTools(Box<ToolsChanged>),
    /// Changes the policy or the goal from the next segment on; ignored while the session is worked on.
    ChangePolicy(Box<AgentPolicyChanged>),
    /// Something was seen of a service. Counts at any time; ignored if the log knows it.
    ServiceNoted(Box<ServiceNoted>),
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

/// The start of a session as a fork of another conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkStart {
    /// The session's first entry.
    pub started: Box<SessionStarted>,
    /// Whether a message to the agent follows.
    pub is_told_more: bool,
}
