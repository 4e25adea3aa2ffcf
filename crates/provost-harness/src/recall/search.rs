//! Searches entries for a text, the newest first.

use std::ops::Range;

use provost_event::{Seq, ToolStatus};
use regex::{Regex, RegexBuilder};

use super::{NAME, NAME_BYTES, Trouble, shortened};
use crate::session_log::{LogItem, Utterance};
use crate::{ToolContext, ToolOutput};

/// Maximum bytes of a search text.
pub(super) const TEXT_BYTES_MAX: usize = 500;
/// Bytes of an answer reserved for the description of the search.
const FRAME_BYTES: usize = 160;
/// Bytes shown before a match, and of the match and what follows.
const BEFORE_BYTES: usize = 60;
const AFTER_BYTES: usize = 140;
/// Bytes of the search text that an answer repeats.
const ECHO_BYTES: usize = 60;

/// The progress of a search.
enum Reached {
    /// The log's first entry.
    All,
    /// The answer is full: the search continues before this entry.
    Full(Seq),
    /// It was interrupted after searching this entry and all later ones.
    Stopped(Seq),
}

pub(super) async fn search(
    context: &ToolContext,
    text: &str,
    before: Seq,
    bytes_max: usize,
) -> Result<ToolOutput, Trouble> {
    let matcher = RegexBuilder::new(&regex::escape(text)).case_insensitive(true).build();
    let matcher = matcher.map_err(|error| Trouble::Missing(format!("can't search for that: {error}")))?;
    let mut hits = Hits { matcher, lines: String::new(), room: bytes_max.saturating_sub(FRAME_BYTES) };
    let reached = hits.look(context, before).await?;
    Ok(hits.output(text, &reached))
}

struct Hits {
    matcher: Regex,
    lines: String,
    room: usize,
}

impl Hits {
    /// Searches the log backwards, a piece at a time, until its beginning or until the answer is full.
    async fn look(&mut self, context: &ToolContext, before: Seq) -> Result<Reached, Trouble> {
        let mut until = before;
        loop {
            let read = context.cancel.run_until_cancelled(context.log.before(until)).await;
            let Some(log) = read else { return Ok(Reached::Stopped(until)) };
            let log = log?;
            for shown in log.shown.iter().rev() {
                if !self.take(shown) {
                    return Ok(Reached::Full(shown.entry().next()));
                }
            }
            if log.is_first() {
                return Ok(Reached::All);
            }
            until = log.from;
        }
    }

    /// Adds an entry, if it contains the text. Returns false if there is no room for it.
    fn take(&mut self, shown: &LogItem) -> bool {
        let Some(line) = hit(&self.matcher, shown) else { return true };
        let fits = self.lines.len().saturating_add(line.len()) <= self.room;
        // One match always fits, or the search would never get past it.
        if fits || self.lines.is_empty() {
            self.lines.push_str(&line);
            return true;
        }
        false
    }

    fn output(&self, text: &str, reached: &Reached) -> ToolOutput {
        let text = one_line(text, ECHO_BYTES);
        let head = match reached {
            _ if !self.lines.is_empty() => "found",
            Reached::Stopped(_) => "not found yet",
            Reached::All | Reached::Full(_) => "found nowhere",
        };
        let tail = match reached {
            Reached::All => "[that is all; `entry` shows one as it was]".to_owned(),
            Reached::Full(before) => format!("[there is more: the same search with before {before}]"),
            Reached::Stopped(Seq(u64::MAX)) => "[stopped before anything was looked at]".to_owned(),
            Reached::Stopped(before) => format!("[stopped: the same search with before {before} goes on]"),
        };
        let output = ToolOutput::ok(format!("{head}: {text}\n{}{tail}", self.lines));
        match reached {
            Reached::Stopped(_) => ToolOutput { status: ToolStatus::Cancelled, ..output },
            Reached::All | Reached::Full(_) => output,
        }
    }
}

/// The line for a matching entry: its number, its author, and the text around the match. This tool's own calls and
/// results never match: they would be found again and again.
fn hit(matcher: &Regex, shown: &LogItem) -> Option<String> {
    let said = shown.said();
    let is_own = |said: &Utterance<'_>| said.tool == Some(NAME);
    let others = said.iter().enumerate().filter(|(_, said)| !is_own(said));
    let mut found = others.filter_map(|(place, said)| Some((place, said, matcher.find(&said.text)?.range())));
    let (place, said, range) = found.next()?;
    let begin = shown.places().get(place).copied().unwrap_or_default();
    let at = begin.saturating_add(range.start);
    let call = said.tool.filter(|_| shown.result().is_none());
    let call = call.map_or_else(String::new, |tool| format!(", call of `{}`", shortened(tool, NAME_BYTES)));
    let who = shown.who();
    let excerpt = excerpt(&said.text, &range);
    Some(format!("entry {}, {}{call}, byte {at}: {excerpt}\n", shown.entry(), shortened(&who, NAME_BYTES)))
}

/// The match and the text around it, in one line.
fn excerpt(text: &str, found: &Range<usize>) -> String {
    let begin = text.ceil_char_boundary(found.start.saturating_sub(BEFORE_BYTES));
    let end = text.floor_char_boundary(found.start.saturating_add(AFTER_BYTES));
    let words = text.get(begin..end).unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    let (before, after) = (if begin > 0 { "…" } else { "" }, if end < text.len() { "…" } else { "" });
    format!("{before}{words}{after}")
}

fn one_line(text: &str, bytes_max: usize) -> String {
    shortened(text, bytes_max).split_whitespace().collect::<Vec<_>>().join(" ")
}
