//! Shortens a conversation before a model call.

use provost_event::{ErrorClass, HookTrigger, Purpose, Retry, RetryCause};

use super::window::CompactionDue;
use crate::event::Answer;
use crate::session::Deciding;

impl Deciding<'_> {
    /// Shortens the conversation if that is due. Returns whether the next model call must wait: for a summary, for
    /// hooks, or because the session ends. Terminates: a trim leaves less to trim, and after the rule only a trim
    /// can be due.
    pub(in crate::session) fn make_room(&mut self) -> bool {
        while let Some(due) = self.state.window().due() {
            if self.state.window().asks_hooks(due) {
                self.ask(HookTrigger::Compaction);
                return true;
            }
            match due {
                CompactionDue::Trim => {
                    let trimmed = self.state.window().trim();
                    trimmed.into_iter().for_each(|compacted| self.commit(compacted));
                }
                CompactionDue::Summary => {
                    self.reserve(Purpose::Summary);
                    return true;
                }
                CompactionDue::Emergency => {
                    if !self.shorten_by_rule() {
                        return true;
                    }
                }
            }
        }
        false
    }

    /// Commits an emergency compaction. Returns whether there is room now; if not, the session has ended.
    pub(in crate::session) fn shorten_by_rule(&mut self) -> bool {
        match self.state.window().by_rule() {
            Ok(compacted) => self.commit(compacted),
            Err(why) => return self.no_room(&why),
        }
        if self.state.conversation.compactions.are_poor() {
            return self.no_room("shortening it frees next to nothing any more");
        }
        true
    }

    /// Shortens the conversation as far as the final summary needs it, without calling hooks. Returns whether
    /// there is room now.
    pub(in crate::session) fn make_room_for_final_summary(&mut self) -> bool {
        let question = self.state.final_summary_question();
        while !self.state.window().fits_final_summary(&question) {
            let Some(compacted) = self.state.window().shorter_for_final_summary() else { return false };
            self.commit(compacted);
        }
        true
    }

    /// Shortens it to `room` tokens, so that the budget covers the final summary. Returns whether that was
    /// possible.
    pub(in crate::session) fn shorten_for_budget(&mut self, room: u64) -> bool {
        let window = self.state.window();
        let shorter = if window.may_shorten_unasked() { window.emergency_within(room) } else { None };
        let is_shorter = shorter.is_some();
        shorter.into_iter().for_each(|compacted| self.commit(compacted));
        is_shorter
    }

    fn no_room(&mut self, why: &str) -> bool {
        let window = self.state.model().and_then(|model| model.window_tokens);
        let size = window.map(|tokens| format!(" of {tokens} tokens")).unwrap_or_default();
        let message = format!("the window{size} is too small for this conversation: {why}");
        self.suspend(ErrorClass::ContextExhausted, message);
        false
    }

    /// The model has answered the request for a summary.
    pub(in crate::session) fn summed_up(&mut self, answer: Answer) {
        let usage = answer.usage;
        let call = self.state.aside_call(usage, answer.model.clone());
        match self.state.window().summary_of(answer, call) {
            Ok(compacted) => self.commit(compacted),
            Err(why) => {
                let call = self.state.turns.model_calls();
                self.commit(Retry::at_once(call, RetryCause::UselessSummary { why }, usage));
            }
        }
        self.next_call();
    }
}
