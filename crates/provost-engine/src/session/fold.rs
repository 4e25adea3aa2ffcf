//! How each entry changes a session. The only place where its state changes.

mod gate;
mod goal;

use provost_event::{
    Access, AgentEntry, AssistantMessage, Block as Content, BudgetEntry, Compacted, CompactionKind,
    ConversationEntry, Elapsed, Entry, FinalSummaryFinished, GateEntry, GoalEntry, ItemKind, Json,
    LifecycleEntry, ModelCalled, ModelEntry, Outcome, Purpose, ResumeCause, Resumed, Retry, RetryCause,
    SessionSource, SessionStarted, StopRequested, StopVerdicts, TerminalEnding, TerminalEntry, TerminalEvent,
    TerminalNoted, Timestamp, ToolEntry, ToolFinished, ToolStarted, ToolStatus, UserMessage, WorktreeAsked,
    WorktreeEntry, WorktreeMade,
};

use super::progress::MeasuredCall;
use super::repeats::{CallsOfTurn, Repeats};
use super::{Block, Call, Phase, SessionState, Stage, WorkEnds, Yielding};
use crate::decision_time::DecisionTime;

/// How many of the last messages of people, and of the last files written, are kept for summaries.
const SAID_MAX: usize = 100;
const WRITTEN_MAX: usize = 50;

impl SessionState {
    pub(crate) fn apply(&mut self, entry: &Entry, now: DecisionTime) {
        self.head = self.head.next();
        self.elapsed = now.elapsed;
        self.context.add(self.head, entry, self.reads(entry));
        match entry {
            Entry::Lifecycle(LifecycleEntry::SessionStarted(started)) => self.started(started),
            Entry::Conversation(ConversationEntry::UserMessage(message)) => self.spoken_to(message),
            Entry::Conversation(ConversationEntry::SystemItem(item)) => self.told(item.item),
            Entry::Model(ModelEntry::Called(called)) => {
                self.asked.called(now.elapsed);
                self.called(called, now.elapsed);
            }
            Entry::Conversation(ConversationEntry::AssistantMessage(answer)) => {
                self.asked.answered();
                self.answered(answer);
            }
            Entry::Model(ModelEntry::Retried(retry)) => self.retried(retry),
            Entry::Model(ModelEntry::Changed(changed)) => self.model_changed(changed, now.elapsed),
            Entry::Lifecycle(LifecycleEntry::AgentPolicyChanged(changed)) => self.policy_changed(changed),
            Entry::Model(ModelEntry::OutageWaitChanged(changed)) => {
                self.asked.outage_max_ms = Some(changed.outage_max_ms)
            }
            Entry::Tool(ToolEntry::Started(started)) => self.tool_started(started),
            Entry::Tool(ToolEntry::Finished(finished)) => self.tool_finished(finished),
            Entry::Conversation(ConversationEntry::TurnEnded(_)) => self.turn_ended(),
            Entry::Conversation(ConversationEntry::Compacted(compacted)) => self.compacted(compacted),
            Entry::Conversation(ConversationEntry::FinalSummary(wrapped)) => {
                self.final_summary_finished(wrapped)
            }
            Entry::Gate(GateEntry::StopChecked(verdicts)) => self.stop_checked(verdicts),
            Entry::Goal(GoalEntry::CheckStarted(started)) => self.goal_check_started(started),
            Entry::Goal(GoalEntry::Judged(judged)) => self.goal_judged(judged, now.elapsed),
            Entry::Goal(GoalEntry::Verdict(verdict)) => self.goal_verdict(verdict),
            Entry::Goal(GoalEntry::Cleared(_)) => self.goal_cleared(),
            Entry::Lifecycle(LifecycleEntry::StopRequested(requested)) => self.stop_requested(requested),
            Entry::Lifecycle(LifecycleEntry::Paused(paused)) => self.segment_ended(&paused.outcome),
            Entry::Lifecycle(LifecycleEntry::Ended(ended)) => self.segment_ended(&ended.outcome),
            Entry::Lifecycle(LifecycleEntry::Resumed(resumed)) => self.resumed(resumed, now.at),
            Entry::Gate(GateEntry::HooksAsked(asked)) => self.asked(&asked.about),
            Entry::Gate(GateEntry::HooksDecided(decided)) => self.decided(decided),
            Entry::Gate(GateEntry::PermissionDecided(decided)) => self.ruled(decided),
            Entry::Gate(GateEntry::ApprovalRequested(request)) => self.approval_requested(request, now.at),
            Entry::Gate(GateEntry::ApprovalResolved(resolved)) => self.approval_resolved(resolved),
            Entry::Lifecycle(LifecycleEntry::Snapshot(_)) => self.snapshot = self.head,
            Entry::Agent(AgentEntry::MustYield(requested)) => {
                self.yielding = Some(Yielding { timer: requested.due.map(|_| self.head), to: requested.to });
            }
            Entry::Agent(AgentEntry::SubAgentSuspended(suspended)) => {
                self.note_sub_agent_suspended(suspended)
            }
            Entry::Agent(AgentEntry::SubAgentResumed(goes_on)) => {
                self.note_sub_agent_resumed(goes_on.started)
            }
            Entry::Terminal(TerminalEntry::Noted(noted)) => self.noted(noted),
            Entry::Terminal(TerminalEntry::Ending(ending)) => self.terminal_ends(ending),
            Entry::Worktree(WorktreeEntry::Made(made)) => self.worktree_made_by(made),
            Entry::Worktree(WorktreeEntry::Asked(asked)) => self.worktree_asked(asked),
            Entry::Worktree(WorktreeEntry::Found(found)) => self.worktree.found(found),
            Entry::Lifecycle(
                LifecycleEntry::RunStarted(_)
                | LifecycleEntry::RunPolicyChanged(_)
                | LifecycleEntry::Forked(_)
                | LifecycleEntry::ProcessesLeft(_),
            )
            | Entry::Model(ModelEntry::ProviderAwaited(_))
            | Entry::Gate(GateEntry::StopCheckCutShort(_))
            | Entry::Budget(_)
            | Entry::Agent(
                AgentEntry::Spawned(_)
                | AgentEntry::AskedAgain(_)
                | AgentEntry::Started(_)
                | AgentEntry::YieldRequested(_)
                | AgentEntry::Suspended(_)
                | AgentEntry::ResumeRequested(_)
                | AgentEntry::RetryScheduled(_)
                | AgentEntry::Finished(_)
                | AgentEntry::Reprioritized(_)
                | AgentEntry::StepEnded(_),
            ) => {}
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

    fn spoken_to(&mut self, message: &UserMessage) {
        self.done_before = None;
        self.unheard = true;
        self.last_said = self.head;
        self.progress.begin_anew();
        self.said(message);
    }

    fn stop_requested(&mut self, requested: &StopRequested) {
        self.goal_check_is_void();
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
        self.goal_track = policy.goal.as_ref().map(|_| Box::default());
        self.grant_permissions();
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
            ItemKind::NoProgressNotice => self.progress.is_told = true,
            ItemKind::GoalGiven => {
                self.lost_goal = false;
                if let Some(track) = &mut self.goal_track {
                    track.is_untold = false;
                }
            }
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
        // Hooks are notified of one compaction for each answer: their reminders may in turn require another.
        if compacted.how != CompactionKind::Trim && !self.compactions.made {
            self.told.compaction_untold = true;
        }
        self.compactions.made(compacted);
        if compacted.how == CompactionKind::Summary {
            self.asked.answered();
            self.counters.failed_attempts = 0;
            self.phase = Phase::Ready;
        }
    }

    fn final_summary_finished(&mut self, wrapped: &FinalSummaryFinished) {
        self.told.final_summary_finished = true;
        self.asked.answered();
        self.counters.failed_attempts = 0;
        self.final_summary = Some(wrapped.text.clone()).filter(|text| !text.is_empty());
        self.phase = self.before_final_summary.take().unwrap_or(self.phase);
    }

    fn said(&mut self, message: &UserMessage) {
        for block in &message.content {
            if let Content::Text(text) = block {
                self.said.push_back(text.clone());
            }
        }
        while self.said.len() > SAID_MAX {
            self.said.pop_front();
        }
    }

    /// The fingerprint of the call that `entry` is the result of, if that succeeded and only reads.
    fn reads(&self, entry: &Entry) -> Option<u64> {
        let Entry::Tool(ToolEntry::Finished(finished)) = entry else { return None };
        let call = self.call(&finished.call).filter(|_| finished.status == ToolStatus::Ok)?;
        if !self.assignment.only_reads(&call.tool) {
            return None;
        }
        Some(fingerprint([call.tool.as_str(), call.input.text()]))
    }

    fn answered(&mut self, answer: &AssistantMessage) {
        self.counters.answers = self.counters.answers.saturating_add(1);
        self.counters.failed_attempts = 0;
        self.counters.empty_answers = 0;
        self.compactions.answered();
        self.told.batch = false;
        self.calls.clear();
        for block in &answer.content {
            match block {
                Content::Text(text) => self.turn_text.push_str(text),
                Content::ToolCall(call) => self.calls.push(Call::new(call)),
                Content::Thinking { .. } | Content::Opaque { .. } | Content::Image(_) => {}
            }
        }
        self.phase = if self.calls.is_empty() { Phase::CheckingStop(self.head) } else { Phase::Acting };
    }

    fn retried(&mut self, retry: &Retry) {
        self.asked.retried(retry);
        match retry.cause {
            RetryCause::Failed { .. } => {
                self.counters.failed_attempts = self.counters.failed_attempts.saturating_add(1);
            }
            RetryCause::EmptyAnswer => {
                self.counters.empty_answers = self.counters.empty_answers.saturating_add(1);
            }
            RetryCause::Compacted => {
                self.compactions.overflow = true;
                let refused = self.context.tokens();
                let smallest = self.compactions.refused_at.map_or(refused, |known| known.min(refused));
                self.compactions.refused_at = Some(smallest);
                self.compactions.refused |= self.purpose == Purpose::Turn;
            }
            RetryCause::UselessSummary { .. } => {
                self.counters.failed_attempts = 0;
                self.compactions.useless = true;
            }
            RetryCause::Interrupted => {}
        }
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

    /// A call for an agent is no effect: its result comes from the run.
    fn tool_started(&mut self, started: &ToolStarted) {
        let seq = self.head;
        if self.assignment.tool(&started.tool).is_some_and(|spec| spec.access == Access::Delegates) {
            return self.delegated(&started.call, seq);
        }
        if let Some(call) = self.calls.iter_mut().find(|call| call.id == started.call) {
            call.stage = Stage::Running(seq);
        }
    }

    fn tool_finished(&mut self, finished: &ToolFinished) {
        let head = self.head;
        let Some(call) = self.calls.iter_mut().find(|call| call.id == finished.call) else { return };
        call.stage = Stage::Done;
        call.finished = Some(head);
        let said = [call.tool.as_str(), call.input.text(), finished.output.as_str()];
        let images = finished.images.iter().map(|image| &*image.blob.0);
        self.calls_of_turn.add(fingerprint(said.into_iter().chain(images)), finished);
        self.counters.tool_calls = self.counters.tool_calls.saturating_add(1);
        if let Some(plan) = &finished.plan {
            self.plan = Some(plan.clone());
        }
        if let Some(memory) = &finished.memory {
            self.memories.insert(finished.tool.clone(), memory.clone());
        }
        let written = call.input.clone();
        let tool = call.tool.clone();
        let path = self.writes(&tool, &written);
        match &finished.plan {
            Some(plan) => self.progress.planned(plan),
            None => {
                let reads = self.assignment.only_reads(&tool);
                let call =
                    MeasuredCall { tool: &tool, input: written.text(), writes: path.as_deref(), reads };
                self.progress.called(&call, finished.status, &finished.output, &finished.facts);
            }
        }
        if let Some(path) = path.filter(|_| finished.status == ToolStatus::Ok) {
            self.wrote(path);
        }
    }

    /// The file that a call writes, if its tool writes one.
    fn writes(&self, tool: &str, input: &Json) -> Option<String> {
        let Access::Writes { path_field } = &self.assignment.tool(tool)?.access else { return None };
        text_at(input, path_field)
    }

    /// Records a file that a call has written; only the last ones are kept.
    fn wrote(&mut self, path: String) {
        self.written.retain(|known| *known != path);
        self.written.push_back(path);
        if self.written.len() > WRITTEN_MAX {
            self.written.pop_front();
        }
    }

    fn turn_ended(&mut self) {
        if self.calls.is_empty() {
            self.counters.tool_calls_at_stop = self.counters.tool_calls;
        }
        self.counters.turns_ended = self.counters.turns_ended.saturating_add(1);
        self.counters.interruptions = 0;
        self.counters.continuations = 0;
        self.text_is_of_last_turn = true;
        self.told.turn_end = false;
        self.calls.clear();
        self.phase = self.between_turns();
        self.repeats = self.repeats_with_turn();
        self.counters.failed_turns = self.failed_turns_with_turn();
        self.calls_of_turn = CallsOfTurn::default();
        self.progress.turn_ended();
    }

    fn stop_checked(&mut self, verdicts: &StopVerdicts) {
        self.progress.stop_hooks_said(&verdicts.reports);
        self.progress.saw_workspace(&verdicts.evidence);
        let reasons = self.stop_reasons(verdicts).into_iter().map(|(_, reason)| reason).collect::<Vec<_>>();
        if !self.goal_stop_hooks_said(verdicts, reasons.is_empty()) {
            return;
        }
        self.count_unanswered(verdicts);
        if reasons.is_empty() {
            self.block = None;
            return;
        }
        self.counters.stop_blocks = self.counters.stop_blocks.saturating_add(1);
        let tool_calls = self.counters.tool_calls;
        let same = |block: &&Block| {
            block.reasons == reasons && block.evidence == verdicts.evidence && block.tool_calls == tool_calls
        };
        let times = self.block.as_ref().filter(same).map_or(1, |block| block.times.saturating_add(1));
        self.block = Some(Block { reasons, evidence: verdicts.evidence.clone(), tool_calls, times });
    }

    fn segment_ended(&mut self, outcome: &Outcome) {
        self.outcome = Some(outcome.clone());
        self.stopping = None;
        self.yielding = None;
        self.stops_for_child = false;
        self.goal_stops();
        if outcome.is_final()
            && let Some(phase) = self.before_final_summary.take()
        {
            self.phase = phase;
        }
        self.phase = self.phase.when_suspended();
    }

    fn resumed(&mut self, resumed: &Resumed, at: Timestamp) {
        self.done_before = self.outcome.take().filter(|outcome| matches!(outcome, Outcome::Completed { .. }));
        self.calls.iter_mut().for_each(|call| call.paused = false);
        if resumed.reopens && matches!(self.phase, Phase::CheckingStop(_)) {
            // The stop hooks' answers to that attempt to stop don't count any more: the turn continues.
            self.text_is_of_last_turn = true;
            self.phase = self.between_turns();
            if let Some(track) = &mut self.goal_track {
                track.turns_at_interval = self.counters.turns_ended;
            }
        }
        if resumed.cause != ResumeCause::SlotFree {
            self.told.session = false;
            self.source = SessionSource::Resume;
        }
        match resumed.cause {
            // It continues as if there had been no interruption.
            ResumeCause::SlotFree | ResumeCause::ToEnd => self.goal_goes_on(),
            // Interruptions of the sub-agents are counted in their own sessions.
            ResumeCause::Interrupted if self.only_waits() => {}
            ResumeCause::Interrupted => {
                self.counters.interruptions = self.counters.interruptions.saturating_add(1);
            }
            ResumeCause::Asked { .. } | ResumeCause::Retry { .. } => {
                self.sub_agent_outcome = None;
                self.goal_resumed();
                self.calls.iter_mut().for_each(|call| call.stage = call.stage.resumed());
                self.asked.resumed();
                self.compactions.forget_refusals();
                self.told.final_summary_finished = false;
                self.told.limits = [0; 4];
                self.final_summary = None;
                self.counters.interruptions = 0;
                self.counters.failed_attempts = 0;
                self.counters.empty_answers = 0;
                self.counters.failed_turns = 0;
                self.counters.stop_blocks = 0;
                self.repeats = Repeats::default();
                self.progress.begin_anew();
                self.block = None;
                self.unanswered.clear();
                self.turns_max = resumed.turns_max.unwrap_or(self.turns_max);
                if self.assignment.parent().is_some() && resumed.turns_max.is_some() {
                    self.turns_before = self.counters.turns_ended;
                }
            }
        }
        self.ask_for_approval_anew(at);
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

    /// A question that is still open after a suspension or an interruption gets the full time again.
    fn ask_for_approval_anew(&mut self, at: Timestamp) {
        let timeout_ms = self.assignment.approval_timeout_ms();
        self.approvals.values_mut().for_each(|open| open.due = at.plus_ms(timeout_ms));
        let head = self.head;
        for call in &mut self.calls {
            if let Stage::Approving { timer, .. } = &mut call.stage {
                *timer = head;
            }
        }
    }
}

impl Phase {
    /// The phase from which a suspended session continues: nothing is in flight then.
    const fn when_suspended(self) -> Self {
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

/// The text of an argument, if it is a text.
fn text_at(input: &Json, field: &str) -> Option<String> {
    let value = input.read::<serde_json::Value>().ok()?;
    Some(value.get(field)?.as_str()?.to_owned())
}

/// A fingerprint of these texts, the same in every version, since snapshots store it. FNV-1a over 64 bits, as its
/// authors published it, with a byte between the texts that doesn't occur in UTF-8.
pub(super) fn fingerprint<'a>(texts: impl IntoIterator<Item = &'a str>) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let bytes = texts.into_iter().flat_map(|text| text.bytes().chain([0xff]));
    bytes.fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}
