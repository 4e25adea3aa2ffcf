//! Keeps the conversation within the model's window: first by what costs nothing, then by a summary from the
//! model, and if neither is enough by a rule that always succeeds.
//!
//! The rule always succeeds if the room is at least 400 tokens more than three times the total of the system
//! prompt, the tools and the goal: the replacement for the part that is left out takes at most 55 % of the room,
//! and the rule stops at 95 %. With less room the session may end because nothing is left to leave out.

mod plan;
mod text;

use provost_event::{
    Compacted, CompactionKind, ErrorClass, HookPoint, HookTrigger, Purpose, Retry, RetryCause,
};
use serde::{Deserialize, Serialize};

use super::{Deciding, SessionState};
use crate::event::Answer;
use crate::tokens::tokens_of;

/// Percentages of the room: from where on results become lines, a summary is requested, and the rule applies.
const TRIM_AT: u64 = 70;
const SUM_UP_AT: u64 = 85;
const EMERGENCY_AT: u64 = 95;
/// A compaction that frees a smaller percentage is a poor one; after the maximum of poor ones in a row the window
/// is exhausted.
const POOR_BELOW: u64 = 5;
const POOR_MAX: u32 = 3;
/// Maximum tokens of a summary.
const SUMMARY_TOKENS_MAX: u64 = 4_096;

/// The hooks' decision on the compaction that is due.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Leave {
    #[default]
    Unasked,
    Given,
    Refused {
        hook: String,
        reason: String,
        /// The compaction couldn't be postponed when they were called. Otherwise they are called once more when it
        /// can't.
        is_last: bool,
    },
}

/// How the conversation has been shortened so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Compactions {
    /// Summaries so far, by the model and by rule.
    pub(super) summaries: u32,
    /// Compactions in a row that freed next to nothing.
    poor: u32,
    /// The hooks' decision on the next one.
    pub(super) leave: Leave,
    /// The compaction that they were called about can't be postponed.
    pub(super) is_last_question: bool,
    /// The provider has refused the request as too long.
    pub(super) overflow: bool,
    /// The estimate of the smallest request that was refused as too long: the upper bound if the window is
    /// unknown.
    pub(super) refused_at: Option<u64>,
    /// A request for the current answer has been refused already.
    pub(super) refused: bool,
    /// A summary was requested, and its answer is unusable.
    pub(super) useless: bool,
    /// One was made for the current answer, other than a trim.
    pub(super) made: bool,
    /// The latest replacement for what was left out.
    pub(super) summary: String,
}

impl Compactions {
    /// A request that was refused as too long may be accepted after a resumption or by another model.
    pub(super) const fn forget_refusals(&mut self) {
        (self.overflow, self.refused, self.refused_at) = (false, false, None);
    }

    /// The model has answered: a request that was refused before fits after all.
    pub(super) const fn answered(&mut self) {
        if self.overflow {
            self.forget_refusals();
        }
        (self.made, self.refused) = (false, false);
    }

    pub(super) fn made(&mut self, compacted: &Compacted) {
        let freed = compacted.tokens_before.saturating_sub(compacted.tokens_after);
        let is_poor = freed.saturating_mul(100) < compacted.tokens_before.saturating_mul(POOR_BELOW);
        self.poor = if is_poor { self.poor.saturating_add(1) } else { 0 };
        (self.leave, self.overflow, self.useless) = (Leave::Unasked, false, false);
        if compacted.how != CompactionKind::Trim {
            self.summaries = self.summaries.saturating_add(1);
            self.made = true;
        }
        if !compacted.through.is_start() {
            self.summary.clone_from(&compacted.summary);
        }
    }
}

/// What must happen before the next model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Trim,
    Summary,
    Emergency,
}

impl Deciding<'_> {
    /// Shortens the conversation if that is due. Returns whether the next model call must wait: for a summary, for
    /// hooks, or because the session ends. Terminates: a trim leaves less to trim, and after the rule only a trim
    /// can be due.
    pub(super) fn make_room(&mut self) -> bool {
        while let Some(due) = self.state.due() {
            if self.state.asks_leave(due) {
                self.ask(HookTrigger::Compaction);
                return true;
            }
            match due {
                Due::Trim => self.state.trim().into_iter().for_each(|compacted| self.commit(compacted)),
                Due::Summary => {
                    self.reserve(Purpose::Summary);
                    return true;
                }
                Due::Emergency => {
                    if !self.shorten_by_rule() {
                        return true;
                    }
                }
            }
        }
        false
    }

    /// Commits an emergency compaction. Returns whether there is room now; if not, the session has ended.
    pub(super) fn shorten_by_rule(&mut self) -> bool {
        if let Leave::Refused { hook, reason, .. } = &self.state.compactions.leave {
            let why = format!("hook {hook} keeps it from being shortened: {reason}");
            return self.no_room(&why);
        }
        let Some(compacted) = self.state.emergency() else {
            return self.no_room("what can't be left out of it takes all of it");
        };
        self.commit(compacted);
        if self.state.compactions.poor >= POOR_MAX {
            return self.no_room("shortening it frees next to nothing any more");
        }
        true
    }

    /// Shortens the conversation as far as the final summary needs it, without calling hooks. Returns whether
    /// there is room now.
    pub(super) fn make_room_for_last_words(&mut self) -> bool {
        while self.state.is_over(EMERGENCY_AT) || !self.state.has_room_for(Purpose::FinalSummary) {
            let compactions = &self.state.compactions;
            let asks_none =
                compactions.leave == Leave::Given || !self.state.assignment.has_hook(HookPoint::PreCompact);
            let may = asks_none && !compactions.made;
            let shorter = self.state.trim().or_else(|| self.state.emergency().filter(|_| may));
            let Some(compacted) = shorter else { return false };
            self.commit(compacted);
        }
        true
    }

    /// Shortens it to `room` tokens, so that the budget covers the final summary. Returns whether that was
    /// possible.
    pub(super) fn shorten_for_budget(&mut self, room: u64) -> bool {
        let compactions = &self.state.compactions;
        let asks_none =
            compactions.leave == Leave::Given || !self.state.assignment.has_hook(HookPoint::PreCompact);
        let shorter = if asks_none && !compactions.made { self.state.emergency_within(room) } else { None };
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
    pub(super) fn summed_up(&mut self, answer: Answer) {
        let usage = answer.usage;
        match self.state.summary_of(answer) {
            Ok(compacted) => self.commit(compacted),
            Err(why) => {
                let call = self.state.counters.calls;
                self.commit(Retry::at_once(call, RetryCause::UselessSummary { why }, usage));
            }
        }
        self.next_call();
    }
}

impl SessionState {
    /// Maximum tokens of an answer; at most half of the window.
    pub(super) fn answer_tokens_max(&self) -> u32 {
        let Some(model) = self.model() else { return 0 };
        let half =
            model.window_tokens.map_or(u32::MAX, |window| u32::try_from(window / 2).unwrap_or(u32::MAX));
        model.output_tokens_max.min(half)
    }

    /// Maximum tokens of a request: the window less the cap on the answer, or what the provider was seen to
    /// refuse. `None` if neither is known.
    pub(super) fn room(&self) -> Option<u64> {
        match self.model()?.window_tokens {
            Some(window) => Some(window.saturating_sub(u64::from(self.answer_tokens_max()))),
            None => self.compactions.refused_at,
        }
    }

    /// The room, or less if the provider has just refused a request as too long, whatever is known about its
    /// model.
    fn limit(&self) -> Option<u64> {
        let refused = self.compactions.overflow.then(|| self.context.tokens());
        match (self.room(), refused) {
            (Some(room), Some(refused)) => Some(room.min(refused)),
            (room, refused) => room.or(refused),
        }
    }

    /// A percentage of that limit, by the uncorrected estimate.
    fn part(&self, hundredths: u64) -> u64 {
        self.limit().map_or(u64::MAX, |limit| self.part_of(limit, hundredths))
    }

    fn part_of(&self, room: u64, hundredths: u64) -> u64 {
        self.context.unscaled(room.saturating_mul(hundredths) / 100)
    }

    fn is_over(&self, hundredths: u64) -> bool {
        let room = self.room();
        room.is_some_and(|room| self.context.tokens().saturating_mul(100) > room.saturating_mul(hundredths))
    }

    /// Tokens of a request, including the extra question.
    pub(super) fn request_tokens(&self, purpose: Purpose) -> u64 {
        if purpose == Purpose::Judge {
            return self.judge_request_tokens();
        }
        if self.assignment.is_external() {
            // The requests that an external program will make aren't known in advance.
            return 0;
        }
        let question = self.question(purpose).map_or(0, |question| tokens_of(&question));
        self.context.tokens().saturating_add(self.context.scaled(question))
    }

    /// Tokens of a request including the extra question, for budgets: at most, and by estimate alone.
    pub(super) fn reserved_tokens(&self, purpose: Purpose) -> (u64, u64) {
        if purpose == Purpose::Judge || self.assignment.is_external() {
            let tokens = self.request_tokens(purpose);
            return (tokens, tokens);
        }
        let question = self.question(purpose).map_or(0, |question| tokens_of(&question));
        let estimated = self.context.estimated_tokens().saturating_add(question);
        (self.context.reserved_tokens(question), estimated)
    }

    /// What a budget of `tokens` for the conversation corresponds to in the window's count.
    pub(super) fn room_for_budget(&self, tokens: u64) -> u64 {
        let room = u128::from(tokens) * u128::from(self.context.tokens());
        let room = room / u128::from(self.context.reserved_tokens(0).max(1));
        u64::try_from(room).unwrap_or(u64::MAX).min(tokens)
    }

    fn has_room_for(&self, purpose: Purpose) -> bool {
        self.room().is_none_or(|room| self.request_tokens(purpose) <= room)
    }

    /// Whether the next model call can't be made with the conversation as it is.
    pub(super) fn must_shorten(&self) -> bool {
        self.compactions.overflow || self.is_over(EMERGENCY_AT)
    }

    /// Whether it can't be shortened, and no hook is to be called about that.
    pub(super) fn is_exhausted(&self) -> bool {
        !self.asks_leave(Due::Emergency) && self.emergency().is_none()
    }

    /// Whether the rule can shorten it further.
    pub(super) fn can_shorten_by_rule(&self) -> bool {
        self.emergency().is_some()
    }

    pub(super) fn due(&self) -> Option<Due> {
        if self.assignment.is_external() {
            // An external program manages its own context.
            return None;
        }
        if self.compactions.overflow {
            // If nothing can be left out the request is sent once more unchanged: the refusal may have been an
            // error of the provider.
            (self.asks_leave(Due::Emergency) || self.emergency().is_some()).then_some(Due::Emergency)
        } else if self.is_over(TRIM_AT) && self.trim().is_some() {
            Some(Due::Trim)
        } else if self.is_over(EMERGENCY_AT) {
            Some(Due::Emergency)
        } else if self.is_over(SUM_UP_AT) {
            self.summary_due()
        } else {
            None
        }
    }

    /// A summary, once for each answer. If it can't be obtained or has no room, the rule replaces it where
    /// possible.
    fn summary_due(&self) -> Option<Due> {
        let compactions = &self.compactions;
        if compactions.made || matches!(compactions.leave, Leave::Refused { .. }) {
            None
        } else if compactions.useless || !self.has_room_for(Purpose::Summary) {
            self.emergency().map(|_| Due::Emergency)
        } else {
            self.summary_range().map(|_| Due::Summary)
        }
    }

    fn asks_leave(&self, due: Due) -> bool {
        let unsaid = match &self.compactions.leave {
            Leave::Unasked => due != Due::Trim,
            Leave::Refused { is_last, .. } => due == Due::Emergency && !is_last,
            Leave::Given => false,
        };
        unsaid && self.assignment.has_hook(HookPoint::PreCompact)
    }

    /// Whether the next model call is for a summary.
    pub(super) fn wants_summary(&self) -> bool {
        self.due() == Some(Due::Summary) && !self.asks_leave(Due::Summary)
    }

    /// Maximum tokens of a summary, including the thinking before it.
    pub(super) fn summary_tokens_max(&self) -> u32 {
        let most = self.room().map_or(SUMMARY_TOKENS_MAX, |room| (room / 8).min(SUMMARY_TOKENS_MAX));
        let most = most.saturating_add(self.aside_thinking_tokens().into());
        self.answer_tokens_max().min(u32::try_from(most).unwrap_or(u32::MAX))
    }
}
