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
    more: Vec<String>,
}

impl Saying {
    pub(super) fn new(tag: Tag, weight: Weight, text: impl AsRef<str>) -> Self {
        Self { tag, weight, who: None, text: safe(text.as_ref()), more: Vec::new() }
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

    /// What belongs under them, a line each.
    pub(super) fn more(&self) -> &[String] {
        &self.more
    }

    /// All of it in one line.
    pub(crate) fn one_line(&self) -> String {
        let more = self.more.first().map(|line| format!(" · {}", line.trim())).unwrap_or_default();
        let first = one_line(&self.text, WIDTH_MAX);
        format!("{first}{more}")
    }
}
