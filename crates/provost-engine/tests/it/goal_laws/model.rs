//! The state of a goal, counted from the entries of a session's log alone and compared with the session's own
//! state after each of them.

mod check;

use std::collections::{BTreeMap, BTreeSet};

use provost_engine::GoalStatus;
use provost_event::{
    ConversationEntry, Elapsed, Entry, GateEntry, GoalEntry, GoalFinding, GoalJudged, GoalPolicy, GoalState,
    GoalTrigger, HookPoint, HookTrigger, ItemKind, LifecycleEntry, ModelEntry, Outcome, PauseReason, Purpose,
    Record, ResumeCause, Resumed, Seq, SessionStarted, StepMode, ToolEntry,
};

use super::measure::Measure;

/// A judge's vote on one claim.
#[derive(Debug, Clone, Default)]
enum Word {
    #[default]
    None,
    Said(provost_event::SupervisorVerdict),
    Failed,
}

/// The verification in progress.
#[derive(Debug)]
struct Check {
    trigger: GoalTrigger,
    turn: u32,
    generation: u32,
    words: Vec<Word>,
    /// The stop hooks have no objection.
    allowed: bool,
    /// The retries of the current judge, until it is done.
    parsed_badly: bool,
    waited: bool,
    /// Pending answers no longer count.
    is_void: bool,
}

impl Check {
    fn in_turn(&self) -> Option<usize> {
        self.words.iter().position(|word| matches!(word, Word::None))
    }
}

/// The joint result of the judges so far.
#[derive(Debug, PartialEq, Eq)]
enum Count {
    Open,
    Yes,
    No,
    Unknown,
}

/// The state of the goal by the entries so far.
#[derive(Debug, Default)]
pub(crate) struct GoalLaws {
    policy: Option<GoalPolicy>,
    asks_stop_hooks: bool,
    is_stepped: bool,
    interruptions_max: u32,
    stop_blocks_max: u32,
    is_cleared: bool,
    check: Option<Check>,
    /// The judge's call in flight.
    call: Option<u32>,
    rounds: u32,
    failures: u32,
    waits: u32,
    /// Waits since the last counted failure, in one verification.
    waited_ms: u64,
    /// When a judge last answered, and when the run's time is over.
    answered_at: Elapsed,
    deadline: Option<Elapsed>,
    measure: Measure,
    finding: Option<GoalFinding>,
    outcome: Option<Outcome>,
    stopping: Option<Outcome>,
    stops_for_child: bool,
    /// The last verdict confirms it, and there was no work and no message since the claim.
    is_proven: bool,
    /// The last act of the agent was to claim that it is done.
    claims: bool,
    unheard: bool,
    prompts: BTreeSet<Seq>,
    turns: u32,
    answers: u32,
    /// There was an answer since the last verdict.
    has_worked: bool,
    verified_at: Option<u32>,
    /// A verification during the work is next.
    is_due: bool,
    /// The turn whose claim was verified last: it needs no other check when it is over.
    claim_checked: Option<u32>,
    /// The judges' reasons must be reported to the agent next.
    must_tell: bool,
    checked_at_limit: bool,
    interruptions: u32,
    /// And there was no call since.
    is_interrupted: bool,
    status: Option<GoalStatus>,
    generations: BTreeSet<u32>,
    pub(crate) counts: BTreeMap<String, u32>,
}

impl GoalLaws {
    /// Reads the next entry; `status` is the session's own status of its goal after it.
    pub(crate) fn see(&mut self, record: &Record, status: Option<GoalStatus>) {
        if let Entry::Lifecycle(LifecycleEntry::SessionStarted(started)) = &record.entry {
            self.started(started);
        }
        if self.policy.is_none() {
            return assert_eq!(status, None, "a goal that was not set");
        }
        self.expected_next(&record.entry);
        self.take_in(record);
        self.compare(record, status);
    }

    fn count(&mut self, what: impl Into<String>) {
        *self.counts.entry(what.into()).or_default() += 1;
    }

    fn take_in(&mut self, record: &Record) {
        self.measure.see(&record.entry);
        match &record.entry {
            Entry::Model(ModelEntry::Called(called)) => self.called(called, record.elapsed),
            Entry::Conversation(ConversationEntry::AssistantMessage(answer)) => {
                self.disturb("an answer");
                self.answers += 1;
                self.has_worked = true;
                self.claims =
                    !answer.content.iter().any(|block| matches!(block, provost_event::Block::ToolCall(_)));
            }
            Entry::Tool(ToolEntry::Started(_)) => self.disturb("a tool"),
            Entry::Model(ModelEntry::Retried(retry)) => {
                if self.call.take_if(|call| *call == retry.call).is_some() {
                    self.count("judge's call lost");
                }
                assert_eq!(self.call, None, "a retry of another call than the judge's");
            }
            Entry::Conversation(ConversationEntry::UserMessage(_)) => self.unheard = true,
            Entry::Conversation(ConversationEntry::SystemItem(item)) => {
                assert!(item.item != ItemKind::GoalNotReached || self.must_tell, "there was no such verdict");
                self.must_tell = false;
            }
            Entry::Gate(GateEntry::HooksAsked(asked))
                if matches!(asked.about, HookTrigger::Prompt { .. }) =>
            {
                self.prompts.insert(record.seq);
            }
            Entry::Gate(GateEntry::HooksDecided(decided)) => {
                self.prompts.remove(&decided.asked);
            }
            Entry::Conversation(ConversationEntry::TurnEnded(_)) => self.turn_ended(),
            Entry::Gate(GateEntry::StopChecked(verdicts)) => self.stop_hooks_said(verdicts),
            Entry::Goal(GoalEntry::CheckStarted(started)) => self.check_started(started),
            Entry::Goal(GoalEntry::Judged(judged)) => {
                self.answered_at = record.elapsed;
                self.judged(judged);
            }
            Entry::Goal(GoalEntry::Verdict(verdict)) => self.verdict(verdict),
            Entry::Goal(GoalEntry::Cleared(_)) => {
                assert!(!self.is_cleared, "cleared twice");
                self.is_cleared = true;
                self.make_void();
            }
            Entry::Lifecycle(LifecycleEntry::StopRequested(stop)) => {
                self.make_void();
                self.stopping = Some(stop.outcome.clone());
                self.stops_for_child = stop.for_child;
            }
            Entry::Lifecycle(LifecycleEntry::Paused(paused)) => self.suspended(&paused.outcome),
            Entry::Lifecycle(LifecycleEntry::Ended(ended)) => self.suspended(&ended.outcome),
            Entry::Lifecycle(LifecycleEntry::Resumed(resumed)) => self.resumed(resumed),
            _ => {}
        }
    }

    fn started(&mut self, started: &SessionStarted) {
        let policy = &started.policy;
        self.policy = policy.goal.as_deref().cloned();
        let point = HookPoint::stop(started.parent);
        self.asks_stop_hooks =
            !policy.stop_hooks.is_empty() || policy.hooks.iter().any(|hook| hook.point == point);
        self.is_stepped = policy.step_mode == StepMode::Stepped;
        self.interruptions_max = policy.limits.interruptions_max;
        self.stop_blocks_max = policy.limits.stop_blocks_max;
    }

    fn goal(&self) -> &GoalPolicy {
        self.policy.as_ref().expect("it has a goal")
    }

    fn is_bound(&self) -> bool {
        self.policy.is_some() && !self.is_cleared
    }

    fn is_checking(&self) -> bool {
        self.check.as_ref().is_some_and(|check| !check.is_void)
    }

    /// The agent does something.
    fn disturb(&mut self, what: &str) {
        assert!(!self.is_checking(), "{what} while it is verified");
        self.is_proven = false;
    }

    fn make_void(&mut self) {
        if let Some(check) = &mut self.check {
            check.is_void = true;
        }
    }

    /// The entry that must come next, if any.
    fn expected_next(&mut self, entry: &Entry) {
        if matches!(entry, Entry::Lifecycle(LifecycleEntry::Snapshot(_))) {
            return;
        }
        if self.must_tell {
            let tells = matches!(entry, Entry::Conversation(ConversationEntry::SystemItem(item)) if item.item == ItemKind::GoalNotReached);
            assert!(tells, "the agent isn't told what is missing, but {}", entry.kind());
        }
        match entry {
            Entry::Goal(GoalEntry::CheckStarted(_))
            | Entry::Lifecycle(
                LifecycleEntry::StopRequested(_) | LifecycleEntry::Paused(_) | LifecycleEntry::Ended(_),
            ) => {
                self.is_due = false;
            }
            Entry::Model(ModelEntry::Called(called))
                if called.purpose == Purpose::Turn && self.is_bound() =>
            {
                assert!(!self.is_due, "turn {} begins, and verification is due", called.turn);
                let idle = self.measure.idle_turns;
                assert!(idle < self.goal().stuck_turns, "{idle} idle turns, and it goes on");
            }
            _ => {}
        }
    }

    fn turn_ended(&mut self) {
        assert!(!self.is_checking(), "a turn ends while it is verified");
        self.turns += 1;
        self.interruptions = 0;
        self.claims = false;
        let is_idle = self.measure.idle_turns >= self.goal().stuck_turns;
        let every = self.goal().verify_every;
        self.is_due = self.is_bound()
            && self.stopping.is_none()
            && self.outcome.is_none()
            && !is_idle
            && !self.is_proven
            && self.has_worked
            && self.claim_checked != Some(self.turns)
            && every.is_some_and(|every| self.turns.is_multiple_of(every));
    }

    fn suspended(&mut self, outcome: &Outcome) {
        assert_eq!(self.call, None, "it is suspended while a judge is asked");
        match outcome {
            // The outcome of a suspended sub-agent.
            _ if self.stops_for_child => {}
            Outcome::Completed { .. } if self.is_bound() => {
                assert!(self.is_proven, "completed without a confirmation");
            }
            Outcome::Blocked { reasons } if reasons.iter().any(|reason| reason.starts_with("judge: ")) => {
                assert_eq!(self.rounds, self.goal().rounds_max, "blocked by judges");
            }
            Outcome::Paused { why: PauseReason::JudgeUnreachable { times: 0, error } } => {
                let is_share = error.contains("the judges' part of the run's budget");
                assert!(is_share || self.goal().judges.is_empty(), "unreachable: {error}");
            }
            Outcome::Paused { why: PauseReason::JudgeUnreachable { times, .. } } => {
                assert_eq!(*times, self.failures);
                // Before that only if the run's time ends before the wait.
                let has_time = self.has_time_for(self.own_wait());
                let most = self.goal().failures_max;
                assert!(*times == most || (*times < most && !has_time), "paused after {times} failures");
            }
            Outcome::Paused { why: PauseReason::Stuck { turns } } => {
                let was_decided = self.stopping.as_ref() == Some(outcome);
                assert!(self.is_bound() || was_decided, "stuck without a goal");
                // A message that arrives while hooks are called about the suspension restarts the measure.
                assert!(was_decided || *turns == self.measure.idle_turns, "{turns} idle turns");
                assert_eq!(*turns, self.goal().stuck_turns, "turns in which nothing moved");
            }
            Outcome::BudgetExhausted(exhausted) if self.is_bound() => {
                let is_verified = self.checked_at_limit || !self.has_worked;
                let is_lost = self.interruptions >= self.interruptions_max;
                assert!(is_verified || is_lost, "{exhausted}, without a verification");
            }
            _ => {}
        }
        (self.outcome, self.stopping, self.check) = (Some(outcome.clone()), None, None);
        (self.is_proven, self.stops_for_child) = (false, false);
    }

    fn resumed(&mut self, resumed: &Resumed) {
        let was_suspended = self.outcome.take().is_some();
        match resumed.cause {
            ResumeCause::SlotFree | ResumeCause::ToEnd => {}
            ResumeCause::Interrupted => {
                self.interruptions += u32::from(!was_suspended);
                self.is_interrupted = true;
            }
            ResumeCause::Asked { .. } | ResumeCause::Retry { .. } => {
                (self.rounds, self.failures, self.waits, self.waited_ms) = (0, 0, 0, 0);
                self.interruptions = 0;
                self.measure.begin_anew();
                self.checked_at_limit = false;
                self.has_worked = self.answers > 0;
            }
        }
    }

    fn state(&self) -> GoalState {
        match &self.outcome {
            Some(Outcome::Failed { .. }) => GoalState::Failed,
            _ if self.is_cleared => GoalState::Aborted,
            Some(Outcome::Completed { .. }) => GoalState::Achieved,
            Some(Outcome::Aborted { .. } | Outcome::Cancelled { .. }) => GoalState::Aborted,
            Some(Outcome::Blocked { .. }) => GoalState::Blocked,
            Some(Outcome::Paused { why: PauseReason::Stuck { .. } }) => GoalState::Stuck,
            Some(Outcome::Paused { .. } | Outcome::BudgetExhausted(_)) => GoalState::Paused,
            None if self.is_checking() => GoalState::Verifying,
            None => GoalState::Running,
        }
    }

    /// The session's own status matches the entries.
    fn compare(&mut self, record: &Record, status: Option<GoalStatus>) {
        let kind = record.entry.kind();
        let status = status.expect("it has a goal");
        let counted = (status.rounds, status.failures, status.idle_turns);
        let own = (self.rounds, self.failures, self.measure.idle_turns);
        assert_eq!(counted, own, "rounds, failures and idle turns after {kind}");
        assert_eq!(status.state, self.state(), "the state after {kind}");
        assert_eq!(status.finding, self.finding, "the finding after {kind}");
        self.generations.insert(status.generation);
        if let Some(before) = &self.status {
            let is_newer = status.generation > before.generation;
            assert!(is_newer || status.generation == before.generation, "an older generation after {kind}");
            let changed = status.state != before.state;
            assert!(
                is_newer || !changed,
                "{kind}: {:?} → {:?}, and no new generation",
                before.state,
                status.state
            );
            if let Entry::Goal(GoalEntry::Judged(GoalJudged { stale: true, .. })) = &record.entry {
                assert_eq!(&status, before, "what comes too late has changed something");
            }
        }
        self.status = Some(status);
    }

    /// When no event is pending, the work has ended if anything ended it.
    pub(crate) fn at_quiet(&self) {
        if !self.is_bound() || self.outcome.is_some() || self.stopping.is_some() {
            return;
        }
        let goal = self.goal();
        assert!(self.rounds < goal.rounds_max, "{} rounds and it goes on", self.rounds);
        assert!(self.failures < goal.failures_max, "{} failures and it goes on", self.failures);
        let is_idle = self.measure.idle_turns >= goal.stuck_turns;
        assert!(!is_idle || self.is_stepped, "{} idle turns", self.measure.idle_turns);
        assert!(!self.is_proven, "achieved, and it goes on");
    }
}
