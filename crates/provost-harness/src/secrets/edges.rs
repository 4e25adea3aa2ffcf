//! Parts of values at the edges of cut texts.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::{CHARS_MIN, constant};

/// Provost's marks of an omission in a text: of long output, of its beginning, of a line, of the rest.
static CUT: LazyLock<Regex> = LazyLock::new(|| {
    constant(concat!(
        r"\n?\[[0-9][0-9,]* bytes? left out\]\n",
        r"|\n?\[[^\[\]\n]{1,80} printed, of which the last [0-9][0-9,]* are kept\]\n",
        r"|… \[[^\[\]\n]{1,60}\]",
        r"|\n\[the rest is left out\]",
        r"| \[…\]\s*\z|…\s*\z",
    ))
});

/// The positions of parts of `values` at an edge of `text`: at its ends, and at marks of an omission. A part has
/// at least [`CHARS_MIN`] characters.
pub(super) fn places(text: &str, values: &[String]) -> Vec<Range<usize>> {
    let mut places = Vec::new();
    if values.is_empty() {
        return places;
    }
    let mut start = 0;
    let end = std::iter::once(text.len()..text.len());
    for cut in CUT.find_iter(text).map(|cut| cut.range()).chain(end) {
        piece(text, start..cut.start, values, &mut places);
        // The newline before the mark may belong to the text itself.
        if text.get(cut.clone()).is_some_and(|cut| cut.starts_with('\n')) {
            piece(text, start..cut.start + 1, values, &mut places);
        }
        start = cut.end;
    }
    places
}

/// Adds the parts at the ends of one piece.
fn piece(text: &str, range: Range<usize>, values: &[String], places: &mut Vec<Range<usize>>) {
    let piece = text.get(range.clone()).unwrap_or_default();
    for value in values {
        if is_long(piece) && value.contains(piece) {
            places.push(range.clone());
        }
        if let Some(part) = ends(value).map(|at| value.split_at(at).0).find(|part| piece.ends_with(part)) {
            places.push(range.end - part.len()..range.end);
        }
        if let Some(part) = begins(value).map(|at| value.split_at(at).1).find(|part| piece.starts_with(part))
        {
            places.push(range.start..range.start + part.len());
        }
    }
}

/// The positions at which a value may be cut so that the part before is long enough; the longest first.
fn ends(value: &str) -> impl Iterator<Item = usize> {
    let shortest = value.char_indices().nth(CHARS_MIN).map_or(value.len(), |(at, _)| at);
    value.char_indices().rev().map(|(at, _)| at).take_while(move |at| *at >= shortest)
}

/// The same, for the part after the position.
fn begins(value: &str) -> impl Iterator<Item = usize> {
    let last = value.char_indices().rev().nth(CHARS_MIN - 1).map_or(0, |(at, _)| at);
    value.char_indices().skip(1).map(|(at, _)| at).take_while(move |at| *at <= last)
}

fn is_long(part: &str) -> bool {
    part.chars().nth(CHARS_MIN - 1).is_some()
}
