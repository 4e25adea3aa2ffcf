//! An entry in words: text, what it is about, and how much it matters.

use super::safe;
use super::words::one_line;

/// Columns of a saying in one line.
const WIDTH_MAX: usize = 200;

/// What a saying is about; decides its mark and colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    Run,
    Agent,
    User,
    Provost,
    Tool,
    Ok,
    Failed,
    HooksAgree,
    HooksObject,
    Goal,
    Asks,
    Retry,
    Budget,
    Detail,
}

/// How much a saying matters to a user who watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    /// It stays.
    Kept,
    /// A status line shows it too.
    Passing,
    /// Only a log shows it.
    Detail,
}

/// An entry in words, safe to print.
pub(crate) struct Saying {
    pub(super) tag: Tag,
    pub(super) weight: Weight,
    /// The agent that it is about, in a few words; absent for the root and for the run itself.
    pub(super) who: Option<String>,
    text: String,
    changes: Vec<ChangedLine>,
    more: Vec<String>,
    /// The line of `more` that stands for all of it.
    brief: Option<String>,
}

/// A line of a file that a call has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChangedLine {
    /// It is new; by its number in the changed file.
    Added { number: u64, text: String },
    /// It is gone; by its number in the file before.
    Removed { number: u64, text: String },
    /// Lines that aren't shown.
    More(usize),
}

impl Saying {
    pub(super) fn new(tag: Tag, weight: Weight, text: impl AsRef<str>) -> Self {
        Self {
            tag,
            weight,
            who: None,
            text: safe(text.as_ref()),
            changes: Vec::new(),
            more: Vec::new(),
            brief: None,
        }
    }

    pub(super) fn kept(tag: Tag, text: impl AsRef<str>) -> Self {
        Self::new(tag, Weight::Kept, text)
    }

    pub(super) fn passing(tag: Tag, text: impl AsRef<str>) -> Self {
        Self::new(tag, Weight::Passing, text)
    }

    pub(super) fn detail(text: impl AsRef<str>) -> Self {
        Self::new(Tag::Detail, Weight::Detail, text)
    }

    pub(super) fn with(mut self, more: impl IntoIterator<Item = String>) -> Self {
        self.more.extend(more.into_iter().map(|line| safe(&line)));
        self
    }

    /// The same with the end of an output, whose last line stands for all of it.
    pub(super) fn ending_with(self, tail: Vec<String>) -> Self {
        let brief = tail.last().map(|line| safe(line));
        Self { brief, ..self.with(tail) }
    }

    /// The same with changed lines of a file under it.
    pub(super) fn changing(mut self, changes: Vec<ChangedLine>) -> Self {
        self.changes = changes;
        self
    }

    /// The same, by `who`, if that is to be shown.
    pub(super) fn of(self, who: Option<String>) -> Self {
        Self { who, ..self }
    }

    /// Whether it stays visible to a user who watches.
    pub(crate) fn is_kept(&self) -> bool {
        self.weight == Weight::Kept
    }

    /// The words; may have several lines.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The changed lines, which belong under them.
    pub(super) fn changes(&self) -> &[ChangedLine] {
        &self.changes
    }

    /// What belongs under them, a line each.
    pub(super) fn more(&self) -> &[String] {
        &self.more
    }

    /// All of it in one line.
    pub(crate) fn one_line(&self) -> String {
        let more = self
            .brief
            .as_ref()
            .or(self.more.first())
            .map(|line| format!(" · {}", line.trim()))
            .unwrap_or_default();
        let first = one_line(&self.text, WIDTH_MAX);
        format!("{first}{more}")
    }
}
