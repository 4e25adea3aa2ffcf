//! The kinds of log entries, in families. Names are past tense: an entry says what happened.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use crate::{
    AgentAskedAgain, AgentFinished, AgentPolicyChanged, AgentResumeRequested, AgentRetryScheduled,
    AgentSpawned, AgentStarted, AgentSuspended, AgentYieldRequested, ApprovalRequested, ApprovalResolved,
    AssistantMessage, Block, BudgetCharged, BudgetExhausted, BudgetReserved, Compacted, Ended,
    ExternalModelAnswered, ExternalModelCalled, ExternalModelQueued, ExternalModelRefused,
    FinalSummaryFinished, Forked, GoalCheckStarted, GoalCleared, GoalJudged, GoalVerdict, HooksAsked,
    HooksDecided, Image, ModelCalled, ModelChanged, OutageWaitChanged, Paused, PermissionDecided,
    ProcessesLeft, ProviderAwaited, Reprioritized, Resumed, Retry, RunPolicyChanged, RunStarted, Seq,
    ServiceNoted, SessionStarted, Snapshot, StepEnded, StopCheckCutShort, StopRequested, StopVerdicts,
    SubAgentResumed, SubAgentSuspended, SystemItem, TerminalEnding, TerminalNoted, ToolFinished, ToolStarted,
    ToolsChanged, TurnEnded, UserMessage, WorktreeAsked, WorktreeFound, WorktreeMade, YieldRequested,
};

macro_rules! families {
    ($(
        $(#[$family_doc:meta])*
        $family:ident: $entries:ident {
            $($(#[$doc:meta])* $kind:ident($body:ident) = $name:literal,)*
        }
    )*) => {
        /// The content of a record, by family. The serialized form is flat: `type` names the kind, and a family has no
        /// name in it.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[expect(clippy::large_enum_variant, reason = "only a log's first entry and changes of a policy are large")]
        pub enum Entry {
            $($(#[$family_doc])* $family($entries),)*
        }

        $(
            $(#[$family_doc])*
            #[derive(Debug, Clone, PartialEq, Eq)]
            pub enum $entries {
                $($(#[$doc])* $kind($body),)*
            }

            impl $entries {
                const fn kind(&self) -> &'static str {
                    match self { $(Self::$kind(_) => $name,)* }
                }

                fn body(&self) -> Result<String, serde_json::Error> {
                    match self { $(Self::$kind(body) => json(body),)* }
                }
            }

            $(impl From<$body> for Entry {
                fn from(body: $body) -> Self {
                    Self::$family($entries::$kind(body))
                }
            })*
        )*

        impl Entry {
            /// The names of all kinds.
            pub const KINDS: &'static [&'static str] = &[$($($name,)*)*];

            /// The name of the kind, as the `type` field has it.
            #[must_use]
            pub const fn kind(&self) -> &'static str {
                match self { $(Self::$family(entry) => entry.kind(),)* }
            }

            /// The entry's own fields as a JSON object.
            ///
            /// # Errors
            /// When a field has no JSON form; no current field can fail.
            pub fn body(&self) -> Result<String, serde_json::Error> {
                match self { $(Self::$family(entry) => entry.body(),)* }
            }

            /// Reads the fields of an entry of kind `kind` from a JSON object, ignoring unknown fields. `None` for
            /// an unknown kind.
            #[must_use]
            pub fn from_body(kind: &str, body: &str) -> Option<Result<Self, serde_json::Error>> {
                match kind {
                    $($($name => Some(serde_json::from_str::<$body>(body).map(Self::from)),)*)*
                    _ => None,
                }
            }
        }

        /// The fields of each kind, with the `type` that names it.
        impl JsonSchema for Entry {
            fn schema_name() -> Cow<'static, str> {
                "Entry".into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                let kinds = vec![$($(kind_schema::<$body>(generator, $name),)*)*];
                json_schema!({ "oneOf": kinds })
            }
        }
    };
}

families! {
    /// What the conversation with the model consists of.
    Conversation: ConversationEntry {
        /// A message from the user, a program or the parent agent.
        UserMessage(UserMessage) = "user_message",
        /// A message from Provost to the model.
        SystemItem(SystemItem) = "system_item",
        /// The model answered.
        AssistantMessage(AssistantMessage) = "assistant_message",
        /// A turn is complete.
        TurnEnded(TurnEnded) = "turn_ended",
        /// Part of the model's view of the log is replaced by a shorter form.
        Compacted(Compacted) = "compacted",
        /// The agent's final summary at a limit.
        FinalSummary(FinalSummaryFinished) = "final_summary_finished",
    }
    /// Model calls, and which model is called.
    Model: ModelEntry {
        /// The intent of a model call.
        Called(ModelCalled) = "model_called",
        /// A model call gave no usable answer and is retried.
        Retried(Retry) = "retry",
        /// Another model is called from here on.
        Changed(ModelChanged) = "model_changed",
        /// The maximum wait for provider outages has changed.
        OutageWaitChanged(OutageWaitChanged) = "outage_wait_changed",
        /// A session waits for its model's provider.
        ProviderAwaited(ProviderAwaited) = "provider_awaited",
        /// An external agent's program calls a model through the gateway.
        ExternalCalled(ExternalModelCalled) = "external_model_called",
        /// A model call of an external agent's program waits for budget that another of its calls has reserved.
        ExternalQueued(ExternalModelQueued) = "external_model_queued",
        /// There is no budget for a model call of an external agent's program.
        ExternalRefused(ExternalModelRefused) = "external_model_refused",
        /// A model call of an external agent's program is over.
        ExternalAnswered(ExternalModelAnswered) = "external_model_answered",
    }
    /// Tool calls, which tools there are, and the services that calls have started.
    Tool: ToolEntry {
        /// The intent of a tool call.
        Started(ToolStarted) = "tool_started",
        /// The one result of a tool call.
        Finished(ToolFinished) = "tool_finished",
        /// The tools are others from here on.
        Changed(ToolsChanged) = "tools_changed",
        /// A service that a call started was found running, or has ended.
        ServiceNoted(ServiceNoted) = "service_noted",
    }
    /// What decides whether something may happen: hooks, stop hooks, permissions, approvals.
    Gate: GateEntry {
        /// The intent of a hook call.
        HooksAsked(HooksAsked) = "hooks_asked",
        /// The hooks' decisions.
        HooksDecided(HooksDecided) = "hooks_decided",
        /// The permissions' decision on a tool call.
        PermissionDecided(PermissionDecided) = "permission_decided",
        /// A tool call needs approval.
        ApprovalRequested(ApprovalRequested) = "approval_requested",
        /// An approval was given or denied, or timed out.
        ApprovalResolved(ApprovalResolved) = "approval_resolved",
        /// The stop hooks' verdicts.
        StopChecked(StopVerdicts) = "stop_verdicts",
        /// Verdicts of stop hooks that a stop interrupted.
        StopCheckCutShort(StopCheckCutShort) = "stop_check_cut_short",
    }
    /// The verification of a goal.
    Goal: GoalEntry {
        /// A goal is being verified.
        CheckStarted(GoalCheckStarted) = "goal_check_started",
        /// A judge's answer.
        Judged(GoalJudged) = "goal_judged",
        /// The result of a verification.
        Verdict(GoalVerdict) = "goal_verdict",
        /// The agent no longer has a goal.
        Cleared(GoalCleared) = "goal_cleared",
    }
    /// Reservations and charges.
    Budget: BudgetEntry {
        /// Part of the budget is reserved for a call.
        Reserved(BudgetReserved) = "budget_reserved",
        /// A call was charged; the unused part of its reservation is released.
        Charged(BudgetCharged) = "budget_charged",
        /// A limit was reached.
        Exhausted(BudgetExhausted) = "budget_exhausted",
    }
    /// The agents of a run: slots, restarts, steps.
    Agent: AgentEntry {
        /// An agent was spawned.
        Spawned(AgentSpawned) = "agent_spawned",
        /// An agent that has delivered its result is asked to continue.
        AskedAgain(AgentAskedAgain) = "agent_asked_again",
        /// An agent got a slot, and starts or continues.
        Started(AgentStarted) = "agent_started",
        /// An agent was asked to yield.
        YieldRequested(AgentYieldRequested) = "agent_yield_requested",
        /// An agent is suspended without a slot.
        Suspended(AgentSuspended) = "agent_suspended",
        /// A suspended agent is to be resumed.
        ResumeRequested(AgentResumeRequested) = "agent_resume_requested",
        /// An agent has failed, and is restarted later.
        RetryScheduled(AgentRetryScheduled) = "agent_retry_scheduled",
        /// An agent has finished.
        Finished(AgentFinished) = "agent_finished",
        /// An agent's priority has changed.
        Reprioritized(Reprioritized) = "reprioritized",
        /// An attempt at a workflow step has ended.
        StepEnded(StepEnded) = "step_ended",
        /// The session is to yield to another agent.
        MustYield(YieldRequested) = "yield_requested",
        /// A sub-agent that the session waits for is suspended.
        SubAgentSuspended(SubAgentSuspended) = "sub_agent_suspended",
        /// A suspended sub-agent runs again.
        SubAgentResumed(SubAgentResumed) = "sub_agent_resumed",
    }
    /// The terminal of an external agent.
    Terminal: TerminalEntry {
        /// An event at the terminal of an external agent.
        Noted(TerminalNoted) = "terminal_noted",
        /// The intent of terminating an external agent's program.
        Ending(TerminalEnding) = "terminal_ending",
    }
    /// The worktree of an agent.
    Worktree: WorktreeEntry {
        /// The session's worktree was created.
        Made(WorktreeMade) = "worktree_made",
        /// The intent of inspecting the session's worktree.
        Asked(WorktreeAsked) = "worktree_asked",
        /// The changes in the session's worktree.
        Found(WorktreeFound) = "worktree_found",
    }
    /// The beginning, suspension, continuation and end of a run or session.
    Lifecycle: LifecycleEntry {
        /// First entry of a run's log.
        RunStarted(RunStarted) = "run_started",
        /// First entry of a session's log.
        SessionStarted(SessionStarted) = "session_started",
        /// A new policy applies to the run from its next segment on.
        RunPolicyChanged(RunPolicyChanged) = "run_policy_changed",
        /// A new policy applies to the agent from its next segment on.
        AgentPolicyChanged(AgentPolicyChanged) = "agent_policy_changed",
        /// A run was forked from another's conversation.
        Forked(Forked) = "forked",
        /// A session's state as of this entry, to restore it from.
        Snapshot(Snapshot) = "snapshot",
        /// Some processes of the run could not be terminated.
        ProcessesLeft(ProcessesLeft) = "processes_left",
        /// The session or run is to be suspended or ended as soon as everything in flight has stopped.
        StopRequested(StopRequested) = "stop_requested",
        /// The session or run is suspended.
        Paused(Paused) = "paused",
        /// The session or run is resumed.
        Resumed(Resumed) = "resumed",
        /// The session or run has ended; nothing follows.
        Ended(Ended) = "ended",
    }
}

fn kind_schema<T: JsonSchema>(generator: &mut SchemaGenerator, kind: &str) -> Schema {
    let fields = generator.subschema_for::<T>();
    json_schema!({
        "type": "object",
        "properties": { "type": { "const": kind } },
        "required": ["type"],
        "allOf": [fields],
    })
}

fn json(body: &impl Serialize) -> Result<String, serde_json::Error> {
    serde_json::to_string(body)
}

impl Entry {
    /// The entry that precedes the log's first entry: the last entry of the forked conversation, or none.
    #[must_use]
    pub fn follows(&self) -> Seq {
        match self {
            Self::Lifecycle(LifecycleEntry::SessionStarted(started)) => {
                started.fork.as_ref().map_or(Seq::START, |fork| fork.through())
            }
            _ => Seq::START,
        }
    }

    /// The pictures that it contains, in order.
    #[must_use]
    pub fn images(&self) -> Vec<&Image> {
        match self {
            Self::Lifecycle(LifecycleEntry::SessionStarted(started)) => started.images.iter().collect(),
            Self::Tool(ToolEntry::Finished(finished)) => finished.images.iter().collect(),
            Self::Conversation(ConversationEntry::UserMessage(message)) => images_in(&message.content),
            Self::Conversation(ConversationEntry::AssistantMessage(message)) => images_in(&message.content),
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
