//! The kinds of events of an entry.

use std::collections::HashMap;

use provost_event::{
    ActorKey, Entry, GoalFinding, HookDecision, HooksDecided, ModelCalled, Permission, Purpose, Record,
    SessionId, StopHookVerdict, StopVerdicts, ToolStatus,
};

use crate::ObservedKind as Kind;

/// The latest turn of each session.
#[derive(Debug, Default)]
pub(super) struct Turns(HashMap<SessionId, u32>);

impl Turns {
    /// Whether a turn starts with this call. Final summaries and judges' calls belong to the turn before them.
    fn begins(&mut self, actor: ActorKey, called: &ModelCalled) -> bool {
        match actor {
            ActorKey::Session(session)
                if called.attempt == 1 && !matches!(called.purpose, Purpose::WrapUp | Purpose::Judge) =>
            {
                self.0.insert(session, called.turn) != Some(called.turn)
            }
            ActorKey::Session(_) | ActorKey::Run(_) => false,
        }
    }
}

/// The event kinds of `record`, in order; none for entries that aren't reported.
pub(super) fn kinds(record: &Record, turns: &mut Turns) -> &'static [Kind] {
    let is_run = matches!(record.actor, ActorKey::Run(_));
    match &record.entry {
        Entry::RunStarted(_) => &[Kind::RunStart, Kind::FlowStart],
        Entry::SessionStarted(_) => &[Kind::SessionStart],
        Entry::ModelCalled(called) if turns.begins(record.actor, called) => {
            &[Kind::TurnStart, Kind::LlmStart]
        }
        Entry::ModelCalled(_) => &[Kind::LlmStart],
        Entry::AssistantMessage(_) | Entry::Retry(_) => &[Kind::LlmEnd],
        Entry::WrappedUp(wrapped) if wrapped.call.is_some() => &[Kind::LlmEnd],
        // There was no budget for a final summary, and no model was called.
        Entry::WrappedUp(_) => &[],
        Entry::ToolStarted(_) => &[Kind::ToolStart],
        Entry::ToolFinished(finished) if finished.status == ToolStatus::Denied => {
            &[Kind::ToolEnd, Kind::GuardrailTrip]
        }
        Entry::ToolFinished(_) => &[Kind::ToolEnd],
        Entry::TurnEnded(_) => &[Kind::TurnEnd],
        Entry::HooksDecided(decided) if hooks_object(decided) => &[Kind::GuardrailTrip],
        Entry::StopVerdicts(verdicts) if stop_hooks_object(verdicts) => &[Kind::GuardrailTrip],
        Entry::GoalJudged(_) => &[Kind::LlmEnd],
        Entry::GoalVerdict(verdict) if !matches!(verdict.finding, GoalFinding::Achieved { .. }) => {
            &[Kind::GuardrailTrip]
        }
        // The judges' calls and rejections are reported.
        Entry::GoalCheckStarted(_) | Entry::GoalVerdict(_) | Entry::GoalCleared(_) => &[],
        Entry::PermissionDecided(decided) if decided.permission != Permission::Allow => {
            &[Kind::GuardrailTrip]
        }
        Entry::ApprovalRequested(_) | Entry::ApprovalResolved(_) => &[Kind::Approval],
        // The failed call is reported, and the next one with its model.
        Entry::ModelChanged(_) | Entry::OutageWaitChanged(_) | Entry::ProviderAwaited(_) => &[],
        Entry::RunPolicyChanged(_) | Entry::AgentPolicyChanged(_) => &[],
        Entry::BudgetReserved(_) | Entry::BudgetCharged(_) | Entry::BudgetExhausted(_) => &[Kind::Budget],
        Entry::ChildSpawned(_) | Entry::AgentAskedAgain(_) | Entry::ChildFinished(_) => &[Kind::Handoff],
        // The new run's start is reported.
        Entry::Forked(_) => &[],
        // Slots: the number of active agents is a budget too.
        Entry::ChildStarted(_)
        | Entry::ChildYields(_)
        | Entry::ChildPaused(_)
        | Entry::ChildResumed(_)
        | Entry::AgentRetryScheduled(_)
        | Entry::Reprioritized(_) => &[Kind::Budget],
        // The agent's end was reported.
        Entry::StepEnded(_) => &[],
        Entry::Compacted(compacted) if compacted.call.is_some() => &[Kind::LlmEnd, Kind::Compaction],
        Entry::Compacted(_) => &[Kind::Compaction],
        // Only a copy of the state.
        Entry::Snapshot(_) => &[],
        Entry::Paused(_) if is_run => &[Kind::FlowEnd],
        // A segment after an end starts like the first one.
        Entry::Resumed(resumed) if is_run && resumed.reopens => &[Kind::RunStart, Kind::FlowStart],
        Entry::Resumed(_) if is_run => &[Kind::FlowStart],
        Entry::Resumed(resumed) if resumed.reopens => &[Kind::SessionStart],
        Entry::Ended(_) if is_run => &[Kind::FlowEnd, Kind::RunEnd],
        Entry::Ended(_) => &[Kind::SessionEnd],
        // No objection; the next events show that.
        Entry::HooksDecided(_) | Entry::StopVerdicts(_) | Entry::PermissionDecided(_) => &[],
        // They decide nothing.
        Entry::StopCheckCutShort(_) | Entry::ProcessesLeft(_) => &[],
        // The answer is reported.
        Entry::HooksAsked(_) => &[],
        // Messages to the model, which are part of the next call.
        Entry::UserMessage(_) | Entry::SystemItem(_) => &[],
        // The resulting suspension or end is reported; a session's suspension by its run's.
        Entry::StopRequested(_)
        | Entry::Paused(_)
        | Entry::Resumed(_)
        | Entry::YieldRequested(_)
        | Entry::ChildGoesOn(_)
        | Entry::ChildRested(_) => &[],
        Entry::TerminalNoted(_) => &[Kind::Terminal],
        // The result has its own entry.
        Entry::TerminalEnding(_) => &[],
        // The session's start and end are reported.
        Entry::WorktreeMade(_) | Entry::WorktreeAsked(_) | Entry::WorktreeFound(_) => &[],
    }
}

fn hooks_object(decided: &HooksDecided) -> bool {
    decided.reports.iter().any(|report| match report.decision {
        HookDecision::Continue | HookDecision::Allow => false,
        HookDecision::Ask(_)
        | HookDecision::Deny(_)
        | HookDecision::Pause(_)
        | HookDecision::Abort(_)
        | HookDecision::Failed(_) => true,
    })
}

fn stop_hooks_object(verdicts: &StopVerdicts) -> bool {
    verdicts.reports.iter().any(|report| match report.verdict {
        StopHookVerdict::Allow
        | StopHookVerdict::Error(_)
        | StopHookVerdict::Broken(_)
        | StopHookVerdict::TimedOut(_) => false,
        StopHookVerdict::Block(_) | StopHookVerdict::Halt(_) => true,
    })
}
