//! How each entry changes a session. The only place where its state changes.

use provost_event::{
    AgentEntry, AssistantMessage, Compacted, CompactionKind, ConversationEntry, Elapsed, Entry,
    FinalSummaryFinished, GateEntry, GoalEntry, HookTrigger, HooksDecided, ItemKind, LifecycleEntry,
    ModelCalled, ModelChanged, ModelEntry, Outcome, Purpose, ResumeCause, Resumed, Retry, SessionStarted,
    StopVerdicts, TerminalEntry, TerminalEvent, TerminalNoted, Timestamp, ToolEntry, ToolFinished,
    ToolStatus, UserMessage, WorktreeEntry,
};

use super::goal::GoalFacts;
use super::hooks::{AnswerFacts, CombinedDecision};
use super::progress::MeasuredCall;
use super::stop::StopHookLaw;
use super::{Phase, SessionState};
use crate::decision_time::DecisionTime;

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
            Entry::Conversation(entry) => self.conversation_entry(entry),
            Entry::Model(entry) => self.model_entry(entry, now),
            Entry::Tool(entry) => self.tool_entry(entry),
            Entry::Gate(entry) => self.gate_entry(entry, now),
            Entry::Goal(entry) => self.goal_entry(entry, now.elapsed),
            Entry::Agent(entry) => self.agent_entry(entry),
            Entry::Terminal(entry) => self.terminal_entry(entry),
            Entry::Worktree(entry) => self.worktree_entry(entry),
            Entry::Lifecycle(entry) => self.lifecycle_entry(entry, now),
            Entry::Budget(_) => {}
        }
    }

    fn conversation_entry(&mut self, entry: &ConversationEntry) {
        match entry {
            ConversationEntry::UserMessage(message) => self.spoken_to(message),
            ConversationEntry::SystemItem(item) => self.told(item.item),
            ConversationEntry::AssistantMessage(answer) => {
                self.answered(answer);
            }
            ConversationEntry::TurnEnded(_) => self.turn_ended(),
            ConversationEntry::Compacted(compacted) => self.compacted(compacted),
            ConversationEntry::FinalSummary(wrapped) => self.final_summary_finished(wrapped),
        }
    }

    fn model_entry(&mut self, entry: &ModelEntry, now: DecisionTime) {
        match entry {
            ModelEntry::Called(called) => {
                self.model_called(called, now.elapsed);
            }
            ModelEntry::Retried(retry) => self.retried(retry),
            ModelEntry::Changed(changed) => self.model_changed(changed, now.elapsed),
            ModelEntry::OutageWaitChanged(changed) => self.models.outage_wait_changed(changed),
            ModelEntry::ProviderAwaited(_) => {}
        }
    }

    fn tool_entry(&mut self, entry: &ToolEntry) {
        match entry {
            ToolEntry::Started(started) => self.calls.started(started, self.head, &self.assignment),
            ToolEntry::Finished(finished) => self.tool_finished(finished),
        }
    }

    fn gate_entry(&mut self, entry: &GateEntry, now: DecisionTime) {
        match entry {
            GateEntry::StopChecked(verdicts) => self.stop_checked(verdicts),
            GateEntry::HooksAsked(asked) => self.hooks_asked(&asked.about),
            GateEntry::HooksDecided(decided) => self.hooks_decided(decided),
            GateEntry::PermissionDecided(decided) => self.calls.ruled(decided),
            GateEntry::ApprovalRequested(request) => {
                self.calls.approval_requested(request, self.head, now.at);
            }
            GateEntry::ApprovalResolved(resolved) => self.calls.approval_resolved(resolved),
            GateEntry::StopCheckCutShort(_) => {}
        }
    }

    fn agent_entry(&mut self, entry: &AgentEntry) {
        match entry {
            AgentEntry::MustYield(requested) => {
                self.lifecycle.yield_requested(requested, self.head);
            }
            AgentEntry::SubAgentSuspended(suspended) => self.calls.sub_agent_suspended(suspended),
            AgentEntry::SubAgentResumed(goes_on) => self.calls.sub_agent_resumed(goes_on.started),
            // The run's entries.
            _ => {}
        }
    }

    fn terminal_entry(&mut self, entry: &TerminalEntry) {
        match entry {
            TerminalEntry::Noted(noted) => self.terminal_noted(noted),
            TerminalEntry::Ending(ending) => {
                self.terminal.ending(self.head);
                self.lifecycle.stops_with(&ending.outcome);
            }
        }
    }

    fn worktree_entry(&mut self, entry: &WorktreeEntry) {
        match entry {
            WorktreeEntry::Made(made) => {
                self.worktree.made(made);
                self.lifecycle.go_to(self.between_turns());
            }
            WorktreeEntry::Asked(asked) => {
                self.worktree.asked(asked, self.head);
                self.lifecycle.stops_with(&asked.outcome);
            }
            WorktreeEntry::Found(found) => self.worktree.found(found),
        }
    }

    fn lifecycle_entry(&mut self, entry: &LifecycleEntry, now: DecisionTime) {
        match entry {
            LifecycleEntry::SessionStarted(started) => self.started(started),
            LifecycleEntry::AgentPolicyChanged(changed) => self.policy_changed(changed),
            LifecycleEntry::StopRequested(requested) => {
                self.goal.void_check();
                self.lifecycle.stop_requested(requested);
            }
            LifecycleEntry::Paused(paused) => self.segment_ended(&paused.outcome),
            LifecycleEntry::Ended(ended) => self.segment_ended(&ended.outcome),
            LifecycleEntry::Resumed(resumed) => self.resumed(resumed, now.at),
            LifecycleEntry::Snapshot(_) => self.snapshot = self.head,
            LifecycleEntry::RunStarted(_)
            | LifecycleEntry::RunPolicyChanged(_)
            | LifecycleEntry::Forked(_)
            | LifecycleEntry::ProcessesLeft(_) => {}
        }
    }

    fn terminal_noted(&mut self, noted: &TerminalNoted) {
        if let TerminalEvent::Submitted { through, .. } = noted.event {
            self.turns.submitted(through);
        }
        self.terminal.noted(noted);
    }

    fn model_changed(&mut self, changed: &ModelChanged, now: Elapsed) {
        self.models.changed(changed, now);
        self.conversation.forget_refusals();
    }

    /// Changes the phase, if there is another one.
    const fn go_to(&mut self, phase: Option<Phase>) {
        if let Some(phase) = phase {
            self.lifecycle.go_to(phase);
        }
    }

    fn goal_entry(&mut self, entry: &GoalEntry, now: Elapsed) {
        let facts = GoalFacts {
            assignment: &self.assignment,
            head: self.head,
            phase: self.lifecycle.phase(),
            turns_ended: self.turns.count(),
            answers: self.turns.answers(),
        };
        let phase = self.goal.apply(entry, now, facts);
        self.go_to(phase);
        if let GoalEntry::Judged(judged) = entry {
            self.progress.saw_workspace(&judged.evidence);
        }
    }

    fn spoken_to(&mut self, message: &UserMessage) {
        self.lifecycle.told();
        self.turns.spoken_to(self.head);
        self.progress.begin_anew();
        self.conversation.said(message);
    }

    fn started(&mut self, started: &SessionStarted) {
        if let Some(fork) = &started.fork {
            self.begins_as_fork(started, fork);
        }
        self.assignment.started(started);
        self.turns.limited_to(started.policy.limits.turns_max);
        self.goal.started(&started.policy);
        self.calls.bound_by(&self.assignment);
        self.lifecycle.go_to(match &started.worktree {
            Some(worktree) => {
                self.worktree.ordered(worktree);
                Phase::MakingWorktree(self.head)
            }
            None => self.between_turns(),
        });
    }

    /// The phase after a turn that isn't the last.
    fn between_turns(&self) -> Phase {
        if self.assignment.is_stepped() { Phase::Between } else { Phase::Ready }
    }

    fn told(&mut self, item: ItemKind) {
        self.lifecycle.told();
        match item {
            ItemKind::Continue => {
                self.turns.continued();
                self.lifecycle.go_to(Phase::Ready);
            }
            ItemKind::LastTurn => self.turns.last_turn_told(),
            ItemKind::LimitNotice { dimension, percent } => self.turns.limit_told(dimension, percent),
            ItemKind::NoProgressNotice => self.progress.told(),
            ItemKind::GoalGiven => self.goal.told(),
            ItemKind::AnswerAgain
            | ItemKind::Resumed
            | ItemKind::RepeatedCallNotice
            | ItemKind::FailedCallsNotice
            | ItemKind::StopBlocked
            | ItemKind::StopSuspended
            | ItemKind::GoalNotReached
            | ItemKind::Reminder => {}
        }
    }

    fn model_called(&mut self, called: &ModelCalled, now: Elapsed) {
        self.models.called(now);
        self.turns.model_called(called, now);
        if called.purpose == Purpose::Turn {
            self.hooks.model_called();
        }
        match called.purpose {
            Purpose::Turn | Purpose::Summary => self.lifecycle.go_to(Phase::Thinking(self.head)),
            Purpose::FinalSummary => self.lifecycle.final_summary_called(self.head),
            Purpose::Judge => self.lifecycle.go_to(Phase::Judging(self.head)),
        }
    }

    fn compacted(&mut self, compacted: &Compacted) {
        let is_news = self.conversation.compacted(compacted);
        self.hooks.compacted(is_news);
        if compacted.how == CompactionKind::Summary {
            self.models.aside_answered();
            self.lifecycle.go_to(Phase::Ready);
        }
    }

    fn final_summary_finished(&mut self, finished: &FinalSummaryFinished) {
        self.models.aside_answered();
        self.turns.final_summary_finished(finished);
        self.lifecycle.return_from_final_summary();
    }

    fn answered(&mut self, answer: &AssistantMessage) {
        self.models.answered();
        self.turns.answered(answer);
        self.conversation.answered();
        self.hooks.model_answered();
        self.calls.answered(&answer.content);
        let wants_to_stop = self.calls.is_empty();
        self.lifecycle.go_to(if wants_to_stop { Phase::CheckingStop(self.head) } else { Phase::Acting });
    }

    fn retried(&mut self, retry: &Retry) {
        self.models.retried(retry);
        self.conversation.retried(&retry.cause, self.turns.purpose());
        self.lifecycle.retried(retry.delay_ms, self.head);
    }

    fn tool_finished(&mut self, finished: &ToolFinished) {
        let Some(call) = self.calls.finished(finished, self.head, &self.assignment) else { return };
        match &finished.plan {
            Some(plan) => {
                self.conversation.planned(plan);
                self.progress.planned(plan);
            }
            None => {
                let measured = MeasuredCall {
                    tool: &call.tool,
                    input: call.input.text(),
                    writes: call.writes.as_deref(),
                    reads: call.reads,
                };
                self.progress.called(&measured, finished.status, &finished.output, &finished.facts);
            }
        }
        if let Some(path) = call.writes.filter(|_| finished.status == ToolStatus::Ok) {
            self.conversation.wrote(path);
        }
    }

    fn turn_ended(&mut self) {
        self.turns.ended();
        self.hooks.turn_ended();
        self.calls.turn_ended();
        self.lifecycle.turn_ended(self.between_turns());
        self.progress.turn_ended();
    }

    fn stop_checked(&mut self, verdicts: &StopVerdicts) {
        self.progress.stop_hooks_said(&verdicts.reports);
        self.progress.saw_workspace(&verdicts.evidence);
        let by_goal = self.goal.in_force(&self.assignment).map(|goal| goal.stop_hook_errors);
        let law = StopHookLaw { assignment: &self.assignment, by_goal };
        let objections = law.objections(verdicts);
        let outcome = self.goal.stop_hooks_answered(verdicts, !objections.is_empty());
        if outcome.count {
            self.objections.answered(verdicts, objections, law, self.calls.made());
        }
        self.go_to(outcome.phase);
    }

    fn hooks_asked(&mut self, about: &HookTrigger) {
        if matches!(about, HookTrigger::Compaction) {
            let is_last = self.window().must_shorten();
            self.conversation.asked_hooks(is_last);
        }
        self.calls.hooks_asked(about, self.head);
        let phase = self.hooks.asked(about, self.head, &self.assignment);
        self.go_to(phase);
    }

    fn hooks_decided(&mut self, decided: &HooksDecided) {
        let counts = !self.lifecycle.is_stopping();
        let facts = AnswerFacts { head: self.head, phase: self.lifecycle.phase(), counts };
        let Some(question) = self.hooks.answered(decided.asked, facts) else { return };
        let decision = counts.then(|| CombinedDecision::of(&decided.reports, &self.assignment));
        match (&question.about, decision) {
            (HookTrigger::Compaction, Some(decision)) => self.conversation.hooks_answered(decision),
            (about, decision) => self.calls.hooks_decided(about, decision, decided.scripts.as_deref()),
        }
        self.go_to(question.phase);
    }

    fn segment_ended(&mut self, outcome: &Outcome) {
        let back = self.goal.segment_ended();
        self.lifecycle.segment_ended(outcome, back);
    }

    fn resumed(&mut self, resumed: &Resumed, at: Timestamp) {
        self.lifecycle.resumed();
        if resumed.reopens && matches!(self.lifecycle.phase(), Phase::CheckingStop(_)) {
            // The stop hooks' answers to that attempt to stop don't count any more: the turn continues.
            self.turns.reopened();
            self.lifecycle.go_to(self.between_turns());
            self.goal.interval_passed(self.turns.count());
        }
        if resumed.cause != ResumeCause::SlotFree {
            self.hooks.resumed();
        }
        // Interruptions of the sub-agents are counted in their own sessions.
        let only_waits = !self.calls.is_running() && self.hooks.is_empty() && self.calls.are_delegated();
        match resumed.cause {
            // It continues as if there had been no interruption.
            ResumeCause::SlotFree | ResumeCause::ToEnd => self.goal.goes_on(),
            ResumeCause::Interrupted if only_waits => {}
            ResumeCause::Interrupted => self.lifecycle.interrupted(),
            ResumeCause::Asked { .. } | ResumeCause::Retry { .. } => self.resumed_by_request(resumed),
        }
        self.calls.resumed(self.head, at.plus_ms(self.assignment.approval_timeout_ms()));
        let is_removed = self.worktree.resumed();
        match self.lifecycle.phase() {
            // A worktree that isn't ready is ordered under a new id.
            phase if is_removed || matches!(phase, Phase::MakingWorktree(_)) => {
                self.lifecycle.go_to(Phase::MakingWorktree(self.head));
            }
            // The stop hooks are called anew, under a new id: a late answer to the old question doesn't count.
            Phase::CheckingStop(seq) if !self.hooks.is_open(seq) => {
                self.lifecycle.go_to(Phase::CheckingStop(self.head));
            }
            _ => {}
        }
    }

    fn resumed_by_request(&mut self, resumed: &Resumed) {
        self.lifecycle.resumed_by_request();
        self.turns.resumed(resumed, self.assignment.parent().is_some());
        self.calls.resumed_by_request();
        self.goal.resumed();
        self.models.resumed();
        self.conversation.forget_refusals();
        self.progress.begin_anew();
        self.objections.resumed();
    }
}
