//! The next model call: whether it can be made, its budget, and its request.

use provost_event::{Exhausted, GoalTrigger, ModelCalled, ModelPolicy, Outcome, Purpose, TimeLeft};

use super::{Deciding, Phase, SessionState};
use crate::session::conversation::{RequestTokens, SUMMARY_QUESTION, aside_effort};
use crate::session::{
    announce,
    announce::ReservedLimits,
    conversation::compact,
    final_summary,
    goal::{KeptBudget, judge},
    hooks::ask,
    segment, yielding,
};
use crate::{CallModel, Effect, ReserveRequest, RunEvent};

/// Makes the next model call, unless something prevents it.
pub(in crate::session) fn next_call(deciding: &mut Deciding<'_>) {
    if let Some(outcome) = deciding.state.lifecycle.stopping().cloned() {
        return segment::finish(deciding, outcome);
    }
    if yielding::yielded(deciding) {
        return;
    }
    if let Some(exhausted) = deciding.state.turns.exhausted() {
        return segment::finish(deciding, Outcome::BudgetExhausted(exhausted));
    }
    announce::announce_last_turn(deciding);
    // A new message is part of the next call, if hooks accept it.
    if deciding.state.lifecycle.phase() == Phase::Ready && deciding.state.hooks.have_prompts() {
        return;
    }
    if compact::make_room(deciding) {
        return;
    }
    if let Some(about) = ask::preparation(deciding.state) {
        return deciding.ask(about);
    }
    reserve(deciding, Purpose::Turn);
}

pub(in crate::session) fn refused_budget(deciding: &mut Deciding<'_>, exhausted: Exhausted, is_judges: bool) {
    match next_purpose(deciding.state) {
        Purpose::FinalSummary => final_summary::final_summary_refused(deciding, exhausted),
        Purpose::Judge => judge::judge_refused(deciding, exhausted, is_judges),
        // A summary without budget is skipped.
        Purpose::Summary if deciding.state.window().can_shorten_by_rule() => {
            if compact::shorten_by_rule(deciding) {
                next_call(deciding);
            }
        }
        Purpose::Summary | Purpose::Turn | Purpose::External | Purpose::Hook => {
            segment::finish(deciding, Outcome::BudgetExhausted(exhausted))
        }
    }
}

pub(in crate::session) fn reserve(deciding: &mut Deciding<'_>, purpose: Purpose) {
    let kept = match purpose {
        Purpose::Judge => KeptBudget::default(),
        _ => deciding.state.goal.kept_budget(&deciding.state.assignment),
    };
    let tokens = reserved_tokens(deciding.state, purpose);
    let request = ReserveRequest {
        session: deciding.state.session,
        call: deciding.state.turns.model_calls().saturating_add(1),
        turn: turn_of(deciding.state, purpose),
        model: model_of(deciding.state, purpose).map(|model| model.name.clone()).unwrap_or_default(),
        input_tokens: tokens.most,
        estimated_tokens: tokens.estimated,
        is_counted: purpose != Purpose::Judge && deciding.state.conversation.is_counted(),
        output_tokens_max: answer_tokens_max(deciding.state, purpose),
        price: model_of(deciding.state, purpose).and_then(|model| model.price),
        // Before its first answer an agent has nothing for a final summary.
        keeps_back: matches!(purpose, Purpose::Turn | Purpose::Summary) && deciding.state.turns.answers() > 0,
        thinking_tokens: deciding.state.window().aside_thinking_tokens(),
        kept_tokens: kept.tokens,
        kept_cost: kept.cost,
        judges_percent: deciding.state.assignment.goal_policy().map_or(100, |policy| policy.budget_percent),
        ends_work: purpose == Purpose::Turn
            || (purpose == Purpose::Judge && deciding.state.goal.checks_claim()),
        purpose,
        external: None,
    };
    deciding.tell_run(RunEvent::Reserve(request));
}

/// Budget reserved for a judge pays for nothing else, and other budget not for a judge.
pub(in crate::session) fn awaits_budget_for(deciding: &Deciding<'_>, call: u32, purpose: Purpose) -> bool {
    let state = &deciding.state;
    if wants_judge(state) != (purpose == Purpose::Judge) {
        return false;
    }
    call == state.turns.model_calls().saturating_add(1)
        && state.lifecycle.is_live()
        && match state.lifecycle.stopping() {
            _ if wants_judge(state) => true,
            Some(_) => {
                final_summary::wants_final_summary(state)
                    && !matches!(state.lifecycle.phase(), Phase::Thinking(_))
            }
            None => matches!(state.lifecycle.phase(), Phase::Ready | Phase::Waiting(_) | Phase::Between),
        }
}

pub(in crate::session) fn reserved(
    deciding: &mut Deciding<'_>,
    call: u32,
    output_tokens_max: u32,
    time_left: Option<TimeLeft>,
    heard: &ReservedLimits,
) {
    let purpose = next_purpose(deciding.state);
    if purpose == Purpose::Turn
        && (deciding.state.window().is_compaction_due() || deciding.state.lifecycle.is_yielding())
    {
        // A message arrived after the request for budget.
        return next_call(deciding);
    }
    if purpose == Purpose::Judge && yielding::yielded(deciding) {
        return;
    }
    if purpose == Purpose::Turn {
        announce::announce_limits(deciding, heard);
    }
    // The reservation may have been requested for another purpose.
    let output_tokens_max = output_tokens_max.min(answer_tokens_max(deciding.state, purpose));
    call_model(deciding, purpose, call, output_tokens_max, time_left);
}

fn call_model(
    deciding: &mut Deciding<'_>,
    purpose: Purpose,
    call: u32,
    output_tokens_max: u32,
    time_left: Option<TimeLeft>,
) {
    let attempt = deciding.state.models.next_attempt();
    let answers_before = deciding.state.turns.answers();
    let turn = turn_of(deciding.state, purpose);
    let question = question(deciding.state, purpose);
    deciding.commit(ModelCalled { turn, call, attempt, purpose, output_tokens_max, time_left });
    if purpose == Purpose::Judge {
        return judge::judge(deciding, output_tokens_max);
    }
    let view = deciding.state.conversation.view();
    let session = deciding.state.session;
    let through = deciding.state.head;
    let summaries_before = deciding.state.conversation.summaries();
    let model = deciding.state.model();
    let name = model.map(|model| model.name.clone()).unwrap_or_default();
    let effort = if purpose == Purpose::Turn {
        model.and_then(|model| model.effort)
    } else {
        model.and_then(aside_effort)
    };
    let patience = deciding.state.models.patience();
    deciding.open(Effect::CallModel(CallModel {
        model: name,
        effort,
        patience,
        session,
        turn,
        through,
        view,
        policy_since: deciding.state.assignment.policy_since(),
        purpose,
        question,
        answers_before,
        summaries_before,
        output_tokens_max,
    }));
}

/// The turn that a model call belongs to. The final summary opens no turn of its own.
pub(in crate::session) fn turn_of(state: &SessionState, purpose: Purpose) -> u32 {
    let amid_turn =
        state.lifecycle.before_final_summary().unwrap_or(state.lifecycle.phase()) == Phase::Acting;
    match purpose {
        Purpose::FinalSummary if !amid_turn => state.turns.count().max(1),
        Purpose::Judge => state.goal.live_trigger().map_or(1, |trigger| turn_checked(state, trigger)),
        Purpose::FinalSummary | Purpose::Turn | Purpose::Summary | Purpose::External | Purpose::Hook => {
            state.turns.next()
        }
    }
}

/// The extra question to the model.
fn question(state: &SessionState, purpose: Purpose) -> Option<String> {
    match purpose {
        Purpose::Turn | Purpose::Judge | Purpose::External | Purpose::Hook => None,
        Purpose::Summary => Some(SUMMARY_QUESTION.to_owned()),
        Purpose::FinalSummary => Some(final_summary::final_summary_question(state)),
    }
}

/// Maximum tokens of the answer.
fn answer_tokens_max(state: &SessionState, purpose: Purpose) -> u32 {
    match purpose {
        Purpose::Turn => state.window().answer_tokens_after(state.turns.cut_without_text()),
        Purpose::Summary => state.window().summary_tokens_max(),
        Purpose::FinalSummary => state.window().final_summary_tokens_max(),
        Purpose::External | Purpose::Hook => 0,
        Purpose::Judge => judge_in_turn(state).map_or(0, |judge| judge.output_tokens_max),
    }
}

/// The model that is called.
pub(in crate::session) fn model_of(state: &SessionState, purpose: Purpose) -> Option<&ModelPolicy> {
    match purpose {
        Purpose::Turn | Purpose::Summary | Purpose::FinalSummary | Purpose::External | Purpose::Hook => {
            state.model()
        }
        Purpose::Judge => judge_in_turn(state),
    }
}

/// The purpose of the next model call.
fn next_purpose(state: &SessionState) -> Purpose {
    if wants_judge(state) {
        Purpose::Judge
    } else if final_summary::wants_final_summary(state) {
        Purpose::FinalSummary
    } else if state.window().wants_summary() {
        Purpose::Summary
    } else {
        Purpose::Turn
    }
}

/// The judge that is called now or next.
pub(in crate::session) fn judge_in_turn(state: &SessionState) -> Option<&ModelPolicy> {
    state.goal.judge_in_turn(&state.assignment)
}

/// The turn of a verification.
pub(in crate::session) fn turn_checked(state: &SessionState, trigger: GoalTrigger) -> u32 {
    match trigger {
        GoalTrigger::Claim => state.turns.next(),
        GoalTrigger::Interval | GoalTrigger::Limit => state.turns.count().max(1),
    }
}

/// Whether the next model call is a judge's.
fn wants_judge(state: &SessionState) -> bool {
    matches!(state.lifecycle.phase(), Phase::Verifying | Phase::JudgeWaits(_)) && state.goal.is_verified()
}

/// Tokens of the next request for `purpose`, including the extra question.
pub(in crate::session) fn request_tokens(state: &SessionState, purpose: Purpose) -> u64 {
    match purpose {
        Purpose::Judge => judge::request_tokens(&state.assignment),
        _ => state.window().request_tokens(question(state, purpose).as_deref()),
    }
}

/// The same for budgets.
fn reserved_tokens(state: &SessionState, purpose: Purpose) -> RequestTokens {
    match purpose {
        Purpose::Judge => {
            let tokens = judge::request_tokens(&state.assignment);
            RequestTokens { most: tokens, estimated: tokens }
        }
        _ => state.window().reserved_tokens(question(state, purpose).as_deref()),
    }
}
