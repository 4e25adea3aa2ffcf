//! The replacement for the part of a conversation that is left out.

use provost_event::Seq;

use super::window::Window;
use crate::tokens::tokens_of;

/// Percentages of the room that the parts of a summary may take: people's messages, one of them, the state of
/// tools, the files that were written, and an earlier summary within one by rule.
const SAID: u64 = 12;
const SAID_ONCE: u64 = 6;
const MEMORIES: u64 = 25;
const WRITTEN: u64 = 6;
const WORDS: u64 = 12;

/// The heading of the model's own text in a summary.
const WORDS_BEGIN: &str = "\nWhat has happened, in your own words:\n";

/// The model's own text in `summary`.
fn words_of(summary: &str) -> &str {
    summary.rsplit_once(WORDS_BEGIN).map_or("", |(_, words)| words)
}

impl Window<'_> {
    /// The replacement for everything up to `through`, with the model's text `words`.
    pub(super) fn summary_text(&self, through: Seq, words: &str) -> String {
        // A model that repeats an earlier summary must not seem to begin a new one in the middle.
        let words = words.replace(WORDS_BEGIN.trim(), "");
        format!("{}{WORDS_BEGIN}{}", self.kept_text(through), words.trim())
    }

    /// The replacement for everything up to `through`, by rule.
    pub(super) fn rule_text(&self, through: Seq) -> String {
        let mut text = self.kept_text(through);
        let words = shortened(words_of(&self.compactions.summary), self.part(WORDS));
        if !words.is_empty() {
            text.push_str(WORDS_BEGIN);
            text.push_str(&words);
        }
        text
    }

    /// What every summary keeps of everything up to `through`: the goal, people's messages, the state of tools,
    /// and the files that were written.
    fn kept_text(&self, through: Seq) -> String {
        let turns = self.facts.turns;
        let calls = self.facts.tool_calls;
        let look = if self.facts.assignment.tool("recall").is_some() {
            " `recall` shows what was left out."
        } else {
            ""
        };
        let mut text = format!(
            "The older part of this conversation, up to entry {through} of its log, is left out here ({turns} turns \
             and {calls} tool calls so far; files and results of that work are as they were left).{look}\n\n\
             The goal, as it was given:\n{}\n",
            self.facts.assignment.goal()
        );
        let said = self.conversation.said.iter().map(|words| shortened(words, self.part(SAID_ONCE)));
        let said = newest(said.collect(), self.part(SAID), "[… earlier words are left out …]");
        if !said.is_empty() {
            text.push_str("\nSaid since then:\n");
            said.iter().for_each(|said| text.push_str(&format!("{said}\n")));
        }
        let mut left = self.part(MEMORIES);
        for (tool, memory) in self.facts.memories {
            let memory = shortened(memory.text(), left);
            left = left.saturating_sub(tokens_of(&memory));
            text.push_str(&format!("\nState of `{tool}`: {memory}\n"));
        }
        let written = newest(self.conversation.written.iter().cloned().collect(), self.part(WRITTEN), "…");
        if !written.is_empty() {
            text.push_str(&format!("\nFiles written: {}\n", written.join(", ")));
        }
        text.push_str(&images_note(self.context.images_through(through)));
        text
    }
}

/// The last of `texts` that together have at most `tokens_max` tokens, with `mark` in place of the earlier ones.
fn newest(texts: Vec<String>, tokens_max: u64, mark: &str) -> Vec<String> {
    let mut left = tokens_max;
    let mut found = Vec::new();
    for text in texts.into_iter().rev() {
        let Some(rest) = left.checked_sub(tokens_of(&text).saturating_add(1)) else {
            found.push(mark.to_owned());
            break;
        };
        left = rest;
        found.push(text);
    }
    found.reverse();
    found
}

/// The beginning of `text` with at most `tokens_max` tokens, with a mark after it if that isn't all.
fn shortened(text: &str, tokens_max: u64) -> String {
    let mut begin = text;
    loop {
        let tokens = tokens_of(begin);
        if tokens <= tokens_max {
            break;
        }
        let bytes = u128::try_from(begin.len()).unwrap_or(u128::MAX);
        let bytes = bytes * u128::from(tokens_max) / u128::from(tokens);
        let bytes = usize::try_from(bytes).unwrap_or_default();
        begin = begin.get(..begin.floor_char_boundary(bytes)).unwrap_or_default();
    }
    if begin.len() == text.len() { text.to_owned() } else { format!("{begin} […]") }
}

/// The note on `count` images that are left out.
fn images_note(count: usize) -> String {
    match count {
        0 => String::new(),
        count => format!("\nPictures left out with it: {count}. Those in files can be read again.\n"),
    }
}
