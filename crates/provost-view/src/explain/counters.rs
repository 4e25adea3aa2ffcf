//! How the limits of an agent's counters fared. Counts as the engine does, its resets included.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use provost_event::{
    AgentPolicy, AssistantMessage, Block, CompactionKind, ConversationEntry, Dimension, Entry, ErrorClass,
    GoalEntry, GoalTrigger, HookPoint, ItemKind, LifecycleEntry, Limits, ModelCalled, ModelEntry, Outcome,
    PauseReason, Purpose, ResumeCause, Resumed, RetryCause, StopReason, ToolEntry, ToolFinished, ToolStatus,
};

use super::calls::Calls;
use super::limits::{Count, LimitUse};
use super::say::RuleUse;

/// The sums of a session's log, and where each counter stands.
pub(super) struct CounterSums {
    limits: Limits,
    turns_max: u32,
    now: Now,
    turns: Count,
    attempts: Count,
    empty_answers: Count,
    continuations: Count,
    repeated_call_notice: Count,
    repeated_call: Count,
    failed_turns_notice: Count,
    failed_turns: Count,
    interruptions: Count,
    stop_blocks: Count,
    restarts: Count,
    /// Times that the agent appeared to be done.
    stop_requests: u64,
}

/// Where the counters stand.
#[derive(Default)]
struct Now {
    failed_attempts: u32,
    empty_answers: u32,
    continuations: u32,
    failed_turns: u32,
    interruptions: u32,
    stop_blocks: u32,
    repeats: (u64, u32),
    turn: TurnCalls,
    is_stopping: bool,
    /// Stop hooks are asked to look at the goal, without a claim of the agent that it is done.
    is_looked_at: bool,
}

fn small(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The results of the calls of the present turn.
#[derive(Default)]
struct TurnCalls {
    /// Each call with its result, but for what one repeats of the one before.
    said: Vec<u64>,
    made: u32,
    failed: u32,
    waited: bool,
}

impl CounterSums {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            turns_max: limits.turns_max,
            now: Now::default(),
            turns: Count::default(),
            attempts: Count::default(),
            empty_answers: Count::default(),
            continuations: Count::default(),
            repeated_call_notice: Count::default(),
            repeated_call: Count::default(),
            failed_turns_notice: Count::default(),
            failed_turns: Count::default(),
            interruptions: Count::default(),
            stop_blocks: Count::default(),
            restarts: Count::default(),
            stop_requests: 0,
        }
    }

    /// How often the agent tried to stop.
    pub(super) const fn stop_requests(&self) -> u64 {
        self.stop_requests
    }

    pub(super) fn add(&mut self, entry: &Entry, calls: &Calls) {
        match entry {
            Entry::Model(ModelEntry::Called(called)) => self.called(called),
            Entry::Conversation(ConversationEntry::Compacted(compacted))
                if compacted.how == CompactionKind::Summary =>
            {
                self.now.failed_attempts = 0;
            }
            Entry::Conversation(ConversationEntry::FinalSummary(_)) => self.now.failed_attempts = 0,
            Entry::Conversation(ConversationEntry::AssistantMessage(answer)) => self.answered(answer),
            Entry::Model(ModelEntry::Retried(retry)) => self.retried(&retry.cause),
            Entry::Conversation(ConversationEntry::SystemItem(item)) => self.told(item.item),
            Entry::Tool(ToolEntry::Finished(finished)) => self.tool_finished(finished, calls),
            Entry::Conversation(ConversationEntry::TurnEnded(ended)) => self.turn_ended(ended.tool_calls),
            Entry::Goal(GoalEntry::CheckStarted(started)) => {
                self.now.is_looked_at = started.trigger != GoalTrigger::Claim;
            }
            Entry::Goal(GoalEntry::Verdict(_)) => self.now.is_looked_at = false,
            Entry::Lifecycle(LifecycleEntry::StopRequested(_)) => self.now.is_stopping = true,
            Entry::Lifecycle(LifecycleEntry::Paused(paused)) => self.suspended(&paused.outcome),
            Entry::Lifecycle(LifecycleEntry::Ended(ended)) => self.suspended(&ended.outcome),
            Entry::Lifecycle(LifecycleEntry::Resumed(resumed)) => self.resumed(resumed),
            _ => {}
        }
    }

    /// Only a call for a turn is another turn. A final summary isn't retried, and judges have a limit of their
    /// own.
    fn called(&mut self, called: &ModelCalled) {
        if called.purpose == Purpose::Turn {
            self.turns.reaches(called.turn);
            self.turns.asked();
        }
        if matches!(called.purpose, Purpose::Turn | Purpose::Summary) {
            self.attempts.reaches(called.attempt);
        }
    }

    fn answered(&mut self, answer: &AssistantMessage) {
        (self.now.failed_attempts, self.now.empty_answers) = (0, 0);
        let calls_tools = answer.content.iter().any(|block| matches!(block, Block::ToolCall(_)));
        match answer.stop {
            _ if calls_tools || self.now.is_stopping => {}
            StopReason::Refusal | StopReason::Commentary => {}
            StopReason::OutputCap => {
                let is_over = self.now.continuations >= self.limits.continuations_max;
                self.continuations.asked_and(is_over);
            }
            StopReason::EndTurn | StopReason::ToolUse => self.stop_requests += 1,
        }
    }

    fn retried(&mut self, cause: &RetryCause) {
        match cause {
            RetryCause::Failed { .. } => {
                self.now.failed_attempts += 1;
                self.attempts.asked();
            }
            RetryCause::EmptyAnswer => {
                self.now.empty_answers += 1;
                self.empty_answers.asked();
                self.empty_answers.reaches(self.now.empty_answers);
            }
            RetryCause::UselessSummary { .. } => {
                self.now.failed_attempts = 0;
            }
            RetryCause::Interrupted | RetryCause::Compacted => {}
        }
    }

    fn told(&mut self, item: ItemKind) {
        match item {
            ItemKind::Continue => {
                self.now.continuations += 1;
                self.continuations.reaches(self.now.continuations);
            }
            ItemKind::RepeatedCallNotice => self.repeated_call_notice.decided += 1,
            ItemKind::FailedCallsNotice => self.failed_turns_notice.decided += 1,
            ItemKind::StopBlocked | ItemKind::StopSuspended => self.stop_blocked(),
            ItemKind::AnswerAgain
            | ItemKind::Resumed
            | ItemKind::FolderRules
            | ItemKind::ServiceEnded
            | ItemKind::GoalGiven
            | ItemKind::GoalRemoved
            | ItemKind::NoProgressNotice
            | ItemKind::GoalNotReached
            | ItemKind::Reminder
            | ItemKind::HookWoke
            | ItemKind::EndQuestion
            | ItemKind::FinalCheck
            | ItemKind::LastTurn
            | ItemKind::LimitNotice { .. } => {}
        }
    }

    fn tool_finished(&mut self, finished: &ToolFinished, calls: &Calls) {
        let mut hasher = DefaultHasher::new();
        let input = calls.present(&finished.call).map(|call| call.input.text());
        (finished.tool.as_str(), input, finished.output.as_str()).hash(&mut hasher);
        finished.images.iter().for_each(|image| image.blob.hash(&mut hasher));
        let (said, turn) = (hasher.finish(), &mut self.now.turn);
        if turn.said.last() != Some(&said) {
            turn.said.push(said);
        }
        turn.waited |= finished.facts.waited;
        match finished.status {
            ToolStatus::Cancelled | ToolStatus::Unknown => {}
            ToolStatus::Ok => turn.made += 1,
            // The exit status of a command is output.
            _ if finished.facts.exit_status.is_some() => turn.made += 1,
            ToolStatus::Error | ToolStatus::Rejected | ToolStatus::Denied | ToolStatus::TimedOut => {
                turn.failed += 1;
            }
        }
    }

    /// Counts the calls of the turn that ends.
    fn calls_ended(&mut self) {
        let turn = std::mem::take(&mut self.now.turn);
        if turn.made + turn.failed == 0 {
            return;
        }
        self.now.failed_turns = if turn.made > 0 { 0 } else { self.now.failed_turns + 1 };
        self.failed_turns_notice.reaches(self.now.failed_turns);
        self.failed_turns.reaches(self.now.failed_turns);
        if turn.waited {
            self.now.repeats = (0, 0);
            return;
        }
        let mut hasher = DefaultHasher::new();
        turn.said.hash(&mut hasher);
        let (last, times) = self.now.repeats;
        let said = hasher.finish();
        self.now.repeats = (said, if said == last { times + 1 } else { 1 });
        self.repeated_call_notice.reaches(self.now.repeats.1);
        self.repeated_call.reaches(self.now.repeats.1);
    }

    fn turn_ended(&mut self, tool_calls: u32) {
        (self.now.interruptions, self.now.continuations) = (0, 0);
        self.calls_ended();
        if tool_calls > 0 {
            let counts = [
                &mut self.repeated_call_notice,
                &mut self.repeated_call,
                &mut self.failed_turns_notice,
                &mut self.failed_turns,
            ];
            counts.into_iter().for_each(Count::asked);
        }
    }

    /// Stop hooks refused an attempt to stop.
    fn stop_blocked(&mut self) {
        self.now.stop_blocks += 1;
        self.stop_blocks.asked();
        self.stop_blocks.reaches(self.now.stop_blocks);
    }

    fn suspended(&mut self, outcome: &Outcome) {
        (self.now.is_stopping, self.now.is_looked_at) = (false, false);
        match outcome {
            Outcome::BudgetExhausted(exhausted) if exhausted.dimension == Dimension::Turns => {
                self.turns.asked_and(true);
            }
            Outcome::Paused { why: PauseReason::RepeatedCall { .. } } => self.repeated_call.decided += 1,
            Outcome::Paused { why: PauseReason::ToolFailures { .. } } => self.failed_turns.decided += 1,
            Outcome::Paused { why: PauseReason::CrashLoop { .. } } => self.interruptions.decided += 1,
            // The same reasons twice without new work also lead here.
            Outcome::Blocked { .. } => {
                let is_over = self.now.stop_blocks >= self.limits.stop_blocks_max;
                self.stop_blocks.decided += u64::from(is_over);
            }
            Outcome::Paused { why: PauseReason::Model(trouble) } => self.in_trouble(trouble.class),
            _ => {}
        }
    }

    /// The model gives no answer: the error's class shows which of two limits it was.
    fn in_trouble(&mut self, class: ErrorClass) {
        if class == ErrorClass::NoAnswer {
            self.empty_answers.asked_and(true);
        } else if class.may_retry() {
            self.attempts.asked_and(true);
        }
    }

    fn resumed(&mut self, resumed: &Resumed) {
        if let ResumeCause::Retry { attempt } = resumed.cause {
            self.restarts.asked();
            self.restarts.reaches(attempt);
        }
        match resumed.cause {
            ResumeCause::SlotFree | ResumeCause::ToEnd => {}
            ResumeCause::Interrupted => {
                self.now.interruptions += 1;
                self.interruptions.asked();
                self.interruptions.reaches(self.now.interruptions);
            }
            ResumeCause::Asked { .. } | ResumeCause::Retry { .. } => {
                self.now = Now::default();
                self.turns_max = resumed.turns_max.unwrap_or(self.turns_max);
            }
        }
    }

    /// The limits of an agent with this policy.
    pub(super) fn limits(&self, policy: &AgentPolicy) -> Vec<LimitUse> {
        let set = &self.limits;
        let of = |count: Count, name, set_to, why: &str| {
            count.limit(name, set_to, RuleUse::of(count.consulted, || why.to_owned()))
        };
        let no_calls = "no tool call was made";
        let mut turns = of(self.turns, "turns", self.turns_max, "no model was called");
        let limited = |turns: &u64| *turns != u64::from(Limits::TURNS_UNLIMITED);
        turns.set_to = turns.set_to.filter(limited);
        turns.set_to_at_first =
            Some(u64::from(set.turns_max)).filter(limited).filter(|first| Some(*first) != turns.set_to);
        let mut notice =
            of(self.repeated_call_notice, "repeated_call_notice", set.repeated_call_notice_at, no_calls);
        if set.repeated_call_notice_at >= set.repeated_call_max {
            notice.standing = RuleUse::unreachable("repeated_call comes first");
        }
        let has_stop_hooks =
            !policy.stop_hooks.is_empty() || policy.hooks.iter().any(|hook| hook.point == HookPoint::Stop);
        let no_block = if has_stop_hooks { "no stop hook said no" } else { "there is no stop hook" };
        let restarts = of(self.restarts, "restarts", set.retry.attempts_max, "");
        let mut limits = vec![
            turns,
            of(
                self.attempts,
                "model_patience_secs",
                small(set.model_patience_ms / 1_000),
                "no model call failed",
            ),
            of(self.empty_answers, "empty_answers", set.empty_answers_max, "no answer was empty"),
            of(self.continuations, "continuations", set.continuations_max, "no answer was cut off"),
            notice,
            of(self.repeated_call, "repeated_call", set.repeated_call_max, no_calls),
            of(self.failed_turns_notice, "failed_turns_notice", set.failed_turns_notice_at, no_calls),
            of(self.failed_turns, "failed_turns", set.failed_turns_max, no_calls),
            of(self.interruptions, "interruptions", set.interruptions_max, "it was never interrupted"),
            of(self.stop_blocks, "stop_blocks", set.stop_blocks_max, no_block),
        ];
        // The first agent of a run has none, and those of the others matter only once they fail.
        limits.extend((self.restarts.consulted > 0).then_some(restarts));
        limits
    }
}
