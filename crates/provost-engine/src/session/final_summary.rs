//! The final summary at a limit: one more model call without tools, within the budget, so that a suspended run has
//! a statement of its progress.

use provost_event::{
    AsideCall, Block, Exhausted, FinalSummaryFinished, GoalTrigger, ModelFailure, Outcome, Purpose, Seq,
    StopRequested, Unsummarized, Usage,
};

use super::{Deciding, Phase, SessionState};
use crate::event::Answer;
use crate::session::{conversation::compact, model_call, segment};

/// Asks the agent for a final summary before it stops with `outcome`, if that is possible. Returns whether it
/// is asked.
pub(in crate::session) fn ask_final_summary(deciding: &mut Deciding<'_>, outcome: &Outcome) -> bool {
    if !may_ask_final_summary(deciding.state, outcome) {
        return false;
    }
    if let Phase::Waiting(timer) = deciding.state.lifecycle.phase() {
        deciding.step.close(timer);
    }
    if !deciding.state.lifecycle.stops_as(outcome) {
        deciding.commit(StopRequested { agent: None, outcome: outcome.clone(), for_child: false });
    }
    if !compact::make_room_for_final_summary(deciding) {
        let problem = Some("the conversation leaves no room for them in the model's window".to_owned());
        deciding.commit(FinalSummaryFinished { text: String::new(), call: None, problem });
        return false;
    }
    model_call::reserve(deciding, Purpose::FinalSummary);
    true
}

pub(in crate::session) fn final_summary_finished(deciding: &mut Deciding<'_>, answer: Answer) {
    let texts = answer.content.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.trim()),
        _ => None,
    });
    let text = texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n");
    let calls = answer.content.iter().any(|block| matches!(block, Block::ToolCall(_)));
    let problem = text.is_empty().then(|| match calls {
        true => "the model answered with a tool call instead of text, and none is made at a limit".to_owned(),
        false => "the model's answer was empty".to_owned(),
    });
    let call = Some(aside_call(deciding.state, answer.usage, answer.model));
    deciding.commit(FinalSummaryFinished { text, call, problem });
    segment::finish_as_asked(deciding);
}

pub(in crate::session) fn final_summary_failed(deciding: &mut Deciding<'_>, failure: &ModelFailure) {
    let problem = format!("{}: {}", failure.class.words(), failure.message);
    let call = Some(aside_call(deciding.state, failure.usage, String::new()));
    deciding.commit(FinalSummaryFinished { text: String::new(), call, problem: Some(problem) });
    segment::finish_as_asked(deciding);
}

/// There is no budget for the final summary, or only for one of a shorter conversation.
pub(in crate::session) fn final_summary_refused(deciding: &mut Deciding<'_>, exhausted: Exhausted) {
    if compact::shorten_for_budget(deciding, deciding.state.window().affordable(exhausted)) {
        return model_call::reserve(deciding, Purpose::FinalSummary);
    }
    let problem = Some(exhausted.to_string());
    deciding.commit(FinalSummaryFinished { text: String::new(), call: None, problem });
    if let Some(Outcome::BudgetExhausted(first)) = deciding.state.lifecycle.stopping().cloned() {
        return segment::finish(
            deciding,
            Outcome::BudgetExhausted(Exhausted { unsummarized: Some(Unsummarized::CantBePaid), ..first }),
        );
    }
    segment::finish_as_asked(deciding);
}

/// Whether the next model call is for the final summary.
pub(in crate::session) fn wants_final_summary(state: &SessionState) -> bool {
    state.lifecycle.stopping().is_some_and(|outcome| may_ask_final_summary(state, outcome))
}

/// `outcome`, which says so where an agent that has never answered can't be asked for a final summary.
pub(in crate::session) fn without_summary(state: &SessionState, outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::BudgetExhausted(first) if state.turns.answers() == 0 && !state.assignment.is_external() => {
            let unsummarized = first.unsummarized.or(Some(Unsummarized::NeverAnswered));
            Outcome::BudgetExhausted(Exhausted { unsummarized, ..first })
        }
        other => other,
    }
}

/// An agent that has just claimed to be done needs no final summary.
fn may_ask_final_summary(state: &SessionState, outcome: &Outcome) -> bool {
    let is_done = matches!(
        state.lifecycle.phase(),
        Phase::New | Phase::CheckingStop(_) | Phase::Verifying | Phase::Judging(_) | Phase::JudgeWaits(_)
    );
    matches!(outcome, Outcome::BudgetExhausted(_))
        && !state.assignment.is_external()
        && !state.turns.has_final_summary()
        && !is_done
        && state.turns.answers() > 0
        && !state.calls.of_answer().is_running()
        && state.lifecycle.interruptions() < state.assignment.limits().interruptions_max
}

/// A model call whose answer is no part of the conversation.
pub(in crate::session) fn aside_call(state: &SessionState, usage: Usage, model: String) -> AsideCall {
    let price = state.model().and_then(|model| model.price);
    let cost = price.map(|price| price.cost(usage));
    AsideCall { call: state.turns.model_calls(), usage, cost, model }
}

/// The question to the agent at a limit.
pub(in crate::session) fn final_summary_question(state: &SessionState) -> String {
    let why = state.lifecycle.stopping().map(ToString::to_string).unwrap_or_default();
    format!(
        "You have reached a limit ({why}) and can't go on. Calls that have no result yet are not made. Call no \
         tool. Say in a few sentences, for the person who gave you the goal: what is done, what is not, and what \
         the next step would be."
    )
}

/// The model call in flight, if it is for the final summary.
fn wrapping_up(state: &SessionState) -> Option<Seq> {
    match state.lifecycle.phase() {
        Phase::Thinking(seq) if state.turns.purpose() == Purpose::FinalSummary => Some(seq),
        _ => None,
    }
}

/// The open effect at a limit before the session stops: the final summary, or the last check of the goal.
pub(in crate::session) fn ending_at_limit(state: &SessionState) -> Option<Seq> {
    let at_limit = state.goal.live_trigger() == Some(GoalTrigger::Limit);
    match state.lifecycle.phase() {
        Phase::Judging(seq) | Phase::CheckingStop(seq) if at_limit => Some(seq),
        _ => wrapping_up(state),
    }
}
