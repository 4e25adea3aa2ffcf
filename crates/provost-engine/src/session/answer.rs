//! How a session handles a model's answer or failure.

use std::collections::HashSet;

use provost_event::{
    AssistantMessage, Block, CallId, ErrorClass, ItemKind, ModelFailure, Outcome, PauseReason, Purpose,
    Retry, RetryCause, Seq, StopReason, TroubleCause, Usage,
};

use super::{Deciding, Phase};
use crate::event::Answer;
use crate::session::{
    calls::run, conversation::compact, end_check, external_calls, final_summary, model_call, models, segment,
    stop,
};

/// What an agent is told whose answer was cut off.
pub(in crate::session) const CONTINUE: &str = "Your answer was cut off by the output limit. Go on exactly where it stopped, without repeating anything.";

pub(in crate::session) fn answered(deciding: &mut Deciding<'_>, seq: Seq, mut answer: Answer) {
    deciding.step.close(seq);
    let passes_gateway = deciding.state.assignment.is_metered() && deciding.state.external_calls.has_made();
    if passes_gateway && deciding.state.turns.purpose() == Purpose::Turn {
        // What the program tells of its calls, the gateway has charged. If none has passed it, its word counts.
        (answer.usage, answer.cost) = (Usage::default(), None);
    }
    deciding.settle_at(answer.usage, answer.cost);
    if external_calls::suspends(deciding, answer.usage) {
        return;
    }
    match deciding.state.turns.purpose() {
        Purpose::Turn => turn_answered(deciding, answer),
        Purpose::Summary => compact::summed_up(deciding, answer),
        Purpose::FinalSummary => final_summary::final_summary_finished(deciding, answer),
        // A judge's answer comes as a separate event.
        Purpose::Judge | Purpose::External | Purpose::Hook => {}
    }
}

fn turn_answered(deciding: &mut Deciding<'_>, answer: Answer) {
    let stop = answer.stop;
    let usage = answer.usage;
    if is_empty(&answer.content) && matches!(stop, StopReason::EndTurn | StopReason::ToolUse) {
        return empty_answer(deciding, usage);
    }
    let cut = stop == StopReason::OutputCap;
    let has_text = answer.content.iter().any(|block| matches!(block, Block::Text(_)));
    commit_answer(deciding, answer);
    match deciding.state.lifecycle.phase() {
        Phase::Acting => run::advance(deciding),
        _ if stop == StopReason::Refusal => refused(deciding),
        _ if deciding.state.lifecycle.is_stopping() => model_call::next_call(deciding),
        _ if cut && may_continue(deciding) => go_on_writing(deciding, has_text),
        _ if cut => suspend_as_cut_off(deciding),
        _ if stop == StopReason::Commentary => go_on_after_comment(deciding),
        _ if end_check::asks(deciding) => {}
        _ => stop::check_stop(deciding),
    }
}

fn commit_answer(deciding: &mut Deciding<'_>, answer: Answer) {
    let price = deciding.state.model().and_then(|model| model.price);
    let mut content = answer.content;
    make_call_ids_unique(&mut content);
    deciding.commit(AssistantMessage {
        turn: deciding.state.turns.next(),
        call: deciding.state.turns.model_calls(),
        content,
        usage: answer.usage,
        cost: answer.cost.or_else(|| price.map(|price| price.cost(answer.usage))),
        model: answer.model,
        stop: answer.stop,
    });
}

fn may_continue(deciding: &Deciding<'_>) -> bool {
    deciding.state.turns.continuations() < deciding.state.assignment.limits().continuations_max
}

fn go_on_writing(deciding: &mut Deciding<'_>, has_text: bool) {
    let times = deciding.state.turns.cut_without_text();
    let window = deciding.state.window();
    let body = if has_text {
        CONTINUE
    } else if window.answer_tokens_after(times.saturating_add(1)) > window.answer_tokens_after(times) {
        "Your answer was cut off by the output limit before it said anything: thinking used all of it. The limit is higher now. Answer again."
    } else {
        "Your answer was cut off by the output limit before it said anything. Answer again, more briefly."
    };
    deciding.say(ItemKind::Continue, body);
    model_call::next_call(deciding);
}

/// The model marked its text as a comment on its work: it isn't done.
fn go_on_after_comment(deciding: &mut Deciding<'_>) {
    let body = "That was a comment on your work, and no tool call followed. Go on with the next tool call, or give your last answer.";
    deciding.say(ItemKind::AnswerAgain, body);
    deciding.end_turn(0);
    segment::next_turn(deciding);
}

/// An answer without its end says neither that the agent is done nor what it found.
fn suspend_as_cut_off(deciding: &mut Deciding<'_>) {
    let message = match deciding.state.turns.continuations() {
        0 => "it wasn't continued".to_owned(),
        1 => "also after it was continued".to_owned(),
        times => format!("also after it was continued {times} times"),
    };
    models::suspend(deciding, ErrorClass::OutputCap, message);
}

fn empty_answer(deciding: &mut Deciding<'_>, usage: Usage) {
    let call = deciding.state.turns.model_calls();
    if deciding.state.models.empty_answers() >= deciding.state.assignment.limits().empty_answers_max {
        let times = deciding.state.models.empty_answers().saturating_add(1);
        let message = format!("the model gave an empty answer {times} times in a row");
        return models::suspend(deciding, ErrorClass::NoAnswer, message);
    }
    deciding.commit(Retry::at_once(call, RetryCause::EmptyAnswer, usage));
    deciding.say(ItemKind::AnswerAgain, "Your last answer was empty. Call a tool, or say that you are done.");
    model_call::next_call(deciding);
}

fn refused(deciding: &mut Deciding<'_>) {
    let text = deciding.state.turns.text().trim();
    let said = if text.is_empty() { "it gave no reason" } else { text };
    let message = said.to_owned();
    deciding.end_turn(0);
    models::suspend(deciding, ErrorClass::Refusal, message);
}

pub(in crate::session) fn model_failed(deciding: &mut Deciding<'_>, seq: Seq, mut failure: ModelFailure) {
    deciding.step.close(seq);
    failure.usage = deciding.state.models.usage_of(&failure);
    if deciding.state.assignment.is_metered() {
        failure.usage = Usage::default();
    }
    deciding.settle(failure.usage);
    if external_calls::suspends(deciding, failure.usage) {
        return;
    }
    if deciding.state.turns.purpose() == Purpose::FinalSummary {
        return final_summary::final_summary_failed(deciding, &failure);
    }
    if deciding.state.lifecycle.is_stopping() {
        if final_summary::wants_final_summary(deciding.state) {
            // No task waits for that answer any more, only for the answer to another question.
            let call = deciding.state.turns.model_calls();
            deciding.commit(Retry::at_once(call, RetryCause::Interrupted, failure.usage));
        }
        return model_call::next_call(deciding);
    }
    if failure.class == ErrorClass::Aborted && deciding.state.lifecycle.is_yielding() {
        // The call is made again once there is a slot.
        let call = deciding.state.turns.model_calls();
        deciding.commit(Retry::at_once(call, RetryCause::Interrupted, failure.usage));
        return model_call::next_call(deciding);
    }
    if failure.class == ErrorClass::ContextTooLong {
        return too_long(deciding, failure);
    }
    if failure.class == ErrorClass::Unanswered {
        let why = PauseReason::Unanswered { waits_for: failure.message };
        return segment::finish(deciding, Outcome::Paused { why });
    }
    let class = failure.class;
    let is_summary = deciding.state.turns.purpose() == Purpose::Summary;
    if is_summary && class.cause() == TroubleCause::Request {
        return without_summary(deciding, failure);
    }
    if class.may_retry() {
        return models::try_again(deciding, failure);
    }
    match class {
        ErrorClass::Aborted
        | ErrorClass::Refusal
        | ErrorClass::ScriptMismatch
        | ErrorClass::Storage
        | ErrorClass::Program
        | ErrorClass::ProgramGone
        | ErrorClass::Workspace
        | ErrorClass::StepFailed
            if is_summary =>
        {
            without_summary(deciding, failure);
        }
        ErrorClass::Aborted
        | ErrorClass::ScriptMismatch
        | ErrorClass::Storage
        | ErrorClass::Program
        | ErrorClass::ProgramGone
        | ErrorClass::Workspace
        | ErrorClass::StepFailed => end_as_failed(deciding, failure),
        _ => models::give_up(deciding, failure),
    }
}

/// There is no summary: the conversation is shortened by rule.
fn without_summary(deciding: &mut Deciding<'_>, failure: ModelFailure) {
    let why = format!("{}: {}", failure.class.words(), failure.message);
    let call = deciding.state.turns.model_calls();
    deciding.commit(Retry::at_once(call, RetryCause::UselessSummary { why }, failure.usage));
    model_call::next_call(deciding);
}

fn end_as_failed(deciding: &mut Deciding<'_>, failure: ModelFailure) {
    let request = failure.request_id.map(|id| format!(" [request {id}]")).unwrap_or_default();
    let message = format!("{}{request}", failure.message);
    segment::finish(deciding, Outcome::Failed { class: failure.class, message });
}

/// The provider rejected the request as too long: the conversation is shortened by rule as far as possible,
/// and the call is made once more. A summary is skipped.
fn too_long(deciding: &mut Deciding<'_>, failure: ModelFailure) {
    if deciding.state.turns.purpose() == Purpose::Turn && deciding.state.conversation.was_refused() {
        let note = " (also after leaving out everything that can be left out)";
        let message = format!("{}{note}", failure.message);
        return models::give_up(deciding, ModelFailure { message, ..failure });
    }
    let call = deciding.state.turns.model_calls();
    deciding.commit(Retry::at_once(call, RetryCause::Compacted, failure.usage));
    if deciding.state.turns.purpose() != Purpose::Turn && deciding.state.window().is_exhausted() {
        let message = format!("{} (and nothing can be left out of the conversation)", failure.message);
        return models::give_up(deciding, ModelFailure { message, ..failure });
    }
    model_call::next_call(deciding);
}

fn is_empty(content: &[Block]) -> bool {
    content.iter().all(|block| match block {
        Block::Text(text) => text.trim().is_empty(),
        Block::Thinking { .. } | Block::Opaque { .. } | Block::Image(_) => true,
        Block::ToolCall(_) => false,
    })
}

/// Some providers name calls by their index in the answer, or not at all.
fn make_call_ids_unique(content: &mut [Block]) {
    let mut seen = HashSet::new();
    for (place, block) in content.iter_mut().enumerate() {
        if let Block::ToolCall(call) = block
            && (call.id.0.is_empty() || !seen.insert(call.id.clone()))
        {
            call.id = CallId(format!("{}~{place}", call.id).into());
            seen.insert(call.id.clone());
        }
    }
}
