//! Calling judges: one after the other, with waits after answers without a verdict.

use provost_event::{
    AsideCall, Elapsed, ErrorClass, Exhausted, GoalFinding, GoalJudged, GoalTrigger, JudgeAnswer,
    MicroDollars, ModelPolicy, ModelTrouble, Outcome, PauseReason, Purpose, Retry, RetryCause, Seq,
    SupervisorError, Usage,
};

use super::check::QuorumState;
use crate::Effect;
use crate::event::JudgeReport;
use crate::session::models::PROBE_MS;
use crate::session::{Deciding, Phase, SessionState};
use crate::step::JudgeCall;
use crate::tokens::tokens_of;

/// Waits before a judge is called again: the first; each next one is twice as long, up to the longest.
const WAIT_MS: u64 = 5_000;
const WAIT_MS_MAX: u64 = 60_000;
/// A provider that asks for a longer wait counts as failed.
const RETRY_AFTER_MS_MAX: u64 = 600_000;
/// Tokens of a judge's request besides condition and evidence.
pub const JUDGE_TOKENS: u64 = 1_500;

impl Deciding<'_> {
    /// Calls the next judge, or concludes.
    pub(in crate::session) fn ask_judge(&mut self) {
        let Some(check) = self.state.live_check() else { return };
        let times = self.state.counters.interruptions;
        let is_lost =
            check.trigger == GoalTrigger::Limit && times >= self.state.assignment.limits().interruptions_max;
        match self.state.check_standing() {
            QuorumState::Known(finding) => self.conclude(finding, None),
            QuorumState::Undecided(error) => self.undecided(&error),
            QuorumState::Open(_) if is_lost => {
                let why = format!("it was interrupted {times} times");
                self.conclude(GoalFinding::Unverified { why }, None);
            }
            QuorumState::Open(_) if self.yielded() => {}
            QuorumState::Open(_) => self.reserve(Purpose::Judge),
        }
    }

    /// Budget for the call is reserved.
    pub(in crate::session) fn judge(&mut self, output_tokens_max: u32) {
        let (Some(track), QuorumState::Open(judge)) = (&self.state.goal_track, self.state.check_standing())
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
    pub(in crate::session) fn judge_refused(&mut self, exhausted: Exhausted, is_share: bool) {
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

    pub(in crate::session) fn judged(&mut self, seq: Seq, report: JudgeReport) {
        if self.state.phase != Phase::Judging(seq) {
            return;
        }
        self.step.close(seq);
        self.settle(report.usage);
        let is_aborted = matches!(
            &report.answer,
            JudgeAnswer::Failed(SupervisorError::Llm { class: ErrorClass::Aborted, .. })
        );
        let is_live = self.state.live_check().is_some();
        if is_live && is_aborted && self.state.yielding.is_some() {
            let (call, cause) = (self.state.counters.calls, RetryCause::Interrupted);
            self.commit(Retry::at_once(call, cause, report.usage));
            return self.ask_judge();
        }
        let now = self.step.now();
        let outage = self.state.judges_outage(&report.answer, now.elapsed);
        let wait_ms = if is_live { self.state.wait_after(&report.answer, now.elapsed) } else { None };
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
            // A wrong script won't change.
            return self.finish_segment(Outcome::Failed { class: ErrorClass::ScriptMismatch, message });
        }
        match wait_ms {
            _ if !is_live => self.go_on_stopping(),
            Some(wait_ms) => {
                self.open(now.timer(wait_ms));
                if let Some((trouble, lasts_ms, suspended)) = outage {
                    self.tell_of_outage(trouble, now.at.plus_ms(wait_ms), lasts_ms, suspended);
                }
                // No agent waits for the slot until the provider is available.
                self.yielded();
            }
            None => self.ask_judge(),
        }
    }

    /// The judges reached no verdict.
    fn undecided(&mut self, error: &SupervisorError) {
        let (times, most) = self.state.failures();
        let remedy = error.remedy().map(|remedy| format!("; {remedy}")).unwrap_or_default();
        let error = format!("{error}{remedy}");
        // A claim without a verdict suspends the session; while the agent works, a few failures don't matter.
        let is_claim = self.state.live_check().is_some_and(|check| check.trigger == GoalTrigger::Claim);
        let outcome = (is_claim || times >= most)
            .then(|| Outcome::Paused { why: PauseReason::JudgeUnreachable { times, error: error.clone() } });
        self.conclude(GoalFinding::Unverified { why: error }, outcome);
    }
}

/// The error in a scripted judge's script, if that is the failure.
fn script_mismatch(answer: &JudgeAnswer) -> Option<String> {
    match answer {
        JudgeAnswer::Failed(SupervisorError::Llm { class: ErrorClass::ScriptMismatch, message, .. }) => {
            Some(message.clone())
        }
        JudgeAnswer::Failed(_) | JudgeAnswer::Verdict(_) => None,
    }
}

impl SessionState {
    /// The judge that is called now or next.
    pub(in crate::session) fn judge_in_turn(&self) -> Option<&ModelPolicy> {
        let check = self.goal_track.as_ref()?.check.as_ref()?;
        self.assignment.goal_policy()?.judges.get(check.next_judge()?)
    }

    fn judge_call(&self, usage: provost_event::Usage, model: String) -> AsideCall {
        let price = self.judge_in_turn().and_then(|judge| judge.price);
        AsideCall { call: self.counters.calls, usage, cost: price.map(|price| price.cost(usage)), model }
    }

    /// Maximum tokens of a judge's request.
    pub(in crate::session) fn judge_request_tokens(&self) -> u64 {
        let Some(policy) = self.assignment.goal_policy() else { return 0 };
        let condition = tokens_of(&policy.condition);
        u64::from(policy.evidence_tokens_max).saturating_add(condition).saturating_add(JUDGE_TOKENS)
    }

    /// The wait before a judge is called again after this answer, in milliseconds; `None` if this answer causes no
    /// further call.
    fn wait_after(&self, answer: &JudgeAnswer, now: Elapsed) -> Option<u64> {
        let (policy, track) = self.bound_by()?;
        let check = track.check.as_ref().filter(|_| script_mismatch(answer).is_none())?;
        if matches!(answer, JudgeAnswer::Failed(error) if error.remedy().is_some()) {
            return None;
        }
        let own = (WAIT_MS << track.waits.min(8)).min(WAIT_MS_MAX);
        // There is no wait that exceeds the remaining time of the run.
        let fits = |wait: &u64| self.ends.is_none_or(|ends| now.plus_ms(*wait) < ends.work);
        let asked_for = match answer {
            JudgeAnswer::Failed(SupervisorError::RateLimited { retry_after_ms }) if !check.waited => {
                Some(retry_after_ms.unwrap_or(own)).filter(|wait| *wait <= RETRY_AFTER_MS_MAX).filter(fits)
            }
            _ => None,
        };
        asked_for.or_else(|| {
            let (_, is_undecided) = check.clone().heard(answer, policy, None);
            let is_claim = is_undecided && check.trigger == GoalTrigger::Claim;
            if is_claim && track.failures.saturating_add(1) < policy.failures_max {
                return Some(own).filter(fits);
            }
            match answer {
                JudgeAnswer::Failed(error) if is_claim && error.is_outage() => {
                    self.wait_for_judge(error, own, now)
                }
                JudgeAnswer::Failed(_) | JudgeAnswer::Verdict(_) => None,
            }
        })
    }

    /// The wait for a judge's provider if outages are waited out: the patience first, then as in any suspended
    /// session.
    fn wait_for_judge(&self, error: &SupervisorError, own: u64, now: Elapsed) -> Option<u64> {
        let asked_for = match error {
            SupervisorError::RateLimited { retry_after_ms } => *retry_after_ms,
            SupervisorError::Llm { .. } | SupervisorError::Timeout(_) | SupervisorError::Parse(_) => None,
        };
        let since = self.goal_track.as_ref().and_then(|track| track.outage_since).unwrap_or(now);
        let (waited_ms, patience_ms) = (now.since_ms(since), self.assignment.limits().model_patience_ms);
        let pause = if waited_ms < patience_ms { own } else { PROBE_MS };
        let wait = asked_for.unwrap_or(pause).max(1);
        let outage_max_ms = self.models.outage_max_ms(&self.assignment);
        let left_ms = patience_ms.saturating_add(outage_max_ms).saturating_sub(waited_ms);
        let waits = outage_max_ms > 0 && left_ms > 0 && wait <= left_ms.max(PROBE_MS);
        waits.then(|| wait.min(left_ms))
    }

    /// The trouble with a judge's provider that can't be reached, how long it has lasted, and whether patience is
    /// over.
    fn judges_outage(&self, answer: &JudgeAnswer, now: Elapsed) -> Option<(ModelTrouble, u64, bool)> {
        let JudgeAnswer::Failed(error) = answer else { return None };
        let class = match error {
            SupervisorError::Llm { class, .. } => *class,
            SupervisorError::RateLimited { .. } => ErrorClass::RateLimited,
            SupervisorError::Timeout(_) | SupervisorError::Parse(_) => ErrorClass::Stalled,
        };
        let since = self.goal_track.as_ref().and_then(|track| track.outage_since)?;
        let lasts_ms = now.since_ms(since);
        let model = self.judge_in_turn().map(|judge| judge.name.clone()).unwrap_or_default();
        let trouble = ModelTrouble { model, class, message: error.to_string(), hint: String::new() };
        Some((trouble, lasts_ms, lasts_ms >= self.assignment.limits().model_patience_ms))
    }

    pub(in crate::session) fn judges_percent(&self) -> u8 {
        self.assignment.goal_policy().map_or(100, |policy| policy.budget_percent)
    }

    /// The budget that must be left besides a call and the final summary, to verify the goal at a limit.
    pub(in crate::session) fn kept_for_judges(&self, purpose: Purpose) -> (u64, MicroDollars) {
        let Some((policy, _)) = self.bound_by().filter(|_| purpose != Purpose::Judge) else {
            return (0, MicroDollars::default());
        };
        let input = self.judge_request_tokens();
        let needed = policy.judges.iter().take(usize::try_from(policy.agree).unwrap_or(usize::MAX));
        needed.fold((0, MicroDollars::default()), |(tokens, cost): (u64, MicroDollars), judge| {
            let output_tokens = u64::from(judge.output_tokens_max);
            let usage = Usage { input_tokens: input, output_tokens, ..Usage::default() };
            let more = judge.price.map(|price| price.worst().cost(usage)).unwrap_or_default();
            (tokens.saturating_add(input).saturating_add(output_tokens), cost + more)
        })
    }
}
