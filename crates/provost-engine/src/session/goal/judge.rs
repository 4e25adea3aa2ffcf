//! Calling judges: one after the other, with waits after answers without a verdict.

use provost_event::{
    AsideCall, Elapsed, ErrorClass, Exhausted, GoalFinding, GoalJudged, GoalTrigger, JudgeAnswer,
    MicroDollars, ModelPolicy, ModelTrouble, Outcome, PauseReason, Purpose, Retry, RetryCause, Seq,
    SessionId, SupervisorError, Usage,
};

use super::Goal;
use super::check::{GoalCheck, QuorumState};
use crate::Effect;
use crate::effect::JudgeCall;
use crate::event::JudgeReport;
use crate::session::{
    Deciding, Phase, assignment::Assignment, goal::verify, hooks::decisions, model_call, models,
    models::PROBE_MS, segment, yielding,
};
use crate::tokens::tokens_of;

/// Waits before a judge is called again: the first; each next one is twice as long, up to the longest.
const WAIT_MS: u64 = 5_000;
const WAIT_MS_MAX: u64 = 60_000;
/// A provider that asks for a longer wait counts as failed.
const RETRY_AFTER_MS_MAX: u64 = 600_000;
/// Tokens of a judge's request besides condition and evidence.
pub const JUDGE_TOKENS: u64 = 1_500;

/// What the decisions on judges that fail depend on besides the goal.
#[derive(Debug, Clone, Copy)]
struct JudgeFacts<'a> {
    assignment: &'a Assignment,
    now: Elapsed,
    /// The end of the time limit on the agent's work, if there is one.
    work_ends: Option<Elapsed>,
    /// How long outages are waited out, in milliseconds.
    outage_max_ms: u64,
}

/// Where and how a judge is called.
struct JudgePlace {
    session: SessionId,
    turn: u32,
    /// The last entry that counts as evidence.
    through: Seq,
    output_tokens_max: u32,
}

/// A judge's provider that can't be reached.
struct JudgeOutage {
    trouble: ModelTrouble,
    lasts_ms: u64,
    /// Patience is over.
    suspended: bool,
}

/// Budget that is kept for judges besides a call and the final summary.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::session) struct KeptBudget {
    pub(in crate::session) tokens: u64,
    pub(in crate::session) cost: MicroDollars,
}

impl Goal {
    /// The joint result of the judges so far.
    fn standing(&self, assignment: &Assignment) -> QuorumState {
        match (assignment.goal_policy(), self.live_check()) {
            (Some(policy), Some(check)) => check.standing(policy),
            _ => QuorumState::Undecided(SupervisorError::Parse(String::new())),
        }
    }

    /// The judge that is called now or next.
    pub(in crate::session) fn judge_in_turn<'a>(
        &self,
        assignment: &'a Assignment,
    ) -> Option<&'a ModelPolicy> {
        assignment.goal_policy()?.judges.get(self.check()?.next_judge()?)
    }

    fn judge_call(&self, assignment: &Assignment, place: JudgePlace) -> Option<JudgeCall> {
        let QuorumState::Open(judge) = self.standing(assignment) else { return None };
        let check = self.check()?;
        let name = self.judge_in_turn(assignment).map(|judge| &judge.name);
        let asked = &self.track.as_ref()?.asked;
        Some(JudgeCall {
            session: place.session,
            turn: place.turn,
            generation: check.generation(),
            trigger: check.trigger(),
            through: place.through,
            judge: u32::try_from(judge).unwrap_or(u32::MAX),
            again: check.asks_again(),
            asked_before: name.and_then(|name| asked.get(name)).copied().unwrap_or_default(),
            output_tokens_max: place.output_tokens_max,
        })
    }

    /// The outcome if the judges reached no verdict. A claim without a verdict suspends the session; while the
    /// agent works, a few failures don't matter.
    fn outcome_without_verdict(&self, assignment: &Assignment, error: &str) -> Option<Outcome> {
        let policy = self.in_force(assignment);
        let times = policy.and(self.track.as_ref()).map_or(0, |track| track.failures);
        let suspends = self.checks_claim() || policy.is_none_or(|policy| times >= policy.failures_max);
        let why = PauseReason::JudgeUnreachable { times, error: error.to_owned() };
        suspends.then_some(Outcome::Paused { why })
    }

    /// The wait before a judge is called again after this answer, in milliseconds; `None` if this answer causes no
    /// further call.
    fn wait_after(&self, answer: &JudgeAnswer, facts: JudgeFacts<'_>) -> Option<u64> {
        let policy = self.in_force(facts.assignment)?;
        let track = self.track.as_ref()?;
        let check = track.check.as_ref().filter(|_| script_mismatch(answer).is_none())?;
        if matches!(answer, JudgeAnswer::Failed(error) if error.remedy().is_some()) {
            return None;
        }
        let own = (WAIT_MS << track.waits.min(8)).min(WAIT_MS_MAX);
        // There is no wait that exceeds the remaining time of the run.
        let fits = |wait: &u64| facts.work_ends.is_none_or(|ends| facts.now.plus_ms(*wait) < ends);
        let asked_for = match answer {
            JudgeAnswer::Failed(SupervisorError::RateLimited { retry_after_ms }) if !check.has_waited() => {
                Some(retry_after_ms.unwrap_or(own)).filter(|wait| *wait <= RETRY_AFTER_MS_MAX).filter(fits)
            }
            _ => None,
        };
        asked_for.or_else(|| {
            let is_undecided = check.clone().heard(answer, policy, None).is_undecided;
            let is_claim = is_undecided && check.trigger() == GoalTrigger::Claim;
            if is_claim && track.failures.saturating_add(1) < policy.failures_max {
                return Some(own).filter(fits);
            }
            match answer {
                JudgeAnswer::Failed(error) if is_claim && error.is_outage() => {
                    self.wait_for_judge(error, own, facts)
                }
                JudgeAnswer::Failed(_) | JudgeAnswer::Verdict(_) => None,
            }
        })
    }

    /// The wait for a judge's provider if outages are waited out: the patience first, then as in any suspended
    /// session.
    fn wait_for_judge(&self, error: &SupervisorError, own: u64, facts: JudgeFacts<'_>) -> Option<u64> {
        let asked_for = match error {
            SupervisorError::RateLimited { retry_after_ms } => *retry_after_ms,
            SupervisorError::Llm { .. } | SupervisorError::Timeout(_) | SupervisorError::Parse(_) => None,
        };
        let since = self.track.as_ref().and_then(|track| track.outage_since).unwrap_or(facts.now);
        let waited_ms = facts.now.since_ms(since);
        let patience_ms = facts.assignment.limits().model_patience_ms;
        let pause = if waited_ms < patience_ms { own } else { PROBE_MS };
        let wait = asked_for.unwrap_or(pause).max(1);
        let left_ms = patience_ms.saturating_add(facts.outage_max_ms).saturating_sub(waited_ms);
        let waits = facts.outage_max_ms > 0 && left_ms > 0 && wait <= left_ms.max(PROBE_MS);
        waits.then(|| wait.min(left_ms))
    }

    /// The trouble with a judge's provider that can't be reached, how long it has lasted, and whether patience is
    /// over.
    fn judges_outage(&self, answer: &JudgeAnswer, facts: JudgeFacts<'_>) -> Option<JudgeOutage> {
        let JudgeAnswer::Failed(error) = answer else { return None };
        let class = match error {
            SupervisorError::Llm { class, .. } => *class,
            SupervisorError::RateLimited { .. } => ErrorClass::RateLimited,
            SupervisorError::Timeout(_) | SupervisorError::Parse(_) => ErrorClass::Stalled,
        };
        let since = self.track.as_ref().and_then(|track| track.outage_since)?;
        let lasts_ms = facts.now.since_ms(since);
        let model = self.judge_in_turn(facts.assignment).map(|judge| judge.name.clone()).unwrap_or_default();
        let trouble =
            ModelTrouble { model, class, message: error.to_string(), hint: String::new(), tried: Vec::new() };
        let suspended = lasts_ms >= facts.assignment.limits().model_patience_ms;
        Some(JudgeOutage { trouble, lasts_ms, suspended })
    }

    /// The budget that must be left besides a call and the final summary, to verify the goal at a limit.
    pub(in crate::session) fn kept_budget(&self, assignment: &Assignment) -> KeptBudget {
        let Some(policy) = self.in_force(assignment) else { return KeptBudget::default() };
        let input_tokens = request_tokens(assignment);
        let needed = policy.judges.iter().take(usize::try_from(policy.agree).unwrap_or(usize::MAX));
        needed.fold(KeptBudget::default(), |kept, judge| {
            let output_tokens = u64::from(judge.output_tokens_max);
            let usage = Usage { input_tokens, output_tokens, ..Usage::default() };
            let cost = judge.price.map(|price| price.worst().cost(usage)).unwrap_or_default();
            let tokens = kept.tokens.saturating_add(input_tokens).saturating_add(output_tokens);
            KeptBudget { tokens, cost: kept.cost + cost }
        })
    }
}

/// Maximum tokens of a judge's request.
pub(in crate::session) fn request_tokens(assignment: &Assignment) -> u64 {
    let Some(policy) = assignment.goal_policy() else { return 0 };
    let condition = tokens_of(&policy.condition);
    u64::from(policy.evidence_tokens_max).saturating_add(condition).saturating_add(JUDGE_TOKENS)
}

/// Calls the next judge, or concludes.
pub(in crate::session) fn ask_judge(deciding: &mut Deciding<'_>) {
    let Some(check) = deciding.state.goal.live_check() else { return };
    let times = deciding.state.lifecycle.interruptions();
    let is_lost = check.trigger() == GoalTrigger::Limit
        && times >= deciding.state.assignment.limits().interruptions_max;
    match deciding.state.goal.standing(&deciding.state.assignment) {
        QuorumState::Known(finding) => verify::conclude(deciding, finding, None),
        QuorumState::Undecided(error) => undecided(deciding, &error),
        QuorumState::Open(_) if is_lost => {
            let why = format!("it was interrupted {times} times");
            verify::conclude(deciding, GoalFinding::Unverified { why }, None);
        }
        QuorumState::Open(_) if yielding::yielded(deciding) => {}
        QuorumState::Open(_) => model_call::reserve(deciding, Purpose::Judge),
    }
}

/// Budget for the call is reserved.
pub(in crate::session) fn judge(deciding: &mut Deciding<'_>, output_tokens_max: u32) {
    let place = JudgePlace {
        session: deciding.state.session,
        turn: model_call::turn_of(deciding.state, Purpose::Judge),
        through: deciding.state.head,
        output_tokens_max,
    };
    let Some(call) = deciding.state.goal.judge_call(&deciding.state.assignment, place) else { return };
    deciding.open(Effect::Judge(call));
}

/// There is no budget for a judge; with `is_share` only the judges' part of it is used up.
pub(in crate::session) fn judge_refused(deciding: &mut Deciding<'_>, exhausted: Exhausted, is_share: bool) {
    if is_share {
        let error =
            format!("the judges' part of the run's budget is used up ({exhausted}): give the run more");
        let outcome =
            Outcome::Paused { why: PauseReason::JudgeUnreachable { times: 0, error: error.clone() } };
        return verify::conclude(deciding, GoalFinding::Unverified { why: error }, Some(outcome));
    }
    let why = format!("there is no budget left for a judge ({exhausted})");
    verify::conclude(deciding, GoalFinding::Unverified { why }, Some(Outcome::BudgetExhausted(exhausted)));
}

pub(in crate::session) fn judged(deciding: &mut Deciding<'_>, seq: Seq, report: JudgeReport) {
    if deciding.state.lifecycle.phase() != Phase::Judging(seq) {
        return;
    }
    deciding.step.close(seq);
    deciding.settle(report.usage);
    let is_aborted = matches!(
        &report.answer,
        JudgeAnswer::Failed(SupervisorError::Llm { class: ErrorClass::Aborted, .. })
    );
    let is_live = deciding.state.goal.is_verified();
    if is_live && is_aborted && deciding.state.lifecycle.is_yielding() {
        let call = deciding.state.turns.model_calls();
        deciding.commit(Retry::at_once(call, RetryCause::Interrupted, report.usage));
        return ask_judge(deciding);
    }
    let now = deciding.step.now();
    let outage = deciding.state.goal.judges_outage(&report.answer, judge_facts(deciding));
    let wait_ms = deciding.state.goal.wait_after(&report.answer, judge_facts(deciding)).filter(|_| is_live);
    let generation = deciding.state.goal.check().map_or(0, GoalCheck::generation);
    let judge = model_call::judge_in_turn(deciding.state);
    let call = AsideCall {
        call: deciding.state.turns.model_calls(),
        usage: report.usage,
        cost: judge.and_then(|judge| judge.price).map(|price| price.cost(report.usage)),
        model: report.model,
    };
    let judge = judge.map(|judge| judge.name.clone()).unwrap_or_default();
    let JudgeReport { answer, duration_ms, evidence, .. } = report;
    let mismatch = script_mismatch(&answer).filter(|_| is_live);
    deciding.commit(GoalJudged {
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
        return segment::finish(deciding, Outcome::Failed { class: ErrorClass::ScriptMismatch, message });
    }
    match wait_ms {
        _ if !is_live => decisions::go_on_stopping(deciding),
        Some(wait_ms) => {
            deciding.open(now.timer(wait_ms));
            if let Some(JudgeOutage { trouble, lasts_ms, suspended }) = outage {
                models::tell_of_outage(deciding, trouble, now.at.plus_ms(wait_ms), lasts_ms, suspended);
            }
            // No agent waits for the slot until the provider is available.
            yielding::yielded(deciding);
        }
        None => ask_judge(deciding),
    }
}

/// The judges reached no verdict.
fn undecided(deciding: &mut Deciding<'_>, error: &SupervisorError) {
    let remedy = error.remedy().map(|remedy| format!("; {remedy}")).unwrap_or_default();
    let error = format!("{error}{remedy}");
    let outcome = deciding.state.goal.outcome_without_verdict(&deciding.state.assignment, &error);
    verify::conclude(deciding, GoalFinding::Unverified { why: error }, outcome);
}

fn judge_facts<'a>(deciding: &'a Deciding<'_>) -> JudgeFacts<'a> {
    JudgeFacts {
        assignment: &deciding.state.assignment,
        now: deciding.step.now().elapsed,
        work_ends: deciding.state.turns.work_ends(),
        outage_max_ms: deciding.state.models.outage_max_ms(&deciding.state.assignment),
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
