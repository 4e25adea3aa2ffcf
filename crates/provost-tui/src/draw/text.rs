//! Texts fitted to columns. What others wrote is made safe here and nowhere later.

use provost_view::{safe, visible};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Characters of one line of a text; a longer one is cut, and its length told.
const LINE_CHARS_MAX: usize = 2_000;
const CUT: char = '…';

/// Columns of a text.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// The first line of a text of others, with a mark if there are more.
pub(crate) fn one_line(text: &str) -> String {
    let text = safe(text);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default().replace('\t', " ");
    let more = if lines.next().is_some() { " …" } else { "" };
    format!("{}{more}", cut_long(&first))
}

/// A text of others on one line, with everything spelled out that can't be seen.
pub(crate) fn spelled_out(text: &str) -> String {
    cut_long(&visible(text))
}

fn cut_long(line: &str) -> String {
    match line.char_indices().nth(LINE_CHARS_MAX) {
        Some((at, _)) => {
            format!("{}{CUT} ({} characters)", line.get(..at).unwrap_or_default(), line.chars().count())
        }
        None => line.to_owned(),
    }
}

/// The lines of a text of others, long ones cut.
pub(crate) fn lines_of(text: &str) -> Vec<String> {
    safe(text).lines().map(|line| cut_long(&line.replace('\t', "    "))).collect()
}

/// `text` in at most `columns`, its end cut.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut kept = head(text, columns.saturating_sub(1)).to_owned();
    if columns > 0 {
        kept.push(CUT);
    }
    kept
}

/// `text` in at most `columns`, its middle cut.
pub(crate) fn cut_middle(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let room = columns.saturating_sub(1);
    let begins = head(text, room / 2);
    format!("{begins}{CUT}{}", tail(text, room - begins.width()))
}

/// `text` in exactly `columns`.
pub(crate) fn padded(text: &str, columns: usize) -> String {
    let text = cut(text, columns);
    let blanks = columns.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(blanks))
}

/// The same, to the right.
pub(crate) fn to_right(text: &str, columns: usize) -> String {
    let text = cut(text, columns);
    let blanks = columns.saturating_sub(text.width());
    format!("{}{text}", " ".repeat(blanks))
}

fn head(text: &str, columns: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > columns {
            return text.get(..at).unwrap_or_default();
        }
    }
    text
}

fn tail(text: &str, columns: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices().rev() {
        used += c.width().unwrap_or(0);
        if used > columns {
            return text.get(at + c.len_utf8()..).unwrap_or_default();
        }
    }
    text
}

/// Where a line that is too long is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Breaks {
    /// At blanks where there are any; the blank is left out.
    AtBlanks,
    /// Where the columns end: nothing is left out, no blank either.
    Anywhere,
}

/// A line in pieces of at most `columns`.
pub(crate) fn wrapped(line: &str, columns: usize, breaks: Breaks) -> Vec<String> {
    let columns = columns.max(1);
    let mut out = Vec::new();
    let mut rest = line;
    while rest.width() > columns {
        let fits = head(rest, columns);
        let fits = if fits.is_empty() { first_char(rest) } else { fits };
        let at = match breaks {
            Breaks::AtBlanks => end_of_word(rest, fits),
            Breaks::Anywhere => fits.len(),
        };
        out.push(rest.get(..at).unwrap_or_default().to_owned());
        rest = rest.get(at..).unwrap_or_default();
        if breaks == Breaks::AtBlanks {
            rest = rest.strip_prefix(' ').unwrap_or(rest);
        }
    }
    out.push(rest.to_owned());
    out
}

/// Where the last word ends that fits; where what fits ends, if that is within the first.
fn end_of_word(line: &str, fits: &str) -> usize {
    let ends_word = line.get(fits.len()..).is_some_and(|after| after.starts_with(' '));
    match fits.rfind(' ') {
        Some(at) if at > 0 && !ends_word => at,
        _ => fits.len(),
    }
}

fn first_char(text: &str) -> &str {
    text.chars().next().and_then(|c| text.get(..c.len_utf8())).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_fit_their_columns() {
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("漢字漢字", 5), "漢字…");
        assert_eq!(padded("漢", 4), "漢  ");
        assert_eq!(to_right("$3.12", 7), "  $3.12");
        assert_eq!(cut_middle("ledger/src/deep/money.rs", 15), "ledger/…oney.rs");
        assert_eq!(wrapped("one two three", 7, Breaks::AtBlanks), ["one two", "three"]);
        assert_eq!(wrapped("abcdefgh", 3, Breaks::AtBlanks), ["abc", "def", "gh"]);
        assert_eq!(wrapped("a  b  c", 3, Breaks::Anywhere), ["a  ", "b  ", "c"]);
    }

    #[test]
    fn what_others_wrote_is_inert() {
        let text = "\u{1b}[31mred\u{202e}x\u{200b}\nmore";
        assert_eq!(one_line(text), "red\\u{202e}x\\u{200b} …");
        assert!(spelled_out("a\u{1b}[2J").contains("\\u{1b}"));
        assert!(lines_of(&"x".repeat(10_000_000)).concat().len() < 3_000);
    }
}
