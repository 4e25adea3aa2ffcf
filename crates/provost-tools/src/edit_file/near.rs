//! Finds the one text of a file that differs from the wanted one only in spaces at line ends, in typographic
//! characters, or in a uniform indentation.

use std::ops::Range;

use similar::{DiffOp, TextDiff};

use crate::edit_file::DIFF_TIME_MAX;
use crate::failure::Failure;
use crate::job::Job;

/// How many positions are compared between two looks at the cancel token.
const POSITIONS_UNCHECKED: usize = 512;

const BYTE_ORDER_MARK: char = '\u{feff}';

/// What the text in the file differs in from the wanted one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Difference {
    TrailingSpace,
    Typography,
    /// The wanted lines begin with `from` where those of the file begin with `to`; one is a prefix of the other.
    Indentation {
        from: String,
        to: String,
    },
}

impl Difference {
    /// For the answer, after "the file differs from `old_text` in".
    pub(crate) const fn told(&self) -> &'static str {
        match self {
            Self::TrailingSpace => "spaces at line ends",
            Self::Typography => "typographic characters",
            Self::Indentation { .. } => "indentation, to which `new_text` was adapted",
        }
    }

    /// A line of the new text with the file's indentation. `None` if it is indented less than the wanted text, or if
    /// tabs and spaces would be mixed.
    fn adapted(&self, line: &str) -> Option<String> {
        let Difference::Indentation { from, to } = self else { return Some(line.to_owned()) };
        if is_blank(line) {
            return Some(line.to_owned());
        }
        let adapted = format!("{to}{}", line.strip_prefix(from.as_str())?);
        let indent = indent_of(&adapted);
        (!(indent.contains(' ') && indent.contains('\t'))).then_some(adapted)
    }
}

/// A text of the file, by its bytes. Without a difference it is alike, but not in one of the ways that are allowed:
/// it isn't replaced, and it makes another match ambiguous.
#[derive(Debug, Clone)]
pub(crate) struct NearMatch {
    pub(crate) range: Range<usize>,
    pub(crate) difference: Option<Difference>,
}

impl NearMatch {
    /// What replaces the match: lines that `old` and `new` share stay as `file` has them, the others are those of
    /// `new`. `None` if the match isn't to be replaced, or if the indentation of `new` can't be adapted.
    pub(crate) fn replacement(&self, file: &str, old: &str, new: &str) -> Option<String> {
        let difference = self.difference.as_ref()?;
        let there: Vec<_> = file.get(self.range.clone())?.split_inclusive('\n').collect();
        let new_lines: Vec<_> = new.split_inclusive('\n').collect();
        let old_lines: Vec<_> = old.split_inclusive('\n').collect();
        let diff = TextDiff::configure().timeout(DIFF_TIME_MAX).diff_slices(&old_lines, &new_lines);
        let mut text = String::new();
        for op in diff.ops() {
            if let DiffOp::Equal { .. } = op {
                text.extend(there.get(op.old_range())?.iter().copied());
                continue;
            }
            for line in new_lines.get(op.new_range())? {
                text.push_str(&difference.adapted(line)?);
            }
        }
        Some(text)
    }
}

/// All texts of `file` that are nearly `old`, each once, in their order for each kind of difference. None for a text
/// without a letter or a digit: it could be anywhere.
pub(crate) fn find(file: &str, old: &str, job: &Job) -> Result<Vec<NearMatch>, Failure> {
    if !old.contains(char::is_alphanumeric) {
        return Ok(Vec::new());
    }
    let mut matches = by_lines(file, old, job)?;
    for range in by_characters(file, old, job)? {
        // The lines that it is in are also alike.
        let is_in = |other: &NearMatch| other.range.start <= range.start && range.end <= other.range.end;
        matches.retain(|other| other.difference.is_some() || !is_in(other));
        matches.push(NearMatch { range, difference: Some(Difference::Typography) });
    }
    Ok(matches)
}

/// A line of a text: where its content is, and how it ends.
#[derive(Debug)]
struct Line<'a> {
    start: usize,
    body: &'a str,
    end: &'a str,
}

/// The lines of `text` from byte `start` on.
fn lines_from(mut start: usize, text: &str) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    for line in text.get(start..).unwrap_or_default().split_inclusive('\n') {
        let body = line.strip_suffix('\n').map_or(line, |rest| rest.strip_suffix('\r').unwrap_or(rest));
        let end = line.get(body.len()..).unwrap_or_default();
        lines.push(Line { start, body, end });
        start += line.len();
    }
    lines
}

/// The whole lines of `file` that are alike those of `old`.
fn by_lines(file: &str, old: &str, job: &Job) -> Result<Vec<NearMatch>, Failure> {
    // A byte order mark is no part of the first line, unless it is wanted.
    let has_mark = file.starts_with(BYTE_ORDER_MARK) && !old.starts_with(BYTE_ORDER_MARK);
    let lines = lines_from(if has_mark { BYTE_ORDER_MARK.len_utf8() } else { 0 }, file);
    let wanted = lines_from(0, old);
    let mut matches = Vec::new();
    for (at, window) in lines.windows(wanted.len().max(1)).enumerate() {
        if at % POSITIONS_UNCHECKED == 0 {
            job.go_on()?;
        }
        if are_alike(window, &wanted)
            && let (Some(first), Some(last), Some(last_wanted)) =
                (window.first(), window.last(), wanted.last())
        {
            let end = last.start + last.body.len() + last_wanted.end.len();
            matches.push(NearMatch { range: first.start..end, difference: difference_of(window, &wanted) });
        }
    }
    Ok(matches)
}

/// Whether the lines are the same but for surrounding spaces and typographic characters.
fn are_alike(window: &[Line<'_>], wanted: &[Line<'_>]) -> bool {
    window
        .iter()
        .zip(wanted)
        .all(|(line, want)| unspaced(line.body).chars().map(plain).eq(unspaced(want.body).chars().map(plain)))
}

/// The allowed difference between lines that are alike.
fn difference_of(window: &[Line<'_>], wanted: &[Line<'_>]) -> Option<Difference> {
    let pairs = || window.iter().zip(wanted);
    // The last wanted line may be without an end, and then that of the file isn't touched.
    if !pairs().all(|(line, want)| line.end == want.end || want.end.is_empty()) {
        return None;
    }
    if pairs().all(|(line, want)| trimmed(line.body) == trimmed(want.body)) {
        return Some(Difference::TrailingSpace);
    }
    let (from, to) = (common_indent(wanted), common_indent(window));
    let is_uniform = pairs().all(|(line, want)| {
        is_blank(line.body) || line.body.strip_prefix(to.as_str()) == want.body.strip_prefix(from.as_str())
    });
    let is_longer_or_shorter = from.starts_with(&to) || to.starts_with(&from);
    (is_uniform && is_longer_or_shorter).then_some(Difference::Indentation { from, to })
}

/// The indentation that all lines have, but for blank ones.
fn common_indent(lines: &[Line<'_>]) -> String {
    let mut indents = lines.iter().filter(|line| !is_blank(line.body)).map(|line| indent_of(line.body));
    let first = indents.next().unwrap_or_default();
    let shared = |one: &str, two: &str| one.bytes().zip(two.bytes()).take_while(|(a, b)| a == b).count();
    let bytes = indents.fold(first.len(), |bytes, indent| bytes.min(shared(first, indent)));
    first.get(..bytes).unwrap_or_default().to_owned()
}

const SPACES: [char; 2] = [' ', '\t'];

fn trimmed(line: &str) -> &str {
    line.trim_end_matches(SPACES)
}

fn unspaced(line: &str) -> &str {
    line.trim_matches(SPACES)
}

fn indent_of(line: &str) -> &str {
    line.get(..line.len() - line.trim_start_matches(SPACES).len()).unwrap_or_default()
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

/// The texts of `file` with the characters of `old`, typographic or plain.
fn by_characters(file: &str, old: &str, job: &Job) -> Result<Vec<Range<usize>>, Failure> {
    let mut ranges = Vec::new();
    for (at, (start, _)) in file.char_indices().enumerate() {
        if at % POSITIONS_UNCHECKED == 0 {
            job.go_on()?;
        }
        if let Some(bytes) = file.get(start..).and_then(|rest| plain_prefix(rest, old)) {
            ranges.push(start..start + bytes);
        }
    }
    Ok(ranges)
}

/// How many bytes of `text` are `wanted`, typographic or plain, if it begins with that.
fn plain_prefix(text: &str, wanted: &str) -> Option<usize> {
    let mut there = text.chars();
    for want in wanted.chars() {
        if plain(there.next()?) != plain(want) {
            return None;
        }
    }
    Some(text.len() - there.as_str().len())
}

/// The ASCII character that is typed for a typographic one.
pub(crate) const fn plain(character: char) -> char {
    match character {
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    }
}
