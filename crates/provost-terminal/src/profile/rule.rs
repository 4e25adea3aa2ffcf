//! A rule, and its match with a frame.

use provost_event::{AskKind, AskOption};
use regex::Regex;
use serde::Deserialize;

use super::subject::{DialogRows, Subject, whole};
use crate::detect::Frame;

/// What a matching rule reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RuleEvent {
    Approval,
    Question,
    Auth,
    Waiting,
    Password,
    Working,
    Idle,
    Error,
}

/// Where a rule's last pattern has to match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Region {
    Cursor,
    Row,
    End,
    Above,
    /// One of the last two rows, on the alternate screen; only for failures.
    Status,
    /// The last rows of a program that has ended with a failure.
    Last,
}

/// The kernel reading that a rule requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Gate {
    /// Nothing.
    None,
    /// A process reads the terminal, or may.
    Keys,
    /// A process is blocked in a read of the terminal.
    Read,
    /// A process reads the terminal or may, with the echo off.
    Hidden,
    /// A process reads single keys.
    Raw,
    /// The same, including processes outside of the foreground group (a pinentry).
    Drawn,
}

/// The source of the options.
#[derive(Debug, Clone)]
pub(crate) enum Options {
    Menu,
    Letters,
    Buttons,
    Given(Vec<Choice>),
}

/// An option that the profile itself names.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Choice {
    pub(crate) label: String,
    pub(crate) keys: String,
}

/// A parsed rule.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) id: String,
    pub(crate) event: RuleEvent,
    pub(crate) ask: AskKind,
    pub(crate) region: Region,
    pub(crate) anchor: Regex,
    pub(crate) above: Vec<Regex>,
    pub(crate) unless: Vec<Regex>,
    pub(crate) end: usize,
    pub(crate) span: usize,
    pub(crate) gate: Gate,
    pub(crate) subject: Option<Subject>,
    pub(crate) question: Option<Regex>,
    pub(crate) options: Options,
    pub(crate) stable_ms: u64,
    pub(crate) confidence: u8,
    /// Whether text is read there, not a choice or a key.
    pub(crate) reads_text: bool,
    /// Whether it comes from a profile that this one inherits from.
    pub(crate) is_inherited: bool,
}

/// A rule's match on a frame.
#[derive(Debug, Clone)]
pub(crate) struct Match {
    /// The question or the prompt's line.
    pub(crate) question: String,
    /// The first matched row.
    pub(crate) first: usize,
    /// The row that the last pattern matched.
    pub(crate) last: usize,
    pub(crate) subject: Option<String>,
    pub(crate) options: Vec<AskOption>,
    pub(crate) default: Option<usize>,
}

impl Rule {
    /// Agents keep the terminal in raw mode and poll it all the time: only a blocked read shows that another
    /// program's prompt (git's, sudo's) is at the cursor, and not a prompt's text in the composer.
    pub(super) fn for_an_agent(&mut self) {
        self.is_inherited = true;
        if self.region == Region::Cursor {
            self.gate = Gate::Read;
        }
    }

    /// Matches the rule with a frame.
    pub(crate) fn find(&self, frame: &Frame) -> Option<Match> {
        let (first, last) = match self.region {
            Region::Cursor => self.at_line(frame)?,
            Region::Row => self.at(frame, frame.cursor_row)?,
            Region::End => frame.last_rows(self.end).find_map(|row| self.at(frame, row))?,
            Region::Above | Region::Status | Region::Last => return None,
        };
        Some(self.read(frame, first, last))
    }

    /// Whether a row matches; for rules that match any row.
    pub(crate) fn is_said(&self, row: &str) -> bool {
        self.anchor.is_match(row) && !self.is_excluded(row)
    }

    /// Whether a row is one that the rule excludes.
    pub(crate) fn is_excluded(&self, row: &str) -> bool {
        self.unless.iter().any(|pattern| pattern.is_match(row))
    }

    /// Whether the line with the cursor matches.
    pub(crate) fn is_at_line(&self, frame: &Frame) -> bool {
        self.at_line(frame).is_some()
    }

    fn at_line(&self, frame: &Frame) -> Option<(usize, usize)> {
        let found = frame.is_line_end && self.anchor.is_match(&frame.line);
        (found && !self.is_excluded(&frame.line)).then_some(())?;
        self.climb(frame, frame.cursor_row)
    }

    fn at(&self, frame: &Frame, row: usize) -> Option<(usize, usize)> {
        self.anchor.is_match(frame.row(row)).then_some(())?;
        let (first, last) = self.climb(frame, row)?;
        // The first row is the anchor of the others; excluded rows are searched among them or below.
        let from = if self.above.is_empty() { first } else { first + 1 };
        let denied = (from..=frame.end.max(last)).any(|row| self.is_excluded(frame.row(row)));
        (!denied).then_some((first, last))
    }

    /// Searches the other patterns above, the nearest row first.
    fn climb(&self, frame: &Frame, anchor: usize) -> Option<(usize, usize)> {
        let top = anchor.saturating_sub(self.span);
        let mut first = anchor;
        for pattern in self.above.iter().rev() {
            first = (top..first).rev().find(|row| pattern.is_match(frame.row(*row)))?;
        }
        Some((first, anchor))
    }

    fn read(&self, frame: &Frame, first: usize, last: usize) -> Match {
        let until = if self.region == Region::Cursor { last } else { frame.end.max(last) };
        let (options, default) = match &self.options {
            Options::Menu => super::options::menu(frame, first, until),
            Options::Letters => super::options::letters(&frame.line),
            Options::Buttons => super::options::buttons(frame, last),
            Options::Given(choices) => super::options::given(choices),
        };
        let about = self.about(frame, first, until);
        let is_known = |row: &str| self.anchor.is_match(row) || self.above.iter().any(|p| p.is_match(row));
        let dialog =
            DialogRows { frame, first, last: until, has_menu: matches!(self.options, Options::Menu) };
        let is_doubtful = self.region != Region::Cursor
            && self.subject.as_ref().is_some_and(|subject| subject.is_doubtful(dialog, is_known));
        let is_doubtful = is_doubtful
            || frame.is_reordered
            || frame.has_odd_blanks(first..=until)
            || frame.is_struck(first..=until)
            || !super::options::offers_plain_consent(&options);
        let subject = whole(&about).filter(|_| !is_doubtful && !self.is_twofold(frame, first, until));
        let mut question = self.question(frame, first, last);
        // Without a subject an approver decides, who needs to see all of it.
        if subject.is_none() {
            about.iter().for_each(|row| question.extend(["\n", row]));
        }
        Match { first, last, question, subject, options, default }
    }

    fn question(&self, frame: &Frame, first: usize, last: usize) -> String {
        let named = self.question.as_ref().and_then(|pattern| {
            let from = last.saturating_sub(self.span);
            (from..=last).rev().map(|row| frame.row(row)).find(|row| pattern.is_match(row))
        });
        let usual = || if self.region == Region::Cursor { frame.line.as_str() } else { frame.row(first) };
        named.unwrap_or_else(usual).to_owned()
    }

    /// The rows of the subject.
    fn about<'a>(&self, frame: &'a Frame, first: usize, last: usize) -> Vec<&'a str> {
        let Some(subject) = &self.subject else { return Vec::new() };
        let is_line = self.region == Region::Cursor && subject.until.is_empty();
        if is_line {
            subject.group(&frame.line).filter(|_| !began_above(frame)).into_iter().collect()
        } else {
            let rows = subject.rows(frame, first, last);
            // What begins at the edge of the row above isn't whole.
            let is_rest = self.region == Region::Cursor
                && first > 0
                && rows.first().is_some_and(|row| *row == frame.row(first))
                && frame.fills(first - 1);
            if is_rest { Vec::new() } else { rows }
        }
    }

    /// Whether its first row occurs twice: the subject could imitate the question.
    fn is_twofold(&self, frame: &Frame, first: usize, last: usize) -> bool {
        let reaches_far = self.subject.is_some() && self.region != Region::Cursor
            || self.subject.as_ref().is_some_and(|subject| !subject.until.is_empty()) && self.span > 1;
        let Some(pattern) = self.above.first().filter(|_| reaches_far) else { return false };
        let mut rows = first.saturating_sub(self.span)..=last;
        rows.any(|row| row != first && pattern.is_match(frame.row(row)))
    }
}

/// Whether the question on the cursor's line may have begun in a row above: a name with a line break in it could end
/// with what looks like a whole question, and one with control characters could paint over its beginning.
fn began_above(frame: &Frame) -> bool {
    const QUOTES: [char; 11] = ['\'', '"', '`', '‘', '’', '“', '”', '«', '»', '‹', '›'];
    let prefix = frame.line.split_once(": ").map_or("", |(program, _)| program);
    let begins = |row: &str| row.contains(QUOTES) || (!prefix.is_empty() && row.starts_with(prefix));
    let line = frame.line_row();
    let is_lost = frame.fresh == 0 && line > 0 && frame.is_full();
    frame.is_painted_over || is_lost || (frame.fresh..line).any(|row| begins(frame.row(row)))
}

/// A row without blanks and frame lines at both ends.
pub(crate) fn bare(row: &str) -> &str {
    let row = row.trim_matches(|c: char| c.is_whitespace() || "│┃║┆┇┊┋▌▐▏▕╎╏▎▍█".contains(c));
    match row.strip_prefix('|').map(|rest| rest.strip_suffix('|').unwrap_or(rest)) {
        Some(inner) if row.ends_with('|') || inner.starts_with("  ") => inner.trim(),
        _ => row,
    }
}
