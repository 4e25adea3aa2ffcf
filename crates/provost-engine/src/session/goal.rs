//! Whether the goal is reached: the claim is put to the stop hooks, then to the judges, and what they say decides.

mod check;
mod progress;

use std::collections::BTreeMap;

use provost_event::{
    AsideCall, ErrorClass, Exhausted, GoalCheckStarted, GoalCleared, GoalFinding, GoalJudged, GoalPolicy,
    GoalState, GoalTrigger, GoalVerdict, ItemKind, JudgeAnswer, MicroDollars, ModelPolicy, Origin, Outcome,
    PauseReason, Purpose, Retry, RetryCause, Seq, StopRequested, SupervisorError, SystemItem, Usage, Verdict,
};
use serde::{Deserialize, Serialize};

pub(super) use check::{Check, Standing as CheckStanding};
pub(super) use progress::Progress;

use super::{Deciding, Phase, SessionState};
use crate::event::JudgeReport;
use crate::step::JudgeCall;
use crate::tokens::tokens_of;
use crate::{Effect, RunEvent};

/// Waits before a judge is asked again: the first, each next one twice as long, and the longest.
const WAIT_MS: u64 = 5_000;
const WAIT_MS_MAX: u64 = 60_000;
/// A provider that asks to wait longer than this counts as failed.
const RETRY_AFTER_MS_MAX: u64 = 600_000;
/// Tokens of a judge's request besides condition and evidence.
pub const JUDGE_TOKENS: u64 = 1_500;

/// How a goal stands; the fold of what the log says of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GoalTrack {
    /// Counted up by whatever changes how the goal stands.
    pub(super) generation: u32,
    /// The verification that goes on.
    pub(super) check: Option<Check>,
    /// Claims that were found wrong.
    pub(super) rounds: u32,
    /// Times in a row that the judges couldn't tell.
    pub(super) failures: u32,
    /// Waits since the last verdict.
    pub(super) waits: u32,
    /// Answers of judges, by the policy's name for them.
    pub(super) asked: BTreeMap<String, u32>,
    pub(super) progress: Progress,
    /// The answers that the agent had given at the last verdict.
    pub(super) answers_at_verdict: u32,
    /// The turns that had ended when it was last verified in between.
    pub(super) turns_at_interval: u32,
    pub(super) is_cleared: bool,
    /// It was verified at the present limit.
    pub(super) at_limit: bool,
    pub(super) finding: Option<GoalFinding>,
}

/// How an agent's goal stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GoalStatus {
    /// What must be true.
    pub condition: String,
    /// How it stands.
    pub state: GoalState,
    /// Counted up by each change of `state`.
    pub generation: u32,
    /// Claims that were found wrong, since somebody last had the agent go on.
    pub rounds: u32,
    /// Times in a row that the judges couldn't tell.
    pub failures: u32,
    /// Turns in a row without measurable progress.
    pub idle_turns: u32,
    /// What the last verification came to.
    pub finding: Option<GoalFinding>,
}

impl Deciding<'_> {
    /// Begins to verify the goal: first the stop hooks are asked, then the judges.
    pub(super) fn start_check(&mut self, trigger: GoalTrigger) {
        let Some(track) = &self.state.goal_track else { return };
        let generation = track.generation.saturating_add(1);
        let turn = self.state.turn_checked(trigger);
        self.commit(GoalCheckStarted { trigger, turn, generation });
        match self.state.phase {
            Phase::Wishing(_) => self.put_stop_question(),
            _ => self.ask_judge(),
        }
    }

    /// Goes on with a verification that was interrupted.
    pub(super) fn go_on_checking(&mut self) {
        match (self.state.live_check().map(|check| check.trigger), self.state.phase) {
            (Some(GoalTrigger::Claim), Phase::Wishing(_)) => self.wish_to_stop(),
            (Some(_), Phase::Wishing(_)) => self.put_stop_question(),
            (Some(_), _) => self.ask_judge(),
            (None, _) => self.go_on_stopping(),
        }
    }

    /// Whoever asked the judge, or the stop hooks for a verification, is gone. Returns whether that was what was lost.
    pub(super) fn recover_check(&mut self, lost: Phase, fresh: &[Seq]) -> bool {
        match lost {
            Phase::Judging(seq) if fresh.contains(&seq) && self.state.live_check().is_some() => {}
            Phase::Judging(seq) => {
                self.step.close(seq);
                self.settle(Usage::default());
                let (call, cause) = (self.state.counters.calls, RetryCause::Interrupted);
                self.commit(Retry { call, cause, delay_ms: 0, usage: Usage::default() });
                self.go_on_checking();
            }
            Phase::JudgeWaits(seq) => {
                self.step.close(seq);
                self.go_on_checking();
            }
            Phase::Verifying => self.go_on_checking(),
            Phase::Wishing(seq) if self.state.live_check().is_some() => {
                self.step.close(seq);
                match self.state.live_check().map(|check| check.trigger) {
                    // Timers of questions may have been set by the same entry.
                    Some(GoalTrigger::Limit) => self.start_check(GoalTrigger::Limit),
                    _ => self.go_on_checking(),
                }
            }
            _ => return false,
        }
        true
    }

    /// Verifies at a limit, once, whether the goal is reached all the same. Returns whether that is asked.
    pub(super) fn checks_at_limit(&mut self, outcome: &Outcome) -> bool {
        if !self.state.may_check_at_limit(outcome) {
            return false;
        }
        if let Phase::Waiting(timer) | Phase::JudgeWaits(timer) = self.state.phase {
            self.step.close(timer);
        }
        if self.state.stopping.as_ref() != Some(outcome) {
            self.commit(StopRequested { agent: None, outcome: outcome.clone(), for_child: false });
        }
        self.start_check(GoalTrigger::Limit);
        true
    }

    /// Asks the next judge, or concludes.
    pub(super) fn ask_judge(&mut self) {
        let Some(check) = self.state.live_check() else { return };
        let times = self.state.counters.interruptions;
        let is_lost = check.trigger == GoalTrigger::Limit && times >= self.state.limits().interruptions_max;
        match self.state.check_standing() {
            CheckStanding::Known(finding) => self.conclude(finding, None),
            CheckStanding::Undecided(error) => self.undecided(error.to_string()),
            CheckStanding::Open(_) if is_lost => {
                let why = format!("it was interrupted {times} times");
                self.conclude(GoalFinding::Unverified { why }, None);
            }
            CheckStanding::Open(_) if self.made_way() => {}
            CheckStanding::Open(_) => self.reserve(Purpose::Judge),
        }
    }

    /// There is budget for the call.
    pub(super) fn judge(&mut self, output_tokens_max: u32) {
        let (Some(track), CheckStanding::Open(judge)) = (&self.state.goal_track, self.state.check_standing())
        else {
            return;
        };
        let Some(check) = &track.check else { return };
        let name = self.state.judge_in_turn().map(|judge| &judge.name);
        let call = JudgeCall {
            session: self.state.session,
            turn: self.state.turn_checked(check.trigger),
            generation: check.generation,
            trigger: check.trigger,
            through: self.state.head,
            judge: u32::try_from(judge).unwrap_or(u32::MAX),
            again: check.again,
            asked_before: name.and_then(|name| track.asked.get(name)).copied().unwrap_or_default(),
            output_tokens_max,
        };
        self.open(Effect::Judge(call));
    }

    /// There is no budget for a judge; with `is_share` only the judges' part of it is used up.
    pub(super) fn judge_refused(&mut self, exhausted: Exhausted, is_share: bool) {
        if is_share {
            let error =
                format!("the judges' part of the run's budget is used up ({exhausted}): give the run more");
            let outcome =
                Outcome::Paused { why: PauseReason::JudgeUnreachable { times: 0, error: error.clone() } };
            return self.conclude(GoalFinding::Unverified { why: error }, Some(outcome));
        }
        let why = format!("there is no budget left for a judge ({exhausted})");
        self.conclude(GoalFinding::Unverified { why }, Some(Outcome::BudgetExhausted(exhausted)));
    }

    pub(super) fn judged(&mut self, seq: Seq, report: JudgeReport) {
        self.step.close(seq);
        self.settle(report.usage);
        let is_aborted = matches!(
            &report.answer,
            JudgeAnswer::Failed(SupervisorError::Llm { class: ErrorClass::Aborted, .. })
        );
        let is_live = self.state.live_check().is_some();
        if is_live && is_aborted && self.state.yielding.is_some() {
            let (call, cause) = (self.state.counters.calls, RetryCause::Interrupted);
            self.commit(Retry { call, cause, delay_ms: 0, usage: report.usage });
            return self.ask_judge();
        }
        let wait_ms = if is_live { self.state.wait_after(&report.answer, self.step.now()) } else { None };
        let generation = self.state.goal_track.as_ref().and_then(|track| track.check.as_ref());
        let generation = generation.map_or(0, |check| check.generation);
        let judge = self.state.judge_in_turn().map(|judge| judge.name.clone()).unwrap_or_default();
        let call = self.state.judge_call(report.usage, report.model);
        let JudgeReport { answer, duration_ms, evidence, .. } = report;
        let mismatch = script_mismatch(&answer).filter(|_| is_live);
        self.commit(GoalJudged {
            generation,
            judge,
            answer,
            call,
            duration_ms,
            evidence,
            wait_ms,
            stale: !is_live,
        });
        if let Some(message) = mismatch {
            // A script that is wrong stays wrong.
            return self.rest(Outcome::Failed { class: ErrorClass::ScriptMismatch, message });
        }
        match wait_ms {
            _ if !is_live => self.go_on_stopping(),
            Some(wait_ms) => {
                let due = self.step.now().plus_ms(wait_ms);
                self.open(Effect::Timer { due });
                // Nobody waits for a slot until a provider has time.
                self.made_way();
            }
            None => self.ask_judge(),
        }
    }

    /// The judges couldn't tell.
    fn undecided(&mut self, error: String) {
        let (times, most) = self.state.failures();
        // A claim that nobody can judge stands still; while the agent works, a failure or two don't matter.
        let is_claim = self.state.live_check().is_some_and(|check| check.trigger == GoalTrigger::Claim);
        let outcome = (is_claim || times >= most)
            .then(|| Outcome::Paused { why: PauseReason::JudgeUnreachable { times, error: error.clone() } });
        self.conclude(GoalFinding::Unverified { why: error }, outcome);
    }

    /// Records what the verification came to, and does what follows: `rest` where nobody knows, if that is given.
    fn conclude(&mut self, finding: GoalFinding, rest: Option<Outcome>) {
        let Some(check) = self.state.live_check() else { return };
        let (trigger, generation) = (check.trigger, check.generation);
        let turn = self.state.turn_checked(trigger);
        self.commit(GoalVerdict { trigger, turn, generation, finding: finding.clone() });
        let unheard = self.state.unheard || self.state.has_open_prompts();
        match (finding, trigger) {
            (GoalFinding::Achieved { .. }, GoalTrigger::Claim) => self.let_go(),
            (GoalFinding::Achieved { .. }, _) if !unheard => {
                let verdict = Verdict::find(&self.state.turn_text);
                if matches!(self.state.phase, Phase::Wishing(_)) {
                    // Time was over amid the claim.
                    self.end_turn(0);
                }
                self.rest(Outcome::Completed { verdict });
            }
            (GoalFinding::Achieved { .. }, _) => self.go_on_unfinished(None),
            (GoalFinding::NotAchieved { reasoning, suggestions, .. }, trigger) => {
                self.tell_what_is_missing(trigger, &reasoning, &suggestions);
                self.not_achieved(trigger, reasoning);
            }
            (GoalFinding::Unverified { .. }, GoalTrigger::Limit) => self.go_on_unfinished(None),
            (GoalFinding::Unverified { .. }, GoalTrigger::Interval) => {
                let unreachable =
                    |why: &PauseReason| matches!(why, PauseReason::JudgeUnreachable { times: 1.., .. });
                let rest = rest.filter(|rest| matches!(rest, Outcome::Paused { why } if unreachable(why)));
                self.go_on_unfinished(rest);
            }
            (GoalFinding::Unverified { .. }, GoalTrigger::Claim) => self.go_on_unfinished(rest),
        }
    }

    fn tell_what_is_missing(&mut self, trigger: GoalTrigger, reasoning: &str, suggestions: &[String]) {
        let opening = match trigger {
            GoalTrigger::Claim => "The goal isn't reached yet, so you can't stop.",
            GoalTrigger::Interval | GoalTrigger::Limit => "The goal isn't reached yet.",
        };
        let mut body = format!("{opening} An independent judge who saw the evidence says:\n\n{reasoning}");
        if !suggestions.is_empty() {
            let lines = suggestions.iter().map(|line| format!("\n- {line}")).collect::<String>();
            body.push_str("\n\nWhat it suggests:");
            body.push_str(&lines);
        }
        self.commit(SystemItem { item: ItemKind::GoalNotReached, body, origin: Origin::Judges });
    }

    fn not_achieved(&mut self, trigger: GoalTrigger, reasoning: String) {
        if trigger != GoalTrigger::Claim {
            return self.go_on_unfinished(None);
        }
        self.end_turn(0);
        let (rounds, most) = self.state.rounds();
        if rounds >= most {
            self.rest(Outcome::Blocked { reasons: vec![format!("judge: {reasoning}")] });
        } else {
            self.next_turn();
        }
    }

    /// Rests as `rest` says, or as was asked for before; or else goes on with the work.
    pub(super) fn go_on_unfinished(&mut self, rest: Option<Outcome>) {
        match rest.or_else(|| self.state.stopping.clone()) {
            Some(outcome) => self.rest(outcome),
            None => self.next_turn(),
        }
    }

    /// A turn has ended: rests if nothing has moved for too long, or verifies if that is due. Returns whether it does.
    pub(super) fn looks_at_goal(&mut self) -> bool {
        if self.state.stopping.is_some() || self.state.outcome.is_some() {
            return false;
        }
        if let Some(turns) = self.state.stuck_for() {
            self.rest(Outcome::Paused { why: PauseReason::Stuck { turns } });
            return true;
        }
        let is_due = self.state.is_interval_over();
        if is_due {
            self.start_check(GoalTrigger::Interval);
        }
        is_due
    }

    /// Nobody wants the goal any more. Whatever is in flight stops, and the session rests.
    pub(super) fn clear_goal(&mut self, by: String) {
        if !self.state.has_goal() {
            return;
        }
        self.commit(GoalCleared { by: by.clone() });
        let agent = Some(self.state.session.agent);
        if self.state.outcome.as_ref().is_some_and(Outcome::is_preempted) {
            // It would go on by itself.
            return self.tell_run(RunEvent::Pause { agent, by });
        }
        if self.state.outcome.is_some() || self.state.closing().is_some() {
            return;
        }
        match (self.state.stopping.clone(), self.state.phase) {
            (Some(_), Phase::Judging(seq)) => self.step.abort(seq),
            (Some(outcome), Phase::Verifying | Phase::JudgeWaits(_)) => self.rest(outcome),
            (Some(_), _) => {}
            (None, _) => {
                if self.state.calls.iter().any(|call| self.state.is_delegated(&call.id)) {
                    self.tell_run(RunEvent::Pause { agent, by: by.clone() });
                }
                self.stop(Outcome::Paused { why: PauseReason::GoalCleared { by } });
            }
        }
    }
}

/// What is wrong with a scripted judge's script, if that is it.
fn script_mismatch(answer: &JudgeAnswer) -> Option<String> {
    match answer {
        JudgeAnswer::Failed(SupervisorError::Llm { class: ErrorClass::ScriptMismatch, message }) => {
            Some(message.clone())
        }
        JudgeAnswer::Failed(_) | JudgeAnswer::Verdict(_) => None,
    }
}

impl SessionState {
    /// How the agent's goal stands; `None` for one that has none.
    #[must_use]
    pub fn goal(&self) -> Option<GoalStatus> {
        let (policy, track) = (self.goal_policy()?, self.goal_track.as_ref()?);
        Some(GoalStatus {
            condition: policy.condition.clone(),
            state: self.goal_state(track),
            generation: track.generation,
            rounds: track.rounds,
            failures: track.failures,
            idle_turns: track.progress.idle_turns,
            finding: track.finding.clone(),
        })
    }

    fn goal_state(&self, track: &GoalTrack) -> GoalState {
        match &self.outcome {
            Some(Outcome::Failed { .. }) => GoalState::Failed,
            _ if track.is_cleared => GoalState::Aborted,
            Some(Outcome::Completed { .. }) => GoalState::Achieved,
            Some(Outcome::Aborted { .. } | Outcome::Cancelled { .. }) => GoalState::Aborted,
            Some(Outcome::Blocked { .. }) => GoalState::Blocked,
            Some(Outcome::Paused { why: PauseReason::Stuck { .. } }) => GoalState::Stuck,
            Some(Outcome::Paused { .. } | Outcome::BudgetExhausted(_)) => GoalState::Paused,
            None if self.live_check().is_some() => GoalState::Verifying,
            None => GoalState::Running,
        }
    }

    fn goal_policy(&self) -> Option<&GoalPolicy> {
        self.policy.as_ref()?.goal.as_deref()
    }

    /// The goal that binds the agent: it has one, and nobody has cleared it.
    pub(super) fn bound_by(&self) -> Option<(&GoalPolicy, &GoalTrack)> {
        let track = self.goal_track.as_deref().filter(|track| !track.is_cleared)?;
        Some((self.goal_policy()?, track))
    }

    pub(super) fn has_goal(&self) -> bool {
        self.bound_by().is_some()
    }

    /// The verification that goes on, if what it comes to still counts.
    pub(super) fn live_check(&self) -> Option<&Check> {
        self.goal_track.as_ref()?.check.as_ref().filter(|check| !check.is_stale)
    }

    /// Whether the stop hooks' errors stand against a stop.
    pub(super) fn errors_block(&self) -> bool {
        self.bound_by()
            .is_some_and(|(policy, _)| policy.stop_hook_errors == provost_event::OnHookError::Block)
    }

    fn check_standing(&self) -> CheckStanding {
        match (self.goal_policy(), self.live_check()) {
            (Some(policy), Some(check)) => check.standing(policy),
            _ => CheckStanding::Undecided(SupervisorError::Parse(String::new())),
        }
    }

    /// The judge that is asked, or is next.
    pub(super) fn judge_in_turn(&self) -> Option<&ModelPolicy> {
        let check = self.goal_track.as_ref()?.check.as_ref()?;
        self.goal_policy()?.judges.get(check.next_judge()?)
    }

    fn judge_call(&self, usage: provost_event::Usage, model: String) -> AsideCall {
        let price = self.judge_in_turn().and_then(|judge| judge.price);
        AsideCall { call: self.counters.calls, usage, cost: price.map(|price| price.cost(usage)), model }
    }

    /// Tokens of a judge's request, at most.
    pub(super) fn judge_request_tokens(&self) -> u64 {
        let Some(policy) = self.goal_policy() else { return 0 };
        let condition = tokens_of(&policy.condition);
        u64::from(policy.evidence_tokens_max).saturating_add(condition).saturating_add(JUDGE_TOKENS)
    }

    /// The turn that a verification is about.
    pub(super) fn turn_checked(&self, trigger: GoalTrigger) -> u32 {
        match trigger {
            GoalTrigger::Claim => self.next_turn(),
            GoalTrigger::Interval | GoalTrigger::Limit => self.counters.turns_ended.max(1),
        }
    }

    /// How long to wait before a judge is asked again after this answer; `None` where none is asked again because of
    /// it.
    fn wait_after(&self, answer: &JudgeAnswer, now: provost_event::Timestamp) -> Option<u64> {
        let (policy, track) = self.bound_by()?;
        let check = track.check.as_ref().filter(|_| script_mismatch(answer).is_none())?;
        let own = (WAIT_MS << track.waits.min(8)).min(WAIT_MS_MAX);
        // A wait that the run's time doesn't cover is none.
        let fits = |wait: &u64| self.deadline.is_none_or(|deadline| now.plus_ms(*wait) < deadline);
        let asked_for = match answer {
            JudgeAnswer::Failed(SupervisorError::RateLimited { retry_after_ms }) if !check.waited => {
                Some(retry_after_ms.unwrap_or(own)).filter(|wait| *wait <= RETRY_AFTER_MS_MAX).filter(fits)
            }
            _ => None,
        };
        asked_for.or_else(|| {
            let (_, is_undecided) = check.clone().heard(answer, policy, None);
            let is_asked_again = is_undecided
                && check.trigger == GoalTrigger::Claim
                && track.failures.saturating_add(1) < policy.failures_max;
            is_asked_again.then_some(own).filter(fits)
        })
    }

    /// Whether a claim is verified.
    pub(super) fn checks_claim(&self) -> bool {
        self.live_check().is_some_and(|check| check.trigger == GoalTrigger::Claim)
    }

    /// Whether the next model call is a judge's.
    pub(super) fn wants_judge(&self) -> bool {
        matches!(self.phase, Phase::Verifying | Phase::JudgeWaits(_)) && self.live_check().is_some()
    }

    /// Whether the session goes back to `phase` after last words, or after a last look at the goal.
    pub(super) fn stands_aside_of(&self, phase: Phase) -> bool {
        let check = self.goal_track.as_ref().and_then(|track| track.check.as_ref());
        self.before_last_words == Some(phase) || check.is_some_and(|check| check.back == phase)
    }

    /// The open effect of what is done at a limit before the session rests: last words, or a last look at the goal.
    pub(super) fn ending_at_limit(&self) -> Option<Seq> {
        let at_limit = self.live_check().is_some_and(|check| check.trigger == GoalTrigger::Limit);
        match self.phase {
            Phase::Judging(seq) | Phase::Wishing(seq) if at_limit => Some(seq),
            _ => self.wrapping_up(),
        }
    }

    pub(super) fn judges_percent(&self) -> u8 {
        self.goal_policy().map_or(100, |policy| policy.budget_percent)
    }

    /// What must be left of the budget beside a call and last words, so that the goal can be verified at a limit.
    pub(super) fn kept_for_judges(&self, purpose: Purpose) -> (u64, MicroDollars) {
        let Some((policy, _)) = self.bound_by().filter(|_| purpose != Purpose::Judge) else {
            return (0, MicroDollars::default());
        };
        let input = self.judge_request_tokens();
        let needed = policy.judges.iter().take(usize::try_from(policy.agree).unwrap_or(usize::MAX));
        needed.fold((0, MicroDollars::default()), |(tokens, cost): (u64, MicroDollars), judge| {
            let output_tokens = u64::from(judge.output_tokens_max);
            let usage = Usage { input_tokens: input, output_tokens, ..Usage::default() };
            let more = judge.price.map(|price| price.cost(usage)).unwrap_or_default();
            (tokens.saturating_add(input).saturating_add(output_tokens), cost + more)
        })
    }

    fn failures(&self) -> (u32, u32) {
        self.bound_by().map_or((0, 0), |(policy, track)| (track.failures, policy.failures_max))
    }

    fn rounds(&self) -> (u32, u32) {
        self.bound_by().map_or((0, 0), |(policy, track)| (track.rounds, policy.rounds_max))
    }

    /// For how many turns nothing has moved, if those are too many.
    fn stuck_for(&self) -> Option<u32> {
        let (policy, track) = self.bound_by()?;
        Some(track.progress.idle_turns).filter(|turns| *turns >= policy.stuck_turns)
    }

    fn is_interval_over(&self) -> bool {
        let Some((policy, track)) = self.bound_by() else { return false };
        let ended = self.counters.turns_ended;
        policy.verify_every.is_some_and(|every| ended > 0 && ended.is_multiple_of(every))
            && track.turns_at_interval != ended
            && track.answers_at_verdict != self.counters.answers
            && matches!(self.phase, Phase::Ready | Phase::Between)
    }

    /// Whether something was done since the last verdict that may have reached the goal.
    fn may_check_at_limit(&self, outcome: &Outcome) -> bool {
        let Some((_, track)) = self.bound_by() else { return false };
        matches!(outcome, Outcome::BudgetExhausted(_))
            && !track.at_limit
            && self.live_check().is_none()
            && self.counters.answers > 0
            && track.answers_at_verdict != self.counters.answers
            && !matches!(self.phase, Phase::New | Phase::MakingWorktree(_))
            && self.running().next().is_none()
            && self.counters.interruptions < self.limits().interruptions_max
    }
}
