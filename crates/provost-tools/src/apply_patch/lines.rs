//! Applies the hunks of a patch to the lines of a file.

use super::patch::{Hunk, HunkLine};
use crate::edit_file::near::plain;

/// How alike the lines of a file must be to those of a hunk.
type Alike = fn(&str, &str) -> bool;

const EXACTLY: Alike = |there, wanted| there == wanted;
const BUT_SPACE_AT_ENDS: Alike = |there, wanted| there.trim_end() == wanted.trim_end();
const BUT_TYPOGRAPHY: Alike =
    |there, wanted| there.trim_end().chars().map(plain).eq(wanted.trim_end().chars().map(plain));

const BYTE_ORDER_MARK: char = '\u{feff}';

/// A text that hunks were applied to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Applied {
    pub(super) text: String,
    /// Whether new lines got the indentation of the file, which the patch has otherwise.
    pub(super) is_indented: bool,
}

/// The place of a hunk.
#[derive(Debug)]
struct Place {
    at: usize,
    indent: Option<Indent>,
}

/// The indentation of a hunk and that of the file: lines begin with `from` where those of the file begin with `to`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Indent {
    from: String,
    to: String,
}

/// Why a hunk has no place.
#[derive(Debug)]
enum NoPlace {
    /// Its lines aren't there.
    Missing,
    /// They are exactly at as many places.
    Several(usize),
    /// They are nearly at as many places.
    NearlySeveral(usize),
}

/// The text with all hunks applied, in their order.
///
/// # Errors
/// Which hunk doesn't fit, in words for the model.
pub(super) fn apply(text: &str, hunks: &[Hunk<'_>]) -> Result<Applied, String> {
    // It belongs to the file, not to its first line.
    let (mark, text) = match text.strip_prefix(BYTE_ORDER_MARK) {
        Some(rest) => (Some(BYTE_ORDER_MARK), rest),
        None => (None, text),
    };
    let applied = apply_to(text, hunks)?;
    Ok(Applied { text: mark.into_iter().chain(applied.text.chars()).collect(), ..applied })
}

fn apply_to(text: &str, hunks: &[Hunk<'_>]) -> Result<Applied, String> {
    let ending = if text.contains("\r\n") && text.matches("\r\n").count() == text.matches('\n').count() {
        "\r\n"
    } else {
        "\n"
    };
    let old = text.split_inclusive('\n').collect::<Vec<_>>();
    let mut new = String::new();
    let (mut at, mut is_indented) = (0, false);
    for (number, hunk) in hunks.iter().enumerate() {
        let in_words = |why: String| format!("change {} of {}: {why}", number + 1, hunks.len());
        let place = find(&old, at, hunk).map_err(in_words)?;
        put(&mut new, old.get(at..place.at).unwrap_or_default(), ending);
        at = place.at;
        is_indented |= place.indent.is_some();
        for line in &hunk.lines {
            match line {
                HunkLine::Kept(_) => {
                    put(&mut new, old.get(at..=at).unwrap_or_default(), ending);
                    at += 1;
                }
                HunkLine::Removed(_) => at += 1,
                HunkLine::Added(line) => {
                    let line = adapted(line, place.indent.as_ref()).map_err(in_words)?;
                    put(&mut new, &[&format!("{line}{ending}")], ending);
                }
            }
        }
    }
    put(&mut new, old.get(at..).unwrap_or_default(), ending);
    // A file without an end of its last line stays one.
    if !text.is_empty() && !text.ends_with('\n') && new.ends_with(ending) {
        new.truncate(new.len() - ending.len());
    }
    Ok(Applied { text: new, is_indented })
}

/// A new line with the file's indentation.
fn adapted(line: &str, indent: Option<&Indent>) -> Result<String, String> {
    let Some(Indent { from, to }) = indent.filter(|_| !line.trim().is_empty()) else {
        return Ok(line.to_owned());
    };
    match line.strip_prefix(from.as_str()) {
        Some(rest) => Ok(format!("{to}{rest}")),
        None => Err(format!(
            "the file has another indentation than the patch, to which this line can't be adapted; copy the lines \
             exactly:\n  {line}"
        )),
    }
}

/// Adds lines of the file, and the end of the line before if it has none.
fn put(new: &mut String, lines: &[&str], ending: &str) {
    for line in lines {
        if !new.is_empty() && !new.ends_with('\n') {
            new.push_str(ending);
        }
        new.push_str(line);
    }
}

/// The place at which the hunk begins, from the line `from` on.
fn find(old: &[&str], from: usize, hunk: &Hunk<'_>) -> Result<Place, String> {
    let at = |at| Place { at, indent: None };
    let wanted = hunk.lines.iter().filter_map(HunkLine::before).collect::<Vec<_>>();
    if let Some(below) = hunk.below {
        return find_below(old, from, (below, &wanted));
    }
    if wanted.is_empty() {
        return Ok(at(old.len()));
    }
    if hunk.at_end {
        let last = old.len().saturating_sub(wanted.len()).max(from);
        if let Ok(found) = seek(old, last, &wanted) {
            return Ok(found);
        }
    }
    seek(old, from, &wanted).map_err(|why| in_words(&wanted, &why, "the lines to be changed"))
}

/// The first place below the line that the hunk names. If that line is at several places, they must lead to the same.
fn find_below(old: &[&str], from: usize, (below, wanted): (&str, &[&str])) -> Result<Place, String> {
    const NAMED: &str = "the line after `@@`";
    let lines = match seek(old, from, &[below]) {
        Ok(only) => vec![only.at],
        Err(NoPlace::Several(_)) => places(old, from, &[below], EXACTLY),
        Err(why) => return Err(in_words(&[below], &why, NAMED)),
    };
    let mut found: Vec<Place> = Vec::new();
    let mut missing = NoPlace::Missing;
    for line in lines {
        let place = if wanted.is_empty() {
            Ok(Place { at: line + 1, indent: None })
        } else {
            match places(old, line + 1, wanted, EXACTLY).first() {
                Some(first) => Ok(Place { at: *first, indent: None }),
                None => seek(old, line + 1, wanted),
            }
        };
        match place {
            Ok(place) if found.iter().any(|known| known.at == place.at) => {}
            Ok(place) => found.push(place),
            Err(why) => missing = why,
        }
    }
    let several = found.len();
    match found.pop() {
        Some(only) if several == 1 => Ok(only),
        Some(_) => Err(in_words(&[below], &NoPlace::Several(several), NAMED)),
        None => Err(in_words(wanted, &missing, "the lines to be changed")),
    }
}

/// The only place from `from` on with exactly these lines, else the only one with nearly these.
fn seek(old: &[&str], from: usize, wanted: &[&str]) -> Result<Place, NoPlace> {
    match *places(old, from, wanted, EXACTLY) {
        [] => {}
        [only] => return Ok(Place { at: only, indent: None }),
        ref several => return Err(NoPlace::Several(several.len())),
    }
    for alike in [BUT_SPACE_AT_ENDS, BUT_TYPOGRAPHY] {
        match *places(old, from, wanted, alike) {
            [] => {}
            [only] => return Ok(Place { at: only, indent: None }),
            ref several => return Err(NoPlace::NearlySeveral(several.len())),
        }
    }
    let bodies = bodies(old);
    let indented = bodies.windows(wanted.len()).enumerate().skip(from);
    let mut indented =
        indented.filter_map(|(at, there)| Some(Place { at, indent: Some(indent(there, wanted)?) }));
    match (indented.next(), indented.count()) {
        (None, _) => Err(NoPlace::Missing),
        (Some(only), 0) => Ok(only),
        (Some(_), more) => Err(NoPlace::NearlySeveral(more + 1)),
    }
}

fn bodies<'a>(old: &[&'a str]) -> Vec<&'a str> {
    old.iter().map(|line| line.trim_end_matches(['\n', '\r'])).collect()
}

fn places(old: &[&str], from: usize, wanted: &[&str], alike: Alike) -> Vec<usize> {
    let bodies = bodies(old);
    let windows = bodies.windows(wanted.len()).enumerate().skip(from);
    let fits =
        windows.filter(|(_, window)| window.iter().zip(wanted).all(|(there, want)| alike(there, want)));
    fits.map(|(at, _)| at).collect()
}

/// How the lines differ in their indentation, if in nothing else and all in the same way: the file's has more or less at
/// its beginning, of one kind.
fn indent(there: &[&str], wanted: &[&str]) -> Option<Indent> {
    let mut all: Option<Indent> = None;
    for (there, wanted) in there.iter().zip(wanted) {
        if there.trim() != wanted.trim() {
            return None;
        }
        if wanted.trim().is_empty() {
            continue;
        }
        let (has, asks) = (indent_of(there), indent_of(wanted));
        let one = match (has.strip_prefix(asks), asks.strip_prefix(has)) {
            (Some(more), _) => Indent { from: String::new(), to: more.to_owned() },
            (None, Some(less)) => Indent { from: less.to_owned(), to: String::new() },
            (None, None) => return None,
        };
        if all.as_ref().is_some_and(|all| *all != one) {
            return None;
        }
        all = Some(one);
    }
    all
}

fn indent_of(line: &str) -> &str {
    line.get(..line.len() - line.trim_start().len()).unwrap_or_default()
}

fn in_words(wanted: &[&str], why: &NoPlace, what: &str) -> String {
    let shown = wanted.iter().take(3).map(|line| format!("\n  {line}")).collect::<String>();
    match why {
        NoPlace::Missing => format!("{what} aren't in the file, in this order:{shown}"),
        NoPlace::Several(count) => format!(
            "{what} are at {count} places of the file; add lines around them, or `@@` with a line above them:{shown}"
        ),
        NoPlace::NearlySeveral(count) => format!(
            "{what} aren't in the file exactly, and {count} places are nearly the same; copy the lines exactly:{shown}"
        ),
    }
}
