//! The conversation against the model's window: how large the next request is, and what must be left out first.

use std::collections::BTreeMap;

use provost_event::{Dimension, Exhausted, HookPoint, Json, MicroDollars, ModelPolicy, Seq};

use super::compactions::CompactionConsent;
use super::{Compactions, Context, Conversation};
use crate::session::assignment::Assignment;
use crate::tokens::tokens_of;

/// Percentages of the room: from where on results become lines, a summary is requested, and the rule applies.
const TRIM_AT: u64 = 70;
const SUM_UP_AT: u64 = 85;
pub(super) const EMERGENCY_AT: u64 = 95;
/// Maximum tokens of a summary.
const SUMMARY_TOKENS_MAX: u64 = 4_096;
/// Maximum tokens of the final summary at a limit.
const FINAL_SUMMARY_TOKENS_MAX: u32 = 1_024;

/// The request to the model for a summary.
pub(in crate::session) const SUMMARY_QUESTION: &str = "Your conversation is about to be shortened: its older part will be left out, and what you answer now will stand \
     for it. The goal, what people said, your plan and the newest turns stay as they are. Call no tool. Write down, \
     briefly and exactly, whatever you will need to go on: decisions and their reasons, what is done and what is still \
     open, files that matter with what you know of them, commands that work, what failed and why, names and values \
     that you can't look up again.";

/// What the decisions on a conversation depend on besides it.
#[derive(Debug, Clone, Copy)]
pub(in crate::session) struct WindowFacts<'a> {
    pub(in crate::session) assignment: &'a Assignment,
    pub(in crate::session) model: Option<&'a ModelPolicy>,
    /// The last entry.
    pub(in crate::session) head: Seq,
    /// Every call of the last answer has its result, and hooks have been called about it.
    pub(in crate::session) calls_are_done: bool,
    /// Turns and tool calls so far.
    pub(in crate::session) turns: u32,
    pub(in crate::session) tool_calls: u32,
    /// The state of tools.
    pub(in crate::session) memories: &'a BTreeMap<String, Json>,
}

/// The conversation against the model's window.
#[derive(Debug, Clone, Copy)]
pub(in crate::session) struct Window<'a> {
    pub(super) context: &'a Context,
    pub(super) compactions: &'a Compactions,
    pub(super) conversation: &'a Conversation,
    pub(super) facts: WindowFacts<'a>,
}

/// Tokens of a request, for budgets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::session) struct RequestTokens {
    /// Its maximum.
    pub(in crate::session) most: u64,
    /// Its size by our own estimate alone.
    pub(in crate::session) estimated: u64,
}

/// What must happen before the next model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CompactionDue {
    Trim,
    Summary,
    Emergency,
}

impl<'a> Window<'a> {
    pub(in crate::session) const fn new(conversation: &'a Conversation, facts: WindowFacts<'a>) -> Self {
        let context = &conversation.context;
        Self { context, compactions: &conversation.compactions, conversation, facts }
    }

    /// Maximum tokens of an answer; at most half of the window.
    pub(in crate::session) fn answer_tokens_max(&self) -> u32 {
        let Some(model) = self.facts.model else { return 0 };
        let half =
            model.window_tokens.map_or(u32::MAX, |window| u32::try_from(window / 2).unwrap_or(u32::MAX));
        model.output_tokens_max.min(half)
    }

    /// Maximum tokens of an answer after `times` that reasoning used up: twice as many each time, as far as the model
    /// and its window allow.
    pub(in crate::session) fn answer_tokens_after(&self, times: u32) -> u32 {
        let usual = self.answer_tokens_max();
        let Some(model) = self.facts.model else { return usual };
        let room = model.window_tokens.map(|window| window.saturating_sub(self.request_tokens(None)));
        let room = room.map_or(u32::MAX, |room| u32::try_from(room).unwrap_or(u32::MAX));
        let limit = model.output_tokens_limit.unwrap_or(u32::MAX).min(room);
        usual.saturating_mul(2_u32.saturating_pow(times)).min(limit).max(usual)
    }

    /// Thinking tokens for an extra question.
    pub(in crate::session) fn aside_thinking_tokens(&self) -> u32 {
        self.facts.model.map_or(0, |model| model.thinking_tokens(aside_effort(model)))
    }

    /// Maximum tokens of a summary, including the thinking before it.
    pub(in crate::session) fn summary_tokens_max(&self) -> u32 {
        let most = self.room().map_or(SUMMARY_TOKENS_MAX, |room| (room / 8).min(SUMMARY_TOKENS_MAX));
        let most = most.saturating_add(self.aside_thinking_tokens().into());
        self.answer_tokens_max().min(u32::try_from(most).unwrap_or(u32::MAX))
    }

    /// Maximum tokens of the final summary, including the thinking before it.
    pub(in crate::session) fn final_summary_tokens_max(&self) -> u32 {
        let most = FINAL_SUMMARY_TOKENS_MAX.saturating_add(self.aside_thinking_tokens());
        self.answer_tokens_max().min(most)
    }

    /// Maximum tokens of a request: the window less the cap on the answer, or what the provider was seen to
    /// refuse. `None` if neither is known.
    pub(in crate::session) fn room(&self) -> Option<u64> {
        match self.facts.model?.window_tokens {
            Some(window) => Some(window.saturating_sub(u64::from(self.answer_tokens_max()))),
            None => self.compactions.refused_at,
        }
    }

    /// The room, or less if the provider has just refused a request as too long, whatever is known about its
    /// model.
    pub(super) fn limit(&self) -> Option<u64> {
        let refused = self.compactions.overflow.then(|| self.context.tokens());
        match (self.room(), refused) {
            (Some(room), Some(refused)) => Some(room.min(refused)),
            (room, refused) => room.or(refused),
        }
    }

    /// A percentage of that limit, by the uncorrected estimate.
    pub(super) fn part(&self, percent: u64) -> u64 {
        self.limit().map_or(u64::MAX, |limit| self.part_of(limit, percent))
    }

    pub(super) fn part_of(&self, room: u64, percent: u64) -> u64 {
        self.context.unscaled(room.saturating_mul(percent) / 100)
    }

    pub(super) fn is_over(&self, percent: u64) -> bool {
        let room = self.room();
        room.is_some_and(|room| self.context.tokens().saturating_mul(100) > room.saturating_mul(percent))
    }

    /// Tokens of a request with the extra question, by the provider's reports within bounds.
    pub(in crate::session) fn request_tokens(&self, question: Option<&str>) -> u64 {
        if self.facts.assignment.is_external() {
            // The requests that an external program will make aren't known in advance.
            return 0;
        }
        let question = question.map_or(0, tokens_of);
        self.context.tokens().saturating_add(self.context.scaled(question))
    }

    /// Tokens of a request with the extra question, for budgets.
    pub(in crate::session) fn reserved_tokens(&self, question: Option<&str>) -> RequestTokens {
        if self.facts.assignment.is_external() {
            return RequestTokens { most: 0, estimated: 0 };
        }
        let question = question.map_or(0, tokens_of);
        let estimated = self.context.estimated_tokens().saturating_add(question);
        RequestTokens { most: self.context.reserved_tokens(question), estimated }
    }

    /// Tokens of a conversation for which what is left of a budget covers a final summary, by a conservative
    /// estimate, in the window's count.
    pub(in crate::session) fn affordable(&self, exhausted: Exhausted) -> u64 {
        let left = exhausted.limit.saturating_sub(exhausted.used);
        let price = self.facts.model.and_then(|model| model.price);
        let tokens = match (exhausted.dimension, price) {
            (Dimension::Tokens, _) => left,
            // The request costs no more per token than the answer.
            (Dimension::Money, Some(price)) => price.output_tokens_for(MicroDollars(left)),
            (Dimension::Money, None) | (Dimension::Turns | Dimension::WallTime, _) => 0,
        };
        let tokens = tokens.saturating_sub(u64::from(self.final_summary_tokens_max()));
        let room = u128::from(tokens) * u128::from(self.context.tokens());
        let room = room / u128::from(self.context.reserved_tokens(0).max(1));
        u64::try_from(room).unwrap_or(u64::MAX).min(tokens)
    }

    fn has_room_for(&self, question: &str) -> bool {
        self.room().is_none_or(|room| self.request_tokens(Some(question)) <= room)
    }

    /// Whether the next model call can't be made with the conversation as it is.
    pub(in crate::session) fn must_shorten(&self) -> bool {
        self.compactions.overflow || self.is_over(EMERGENCY_AT)
    }

    /// Whether the final summary can be asked for with this question.
    pub(super) fn fits_final_summary(&self, question: &str) -> bool {
        !self.is_over(EMERGENCY_AT) && self.has_room_for(question)
    }

    /// Whether it can't be shortened, and no hook is to be called about that.
    pub(in crate::session) fn is_exhausted(&self) -> bool {
        !self.asks_hooks(CompactionDue::Emergency) && self.emergency().is_none()
    }

    /// Whether the rule can shorten it further.
    pub(in crate::session) fn can_shorten_by_rule(&self) -> bool {
        self.emergency().is_some()
    }

    /// Whether anything must happen before the next model call.
    pub(in crate::session) fn is_compaction_due(&self) -> bool {
        self.due().is_some()
    }

    /// Whether the next model call is for a summary.
    pub(in crate::session) fn wants_summary(&self) -> bool {
        self.due() == Some(CompactionDue::Summary) && !self.asks_hooks(CompactionDue::Summary)
    }

    pub(super) fn due(&self) -> Option<CompactionDue> {
        if self.facts.assignment.is_external() {
            // An external program manages its own context.
            return None;
        }
        if self.compactions.overflow {
            // If nothing can be left out the request is sent once more unchanged: the refusal may have been an
            // error of the provider.
            let is_possible = self.asks_hooks(CompactionDue::Emergency) || self.emergency().is_some();
            is_possible.then_some(CompactionDue::Emergency)
        } else if self.is_over(TRIM_AT) && self.trim().is_some() {
            Some(CompactionDue::Trim)
        } else if self.is_over(EMERGENCY_AT) {
            Some(CompactionDue::Emergency)
        } else if self.is_over(SUM_UP_AT) {
            self.summary_due()
        } else {
            None
        }
    }

    /// A summary, once for each answer. If it can't be obtained or has no room, the rule replaces it where
    /// possible.
    fn summary_due(&self) -> Option<CompactionDue> {
        let compactions = self.compactions;
        if compactions.made || matches!(compactions.consent, CompactionConsent::Refused { .. }) {
            None
        } else if compactions.useless || !self.has_room_for(SUMMARY_QUESTION) {
            self.emergency().map(|_| CompactionDue::Emergency)
        } else {
            self.summary_range().map(|_| CompactionDue::Summary)
        }
    }

    /// Whether hooks are called before this.
    pub(super) fn asks_hooks(&self, due: CompactionDue) -> bool {
        let is_open = match &self.compactions.consent {
            CompactionConsent::Unasked => due != CompactionDue::Trim,
            CompactionConsent::Refused { is_last, .. } => due == CompactionDue::Emergency && !is_last,
            CompactionConsent::Given => false,
        };
        is_open && self.has_compaction_hook()
    }

    /// Whether it may be shortened by rule without calling hooks, once for the current answer.
    pub(super) fn may_shorten_unasked(&self) -> bool {
        let asks_none = self.compactions.consent == CompactionConsent::Given || !self.has_compaction_hook();
        asks_none && !self.compactions.made
    }

    fn has_compaction_hook(&self) -> bool {
        self.facts.assignment.has_hook(HookPoint::PreCompact)
    }
}

/// The thinking effort for an extra question: the lowest that the model has, if it thinks at all.
pub(in crate::session) fn aside_effort(model: &ModelPolicy) -> Option<provost_event::Effort> {
    if model.reasons { Some(provost_event::Effort::Minimal) } else { model.effort }
}
