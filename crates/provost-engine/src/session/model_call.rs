//! The next model call: whether it can be made, its budget, and its request.

use provost_event::{Exhausted, ModelCalled, ModelPolicy, Outcome, Purpose, TimeLeft};

use super::{Deciding, Phase, SessionState};
use crate::session::conversation::{SUMMARY_QUESTION, aside_effort};
use crate::session::{
    announce,
    announce::ReservedLimits,
    conversation::compact,
    final_summary,
    goal::{KeptBudget, judge},
    segment, yielding,
};
use crate::{CallModel, Effect, ReserveRequest, RunEvent};

/// Makes the next model call, unless something prevents it.
pub(in crate::session) fn next_call(deciding: &mut Deciding<'_>) {
    if let Some(outcome) = deciding.state.lifecycle.stopping().cloned() {
        return segment::finish_segment(deciding, outcome);
    }
    if yielding::yielded(deciding) {
        return;
    }
    if let Some(exhausted) = deciding.state.turns.exhausted() {
        return segment::finish_segment(deciding, Outcome::BudgetExhausted(exhausted));
    }
    announce::announce_last_turn(deciding);
    // A new message is part of the next call, if hooks accept it.
    if deciding.state.lifecycle.phase() == Phase::Ready && deciding.state.hooks.have_prompts() {
        return;
    }
    if compact::make_room(deciding) {
        return;
    }
    if let Some(about) = deciding.state.preparation() {
        return deciding.ask(about);
    }
    reserve(deciding, Purpose::Turn);
}

pub(in crate::session) fn refused_budget(deciding: &mut Deciding<'_>, exhausted: Exhausted, is_judges: bool) {
    match deciding.state.next_purpose() {
        Purpose::FinalSummary => final_summary::final_summary_refused(deciding, exhausted),
        Purpose::Judge => judge::judge_refused(deciding, exhausted, is_judges),
        // A summary without budget is skipped.
        Purpose::Summary if deciding.state.window().can_shorten_by_rule() => {
            if compact::shorten_by_rule(deciding) {
                next_call(deciding);
            }
        }
        Purpose::Summary | Purpose::Turn => {
            segment::finish_segment(deciding, Outcome::BudgetExhausted(exhausted))
        }
    }
}

pub(in crate::session) fn reserve(deciding: &mut Deciding<'_>, purpose: Purpose) {
    let kept = match purpose {
        Purpose::Judge => KeptBudget::default(),
        _ => deciding.state.goal.kept_budget(&deciding.state.assignment),
    };
    let tokens = deciding.state.reserved_tokens(purpose);
    let request = ReserveRequest {
        session: deciding.state.session,
        call: deciding.state.turns.model_calls().saturating_add(1),
        turn: deciding.state.turn_of(purpose),
        model: deciding.state.model_of(purpose).map(|model| model.name.clone()).unwrap_or_default(),
        input_tokens: tokens.most,
        estimated_tokens: tokens.estimated,
        is_counted: purpose != Purpose::Judge && deciding.state.conversation.is_counted(),
        output_tokens_max: deciding.state.output_tokens_max(purpose),
        price: deciding.state.model_of(purpose).and_then(|model| model.price),
        // Before its first answer an agent has nothing for a final summary.
        keeps_back: matches!(purpose, Purpose::Turn | Purpose::Summary) && deciding.state.turns.answers() > 0,
        thinking_tokens: deciding.state.window().aside_thinking_tokens(),
        kept_tokens: kept.tokens,
        kept_cost: kept.cost,
        judges_percent: deciding.state.assignment.goal_policy().map_or(100, |policy| policy.budget_percent),
        ends_work: purpose == Purpose::Turn
            || (purpose == Purpose::Judge && deciding.state.goal.checks_claim()),
        purpose,
    };
    deciding.tell_run(RunEvent::Reserve(request));
}

/// Budget reserved for a judge pays for nothing else, and other budget not for a judge.
pub(in crate::session) fn awaits_budget_for(deciding: &Deciding<'_>, call: u32, purpose: Purpose) -> bool {
    let state = &deciding.state;
    if state.wants_judge() != (purpose == Purpose::Judge) {
        return false;
    }
    call == state.turns.model_calls().saturating_add(1)
        && state.lifecycle.is_live()
        && match state.lifecycle.stopping() {
            _ if state.wants_judge() => true,
            Some(_) => state.wants_final_summary() && !matches!(state.lifecycle.phase(), Phase::Thinking(_)),
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
    let purpose = deciding.state.next_purpose();
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
    let output_tokens_max = output_tokens_max.min(deciding.state.output_tokens_max(purpose));
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
    let turn = deciding.state.turn_of(purpose);
    let question = deciding.state.question(purpose);
    deciding.commit(ModelCalled { turn, call, attempt, purpose, output_tokens_max, time_left });
    if purpose == Purpose::Judge {
        return judge::judge(deciding, output_tokens_max);
    }
    let view = deciding.state.conversation.view();
    let (session, through) = (deciding.state.session, deciding.state.head);
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
        purpose,
        question,
        answers_before,
        summaries_before,
        output_tokens_max,
    }));
}

impl SessionState {
    /// The turn that a model call belongs to. The final summary opens no turn of its own.
    pub(super) fn turn_of(&self, purpose: Purpose) -> u32 {
        let amid_turn =
            self.lifecycle.before_final_summary().unwrap_or(self.lifecycle.phase()) == Phase::Acting;
        match purpose {
            Purpose::FinalSummary if !amid_turn => self.turns.count().max(1),
            Purpose::Judge => self.goal.live_trigger().map_or(1, |trigger| self.turn_checked(trigger)),
            Purpose::FinalSummary | Purpose::Turn | Purpose::Summary => self.turns.next(),
        }
    }

    /// The extra question to the model.
    pub(super) fn question(&self, purpose: Purpose) -> Option<String> {
        match purpose {
            Purpose::Turn | Purpose::Judge => None,
            Purpose::Summary => Some(SUMMARY_QUESTION.to_owned()),
            Purpose::FinalSummary => Some(self.final_summary_question()),
        }
    }

    /// Maximum tokens of the answer.
    fn output_tokens_max(&self, purpose: Purpose) -> u32 {
        match purpose {
            Purpose::Turn => self.window().answer_tokens_max(),
            Purpose::Summary => self.window().summary_tokens_max(),
            Purpose::FinalSummary => self.window().final_summary_tokens_max(),
            Purpose::Judge => self.judge_in_turn().map_or(0, |judge| judge.output_tokens_max),
        }
    }

    /// The model that is called.
    pub(super) fn model_of(&self, purpose: Purpose) -> Option<&ModelPolicy> {
        match purpose {
            Purpose::Turn | Purpose::Summary | Purpose::FinalSummary => self.model(),
            Purpose::Judge => self.judge_in_turn(),
        }
    }

    /// The purpose of the next model call.
    fn next_purpose(&self) -> Purpose {
        if self.wants_judge() {
            Purpose::Judge
        } else if self.wants_final_summary() {
            Purpose::FinalSummary
        } else if self.window().wants_summary() {
            Purpose::Summary
        } else {
            Purpose::Turn
        }
    }
}
