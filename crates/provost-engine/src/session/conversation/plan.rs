//! What each kind of compaction leaves out.

use provost_event::{AsideCall, Block, Compacted, CompactionKind, Seq, StopReason};

use super::compactions::{CompactionConsent, POOR_BELOW};
use super::context::{ContextSpan, ItemForm, shown};
use super::window::{EMERGENCY_AT, Window};
use crate::event::Answer;
use crate::tokens::{BLOCK_TOKENS, tokens_of};

/// Percentages of the room: what the newest results keep when older ones become lines, and the newest turns
/// besides a summary.
const KEPT: u64 = 25;
/// What a trim must free to justify a new start of the provider's cache.
const TRIM_WORTH: u64 = 10;
/// The target of an emergency compaction, and how far it goes to keep the newest results whole.
const EMERGENCY_TARGET: u64 = 50;
const EMERGENCY_NEWEST: u64 = 80;
/// Both if the window is unknown and a request was too long for it, as a percentage of that request.
const BLIND_TARGET: u64 = 20;

impl Window<'_> {
    /// Replaces superseded and old results by lines, and leaves out old images; `None` if that frees too little.
    pub(super) fn trim(&self) -> Option<Compacted> {
        let kept_max = self.part(KEPT);
        let mut kept = 0_u64;
        let mut lines_through = Seq::START;
        for (item, was_sent) in self.context.newest_first() {
            if item.is_result || item.images > 0 {
                kept = kept.saturating_add(item.shown());
                if was_sent && kept > kept_max && item.is_long() {
                    lines_through = item.at;
                    break;
                }
            }
        }
        let superseded = self.superseded(lines_through);
        let freed = |compacted: &Compacted| compacted.tokens_before.saturating_sub(compacted.tokens_after);
        let compacted =
            self.measured(Compacted { lines_through, superseded, ..Compacted::new(CompactionKind::Trim) });
        let worth = self.room().unwrap_or_default().saturating_mul(TRIM_WORTH) / 100;
        Some(compacted).filter(|compacted| freed(compacted) > worth)
    }

    /// Results after `after` whose call was made again later.
    fn superseded(&self, after: Seq) -> Vec<Seq> {
        let mut seen = std::collections::HashSet::new();
        let mut found = Vec::new();
        for (item, _) in self.context.newest_first() {
            if let Some(call) = item.reads
                && !seen.insert(call)
                && item.at > after
                && item.is_long()
            {
                found.push(item.at);
            }
        }
        found.reverse();
        found
    }

    /// Adds the conversation's size before and after it.
    fn measured(&self, compacted: Compacted) -> Compacted {
        let tokens_after = self.context.tokens_after(&compacted);
        Compacted { tokens_before: self.context.tokens(), tokens_after, ..compacted }
    }

    /// The end of the range that a summary would replace: all but the newest turns.
    pub(super) fn summary_range(&self) -> Option<Seq> {
        self.cut_before_newest(self.part(KEPT).saturating_sub(shown(&self.context.waiting)))
    }

    /// The end of the smallest range without which the spans take at most `room`. `None` if they fit as they are.
    fn cut_before_newest(&self, room: u64) -> Option<Seq> {
        let mut kept = 0_u64;
        let spans = self.context.spans.iter().rev();
        let is_first_out = |span: &&ContextSpan| {
            kept = kept.saturating_add(span.shown());
            kept > room
        };
        spans.into_iter().find(is_first_out).map(|span| span.through)
    }

    /// The compaction from an answer to the request for a summary.
    ///
    /// # Errors
    /// Why the answer is unusable.
    pub(super) fn summary_of(&self, answer: Answer, call: AsideCall) -> Result<Compacted, String> {
        if answer.content.iter().any(|block| matches!(block, Block::ToolCall(_))) {
            return Err("it calls tools instead of summing up".to_owned());
        }
        if !matches!(answer.stop, StopReason::EndTurn | StopReason::Commentary) {
            let why =
                if answer.stop == StopReason::Refusal { "the model declined" } else { "it was cut off" };
            return Err(why.to_owned());
        }
        let texts = answer.content.iter().filter_map(|block| match block {
            Block::Text(text) => Some(text.as_str()),
            _ => None,
        });
        let words = texts.collect::<Vec<_>>().join("\n");
        if words.trim().is_empty() {
            return Err("it is empty".to_owned());
        }
        let through = self.summary_range().ok_or("nothing is left that it could stand for")?;
        let summary = self.summary_text(through, &words);
        let kind = CompactionKind::Summary;
        let compacted =
            self.measured(Compacted { through, summary, call: Some(call), ..Compacted::new(kind) });
        let before = compacted.tokens_before;
        let after = compacted.tokens_after;
        if after.saturating_mul(100) > before.saturating_mul(100 - POOR_BELOW) {
            return Err(format!("it frees next to nothing ({before} → {after} tokens)"));
        }
        Ok(compacted)
    }

    /// The emergency compaction that is due.
    ///
    /// # Errors
    /// Why there is none: the session can't go on.
    pub(super) fn by_rule(&self) -> Result<Compacted, String> {
        if let CompactionConsent::Refused { hook, reason, .. } = &self.compactions.consent {
            return Err(format!("hook {hook} keeps it from being shortened: {reason}"));
        }
        self.emergency().ok_or_else(|| "what can't be left out of it takes all of it".to_owned())
    }

    /// The next compaction on the way to what the final summary needs, without calling hooks.
    pub(super) fn shorter_for_final_summary(&self) -> Option<Compacted> {
        self.trim().or_else(|| self.emergency().filter(|_| self.may_shorten_unasked()))
    }

    /// Shortens the conversation by rule: the goal, people's messages, the plan and the newest turns that fit
    /// stay; a line replaces the rest. `None` if even that leaves too much.
    pub(super) fn emergency(&self) -> Option<Compacted> {
        self.emergency_within(self.limit().unwrap_or_else(|| self.context.tokens()))
    }

    pub(super) fn emergency_within(&self, room: u64) -> Option<Compacted> {
        let before = self.context.tokens();
        let most = room.saturating_mul(EMERGENCY_AT) / 100;
        let text = self.rule_text(self.facts.head);
        let beside =
            [self.context.fixed, tokens_of(&text), BLOCK_TOKENS].into_iter().fold(0, u64::saturating_add);
        let forms = [ItemForm::Whole, ItemForm::Cut, ItemForm::Line].into_iter();
        let newest = forms.filter_map(|form| self.newest_turns(form, beside, room));
        // Never between a call and its result.
        let nothing = Compacted {
            through: self.facts.head,
            summary: text,
            ..Compacted::new(CompactionKind::Emergency)
        };
        newest
            .chain(self.facts.calls_are_done.then_some(nothing))
            .map(|compacted| self.measured(compacted))
            .find(|compacted| compacted.tokens_after <= most && compacted.tokens_after < before)
    }

    /// Leaves the newest turns that fit, with results in `form`, next to `beside` tokens of other content. `None`
    /// if what hasn't been sent yet is too long in that form and there is a shorter one.
    fn newest_turns(&self, form: ItemForm, beside: u64, room: u64) -> Option<Compacted> {
        // If the window is unknown, a refusal only shows that it is smaller; there is one more try.
        let is_blind = self.compactions.overflow && self.facts.model?.window_tokens.is_none();
        let newest_max = if is_blind { BLIND_TARGET } else { EMERGENCY_NEWEST };
        let target = if is_blind { BLIND_TARGET } else { EMERGENCY_TARGET };
        let waiting = self.context.waiting.iter().map(|item| item.at_most(form));
        let newest = waiting.fold(beside, u64::saturating_add);
        if form != ItemForm::Line && newest > self.part_of(room, newest_max) {
            return None;
        }
        let left = self.part_of(room, target).saturating_sub(newest);
        // If no more turns need to go, the replacement for the older ones may still be too long.
        let through = self.cut_before_newest(left).unwrap_or(self.context.from);
        let summary = if through.is_start() { String::new() } else { self.rule_text(through) };
        let in_form = |wanted| if form == wanted { self.facts.head } else { Seq::START };
        let cut_through = in_form(ItemForm::Cut);
        let lines_through = in_form(ItemForm::Line);
        let how = CompactionKind::Emergency;
        Some(Compacted { through, summary, cut_through, lines_through, ..Compacted::new(how) })
    }
}
