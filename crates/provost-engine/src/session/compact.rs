//! Keeping the conversation within the model's window: first what costs nothing, then a summary by the model, and
//! where neither will do, a rule that always gets there.

use provost_event::{
    Block, Compacted, CompactionKind, ErrorClass, HookMoment, HookSubject, Outcome, Purpose, Retry,
    RetryCause, Seq, StopReason,
};
use serde::{Deserialize, Serialize};

use super::context::{Form, Span, shown};
use super::{Deciding, SessionState, Stage};
use crate::event::Answer;
use crate::tokens::tokens_of;

/// Parts of the room in hundredths: from where on results become lines, a summary is asked for, and the rule takes
/// over.
const TRIM_AT: u64 = 70;
const SUM_UP_AT: u64 = 85;
const EMERGENCY_AT: u64 = 95;
/// Parts of the room in hundredths: what the newest results keep when older ones become lines, and the newest turns
/// beside a summary.
const KEPT: u64 = 25;
/// What a trim must free to be worth a new beginning of the provider's cache.
const TRIM_WORTH: u64 = 10;
/// Where an emergency compaction gets to, and how far it goes to keep the newest results whole.
const EMERGENCY_TARGET: u64 = 50;
const EMERGENCY_NEWEST: u64 = 80;
/// A compaction that frees less than this is a poor one; so many in a row, and the window is used up.
const POOR_BELOW: u64 = 5;
const POOR_MAX: u32 = 3;
/// Tokens a summary may have, at most.
const SUMMARY_TOKENS_MAX: u64 = 4_096;
/// What people said, and an earlier summary, each get this part of the room in a summary by rule.
const SAID_DIVISOR: u64 = 8;

/// What the hooks said of the compaction that is due.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Leave {
    #[default]
    Unasked,
    Given,
    Refused {
        hook: String,
        reason: String,
    },
}

/// How the conversation has been shortened up to now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Compactions {
    /// Summaries so far, the model's and those by rule.
    pub(super) summaries: u32,
    /// Those in a row that freed next to nothing.
    poor: u32,
    /// What the hooks said of the next one.
    pub(super) leave: Leave,
    /// The provider has refused the request as too long.
    pub(super) overflow: bool,
    /// One was made for the present answer.
    pub(super) made: bool,
    /// What stands for what was left out last.
    pub(super) summary: String,
}

impl Compactions {
    pub(super) fn made(&mut self, compacted: &Compacted) {
        let freed = compacted.tokens_before.saturating_sub(compacted.tokens_after);
        let is_poor = freed.saturating_mul(100) < compacted.tokens_before.saturating_mul(POOR_BELOW);
        self.poor = if is_poor { self.poor.saturating_add(1) } else { 0 };
        (self.leave, self.overflow, self.made) = (Leave::Unasked, false, true);
        if compacted.how != CompactionKind::Trim {
            self.summaries = self.summaries.saturating_add(1);
        }
        if !compacted.through.is_start() {
            self.summary.clone_from(&compacted.summary);
        }
    }

    /// The model's own words in what stands for what was left out last.
    fn words(&self) -> &str {
        self.summary.rsplit_once(WORDS_BEGIN).map_or("", |(_, words)| words)
    }
}

/// What stands before the model's own words in a summary.
const WORDS_BEGIN: &str = "\nWhat has happened, in your own words:\n";

/// What must happen before the next model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    Trim,
    Summary,
    Emergency,
}

impl Deciding<'_> {
    /// Shortens the conversation if that is due. Returns whether the next model call must wait: for a summary, for
    /// hooks, or for ever.
    pub(super) fn make_room(&mut self) -> bool {
        while let Some(due) = self.state.due() {
            if due != Due::Trim && self.state.asks_leave() {
                self.ask(HookSubject::Compaction);
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

    /// Commits an emergency compaction. Returns whether there is room now; where not, the session has ended.
    pub(super) fn shorten_by_rule(&mut self) -> bool {
        if let Leave::Refused { hook, reason } = &self.state.compactions.leave {
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

    fn no_room(&mut self, why: &str) -> bool {
        let window = self.state.policy.as_ref().and_then(|policy| policy.model.window_tokens);
        let size = window.map(|tokens| format!(" of {tokens} tokens")).unwrap_or_default();
        let message = format!("the window{size} is too small for this conversation: {why}");
        self.rest(Outcome::Failed { class: ErrorClass::ContextExhausted, message });
        false
    }

    /// The model has summed up, or was to.
    pub(super) fn summed_up(&mut self, answer: Answer) {
        let usage = answer.usage;
        match self.state.summary_of(answer) {
            Ok(compacted) => self.commit(compacted),
            Err(why) => {
                let call = self.state.counters.calls;
                self.commit(Retry { call, cause: RetryCause::UselessSummary { why }, delay_ms: 0, usage });
                if self.state.stopping.is_none() && !self.shorten_by_rule() {
                    return;
                }
            }
        }
        self.next_call();
    }
}

impl SessionState {
    /// Tokens that a request may have: the window less the cap on the answer.
    pub(super) fn room(&self) -> Option<u64> {
        let model = &self.policy.as_ref()?.model;
        Some(model.window_tokens?.saturating_sub(u64::from(model.output_tokens_max)))
    }

    fn is_over(&self, hundredths: u64) -> bool {
        let room = self.room();
        room.is_some_and(|room| self.context.tokens().saturating_mul(100) > room.saturating_mul(hundredths))
    }

    fn due(&self) -> Option<Due> {
        if self.compactions.overflow {
            Some(Due::Emergency)
        } else if self.is_over(TRIM_AT) && self.trim().is_some() {
            Some(Due::Trim)
        } else if self.is_over(EMERGENCY_AT) {
            Some(Due::Emergency)
        } else if self.is_over(SUM_UP_AT)
            && !matches!(self.compactions.leave, Leave::Refused { .. })
            && self.summary_range().is_some()
        {
            Some(Due::Summary)
        } else {
            None
        }
    }

    fn asks_leave(&self) -> bool {
        self.compactions.leave == Leave::Unasked && self.has_hook(HookMoment::PreCompact)
    }

    /// Whether the next model call is for a summary.
    pub(super) fn wants_summary(&self) -> bool {
        self.due() == Some(Due::Summary) && !self.asks_leave()
    }

    /// Tokens that a summary may have.
    pub(super) fn summary_tokens_max(&self) -> u32 {
        let Some(policy) = &self.policy else { return 0 };
        let most = self.room().map_or(SUMMARY_TOKENS_MAX, |room| (room / 8).min(SUMMARY_TOKENS_MAX));
        policy.model.output_tokens_max.min(u32::try_from(most).unwrap_or(u32::MAX))
    }

    /// What the model is asked when it shall sum up.
    pub(super) fn summary_question(&self) -> String {
        "Your conversation is about to be shortened: its older part will be left out, and what you answer now will \
         stand for it. The goal, what people said, your plan and the newest turns stay as they are. Call no tool. \
         Write down, briefly and exactly, whatever you will need to go on: decisions and their reasons, what is \
         done and what is still open, files that matter with what you know of them, commands that work, what failed \
         and why, names and values that you can't look up again."
            .to_owned()
    }

    /// The part of the room that stays free for what is kept, by the uncorrected estimate.
    fn part_of_room(&self, hundredths: u64) -> u64 {
        self.room().map_or(u64::MAX, |room| self.context.unscaled(room.saturating_mul(hundredths) / 100))
    }

    /// Results that a later one supersedes, and old ones, as lines, and old pictures left out; `None` where that
    /// frees too little.
    fn trim(&self) -> Option<Compacted> {
        let kept_max = self.part_of_room(KEPT);
        let (mut kept, mut lines_through) = (0_u64, Seq::START);
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

    /// Results behind `after` whose call was made again later.
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

    /// With what the conversation comes to before and after it.
    fn measured(&self, compacted: Compacted) -> Compacted {
        let tokens_after = self.context.tokens_after(&compacted);
        Compacted { tokens_before: self.context.tokens(), tokens_after, ..compacted }
    }

    /// The end of what a summary would stand for: all but the newest turns.
    fn summary_range(&self) -> Option<Seq> {
        let kept_max = self.part_of_room(KEPT);
        self.cut_before_newest(kept_max.saturating_sub(shown(&self.context.waiting)))
    }

    /// The end of the smallest range without which the spans take at most `room`. `None` when they do as they are.
    fn cut_before_newest(&self, room: u64) -> Option<Seq> {
        let mut kept = 0_u64;
        let spans = self.context.spans.iter().rev();
        let is_first_out = |span: &&Span| {
            kept = kept.saturating_add(span.shown());
            kept > room
        };
        spans.into_iter().find(is_first_out).map(|span| span.through)
    }

    /// What an answer to the question for a summary comes to.
    ///
    /// # Errors
    /// Why it can't stand for anything.
    fn summary_of(&self, answer: Answer) -> Result<Compacted, String> {
        if answer.content.iter().any(|block| matches!(block, Block::ToolCall(_))) {
            return Err("it calls tools instead of summing up".to_owned());
        }
        if answer.stop != StopReason::EndTurn {
            let why =
                if answer.stop == StopReason::Refusal { "the model declined" } else { "it was cut off" };
            return Err(why.to_owned());
        }
        let texts = answer.content.iter().filter_map(|block| match block {
            Block::Text(text) => Some(text.as_str()),
            _ => None,
        });
        let words = texts.collect::<Vec<_>>().join("\n");
        let words = words.trim();
        if words.is_empty() {
            return Err("it is empty".to_owned());
        }
        let through = self.summary_range().ok_or("nothing is left that it could stand for")?;
        let call = self.aside_call(answer.usage, answer.model);
        let summary = format!("{}{WORDS_BEGIN}{words}", self.kept_text(through));
        let kind = CompactionKind::Summary;
        let compacted =
            self.measured(Compacted { through, summary, call: Some(call), ..Compacted::new(kind) });
        let (before, after) = (compacted.tokens_before, compacted.tokens_after);
        if after.saturating_mul(100) > before.saturating_mul(100 - POOR_BELOW) {
            return Err(format!("it frees next to nothing ({before} → {after} tokens)"));
        }
        Ok(compacted)
    }

    /// Shortens the conversation by rule: the goal, what people said, the plan and the newest turns that fit stay;
    /// a line stands for the rest. `None` where even that leaves too much.
    fn emergency(&self) -> Option<Compacted> {
        let before = self.context.tokens();
        // The provider has just said that what it was sent is too long, whatever the estimate says.
        let known = self.room().unwrap_or(before);
        let room = if self.compactions.overflow { known.min(before) } else { known };
        let part = |hundredths: u64| self.context.unscaled(room.saturating_mul(hundredths) / 100);
        let all = self.head;
        let all_text = self.rule_text(all);
        let base = self.context.fixed.saturating_add(tokens_of(&all_text));
        let newest = |form| {
            let items = self.context.waiting.iter().map(|item| item.at_most(form));
            items.fold(base, u64::saturating_add)
        };
        let forms =
            [(Form::Whole, EMERGENCY_NEWEST), (Form::Cut, EMERGENCY_NEWEST), (Form::Line, EMERGENCY_NEWEST)];
        let fitting = forms.into_iter().find(|(form, most)| newest(*form) <= part(*most));
        let how = CompactionKind::Emergency;
        let compacted = match fitting {
            Some((form, _)) => {
                let left = part(EMERGENCY_TARGET).saturating_sub(newest(form));
                let through = self.cut_before_newest(left).unwrap_or_default();
                let summary = if through.is_start() { String::new() } else { self.rule_text(through) };
                let cut_through = if form == Form::Cut { self.head } else { Seq::START };
                let lines_through = if form == Form::Line { self.head } else { Seq::START };
                Compacted { through, summary, cut_through, lines_through, ..Compacted::new(how) }
            }
            None if self.calls.iter().all(|call| call.stage == Stage::Done) => {
                Compacted { through: all, summary: all_text, ..Compacted::new(how) }
            }
            None => return None,
        };
        let compacted = self.measured(compacted);
        let most = room.saturating_mul(EMERGENCY_AT) / 100;
        Some(compacted).filter(|compacted| compacted.tokens_after <= most && compacted.tokens_after < before)
    }

    /// What stands for everything up to `through`, by rule.
    fn rule_text(&self, through: Seq) -> String {
        let mut text = self.kept_text(through);
        let words = self.shortened(self.compactions.words(), SAID_DIVISOR);
        if !words.is_empty() {
            text.push_str(WORDS_BEGIN);
            text.push_str(&words);
        }
        text
    }

    /// `text`, as far as it fits that part of the room.
    fn shortened(&self, text: &str, divisor: u64) -> String {
        let most = self.room().map_or(u64::MAX, |room| room / divisor);
        let bytes = usize::try_from(most.saturating_mul(3)).unwrap_or(usize::MAX);
        if text.len() <= bytes {
            return text.to_owned();
        }
        let begin = text.get(..text.floor_char_boundary(bytes)).unwrap_or_default();
        format!("{begin} […]")
    }

    /// What stays of everything up to `through` whoever sums it up: the goal, what people said, the state of tools,
    /// and the files that were written.
    fn kept_text(&self, through: Seq) -> String {
        let (turns, calls) = (self.counters.turns_ended, self.counters.tool_calls);
        let look = if self.tool("recall").is_some() { " `recall` shows what was left out." } else { "" };
        let mut text = format!(
            "The older part of this conversation, up to entry {through} of its log, is left out here ({turns} turns \
             and {calls} tool calls so far; files and results of that work are as they were left).{look}\n\n\
             The goal, as it was given:\n{}\n",
            self.goal
        );
        let said = self.said_within();
        if !said.is_empty() {
            text.push_str("\nSaid since then:\n");
            said.iter().for_each(|said| text.push_str(&format!("{said}\n")));
        }
        for (tool, memory) in &self.memories {
            text.push_str(&format!("\nState of `{tool}`: {}\n", memory.text()));
        }
        if !self.written.is_empty() {
            let files = self.written.iter().cloned().collect::<Vec<_>>().join(", ");
            text.push_str(&format!("\nFiles written: {files}\n"));
        }
        text.push_str(&images_note(self.context.images_through(through)));
        text
    }

    /// What people said, the newest as far as they fit.
    fn said_within(&self) -> Vec<String> {
        let mut left = self.room().map_or(u64::MAX, |room| room / SAID_DIVISOR);
        let mut said = Vec::new();
        for words in self.said.iter().rev() {
            let words = self.shortened(words, SAID_DIVISOR * 2);
            let tokens = tokens_of(&words);
            if tokens > left {
                said.push("[… earlier words are left out …]".to_owned());
                break;
            }
            left -= tokens;
            said.push(words);
        }
        said.reverse();
        said
    }
}

/// What is said of `count` pictures that are left out.
fn images_note(count: usize) -> String {
    match count {
        0 => String::new(),
        count => format!("\nPictures left out with it: {count}. Those in files can be read again.\n"),
    }
}
