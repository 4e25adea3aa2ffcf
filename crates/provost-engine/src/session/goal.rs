//! The goal of a session: its state, and how it is verified. The stop hooks check a claim first, then the judges, and
//! their verdicts decide.

mod check;
pub(super) mod judge;
mod status;
pub(super) mod verify;

use std::collections::BTreeMap;

use provost_event::{
    AgentPolicy, AgentPolicyChanged, Elapsed, GoalCheckStarted, GoalEntry, GoalFinding, GoalJudged,
    GoalPolicy, GoalTrigger, GoalVerdict, HookDecision, HookReport, ItemKind, JudgeAnswer, Outcome, Seq,
    StopVerdicts,
};
use serde::{Deserialize, Serialize};

use super::Phase;
use super::assignment::Assignment;
use check::GoalCheck;

pub use judge::JUDGE_TOKENS;
pub(super) use judge::KeptBudget;
pub use status::GoalStatus;

/// The goal of a session, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Goal {
    /// Absent if no goal is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    track: Option<Box<GoalTrack>>,
    /// It was taken away, and the agent has yet to be notified.
    was_removed: bool,
}

/// The state of a goal that is set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct GoalTrack {
    /// Incremented by each change of the state.
    generation: u32,
    /// The verification in progress.
    check: Option<GoalCheck>,
    /// Claims that were rejected.
    rounds: u32,
    /// Verifications in a row without a verdict.
    failures: u32,
    /// Waits since the last verdict.
    waits: u32,
    /// When the first judge's call of the current outage ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outage_since: Option<Elapsed>,
    /// Answers of judges, by the policy's name for them.
    asked: BTreeMap<String, u32>,
    /// The number of the agent's answers at the last verdict.
    answers_at_verdict: u32,
    /// The number of ended turns at the last verification by interval.
    turns_at_interval: u32,
    is_cleared: bool,
    /// It was set while the agent was suspended, and the agent has yet to be notified.
    #[serde(default)]
    is_untold: bool,
    /// It replaced another goal.
    #[serde(default)]
    had_another: bool,
    /// It was verified at the present limit.
    at_limit: bool,
    finding: Option<GoalFinding>,
}

/// What the state of a goal depends on besides its entries.
#[derive(Debug, Clone, Copy)]
pub(super) struct GoalFacts<'a> {
    pub(super) assignment: &'a Assignment,
    /// The last entry.
    pub(super) head: Seq,
    pub(super) phase: Phase,
    pub(super) turns_ended: u32,
    /// The agent's answers.
    pub(super) answers: u32,
}

/// What the answers of the stop hooks mean for the goal.
pub(super) struct StopHooksOutcome {
    /// The phase that follows, if it changes.
    pub(super) phase: Option<Phase>,
    /// They count as answers to an attempt to stop.
    pub(super) count: bool,
}

impl GoalTrack {
    const fn changes(&mut self) {
        self.generation = self.generation.saturating_add(1);
    }
}

/// How entries change it. Where the phase of the session changes, it is returned.
impl Goal {
    pub(super) fn started(&mut self, policy: &AgentPolicy) {
        self.track = policy.goal.as_ref().map(|_| Box::default());
    }

    /// Returns whether a goal was given that the agent doesn't know yet.
    pub(super) fn policy_changed(&mut self, old: &AgentPolicy, changed: &AgentPolicyChanged) -> bool {
        let condition = |policy: &AgentPolicy| policy.goal.as_ref().map(|goal| goal.condition.clone());
        let before = condition(old);
        let after = condition(&changed.policy);
        let is_given = changed.goal.is_some() || (before.is_none() && after.is_some());
        if is_given {
            self.given(before.is_some() && before != after);
        } else if after.is_none() {
            self.track = None;
        }
        self.was_removed = (self.was_removed || before.is_some()) && after.is_none();
        is_given
    }

    /// The judges begin anew with a goal that the agent doesn't know yet; findings on another goal don't count.
    fn given(&mut self, had_another: bool) {
        let track = self.track.take().unwrap_or_default();
        self.track = Some(Box::new(GoalTrack {
            generation: track.generation.saturating_add(1),
            asked: track.asked,
            is_untold: true,
            had_another,
            ..GoalTrack::default()
        }));
    }

    /// The agent was notified of a goal that was set or taken away.
    pub(super) fn told(&mut self) {
        self.was_removed = false;
        if let Some(track) = &mut self.track {
            track.is_untold = false;
        }
    }

    /// Applies an entry on the goal.
    pub(super) fn apply(&mut self, entry: &GoalEntry, now: Elapsed, facts: GoalFacts<'_>) -> Option<Phase> {
        match entry {
            GoalEntry::CheckStarted(started) => self.check_started(started, facts),
            GoalEntry::Judged(judged) => self.judged(judged, now, facts),
            GoalEntry::Verdict(verdict) => self.verdict(verdict, facts.answers),
            GoalEntry::Cleared(_) => {
                self.cleared();
                None
            }
        }
    }

    fn check_started(&mut self, started: &GoalCheckStarted, facts: GoalFacts<'_>) -> Option<Phase> {
        let policy = facts.assignment.goal_policy()?;
        let track = self.track.as_mut()?;
        let back = match started.trigger {
            GoalTrigger::Claim => Phase::CheckingStop(facts.head),
            // The event that lets a stepped session take the next turn came earlier.
            GoalTrigger::Interval => Phase::Ready,
            // A check that was abandoned for the limit has its own phase to return to.
            GoalTrigger::Limit => track.check.as_ref().map_or(facts.phase.when_suspended(), GoalCheck::back),
        };
        match started.trigger {
            // The turn of a claim needs no other check when it is over.
            GoalTrigger::Claim => track.turns_at_interval = facts.turns_ended.saturating_add(1),
            GoalTrigger::Interval => track.turns_at_interval = facts.turns_ended,
            GoalTrigger::Limit => track.at_limit = true,
        }
        track.generation = started.generation;
        track.check = Some(GoalCheck::new(started, back, policy));
        let asks_hooks = facts.assignment.has_stop_hooks();
        Some(if asks_hooks { Phase::CheckingStop(facts.head) } else { Phase::Verifying })
    }

    /// The stop hooks' answers; `objects` if one of them objects to a stop.
    pub(super) fn stop_hooks_answered(&mut self, verdicts: &StopVerdicts, objects: bool) -> StopHooksOutcome {
        let none = StopHooksOutcome { phase: None, count: true };
        let Some(track) = &mut self.track else { return none };
        let Some(check) = track.check.as_ref().filter(|check| check.is_live()) else { return none };
        let is_claim = check.trigger() == GoalTrigger::Claim;
        let halts = |report: &HookReport| matches!(report.decision, HookDecision::Abort(_));
        let is_halted = verdicts.reports.iter().any(halts);
        let phase = if objects || is_halted {
            let back = check.back();
            track.check = None;
            track.changes();
            (!is_claim).then_some(back)
        } else {
            Some(Phase::Verifying)
        };
        StopHooksOutcome { phase, count: is_claim }
    }

    fn judged(&mut self, judged: &GoalJudged, now: Elapsed, facts: GoalFacts<'_>) -> Option<Phase> {
        let policy = facts.assignment.goal_policy()?;
        let track = self.track.as_mut()?;
        let asked = track.asked.entry(judged.judge.clone()).or_default();
        *asked = asked.saturating_add(1);
        let check = track.check.take()?;
        if judged.stale {
            return Some(check.back());
        }
        track.outage_since = match &judged.answer {
            JudgeAnswer::Failed(error) if error.is_outage() => track.outage_since.or(Some(now)),
            JudgeAnswer::Failed(_) | JudgeAnswer::Verdict(_) => None,
        };
        let heard = check.heard(&judged.answer, policy, judged.wait_ms);
        track.check = Some(heard.check);
        if heard.is_undecided {
            track.failures = track.failures.saturating_add(1);
        }
        if judged.wait_ms.is_some() {
            track.waits = track.waits.saturating_add(1);
        }
        Some(if judged.wait_ms.is_some() { Phase::JudgeWaits(facts.head) } else { Phase::Verifying })
    }

    fn verdict(&mut self, verdict: &GoalVerdict, answers: u32) -> Option<Phase> {
        let track = self.track.as_mut()?;
        track.changes();
        track.answers_at_verdict = answers;
        if !matches!(verdict.finding, GoalFinding::Unverified { .. }) {
            track.failures = 0;
            track.waits = 0;
        }
        if matches!(verdict.finding, GoalFinding::NotAchieved { .. }) {
            track.rounds = track.rounds.saturating_add(u32::from(verdict.trigger == GoalTrigger::Claim));
        }
        track.finding = Some(verdict.finding.clone());
        Some(track.check.take()?.back())
    }

    fn cleared(&mut self) {
        self.void_check();
        if let Some(track) = &mut self.track {
            track.is_cleared = true;
            track.changes();
        }
    }

    /// The session is to stop, or the goal was cleared: the judges' answers no longer count.
    pub(super) fn void_check(&mut self) {
        let Some(track) = &mut self.track else { return };
        if let Some(check) = track.check.as_mut().filter(|check| check.is_live()) {
            check.void();
            track.changes();
        }
    }

    pub(super) fn segment_ended(&mut self) -> Option<Phase> {
        let track = self.track.as_mut()?;
        track.changes();
        Some(track.check.take()?.back())
    }

    /// The session continues as if there had been no interruption.
    pub(super) fn goes_on(&mut self) {
        if let Some(track) = &mut self.track {
            track.changes();
        }
    }

    /// The session was resumed by a request.
    pub(super) fn resumed(&mut self) {
        let Some(track) = &mut self.track else { return };
        track.changes();
        track.rounds = 0;
        track.failures = 0;
        track.waits = 0;
        track.at_limit = false;
        track.answers_at_verdict = 0;
    }

    /// The interval that ends with this number of turns needs no verification.
    pub(super) fn interval_passed(&mut self, turns_ended: u32) {
        if let Some(track) = &mut self.track {
            track.turns_at_interval = turns_ended;
        }
    }
}

/// What others ask about it.
impl Goal {
    /// The policy of the goal that applies to the agent: one is set and hasn't been cleared.
    pub(super) fn in_force<'a>(&self, assignment: &'a Assignment) -> Option<&'a GoalPolicy> {
        self.track.as_ref().filter(|track| !track.is_cleared)?;
        assignment.goal_policy()
    }

    /// The verification in progress, if its result still counts.
    fn live_check(&self) -> Option<&GoalCheck> {
        self.check().filter(|check| check.is_live())
    }

    fn check(&self) -> Option<&GoalCheck> {
        self.track.as_ref()?.check.as_ref()
    }

    /// The generation of a verification that begins now; absent if no goal is set.
    fn next_generation(&self) -> Option<u32> {
        self.track.as_ref().map(|track| track.generation.saturating_add(1))
    }

    /// Why the goal is being verified, if it is and the result still counts.
    pub(super) fn live_trigger(&self) -> Option<GoalTrigger> {
        self.live_check().map(GoalCheck::trigger)
    }

    /// Whether the goal is being verified, and the result still counts.
    pub(super) fn is_verified(&self) -> bool {
        self.live_check().is_some()
    }

    /// Whether a claim is being verified.
    pub(super) fn checks_claim(&self) -> bool {
        self.live_trigger() == Some(GoalTrigger::Claim)
    }

    /// The phase that follows the verification in progress.
    pub(super) fn returns_to(&self) -> Option<Phase> {
        self.check().map(GoalCheck::back)
    }

    /// Whether a claim that was just rejected was the last one that is allowed.
    fn has_no_rounds_left(&self, assignment: &Assignment) -> bool {
        let rounds = self.track.as_ref().map_or(0, |track| track.rounds);
        self.in_force(assignment).is_none_or(|policy| rounds >= policy.rounds_max)
    }

    /// Whether a verification by interval is due.
    fn is_interval_over(&self, facts: GoalFacts<'_>) -> bool {
        let Some(policy) = self.in_force(facts.assignment) else { return false };
        let Some(track) = &self.track else { return false };
        let ended = facts.turns_ended;
        policy.verify_every.is_some_and(|every| ended > 0 && ended.is_multiple_of(every))
            && track.turns_at_interval != ended
            && track.answers_at_verdict != facts.answers
            && matches!(facts.phase, Phase::Ready | Phase::Between)
    }

    /// Whether the agent has worked since the last verdict, so that the goal may be reached at this limit.
    pub(super) fn may_be_reached_at_limit(&self, outcome: &Outcome, facts: GoalFacts<'_>) -> bool {
        if self.in_force(facts.assignment).is_none() {
            return false;
        }
        let Some(track) = &self.track else { return false };
        matches!(outcome, Outcome::BudgetExhausted(_))
            && !track.at_limit
            && !self.is_verified()
            && facts.answers > 0
            && track.answers_at_verdict != facts.answers
            && !matches!(facts.phase, Phase::New | Phase::MakingWorktree(_))
    }

    /// The agent's notice of a goal that was set or taken away while it was suspended or had ended.
    pub(super) fn notice(&self, assignment: &Assignment) -> Option<(ItemKind, String)> {
        if self.was_removed {
            let body = "The condition for being done is taken away: judges no longer verify it. Do what you are asked.";
            return Some((ItemKind::GoalRemoved, body.to_owned()));
        }
        let track = self.track.as_ref().filter(|track| track.is_untold)?;
        let again = if track.had_another { "another goal, in place of the one before" } else { "a goal" };
        let condition = assignment.goal_policy().map(|goal| goal.condition.as_str()).unwrap_or_default();
        let body = format!(
            "You are given {again}. You are done once this is true, and independent judges verify it against the \
             evidence:\n\n{condition}"
        );
        Some((ItemKind::GoalGiven, body))
    }
}
