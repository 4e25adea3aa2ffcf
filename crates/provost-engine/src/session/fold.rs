//! How each entry changes a session. The only place where its state changes.

use provost_event::{
    AgentEntry, AssistantMessage, Compacted, CompactionKind, ConversationEntry, Elapsed, Entry,
    FinalSummaryFinished, GateEntry, GoalEntry, HookTrigger, HooksDecided, ItemKind, LifecycleEntry,
    ModelCalled, ModelChanged, ModelEntry, Outcome, ProgramActivity, Purpose, ResumeCause, Resumed, Retry,
    SessionStarted, StopVerdicts, TerminalEntry, TerminalEvent, TerminalNoted, Timestamp, ToolEntry,
    ToolFinished, ToolStatus, UserMessage, WorktreeEntry,
};

use super::calls::HooksOnCall;
use super::goal::GoalFacts;
use super::hooks::{AnswerFacts, CallReplacement, CombinedDecision};
use super::progress::MeasuredCall;
use super::stop::StopHookLaw;
use super::{Phase, SessionState};
use crate::decision_time::DecisionTime;
use crate::session::{change, external_calls, fork};

impl SessionState {
    pub(crate) fn apply(&mut self, entry: &Entry, now: DecisionTime) {
        self.head = self.head.next();
        self.elapsed = now.elapsed;
        let read_by = match entry {
            Entry::Tool(ToolEntry::Finished(finished)) => self.calls.read_by(finished, &self.assignment),
            _ => None,
        };
        self.conversation.add(self.head, entry, read_by);
        match entry {
            Entry::Conversation(entry) => conversation_entry(self, entry),
            Entry::Model(entry) => model_entry(self, entry, now),
            Entry::Tool(entry) => tool_entry(self, entry),
            Entry::Gate(entry) => gate_entry(self, entry, now),
            Entry::Goal(entry) => goal_entry(self, entry, now.elapsed),
            Entry::Agent(entry) => agent_entry(self, entry),
            Entry::Terminal(entry) => terminal_entry(self, entry),
            Entry::Worktree(entry) => worktree_entry(self, entry),
            Entry::Lifecycle(entry) => lifecycle_entry(self, entry, now),
            Entry::Budget(_) => {}
        }
    }
}

fn conversation_entry(state: &mut SessionState, entry: &ConversationEntry) {
    match entry {
        ConversationEntry::UserMessage(message) => spoken_to(state, message),
        ConversationEntry::SystemItem(item) => {
            state.folder_rules.told(&item.rules, state.head);
            told(state, item.item);
        }
        ConversationEntry::AssistantMessage(answer) => {
            answered(state, answer);
        }
        ConversationEntry::TurnEnded(_) => turn_ended(state),
        ConversationEntry::Compacted(entry) => compacted(state, entry),
        ConversationEntry::FinalSummary(wrapped) => final_summary_finished(state, wrapped),
    }
}

fn model_entry(state: &mut SessionState, entry: &ModelEntry, now: DecisionTime) {
    match entry {
        ModelEntry::Called(called) => {
            model_called(state, called, now.elapsed);
        }
        ModelEntry::Retried(retry) => retried(state, retry),
        ModelEntry::Changed(changed) => model_changed(state, changed, now.elapsed),
        ModelEntry::OutageWaitChanged(changed) => state.models.outage_wait_changed(changed),
        ModelEntry::ExternalCalled(called) => state.external_calls.called(called),
        ModelEntry::ExternalQueued(queued) => state.external_calls.queued(queued),
        ModelEntry::ExternalRefused(refused) => {
            let amid_exchange = external_calls::amid_exchange(state);
            state.external_calls.refused(refused, state.head, amid_exchange);
        }
        ModelEntry::ExternalAnswered(answered) => state.external_calls.answered(answered),
        ModelEntry::ProviderAwaited(_) => {}
    }
}

fn tool_entry(state: &mut SessionState, entry: &ToolEntry) {
    match entry {
        ToolEntry::Started(started) => state.calls.started(started, state.head, &state.assignment),
        ToolEntry::Finished(finished) => tool_finished(state, finished),
        ToolEntry::Changed(changed) => change::tools_changed(state, changed),
        ToolEntry::ServiceNoted(noted) => {
            let is_worked_on = state.lifecycle.outcome().is_none();
            state.services.noted(noted, is_worked_on);
        }
    }
}

fn gate_entry(state: &mut SessionState, entry: &GateEntry, now: DecisionTime) {
    match entry {
        GateEntry::StopChecked(verdicts) => stop_checked(state, verdicts),
        GateEntry::HooksAsked(asked) => hooks_asked(state, &asked.about),
        GateEntry::HooksDecided(decided) => hooks_decided(state, decided),
        GateEntry::PermissionDecided(decided) => state.calls.ruled(decided),
        GateEntry::ApprovalRequested(request) => {
            state.calls.approval_requested(request, state.head, now.at);
        }
        GateEntry::ApprovalResolved(resolved) => state.calls.approval_resolved(resolved),
        GateEntry::StopCheckCutShort(_) => {}
    }
}

fn agent_entry(state: &mut SessionState, entry: &AgentEntry) {
    match entry {
        AgentEntry::MustYield(requested) => {
            state.lifecycle.yield_requested(requested, state.head);
        }
        AgentEntry::SubAgentSuspended(suspended) => state.calls.sub_agent_suspended(suspended),
        AgentEntry::SubAgentResumed(goes_on) => state.calls.sub_agent_resumed(goes_on.started),
        // The run's entries.
        _ => {}
    }
}

fn terminal_entry(state: &mut SessionState, entry: &TerminalEntry) {
    match entry {
        TerminalEntry::Noted(noted) => terminal_noted(state, noted),
        TerminalEntry::Ending(ending) => {
            state.terminal.ending(state.head);
            state.lifecycle.stops_with(&ending.outcome);
        }
    }
}

fn worktree_entry(state: &mut SessionState, entry: &WorktreeEntry) {
    match entry {
        WorktreeEntry::Made(made) => {
            state.worktree.made(made);
            state.lifecycle.go_to(between_turns(state));
        }
        WorktreeEntry::Asked(asked) => {
            state.worktree.asked(asked, state.head);
            state.lifecycle.stops_with(&asked.outcome);
        }
        WorktreeEntry::Found(found) => state.worktree.found(found),
    }
}

fn lifecycle_entry(state: &mut SessionState, entry: &LifecycleEntry, now: DecisionTime) {
    match entry {
        LifecycleEntry::SessionStarted(entry) => started(state, entry),
        LifecycleEntry::AgentPolicyChanged(changed) => change::policy_changed(state, changed),
        LifecycleEntry::StopRequested(requested) => {
            state.goal.void_check();
            state.external_calls.grace_ended();
            state.lifecycle.stop_requested(requested);
        }
        LifecycleEntry::Paused(paused) => segment_ended(state, &paused.outcome),
        LifecycleEntry::Ended(ended) => segment_ended(state, &ended.outcome),
        LifecycleEntry::Resumed(entry) => resumed(state, entry, now.at),
        LifecycleEntry::Snapshot(_) => state.snapshot = state.head,
        LifecycleEntry::RunStarted(_)
        | LifecycleEntry::RunPolicyChanged(_)
        | LifecycleEntry::Forked(_)
        | LifecycleEntry::ProcessesLeft(_) => {}
    }
}

fn terminal_noted(state: &mut SessionState, noted: &TerminalNoted) {
    match &noted.event {
        TerminalEvent::Submitted { through, .. } => state.turns.submitted(*through),
        TerminalEvent::Activity(ProgramActivity::Plan(plan)) => {
            state.conversation.planned(plan);
            state.progress.planned(plan);
        }
        _ => {}
    }
    state.terminal.noted(noted);
}

fn model_changed(state: &mut SessionState, changed: &ModelChanged, now: Elapsed) {
    state.models.changed(changed, now);
    state.conversation.forget_refusals();
}

/// Changes the phase, if there is another one.
fn go_to(state: &mut SessionState, phase: Option<Phase>) {
    if let Some(phase) = phase {
        state.lifecycle.go_to(phase);
    }
}

fn goal_entry(state: &mut SessionState, entry: &GoalEntry, now: Elapsed) {
    let facts = GoalFacts {
        assignment: &state.assignment,
        head: state.head,
        phase: state.lifecycle.phase(),
        turns_ended: state.turns.count(),
        answers: state.turns.answers(),
    };
    let phase = state.goal.apply(entry, now, facts);
    go_to(state, phase);
    if let GoalEntry::Judged(judged) = entry {
        state.progress.saw_workspace(&judged.evidence);
    }
}

fn spoken_to(state: &mut SessionState, message: &UserMessage) {
    state.lifecycle.told();
    state.turns.spoken_to(state.head);
    state.progress.begin_anew();
    state.end_check.begin_anew();
    state.conversation.said(message);
}

fn started(state: &mut SessionState, started: &SessionStarted) {
    if let Some(fork) = &started.fork {
        fork::begins_as_fork(state, started, fork);
    }
    state.assignment.started(started);
    state.turns.limited_to(started.policy.limits.turns_max);
    state.goal.started(&started.policy);
    state.calls.bound_by(&state.assignment);
    state.lifecycle.go_to(match &started.worktree {
        Some(worktree) => {
            state.worktree.ordered(worktree);
            Phase::MakingWorktree(state.head)
        }
        None => between_turns(state),
    });
}

/// The phase after a turn that isn't the last.
fn between_turns(state: &SessionState) -> Phase {
    if state.assignment.is_stepped() { Phase::Between } else { Phase::Ready }
}

fn told(state: &mut SessionState, item: ItemKind) {
    state.lifecycle.told();
    match item {
        ItemKind::Continue => {
            state.turns.continued();
            state.lifecycle.go_to(Phase::Ready);
        }
        ItemKind::LastTurn => state.turns.last_turn_told(),
        ItemKind::LimitNotice { dimension, percent } => state.turns.limit_told(dimension, percent),
        ItemKind::NoProgressNotice => state.progress.told(),
        ItemKind::GoalGiven | ItemKind::GoalRemoved => {
            state.goal.told();
            state.end_check.begin_anew();
        }
        ItemKind::HookWoke => state.turns.spoken_to(state.head),
        ItemKind::EndQuestion => state.end_check.asked_to_close(),
        ItemKind::FinalCheck => state.end_check.asked_for_proof(),
        ItemKind::AnswerAgain
        | ItemKind::Resumed
        | ItemKind::FolderRules
        | ItemKind::ServiceEnded
        | ItemKind::RepeatedCallNotice
        | ItemKind::FailedCallsNotice
        | ItemKind::StopBlocked
        | ItemKind::StopSuspended
        | ItemKind::GoalNotReached
        | ItemKind::Reminder => {}
    }
}

fn model_called(state: &mut SessionState, called: &ModelCalled, now: Elapsed) {
    state.models.called(now);
    state.turns.model_called(called, now);
    if called.purpose == Purpose::Turn {
        state.hooks.model_called();
    }
    match called.purpose {
        Purpose::Turn | Purpose::Summary => state.lifecycle.go_to(Phase::Thinking(state.head)),
        Purpose::FinalSummary => state.lifecycle.final_summary_called(state.head),
        Purpose::Judge => state.lifecycle.go_to(Phase::Judging(state.head)),
        // Those have entries of their own.
        Purpose::External | Purpose::Hook => {}
    }
}

fn compacted(state: &mut SessionState, compacted: &Compacted) {
    let is_news = state.conversation.compacted(compacted);
    state.folder_rules.compacted(compacted);
    state.hooks.compacted(is_news);
    if compacted.how == CompactionKind::Summary {
        state.models.aside_answered();
        state.lifecycle.go_to(Phase::Ready);
    }
}

fn final_summary_finished(state: &mut SessionState, finished: &FinalSummaryFinished) {
    state.models.aside_answered();
    state.turns.final_summary_finished(finished);
    state.lifecycle.return_from_final_summary();
}

fn answered(state: &mut SessionState, answer: &AssistantMessage) {
    state.models.answered();
    state.turns.answered(answer);
    state.conversation.answered();
    state.hooks.model_answered();
    state.calls.answered(&answer.content, &state.assignment);
    let wants_to_stop = state.calls.of_answer().is_empty();
    state.lifecycle.go_to(if wants_to_stop { Phase::CheckingStop(state.head) } else { Phase::Acting });
}

fn retried(state: &mut SessionState, retry: &Retry) {
    state.models.retried(retry);
    state.external_calls.grace_ended();
    state.conversation.retried(&retry.cause, state.turns.purpose());
    state.lifecycle.retried(retry.delay_ms, state.head);
}

fn tool_finished(state: &mut SessionState, finished: &ToolFinished) {
    state.services.tool_finished(finished);
    let Some(call) = state.calls.finished(finished, state.head, &state.assignment) else { return };
    state.end_check.called(&call, finished);
    match &finished.plan {
        Some(plan) => {
            state.conversation.planned(plan);
            state.progress.planned(plan);
        }
        None => {
            let measured = MeasuredCall {
                tool: &call.tool,
                input: call.input.text(),
                writes: &call.writes,
                reads: call.reads,
            };
            state.progress.called(&measured, finished.status, &finished.output, &finished.facts);
        }
    }
    if finished.status == ToolStatus::Ok {
        call.writes.into_iter().for_each(|path| state.conversation.wrote(path));
    }
}

fn turn_ended(state: &mut SessionState) {
    state.turns.ended();
    state.hooks.turn_ended();
    state.calls.turn_ended();
    state.lifecycle.turn_ended(between_turns(state));
    state.progress.turn_ended();
    change::change_tools_now(state);
}

fn stop_checked(state: &mut SessionState, verdicts: &StopVerdicts) {
    state.hooks.reported(&verdicts.reports, &state.assignment);
    state.progress.stop_hooks_said(&verdicts.reports);
    state.progress.saw_workspace(&verdicts.evidence);
    let by_goal = state.goal.in_force(&state.assignment).map(|goal| goal.stop_hook_errors);
    let law = StopHookLaw { assignment: &state.assignment, by_goal };
    let objections = law.objections(verdicts);
    let outcome = state.goal.stop_hooks_answered(verdicts, !objections.is_empty());
    if outcome.count {
        state.objections.answered(verdicts, objections, law, state.calls.made());
    }
    go_to(state, outcome.phase);
}

fn hooks_asked(state: &mut SessionState, about: &HookTrigger) {
    if matches!(about, HookTrigger::Compaction) {
        let is_last = state.window().must_shorten();
        state.conversation.asked_hooks(is_last);
    }
    state.calls.hooks_asked(about, state.head);
    let phase = state.hooks.asked(about, state.head, &state.assignment);
    go_to(state, phase);
}

fn hooks_decided(state: &mut SessionState, decided: &HooksDecided) {
    state.hooks.reported(&decided.reports, &state.assignment);
    let counts = !state.lifecycle.is_stopping();
    let facts = AnswerFacts { head: state.head, phase: state.lifecycle.phase(), counts };
    let Some(question) = state.hooks.answered(decided.asked, facts) else { return };
    let decision = counts.then(|| CombinedDecision::of(&question.about, &decided.reports, &state.assignment));
    match (&question.about, decision) {
        (HookTrigger::Compaction, Some(decision)) => state.conversation.hooks_answered(decision),
        (about, decision) => {
            let replacement = CallReplacement::of(about, &decided.reports, &state.assignment);
            let said = decision.map(|decision| HooksOnCall {
                replacement: replacement.filter(|_| !decision.refuses()),
                decision,
                scripts: decided.scripts.as_deref(),
            });
            state.calls.hooks_decided(about, said);
        }
    }
    go_to(state, question.phase);
}

fn segment_ended(state: &mut SessionState, outcome: &Outcome) {
    state.external_calls.segment_ended();
    let back = state.goal.segment_ended();
    state.lifecycle.segment_ended(outcome, back);
}

fn resumed(state: &mut SessionState, resumed: &Resumed, at: Timestamp) {
    state.lifecycle.resumed();
    state.services.resumed();
    state.external_calls.segment_ended();
    if resumed.reopens && matches!(state.lifecycle.phase(), Phase::CheckingStop(_)) {
        // The stop hooks' answers to that attempt to stop don't count any more: the turn continues.
        state.turns.reopened();
        state.lifecycle.go_to(between_turns(state));
        state.goal.interval_passed(state.turns.count());
    }
    if resumed.cause != ResumeCause::SlotFree {
        state.hooks.resumed();
    }
    // Interruptions of the sub-agents are counted in their own sessions.
    let only_waits = !state.calls.of_answer().is_running()
        && state.hooks.is_empty()
        && state.calls.of_answer().are_delegated();
    match resumed.cause {
        // It continues as if there had been no interruption.
        ResumeCause::SlotFree | ResumeCause::ToEnd => state.goal.goes_on(),
        ResumeCause::Interrupted if only_waits => {}
        ResumeCause::Interrupted => state.lifecycle.interrupted(),
        ResumeCause::Asked { .. } | ResumeCause::Retry { .. } => resumed_by_request(state, resumed),
    }
    state.calls.resumed(state.head, at.plus_ms(state.assignment.approval_timeout_ms()));
    let is_removed = state.worktree.resumed();
    match state.lifecycle.phase() {
        // A worktree that isn't ready is ordered under a new id.
        phase if is_removed || matches!(phase, Phase::MakingWorktree(_)) => {
            state.lifecycle.go_to(Phase::MakingWorktree(state.head));
        }
        // The stop hooks are called anew, under a new id: a late answer to the old question doesn't count.
        Phase::CheckingStop(seq) if !state.hooks.is_open(seq) => {
            state.lifecycle.go_to(Phase::CheckingStop(state.head));
        }
        _ => {}
    }
}

fn resumed_by_request(state: &mut SessionState, resumed: &Resumed) {
    state.lifecycle.resumed_by_request();
    state.turns.resumed(resumed, state.assignment.parent().is_some());
    state.calls.resumed_by_request();
    state.goal.resumed();
    state.models.resumed();
    state.conversation.forget_refusals();
    state.progress.begin_anew();
    state.objections.resumed();
}
