//! How a session handles a model's answer or failure.

use std::collections::HashSet;

use provost_event::{
    AssistantMessage, Block, CallId, ErrorClass, ItemKind, ModelFailure, Origin, Outcome, PauseReason,
    Purpose, Retry, RetryCause, Seq, StopReason, SystemItem, TroubleCause, Usage,
};

use super::{Deciding, Phase};
use crate::event::Answer;

impl Deciding<'_> {
    pub(super) fn answered(&mut self, seq: Seq, answer: Answer) {
        self.step.close(seq);
        self.settle_at(answer.usage, answer.cost);
        match self.state.turns.purpose() {
            Purpose::Turn => self.turn_answered(answer),
            Purpose::Summary => self.summed_up(answer),
            Purpose::FinalSummary => self.final_summary_finished(answer),
            // A judge's answer comes as a separate event.
            Purpose::Judge => {}
        }
    }

    fn turn_answered(&mut self, answer: Answer) {
        let (stop, usage) = (answer.stop, answer.usage);
        if is_empty(&answer.content) && matches!(stop, StopReason::EndTurn | StopReason::ToolUse) {
            return self.empty_answer(usage);
        }
        let cut = stop == StopReason::OutputCap;
        let has_text = answer.content.iter().any(|block| matches!(block, Block::Text(_)));
        self.commit_answer(answer);
        match self.state.lifecycle.phase() {
            Phase::Acting => self.advance_calls(),
            _ if stop == StopReason::Refusal => self.refused(),
            _ if self.state.lifecycle.is_stopping() => self.next_call(),
            _ if cut && self.may_continue() => self.go_on_writing(has_text),
            _ => self.check_stop(),
        }
    }

    fn commit_answer(&mut self, answer: Answer) {
        let price = self.state.model().and_then(|model| model.price);
        let mut content = answer.content;
        make_call_ids_unique(&mut content);
        self.commit(AssistantMessage {
            turn: self.state.turns.next(),
            call: self.state.turns.model_calls(),
            content,
            usage: answer.usage,
            cost: answer.cost.or_else(|| price.map(|price| price.cost(answer.usage))),
            model: answer.model,
            stop: answer.stop,
        });
    }

    fn may_continue(&self) -> bool {
        self.state.turns.continuations() < self.state.assignment.limits().continuations_max
    }

    fn go_on_writing(&mut self, has_text: bool) {
        let body = if has_text {
            "Your answer was cut off by the output limit. Go on exactly where it stopped, without repeating anything."
        } else {
            "Your answer was cut off by the output limit before it said anything. Answer again, more briefly."
        };
        self.say(ItemKind::Continue, body);
        self.next_call();
    }

    pub(super) fn say(&mut self, item: ItemKind, body: impl Into<String>) {
        self.commit(SystemItem { item, body: body.into(), origin: Origin::Engine });
    }

    fn empty_answer(&mut self, usage: Usage) {
        let call = self.state.turns.model_calls();
        if self.state.models.empty_answers() >= self.state.assignment.limits().empty_answers_max {
            let times = self.state.models.empty_answers().saturating_add(1);
            let message = format!("the model gave an empty answer {times} times in a row");
            return self.suspend(ErrorClass::NoAnswer, message);
        }
        self.commit(Retry::at_once(call, RetryCause::EmptyAnswer, usage));
        self.say(ItemKind::AnswerAgain, "Your last answer was empty. Call a tool, or say that you are done.");
        self.next_call();
    }

    fn refused(&mut self) {
        let text = self.state.turns.text().trim();
        let said = if text.is_empty() { "it gave no reason" } else { text };
        let message = said.to_owned();
        self.end_turn(0);
        self.suspend(ErrorClass::Refusal, message);
    }

    pub(super) fn model_failed(&mut self, seq: Seq, failure: ModelFailure) {
        self.step.close(seq);
        self.settle(failure.usage);
        if self.state.turns.purpose() == Purpose::FinalSummary {
            return self.final_summary_failed(&failure);
        }
        if self.state.lifecycle.is_stopping() {
            if self.state.wants_final_summary() {
                // No task waits for that answer any more, only for the answer to another question.
                let (call, cause) = (self.state.turns.model_calls(), RetryCause::Interrupted);
                self.commit(Retry::at_once(call, cause, failure.usage));
            }
            return self.next_call();
        }
        if failure.class == ErrorClass::Aborted && self.state.lifecycle.is_yielding() {
            // The call is made again once there is a slot.
            let (call, cause) = (self.state.turns.model_calls(), RetryCause::Interrupted);
            self.commit(Retry::at_once(call, cause, failure.usage));
            return self.next_call();
        }
        if failure.class == ErrorClass::ContextTooLong {
            return self.too_long(failure);
        }
        if failure.class == ErrorClass::Unanswered {
            let why = PauseReason::Unanswered { waits_for: failure.message };
            return self.finish_segment(Outcome::Paused { why });
        }
        let class = failure.class;
        let is_summary = self.state.turns.purpose() == Purpose::Summary;
        if is_summary && class.cause() == TroubleCause::Request {
            return self.without_summary(failure);
        }
        if class.may_retry() {
            return self.try_again(failure);
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
                self.without_summary(failure);
            }
            ErrorClass::Aborted
            | ErrorClass::ScriptMismatch
            | ErrorClass::Storage
            | ErrorClass::Program
            | ErrorClass::ProgramGone
            | ErrorClass::Workspace
            | ErrorClass::StepFailed => self.end_as_failed(failure),
            _ => self.give_up(failure),
        }
    }

    /// There is no summary: the conversation is shortened by rule.
    fn without_summary(&mut self, failure: ModelFailure) {
        let why = format!("{}: {}", failure.class.words(), failure.message);
        let call = self.state.turns.model_calls();
        self.commit(Retry::at_once(call, RetryCause::UselessSummary { why }, failure.usage));
        self.next_call();
    }

    fn end_as_failed(&mut self, failure: ModelFailure) {
        let request = failure.request_id.map(|id| format!(" [request {id}]")).unwrap_or_default();
        let message = format!("{}{request}", failure.message);
        self.finish_segment(Outcome::Failed { class: failure.class, message });
    }

    /// The provider rejected the request as too long: the conversation is shortened by rule as far as possible,
    /// and the call is made once more. A summary is skipped.
    fn too_long(&mut self, failure: ModelFailure) {
        if self.state.turns.purpose() == Purpose::Turn && self.state.conversation.was_refused() {
            let note = " (also after leaving out everything that can be left out)";
            let message = format!("{}{note}", failure.message);
            return self.give_up(ModelFailure { message, ..failure });
        }
        let call = self.state.turns.model_calls();
        self.commit(Retry::at_once(call, RetryCause::Compacted, failure.usage));
        if self.state.turns.purpose() != Purpose::Turn && self.state.window().is_exhausted() {
            let message = format!("{} (and nothing can be left out of the conversation)", failure.message);
            return self.give_up(ModelFailure { message, ..failure });
        }
        self.next_call();
    }
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
