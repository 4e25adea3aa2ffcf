//! How each entry changes a session. The only place where its state changes.

mod gate;

use provost_event::{
    AgentEntry, AssistantMessage, Block as Content, Compacted, CompactionKind, ConversationEntry, Elapsed,
    Entry, FinalSummaryFinished, GateEntry, GoalEntry, ItemKind, LifecycleEntry, ModelCalled, ModelChanged,
    ModelEntry, Outcome, Purpose, ResumeCause, Resumed, Retry, SessionSource, SessionStarted, StopRequested,
    StopVerdicts, TerminalEnding, TerminalEntry, TerminalEvent, TerminalNoted, Timestamp, ToolEntry,
    ToolFinished, ToolStatus, UserMessage, WorktreeAsked, WorktreeEntry, WorktreeMade,
};

use super::goal::GoalFacts;
use super::progress::MeasuredCall;
use super::stop::StopHookLaw;
use super::{Phase, SessionState, WorkEnds, Yielding};
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
            Entry::Goal(entry) => self.goal_changed(entry, now.elapsed),
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
                self.models.answered();
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
                self.models.called(now.elapsed);
                self.called(called, now.elapsed);
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
            GateEntry::HooksAsked(asked) => self.asked(&asked.about),
            GateEntry::HooksDecided(decided) => self.decided(decided),
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
                self.yielding = Some(Yielding { timer: requested.due.map(|_| self.head), to: requested.to });
            }
            AgentEntry::SubAgentSuspended(suspended) => self.calls.sub_agent_suspended(suspended),
            AgentEntry::SubAgentResumed(goes_on) => self.calls.sub_agent_resumed(goes_on.started),
            // The run's entries.
            _ => {}
        }
    }

    fn terminal_entry(&mut self, entry: &TerminalEntry) {
        match entry {
            TerminalEntry::Noted(noted) => self.noted(noted),
            TerminalEntry::Ending(ending) => self.terminal_ends(ending),
        }
    }

    fn worktree_entry(&mut self, entry: &WorktreeEntry) {
        match entry {
            WorktreeEntry::Made(made) => self.worktree_made_by(made),
            WorktreeEntry::Asked(asked) => self.worktree_asked(asked),
            WorktreeEntry::Found(found) => self.worktree.found(found),
        }
    }

    fn lifecycle_entry(&mut self, entry: &LifecycleEntry, now: DecisionTime) {
        match entry {
            LifecycleEntry::SessionStarted(started) => self.started(started),
            LifecycleEntry::AgentPolicyChanged(changed) => self.policy_changed(changed),
            LifecycleEntry::StopRequested(requested) => self.stop_requested(requested),
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

    fn noted(&mut self, noted: &TerminalNoted) {
        if let TerminalEvent::Submitted { through, .. } = noted.event
            && through >= self.last_said
        {
            self.unheard = false;
        }
        self.terminal.noted(noted);
    }

    fn terminal_ends(&mut self, ending: &TerminalEnding) {
        self.terminal.ending(self.head);
        self.stopping = Some(ending.outcome.clone());
    }

    fn worktree_made_by(&mut self, made: &WorktreeMade) {
        self.worktree.made(made);
        self.phase = self.between_turns();
    }

    fn worktree_asked(&mut self, asked: &WorktreeAsked) {
        self.worktree.asked(asked, self.head);
        self.stopping = Some(asked.outcome.clone());
    }

    fn model_changed(&mut self, changed: &ModelChanged, now: Elapsed) {
        self.models.changed(changed, now);
        self.conversation.forget_refusals();
    }

    /// Changes the phase, if there is another one.
    const fn go_to(&mut self, phase: Option<Phase>) {
        if let Some(phase) = phase {
            self.phase = phase;
        }
    }

    fn goal_changed(&mut self, entry: &GoalEntry, now: Elapsed) {
        let facts = GoalFacts {
            assignment: &self.assignment,
            head: self.head,
            phase: self.phase,
            turns_ended: self.counters.turns_ended,
            answers: self.counters.answers,
        };
        let phase = self.goal.apply(entry, now, facts);
        self.go_to(phase);
        if let GoalEntry::Judged(judged) = entry {
            self.progress.saw_workspace(&judged.evidence);
        }
    }

    fn spoken_to(&mut self, message: &UserMessage) {
        self.done_before = None;
        self.unheard = true;
        self.last_said = self.head;
        self.progress.begin_anew();
        self.conversation.said(message);
    }

    fn stop_requested(&mut self, requested: &StopRequested) {
        self.goal.void_check();
        self.stopping = Some(requested.outcome.clone());
        self.stops_for_child = requested.for_child;
    }

    fn started(&mut self, started: &SessionStarted) {
        if let Some(fork) = &started.fork {
            self.begins_as_fork(started, fork);
        }
        self.assignment.started(started);
        self.turns_max = started.policy.limits.turns_max;
        let policy = &started.policy;
        self.goal.started(policy);
        self.calls.bound_by(&self.assignment);
        self.phase = match &started.worktree {
            Some(worktree) => {
                self.worktree.ordered(worktree);
                Phase::MakingWorktree(self.head)
            }
            None => self.between_turns(),
        };
    }

    pub(super) fn between_turns(&self) -> Phase {
        if self.assignment.is_stepped() { Phase::Between } else { Phase::Ready }
    }

    fn told(&mut self, item: ItemKind) {
        self.done_before = None;
        match item {
            ItemKind::Continue => {
                self.counters.continuations = self.counters.continuations.saturating_add(1);
                self.phase = Phase::Ready;
            }
            ItemKind::LastTurn => self.told.last_turn = self.next_turn(),
            ItemKind::LimitNotice { dimension, percent } => self.told.told_of(dimension, percent),
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

    fn called(&mut self, called: &ModelCalled, now: Elapsed) {
        self.counters.calls = called.call;
        self.ends = called
            .time_left
            .map(|left| WorkEnds { work: now.plus_ms(left.work_ms), limit: now.plus_ms(left.limit_ms) });
        self.purpose = called.purpose;
        match called.purpose {
            Purpose::Turn => {
                self.unheard = false;
                self.told.turn_end = false;
                if self.text_is_of_last_turn {
                    self.turn_text.clear();
                    self.text_is_of_last_turn = false;
                }
            }
            Purpose::Summary => {}
            Purpose::FinalSummary => self.before_final_summary = Some(self.phase.when_suspended()),
            Purpose::Judge => {
                self.phase = Phase::Judging(self.head);
                return;
            }
        }
        self.phase = Phase::Thinking(self.head);
    }

    fn compacted(&mut self, compacted: &Compacted) {
        self.told.compaction_untold |= self.conversation.compacted(compacted);
        if compacted.how == CompactionKind::Summary {
            self.models.aside_answered();
            self.phase = Phase::Ready;
        }
    }

    fn final_summary_finished(&mut self, wrapped: &FinalSummaryFinished) {
        self.told.final_summary_finished = true;
        self.models.aside_answered();
        self.final_summary = Some(wrapped.text.clone()).filter(|text| !text.is_empty());
        self.phase = self.before_final_summary.take().unwrap_or(self.phase);
    }

    fn answered(&mut self, answer: &AssistantMessage) {
        self.counters.answers = self.counters.answers.saturating_add(1);
        self.conversation.answered();
        self.told.batch = false;
        self.calls.answered(&answer.content);
        for block in &answer.content {
            if let Content::Text(text) = block {
                self.turn_text.push_str(text);
            }
        }
        self.phase = if self.calls.is_empty() { Phase::CheckingStop(self.head) } else { Phase::Acting };
    }

    fn retried(&mut self, retry: &Retry) {
        self.models.retried(retry);
        self.conversation.retried(&retry.cause, self.purpose);
        if matches!(self.phase, Phase::Judging(_)) {
            self.phase = Phase::Verifying;
            return;
        }
        if let Some(phase) = self.before_final_summary.take() {
            self.phase = phase;
            return;
        }
        self.phase = if retry.delay_ms == 0 { Phase::Ready } else { Phase::Waiting(self.head) };
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

    /// Whether it only waits for its sub-agents.
    fn only_waits_for_agents(&self) -> bool {
        !self.calls.is_running() && self.questions.is_empty() && self.calls.are_delegated()
    }

    fn turn_ended(&mut self) {
        self.counters.turns_ended = self.counters.turns_ended.saturating_add(1);
        self.counters.interruptions = 0;
        self.counters.continuations = 0;
        self.text_is_of_last_turn = true;
        self.told.turn_end = false;
        self.calls.turn_ended();
        self.phase = self.between_turns();
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

    fn segment_ended(&mut self, outcome: &Outcome) {
        self.outcome = Some(outcome.clone());
        self.stopping = None;
        self.yielding = None;
        self.stops_for_child = false;
        let phase = self.goal.segment_ended();
        self.go_to(phase);
        if outcome.is_final()
            && let Some(phase) = self.before_final_summary.take()
        {
            self.phase = phase;
        }
        self.phase = self.phase.when_suspended();
    }

    fn resumed(&mut self, resumed: &Resumed, at: Timestamp) {
        self.done_before = self.outcome.take().filter(|outcome| matches!(outcome, Outcome::Completed { .. }));
        if resumed.reopens && matches!(self.phase, Phase::CheckingStop(_)) {
            // The stop hooks' answers to that attempt to stop don't count any more: the turn continues.
            self.text_is_of_last_turn = true;
            self.phase = self.between_turns();
            self.goal.interval_passed(self.counters.turns_ended);
        }
        if resumed.cause != ResumeCause::SlotFree {
            self.told.session = false;
            self.source = SessionSource::Resume;
        }
        match resumed.cause {
            // It continues as if there had been no interruption.
            ResumeCause::SlotFree | ResumeCause::ToEnd => self.goal.goes_on(),
            // Interruptions of the sub-agents are counted in their own sessions.
            ResumeCause::Interrupted if self.only_waits_for_agents() => {}
            ResumeCause::Interrupted => {
                self.counters.interruptions = self.counters.interruptions.saturating_add(1);
            }
            ResumeCause::Asked { .. } | ResumeCause::Retry { .. } => {
                self.calls.resumed_by_request();
                self.goal.resumed();
                self.models.resumed();
                self.conversation.forget_refusals();
                self.told.final_summary_finished = false;
                self.told.limits = [0; 4];
                self.final_summary = None;
                self.counters.interruptions = 0;
                self.progress.begin_anew();
                self.objections.resumed();
                self.turns_max = resumed.turns_max.unwrap_or(self.turns_max);
                if self.assignment.parent().is_some() && resumed.turns_max.is_some() {
                    self.turns_before = self.counters.turns_ended;
                }
            }
        }
        self.calls.resumed(self.head, at.plus_ms(self.assignment.approval_timeout_ms()));
        let is_removed = self.worktree.resumed();
        // A worktree that isn't ready is ordered under a new id.
        if is_removed || matches!(self.phase, Phase::MakingWorktree(_)) {
            self.phase = Phase::MakingWorktree(self.head);
        }
        // The stop hooks are called anew, under a new id: a late answer to the old question doesn't count.
        if let Phase::CheckingStop(seq) = self.phase
            && !self.questions.contains_key(&seq)
        {
            self.phase = Phase::CheckingStop(self.head);
        }
    }
}

impl Phase {
    /// The phase from which a suspended session continues: nothing is in flight then.
    pub(super) const fn when_suspended(self) -> Self {
        match self {
            Self::Thinking(_)
            | Self::Waiting(_)
            | Self::Preparing(_)
            | Self::Compacting(_)
            | Self::Verifying
            | Self::Judging(_)
            | Self::JudgeWaits(_) => Self::Ready,
            Self::New
            | Self::MakingWorktree(_)
            | Self::Ready
            | Self::Between
            | Self::Acting
            | Self::CheckingStop(_) => self,
        }
    }
}
