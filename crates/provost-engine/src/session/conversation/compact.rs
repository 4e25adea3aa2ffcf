//! Shortens a conversation before a model call.

use provost_event::{ErrorClass, HookTrigger, Purpose, Retry, RetryCause};

use super::window::CompactionDue;
use crate::event::Answer;
use crate::session::{Deciding, model_call, models};

/// Shortens the conversation if that is due. Returns whether the next model call must wait: for a summary, for
/// hooks, or because the session ends. Terminates: a trim leaves less to trim, and after the rule only a trim
/// can be due.
pub(in crate::session) fn make_room(deciding: &mut Deciding<'_>) -> bool {
    while let Some(due) = deciding.state.window().due() {
        if deciding.state.window().asks_hooks(due) {
            deciding.ask(HookTrigger::Compaction);
            return true;
        }
        match due {
            CompactionDue::Trim => {
                let trimmed = deciding.state.window().trim();
                trimmed.into_iter().for_each(|compacted| deciding.commit(compacted));
            }
            CompactionDue::Summary => {
                model_call::reserve(deciding, Purpose::Summary);
                return true;
            }
            CompactionDue::Emergency => {
                if !shorten_by_rule(deciding) {
                    return true;
                }
            }
        }
    }
    false
}

/// Commits an emergency compaction. Returns whether there is room now; if not, the session has ended.
pub(in crate::session) fn shorten_by_rule(deciding: &mut Deciding<'_>) -> bool {
    match deciding.state.window().by_rule() {
        Ok(compacted) => deciding.commit(compacted),
        Err(why) => return no_room(deciding, &why),
    }
    if deciding.state.conversation.compactions.are_poor() {
        return no_room(deciding, "shortening it frees next to nothing any more");
    }
    true
}

/// Shortens the conversation as far as the final summary needs it, without calling hooks. Returns whether
/// there is room now.
pub(in crate::session) fn make_room_for_final_summary(deciding: &mut Deciding<'_>) -> bool {
    let question = deciding.state.final_summary_question();
    while !deciding.state.window().fits_final_summary(&question) {
        let Some(compacted) = deciding.state.window().shorter_for_final_summary() else { return false };
        deciding.commit(compacted);
    }
    true
}

/// Shortens it to `room` tokens, so that the budget covers the final summary. Returns whether that was
/// possible.
pub(in crate::session) fn shorten_for_budget(deciding: &mut Deciding<'_>, room: u64) -> bool {
    let window = deciding.state.window();
    let shorter = if window.may_shorten_unasked() { window.emergency_within(room) } else { None };
    let is_shorter = shorter.is_some();
    shorter.into_iter().for_each(|compacted| deciding.commit(compacted));
    is_shorter
}

fn no_room(deciding: &mut Deciding<'_>, why: &str) -> bool {
    let window = deciding.state.model().and_then(|model| model.window_tokens);
    let size = window.map(|tokens| format!(" of {tokens} tokens")).unwrap_or_default();
    let message = format!("the window{size} is too small for this conversation: {why}");
    models::suspend(deciding, ErrorClass::ContextExhausted, message);
    false
}

/// The model has answered the request for a summary.
pub(in crate::session) fn summed_up(deciding: &mut Deciding<'_>, answer: Answer) {
    let usage = answer.usage;
    let call = deciding.state.aside_call(usage, answer.model.clone());
    match deciding.state.window().summary_of(answer, call) {
        Ok(compacted) => deciding.commit(compacted),
        Err(why) => {
            let call = deciding.state.turns.model_calls();
            deciding.commit(Retry::at_once(call, RetryCause::UselessSummary { why }, usage));
        }
    }
    model_call::next_call(deciding);
}
