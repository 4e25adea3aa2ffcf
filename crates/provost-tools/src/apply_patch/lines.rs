//! Applies the hunks of a patch to the lines of a file.

use super::patch::{Hunk, HunkLine};
use crate::edit_file::near::plain;

/// How alike the lines of a file must be to those of a hunk; each is tried in turn.
type Alike = fn(&str, &str) -> bool;

/// After the exact ones, only a single place counts.
const NEARLY: [Alike; 3] = [
    |there, wanted| there.trim_end() == wanted.trim_end(),
    |there, wanted| there.trim() == wanted.trim(),
    |there, wanted| there.trim().chars().map(plain).eq(wanted.trim().chars().map(plain)),
];

/// The text with all hunks applied, in their order.
///
/// # Errors
/// Which hunk doesn't fit, in words for the model.
pub(super) fn apply(text: &str, hunks: &[Hunk<'_>]) -> Result<String, String> {
    let ending = if text.contains("\r\n") && text.matches("\r\n").count() == text.matches('\n').count() {
        "\r\n"
    } else {
        "\n"
    };
    let old = text.split_inclusive('\n').collect::<Vec<_>>();
    let mut new = String::new();
    let mut at = 0;
    for (number, hunk) in hunks.iter().enumerate() {
        let from =
            find(&old, at, hunk).map_err(|why| format!("change {} of {}: {why}", number + 1, hunks.len()))?;
        put(&mut new, old.get(at..from).unwrap_or_default(), ending);
        at = from;
        for line in &hunk.lines {
            match line {
                HunkLine::Kept(_) => {
                    put(&mut new, old.get(at..=at).unwrap_or_default(), ending);
                    at += 1;
                }
                HunkLine::Removed(_) => at += 1,
                HunkLine::Added(line) => put(&mut new, &[&format!("{line}{ending}")], ending),
            }
        }
    }
    put(&mut new, old.get(at..).unwrap_or_default(), ending);
    // A file without an end of its last line stays one.
    if !text.is_empty() && !text.ends_with('\n') && new.ends_with(ending) {
        new.truncate(new.len() - ending.len());
    }
    Ok(new)
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

/// The number of the line at which the hunk begins, from the line `from` on.
fn find(old: &[&str], from: usize, hunk: &Hunk<'_>) -> Result<usize, String> {
    let from = match hunk.below {
        Some(below) => {
            let found = seek(old, from, &[below]);
            found.map_err(|places| missing(&[below], &places, "the line after `@@`"))? + 1
        }
        None => from,
    };
    let wanted = hunk.lines.iter().filter_map(HunkLine::before).collect::<Vec<_>>();
    if wanted.is_empty() {
        return Ok(if hunk.below.is_some() { from } else { old.len() });
    }
    if hunk.at_end {
        let last = old.len().saturating_sub(wanted.len()).max(from);
        if let Ok(found) = seek(old, last, &wanted) {
            return Ok(found);
        }
    }
    seek(old, from, &wanted).map_err(|places| missing(&wanted, &places, "the lines"))
}

/// The first place from `from` on with exactly these lines, else the only one with nearly these.
///
/// # Errors
/// The places, none or several.
fn seek(old: &[&str], from: usize, wanted: &[&str]) -> Result<usize, Vec<usize>> {
    let bodies = old.iter().map(|line| line.trim_end_matches(['\n', '\r'])).collect::<Vec<_>>();
    let places = |alike: Alike| {
        let windows = bodies.windows(wanted.len()).enumerate().skip(from);
        let fits =
            windows.filter(|(_, window)| window.iter().zip(wanted).all(|(there, want)| alike(there, want)));
        fits.map(|(at, _)| at).collect::<Vec<_>>()
    };
    if let Some(first) = places(|there, wanted| there == wanted).first() {
        return Ok(*first);
    }
    for alike in NEARLY {
        match places(alike).as_slice() {
            [] => {}
            [only] => return Ok(*only),
            several => return Err(several.to_vec()),
        }
    }
    Err(Vec::new())
}

fn missing(wanted: &[&str], places: &[usize], what: &str) -> String {
    let shown = wanted.iter().take(3).map(|line| format!("\n  {line}")).collect::<String>();
    match places {
        [] => format!("{what} to be changed aren't in the file, in this order:{shown}"),
        several => format!(
            "{what} aren't in the file exactly, and {} places are nearly the same; copy the lines exactly:{shown}",
            several.len()
        ),
    }
}
