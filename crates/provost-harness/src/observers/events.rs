//! The kinds of events of an entry.

use std::collections::HashMap;

use provost_event::{
    ActorKey, AgentEntry, ApprovalAnswer, AssistantMessage, Block, CallId, ConversationEntry, Entry,
    GateEntry, GoalEntry, GoalFinding, HookDecision, HooksDecided, LifecycleEntry, ModelCalled, ModelEntry,
    Permission, Purpose, Record, SessionId, StopVerdicts, TerminalEntry, ToolEntry, ToolFinished,
    ToolStarted, ToolStatus,
};

use crate::ObserverEventKind as Kind;

/// The state of a segment of work that later entries depend on.
#[derive(Debug, Default)]
pub(super) struct EventHistory {
    /// The latest turn of each session.
    turns: HashMap<SessionId, u32>,
    /// Calls by a model without a result yet, and whether they were started.
    calls: HashMap<(SessionId, CallId), bool>,
    /// Whether the run runs a workflow.
    has_workflow: bool,
}

impl EventHistory {
    /// Applies the first entry of a log.
    pub(super) fn learn(&mut self, record: &Record) {
        if let Entry::Lifecycle(LifecycleEntry::RunStarted(started)) = &record.entry {
            self.has_workflow = started.policy.flow.is_some();
        }
    }

    /// Whether a turn starts with this call. Final summaries and judges' calls belong to the turn before them.
    fn begins(&mut self, actor: ActorKey, called: &ModelCalled) -> bool {
        match actor {
            ActorKey::Session(session)
                if called.attempt == 1
                    && !matches!(called.purpose, Purpose::FinalSummary | Purpose::Judge) =>
            {
                self.turns.insert(session, called.turn) != Some(called.turn)
            }
            ActorKey::Session(_) | ActorKey::Run(_) => false,
        }
    }

    fn asked_for(&mut self, actor: ActorKey, message: &AssistantMessage) {
        let ActorKey::Session(session) = actor else { return };
        let calls = message.content.iter().filter_map(|block| match block {
            Block::ToolCall(call) => Some(((session, call.id.clone()), false)),
            _ => None,
        });
        self.calls.extend(calls);
    }

    fn tool_started(&mut self, actor: ActorKey, started: &ToolStarted) {
        if let ActorKey::Session(session) = actor {
            self.calls.insert((session, started.call.clone()), true);
        }
    }

    /// The events of a call's result. They include its start if the call was never started, so that each start has
    /// an end. For a call from before this segment of work, only the status tells.
    fn tool_finished(&mut self, actor: ActorKey, finished: &ToolFinished) -> &'static [Kind] {
        let call = match actor {
            ActorKey::Session(session) => self.calls.remove(&(session, finished.call.clone())),
            ActorKey::Run(_) => None,
        };
        let is_refused = matches!(finished.status, ToolStatus::Denied | ToolStatus::Rejected);
        match call {
            // Its denial has no entry of its own.
            Some(true) if finished.status == ToolStatus::Denied => &[Kind::ToolEnd, Kind::GuardrailTrip],
            Some(true) => &[Kind::ToolEnd],
            Some(false) => &[Kind::ToolStart, Kind::ToolEnd],
            None if is_refused => &[Kind::ToolStart, Kind::ToolEnd],
            None => &[Kind::ToolEnd],
        }
    }

    const fn segment_starts(&self) -> &'static [Kind] {
        if self.has_workflow { &[Kind::RunStart, Kind::FlowStart] } else { &[Kind::RunStart] }
    }

    const fn segment_ends(&self) -> &'static [Kind] {
        if self.has_workflow { &[Kind::FlowEnd, Kind::RunEnd] } else { &[Kind::RunEnd] }
    }
}

/// The event kinds of `record`, in order; none for entries that aren't reported.
pub(super) fn kinds(record: &Record, history: &mut EventHistory) -> &'static [Kind] {
    history.learn(record);
    match &record.entry {
        Entry::Conversation(entry) => conversation_kinds(record, entry, history),
        Entry::Model(entry) => model_kinds(record, entry, history),
        Entry::Tool(entry) => tool_kinds(record, entry, history),
        Entry::Gate(entry) => gate_kinds(entry),
        Entry::Goal(entry) => goal_kinds(entry),
        Entry::Budget(_) => &[Kind::Budget],
        Entry::Agent(entry) => agent_kinds(entry),
        Entry::Terminal(entry) => terminal_kinds(entry),
        // The session's start and end are reported.
        Entry::Worktree(_) => &[],
        Entry::Lifecycle(entry) => lifecycle_kinds(record, entry, history),
    }
}

fn conversation_kinds(
    record: &Record,
    entry: &ConversationEntry,
    history: &mut EventHistory,
) -> &'static [Kind] {
    match entry {
        ConversationEntry::AssistantMessage(message) => {
            history.asked_for(record.actor, message);
            &[Kind::LlmEnd]
        }
        ConversationEntry::FinalSummary(wrapped) if wrapped.call.is_some() => &[Kind::LlmEnd],
        // There was no budget for a final summary, and no model was called.
        ConversationEntry::FinalSummary(_) => &[],
        ConversationEntry::TurnEnded(_) => &[Kind::TurnEnd],
        ConversationEntry::Compacted(compacted) if compacted.call.is_some() => {
            &[Kind::LlmEnd, Kind::Compaction]
        }
        ConversationEntry::Compacted(_) => &[Kind::Compaction],
        // Messages to the model, which are part of the next call.
        ConversationEntry::UserMessage(_) | ConversationEntry::SystemItem(_) => &[],
    }
}

fn model_kinds(record: &Record, entry: &ModelEntry, history: &mut EventHistory) -> &'static [Kind] {
    match entry {
        ModelEntry::Called(called) if history.begins(record.actor, called) => {
            &[Kind::TurnStart, Kind::LlmStart]
        }
        ModelEntry::Called(_) => &[Kind::LlmStart],
        ModelEntry::Retried(_) => &[Kind::LlmEnd],
        ModelEntry::ExternalCalled(_) => &[Kind::LlmStart],
        ModelEntry::ExternalAnswered(_) => &[Kind::LlmEnd],
        // No call was made.
        ModelEntry::ExternalQueued(_) | ModelEntry::ExternalRefused(_) => &[],
        // The failed call is reported, and the next one with its model.
        ModelEntry::Changed(_) | ModelEntry::OutageWaitChanged(_) | ModelEntry::ProviderAwaited(_) => &[],
    }
}

fn tool_kinds(record: &Record, entry: &ToolEntry, history: &mut EventHistory) -> &'static [Kind] {
    match entry {
        ToolEntry::Started(started) => {
            history.tool_started(record.actor, started);
            &[Kind::ToolStart]
        }
        ToolEntry::Finished(finished) => history.tool_finished(record.actor, finished),
        ToolEntry::Changed(_) | ToolEntry::ServiceNoted(_) => &[],
    }
}

fn gate_kinds(entry: &GateEntry) -> &'static [Kind] {
    match entry {
        GateEntry::HooksDecided(decided) if hooks_object(decided) => &[Kind::GuardrailTrip],
        GateEntry::StopChecked(verdicts) if stop_hooks_object(verdicts) => &[Kind::GuardrailTrip],
        GateEntry::PermissionDecided(decided) if decided.permission == Permission::Deny => {
            &[Kind::GuardrailTrip]
        }
        GateEntry::ApprovalResolved(resolved) if matches!(resolved.answer, ApprovalAnswer::Deny { .. }) => {
            &[Kind::Approval, Kind::GuardrailTrip]
        }
        GateEntry::ApprovalRequested(_) | GateEntry::ApprovalResolved(_) => &[Kind::Approval],
        // No objection; the next events show that.
        GateEntry::HooksDecided(_) | GateEntry::StopChecked(_) | GateEntry::PermissionDecided(_) => &[],
        // The answer is reported.
        GateEntry::HooksAsked(_) => &[],
        // It decides nothing.
        GateEntry::StopCheckCutShort(_) => &[],
    }
}

fn goal_kinds(entry: &GoalEntry) -> &'static [Kind] {
    match entry {
        GoalEntry::Judged(_) => &[Kind::LlmEnd],
        GoalEntry::Verdict(verdict) if !matches!(verdict.finding, GoalFinding::Achieved { .. }) => {
            &[Kind::GuardrailTrip]
        }
        // The judges' calls and rejections are reported.
        GoalEntry::CheckStarted(_) | GoalEntry::Verdict(_) | GoalEntry::Cleared(_) => &[],
    }
}

const fn agent_kinds(entry: &AgentEntry) -> &'static [Kind] {
    match entry {
        // The run itself spawns the agents of its workflow's steps.
        AgentEntry::Spawned(spawned) if spawned.parent.is_none() => &[Kind::Handoff, Kind::StepStart],
        AgentEntry::Spawned(_) | AgentEntry::AskedAgain(_) | AgentEntry::Finished(_) => &[Kind::Handoff],
        // Slots: the number of active agents is a budget too.
        AgentEntry::Started(_)
        | AgentEntry::YieldRequested(_)
        | AgentEntry::Suspended(_)
        | AgentEntry::ResumeRequested(_)
        | AgentEntry::RetryScheduled(_)
        | AgentEntry::Reprioritized(_) => &[Kind::Budget],
        AgentEntry::StepEnded(_) => &[Kind::StepEnd],
        // The resulting suspension or end is reported.
        AgentEntry::MustYield(_) | AgentEntry::SubAgentResumed(_) | AgentEntry::SubAgentSuspended(_) => &[],
    }
}

const fn terminal_kinds(entry: &TerminalEntry) -> &'static [Kind] {
    match entry {
        TerminalEntry::Noted(_) => &[Kind::Terminal],
        // The result has its own entry.
        TerminalEntry::Ending(_) => &[],
    }
}

fn lifecycle_kinds(record: &Record, entry: &LifecycleEntry, history: &mut EventHistory) -> &'static [Kind] {
    let is_run = matches!(record.actor, ActorKey::Run(_));
    match entry {
        LifecycleEntry::RunStarted(_) => history.segment_starts(),
        LifecycleEntry::SessionStarted(_) => &[Kind::SessionStart],
        LifecycleEntry::RunPolicyChanged(_) | LifecycleEntry::AgentPolicyChanged(_) => &[],
        // The new run's start is reported.
        LifecycleEntry::Forked(_) => &[],
        // Only a copy of the state.
        LifecycleEntry::Snapshot(_) => &[],
        LifecycleEntry::Paused(_) if is_run => history.segment_ends(),
        // Another segment starts like the first one.
        LifecycleEntry::Resumed(_) if is_run => history.segment_starts(),
        LifecycleEntry::Resumed(resumed) if resumed.reopens => &[Kind::SessionStart],
        LifecycleEntry::Ended(_) if is_run => history.segment_ends(),
        LifecycleEntry::Ended(_) => &[Kind::SessionEnd],
        // A session's suspension is reported by its run's.
        LifecycleEntry::StopRequested(_) | LifecycleEntry::Paused(_) | LifecycleEntry::Resumed(_) => &[],
        // It decides nothing.
        LifecycleEntry::ProcessesLeft(_) => &[],
    }
}

fn hooks_object(decided: &HooksDecided) -> bool {
    decided.reports.iter().any(|report| match report.decision {
        // The answer decides whether it is a denial.
        HookDecision::Continue | HookDecision::Allow | HookDecision::Ask(_) => false,
        HookDecision::Deny(_)
        | HookDecision::Pause(_)
        | HookDecision::Abort(_)
        | HookDecision::Failed(_)
        | HookDecision::Broken(_)
        | HookDecision::TimedOut(_) => true,
    })
}

fn stop_hooks_object(verdicts: &StopVerdicts) -> bool {
    verdicts.reports.iter().any(|report| report.stop_verdict().objects())
}
