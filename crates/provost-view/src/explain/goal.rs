//! How an agent's goal fared: which judges were consulted, what they said, and how far its limits went.

use provost_engine::{Actor, GoalStatus};
use provost_event::{
    ConversationEntry, Entry, GateEntry, GoalEntry, GoalFinding, GoalJudged, GoalPolicy, GoalTrigger,
    GoalVerdict, JudgeAnswer, LifecycleEntry, OnHookError, Outcome, PauseReason, Record, SessionId,
    StopVerdicts,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limits::{Count, LimitUse};
use super::say::{Durations, RuleUse};
use crate::Judging;

/// The sums of a session's log. Counters are the engine's own: the log is folded beside them.
pub(super) struct GoalSums {
    policy: GoalPolicy,
    /// The session so far; `None` once its log can't be folded.
    session: Option<Actor>,
    judges: Vec<JudgeAnswers>,
    checks: GoalChecks,
    rounds: Count,
    failures: Count,
    stuck: Count,
    interval: Count,
    turns_ended: u64,
    hook_errors: u64,
    judging: Judging,
    cleared: bool,
}

/// How often the goal was verified, and the results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GoalChecks {
    /// Verifications since the agent claimed to be done.
    pub claims: u64,
    /// Verifications after a number of turns.
    pub intervals: u64,
    /// Verifications at a limit.
    pub limits: u64,
    /// Those that found it achieved.
    pub achieved: u64,
    /// Those that didn't.
    pub not_achieved: u64,
    /// The judges couldn't decide.
    pub unverified: u64,
}

impl GoalChecks {
    /// Verifications that were begun.
    #[must_use]
    pub const fn begun(&self) -> u64 {
        self.claims + self.intervals + self.limits
    }

    /// Those with a result.
    #[must_use]
    pub const fn concluded(&self) -> u64 {
        self.achieved + self.not_achieved + self.unverified
    }
}

/// The answers of a judge.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JudgeAnswers {
    /// The model.
    pub name: String,
    /// Its answers.
    pub consulted: u64,
    /// Those that found it achieved.
    pub achieved: u64,
    /// Those that didn't.
    pub not_achieved: u64,
    /// Answers without a verdict.
    pub failed: u64,
    /// Of all, those that came too late to count.
    pub stale: u64,
    /// How long its answers took.
    #[serde(flatten)]
    pub times: Durations,
    /// What judging took.
    #[serde(flatten)]
    pub judging: Judging,
}

/// A goal, and how it fared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GoalExplanation {
    /// The condition that must be true.
    pub condition: String,
    /// Whether a person cleared it.
    pub cleared: bool,
    /// How often it was verified.
    pub checks: GoalChecks,
    /// Quorum: the judges that must find it achieved.
    pub agree: u32,
    /// The judges, each once.
    pub judges: Vec<JudgeExplanation>,
    /// What a stop hook without an answer means.
    pub stop_hook_errors: OnHookError,
    /// Times that a stop hook gave no answer about the goal.
    pub stop_hooks_without_answer: u64,
    /// What judging took.
    pub judging: Judging,
    /// The share of the run's budget that judges may take.
    pub budget_percent: u8,
}

/// A judge among what is configured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JudgeExplanation {
    /// Its answers.
    #[serde(flatten)]
    pub judge: JudgeAnswers,
    /// Whether it took effect.
    #[serde(flatten)]
    pub standing: RuleUse,
}

impl GoalSums {
    pub(super) fn new(session: SessionId, policy: &GoalPolicy) -> Self {
        let mut judges: Vec<JudgeAnswers> = Vec::new();
        for judge in &policy.judges {
            if judges.iter().all(|known| known.name != judge.name) {
                judges.push(JudgeAnswers { name: judge.name.clone(), ..JudgeAnswers::default() });
            }
        }
        Self {
            policy: policy.clone(),
            session: Some(Actor::new(session.into())),
            judges,
            checks: GoalChecks::default(),
            rounds: Count::default(),
            failures: Count::default(),
            stuck: Count::default(),
            interval: Count::default(),
            turns_ended: 0,
            hook_errors: 0,
            judging: Judging::default(),
            cleared: false,
        }
    }

    pub(super) fn add(&mut self, record: &Record) {
        let before = self.status();
        if self.session.as_mut().is_some_and(|session| session.replay(record).is_err()) {
            self.session = None;
        }
        let now = self.status();
        match &record.entry {
            Entry::Goal(GoalEntry::CheckStarted(started)) => self.begun(started.trigger),
            Entry::Goal(GoalEntry::Judged(judged)) => self.judged(judged, before.as_ref(), now.as_ref()),
            Entry::Goal(GoalEntry::Verdict(verdict)) => self.concluded(verdict, now.as_ref()),
            Entry::Goal(GoalEntry::Cleared(_)) => self.cleared = true,
            Entry::Gate(GateEntry::StopChecked(verdicts)) if !self.cleared => self.stop_hooks_said(verdicts),
            Entry::Conversation(ConversationEntry::TurnEnded(_)) if !self.cleared => {
                self.turn_ended(now.as_ref())
            }
            Entry::Lifecycle(LifecycleEntry::Paused(paused)) => {
                self.suspended(&paused.outcome, before.as_ref())
            }
            Entry::Lifecycle(LifecycleEntry::Ended(ended)) => self.suspended(&ended.outcome, before.as_ref()),
            _ => {}
        }
    }

    fn status(&self) -> Option<GoalStatus> {
        match &self.session {
            Some(Actor::Session(session)) => session.goal(),
            Some(Actor::Run(_)) | None => None,
        }
    }

    fn begun(&mut self, trigger: GoalTrigger) {
        match trigger {
            GoalTrigger::Claim => self.checks.claims += 1,
            GoalTrigger::Interval => {
                self.checks.intervals += 1;
                self.interval.decided += 1;
            }
            GoalTrigger::Limit => self.checks.limits += 1,
        }
    }

    fn judged(&mut self, judged: &GoalJudged, before: Option<&GoalStatus>, now: Option<&GoalStatus>) {
        self.judging.add(judged);
        if let Some(judge) = self.judges.iter_mut().find(|judge| judge.name == judged.judge) {
            judge.add(judged);
        }
        let (before, now) = (before.map_or(0, |goal| goal.failures), now.map_or(0, |goal| goal.failures));
        if now > before {
            self.failures.asked();
            self.failures.reaches(now);
        }
    }

    fn concluded(&mut self, verdict: &GoalVerdict, now: Option<&GoalStatus>) {
        match &verdict.finding {
            GoalFinding::Achieved { .. } => self.checks.achieved += 1,
            GoalFinding::Unverified { .. } => self.checks.unverified += 1,
            GoalFinding::NotAchieved { .. } => {
                self.checks.not_achieved += 1;
                if verdict.trigger == GoalTrigger::Claim {
                    self.rounds.asked();
                    self.rounds.reaches(now.map_or(0, |goal| goal.rounds));
                }
            }
        }
    }

    fn stop_hooks_said(&mut self, verdicts: &StopVerdicts) {
        let errors = verdicts.reports.iter().filter(|report| report.decision.failure().is_some()).count();
        self.hook_errors += errors as u64;
    }

    fn turn_ended(&mut self, now: Option<&GoalStatus>) {
        self.turns_ended += 1;
        self.stuck.asked();
        self.stuck.reaches(now.map_or(0, |goal| goal.idle_turns));
        if let Some(every) = self.policy.verify_every {
            self.interval.asked();
            self.interval.reaches(self.turns_ended.min(every.into()));
        }
    }

    fn suspended(&mut self, outcome: &Outcome, before: Option<&GoalStatus>) {
        match outcome {
            Outcome::Paused { why: PauseReason::Stuck { .. } } => self.stuck.decided += 1,
            // Without a failure it was the judges' part of the budget.
            Outcome::Paused { why: PauseReason::JudgeUnreachable { times, .. } } => {
                self.failures.decided += u64::from(*times > 0);
            }
            // Stop hooks, too, may have led here.
            Outcome::Blocked { .. } => {
                let is_over = before.is_some_and(|goal| goal.rounds >= self.policy.rounds_max);
                self.rounds.decided += u64::from(is_over);
            }
            _ => {}
        }
    }

    pub(super) fn limits(&self) -> Vec<LimitUse> {
        let of = |count: Count, name, set_to, why: &str| {
            count.limit(name, set_to, RuleUse::of(count.consulted, || why.to_owned()))
        };
        let policy = &self.policy;
        let no_claim = match self.checks.claims {
            0 => "the agent never said that it is done",
            _ => "no claim was found wrong",
        };
        let no_failure = match self.judging.calls {
            0 => "no judge was asked",
            _ => "the judges could always tell",
        };
        let mut every = of(self.interval, "verify_every", policy.verify_every.unwrap_or(0), "no turn ended");
        if policy.verify_every.is_none() {
            (every.set_to, every.standing) = (None, RuleUse::NOT_SET);
        }
        vec![
            of(self.rounds, "goal_rounds", policy.rounds_max, no_claim),
            of(self.failures, "judge_failures", policy.failures_max, no_failure),
            of(self.stuck, "stuck_turns", policy.stuck_turns, "no turn ended"),
            every,
        ]
    }

    pub(super) fn goal(&self) -> GoalExplanation {
        let row =
            |judge: &JudgeAnswers| JudgeExplanation { judge: judge.clone(), standing: self.standing(judge) };
        GoalExplanation {
            condition: self.policy.condition.clone(),
            cleared: self.cleared,
            checks: self.checks,
            agree: self.policy.agree,
            judges: self.judges.iter().map(row).collect(),
            stop_hook_errors: self.policy.stop_hook_errors,
            stop_hooks_without_answer: self.hook_errors,
            judging: self.judging,
            budget_percent: self.policy.budget_percent,
        }
    }

    fn standing(&self, judge: &JudgeAnswers) -> RuleUse {
        RuleUse::of(judge.consulted, || match (self.checks.begun(), self.judging.calls) {
            (0, _) => "the goal was never verified".to_owned(),
            (_, 0) => "the stop hooks, or a stop, came before any judge".to_owned(),
            (..) => "what the judges before it said was enough".to_owned(),
        })
    }
}

impl JudgeAnswers {
    fn add(&mut self, judged: &GoalJudged) {
        self.consulted += 1;
        self.stale += u64::from(judged.stale);
        self.times.add_ms(judged.duration_ms);
        self.judging.add(judged);
        match &judged.answer {
            JudgeAnswer::Verdict(verdict) if verdict.achieved => self.achieved += 1,
            JudgeAnswer::Verdict(_) => self.not_achieved += 1,
            JudgeAnswer::Failed(_) => self.failed += 1,
        }
    }
}
