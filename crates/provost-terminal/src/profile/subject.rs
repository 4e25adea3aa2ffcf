//! A question's subject, as far as the screen shows all of it.
//!
//! Permissions are decided by this text, so a part of it would be worse than none: a command that continues in a
//! second row, is cut short, or contains text that looks like the question itself is left out.

use std::sync::LazyLock;

use regex::Regex;

use crate::detect::Frame;

/// What programs write in place of omitted text.
static LEFT_OUT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)…$|\.\.\.$|\blines? hidden\b|\bmore lines?\b|^\+ show details|^(?:…|\.{3}) ?[+(]|(?:^|/)(?:…|\.{3})/").ok()
});

/// Characters that take no room, change the direction of writing, or stand for bytes that are no text.
static UNSEEN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"[\p{Cc}\p{Cf}\p{Zl}\p{Zp}[\p{Zs}&&[^ ]]\x{fffd}\x{34f}\x{115f}\x{1160}\x{2800}\x{3164}\x{ffa0}\x{fe00}-\x{fe0f}\x{e0100}-\x{e01ef}]").ok()
});

/// The first item of a menu: a dialog has one.
static FIRST_ITEM: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^(?:\S )?1[.)] ").ok());

/// A row of a file's changes, which may follow its name.
static CHANGE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\d+ *(?:[+-]|$|\s)").ok());

/// The position of a question's subject.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    /// Rows in this order, from the question's first one on. The first group of the last one that takes part in the
    /// match is the text's first row; without a group, the text begins below.
    pub(super) from: Vec<Regex>,
    /// Rows in this order, up to the question's last one: the text ends above the first of them. If there are
    /// none, the text is the group of a single row, searched from below.
    pub(super) until: Vec<Regex>,
    /// The program's texts of this kind have no line breaks.
    pub(super) is_one_line: bool,
}

/// The rows of a dialog.
#[derive(Clone, Copy)]
pub(super) struct DialogRows<'a> {
    pub(super) frame: &'a Frame,
    pub(super) first: usize,
    pub(super) last: usize,
    /// Whether it is answered by a numbered menu, which ends what could belong to the text.
    pub(super) has_menu: bool,
}

impl Subject {
    /// The rows of the text that aren't blank; none if it isn't found.
    pub(super) fn rows<'a>(&self, frame: &'a Frame, first: usize, last: usize) -> Vec<&'a str> {
        if self.until.is_empty() {
            return (first..=last).rev().find_map(|row| self.group(frame.row(row))).into_iter().collect();
        }
        self.text(frame, first, last).unwrap_or_default()
    }

    /// Searches its end from below and its beginning from above: rows of the text that look the same are part of
    /// it.
    fn text<'a>(&self, frame: &'a Frame, first: usize, last: usize) -> Option<Vec<&'a str>> {
        let (mut begin, mut end) = (first, last + 1);
        for pattern in self.until.iter().rev() {
            end = (first..end).rev().find(|row| pattern.is_match(frame.row(*row)))?;
        }
        for pattern in &self.from {
            begin = (begin..end).find(|row| pattern.is_match(frame.row(*row)))? + 1;
        }
        let beside = begin.checked_sub(1).and_then(|row| self.group(frame.row(row)));
        let below = (begin..end).map(|row| frame.row(row));
        Some(beside.into_iter().chain(below).filter(|row| !row.is_empty()).collect())
    }

    pub(super) fn group<'a>(&self, row: &'a str) -> Option<&'a str> {
        let found = self.from.last()?.captures(row)?;
        let text = found.iter().skip(1).flatten().next()?.as_str();
        // Blanks at its ends are part of a name, and aren't seen.
        (text.trim() == text).then_some(text)
    }

    /// Whether a text of a single row may be another one than it looks like: several rows match, the dialog's menu
    /// begins twice, or the row below it may belong to it.
    pub(super) fn is_doubtful(&self, dialog: DialogRows<'_>, is_known: impl Fn(&str) -> bool) -> bool {
        let DialogRows { frame, first, last, has_menu } = dialog;
        let is_item = |row: &str| FIRST_ITEM.as_ref().is_none_or(|pattern| pattern.is_match(row));
        if (first..=last).filter(|row| is_item(frame.row(*row))).count() > 1 {
            return true;
        }
        if !self.until.is_empty() {
            return false;
        }
        let named: Vec<usize> = (first..=last).filter(|row| self.group(frame.row(*row)).is_some()).collect();
        let [row] = named.as_slice() else { return named.len() > 1 };
        let below = frame.below(*row);
        let is_change = CHANGE.as_ref().is_some_and(|pattern| pattern.is_match(below));
        let is_letters = below.chars().any(char::is_alphanumeric);
        if frame.fills(*row) && is_letters {
            return true;
        }
        if self.is_one_line {
            return is_letters && !is_change && !is_known(below);
        }
        // A row of changes, or one like a row of the dialog, may as well be the rest of a name with a line break.
        let rest = (*row + 1..=last).map(|row| frame.row(row)).take_while(|row| !(has_menu && is_item(row)));
        let rest: Vec<&str> = rest.filter(|row| row.chars().any(char::is_alphanumeric)).collect();
        let is_repeated = |row: &&str| rest.iter().filter(|other| other == &row).count() > 1;
        rest.iter().any(|row| !is_known(row) || is_repeated(row))
    }
}

/// Whether every character of `text` is seen and stands where it is: none takes no room, changes the direction of writing,
/// or controls a terminal.
#[must_use]
pub fn is_seen_whole(text: &str) -> bool {
    UNSEEN.as_ref().is_some_and(|pattern| !pattern.is_match(text))
}

/// The text, if it is complete and is what it looks like: one row, with no omission, and no character that isn't seen.
pub(super) fn whole(rows: &[&str]) -> Option<String> {
    let [row] = rows else { return None };
    let is_cut = LEFT_OUT.as_ref().is_none_or(|pattern| pattern.is_match(row));
    (!is_cut && is_seen_whole(row) && !row.is_empty()).then(|| (*row).to_owned())
}
