//! Explains why a text isn't in a file, and shows the most similar text.

use std::fmt::Write as _;

use crate::failure::Failure;
use crate::job::Job;
use crate::text::cut;

/// Maximum lines of a file to search for a similar one.
const LINES_SEARCHED_MAX: usize = 20_000;

/// The least similarity of a line to be shown, from 0 to 1.
const LIKENESS_MIN: f64 = 0.5;

/// Maximum lines of the file to show.
const LINES_SHOWN_MAX: usize = 20;

/// Maximum bytes of a line to show and compare.
const LINE_BYTES_MAX: usize = 300;

/// Explains that `old` isn't in `file`, and shows the most similar text.
pub(crate) fn explain(path: &str, file: &str, old: &str, job: &Job) -> Result<String, Failure> {
    let head = format!("`old_text` is not in `{path}`; nothing was changed");
    if file.is_empty() {
        return Ok(format!("{head}\nThe file is empty."));
    }
    if has_line_numbers(old) {
        return Ok(format!(
            "{head}\nLeave out the line numbers and tabs that read_file puts in front of the lines."
        ));
    }
    let unified = |text: &str| text.replace("\r\n", "\n");
    if unified(file).contains(&unified(old)) {
        let endings = if file.contains("\r\n") { "CR LF at some of its lines" } else { "LF only" };
        return Ok(format!("{head}\nOnly the line endings differ: the file has {endings}."));
    }
    let (lines, wanted): (Vec<_>, Vec<_>) = (file.lines().collect(), old.lines().collect());
    if let Some(first) = same_but_whitespace(&lines, &wanted) {
        let shown = show(&lines, first, wanted.len());
        return Ok(format!(
            "{head}\nOnly whitespace differs. The file has, from line {}:\n{shown}",
            first + 1
        ));
    }
    Ok(match most_similar(&lines, &wanted, job)? {
        Some(first) => {
            let shown = show(&lines, first, wanted.len());
            format!("{head}\nMost similar is, from line {}:\n{shown}", first + 1)
        }
        None => format!("{head}\nNothing in it is similar: read the file again."),
    })
}

/// Whether every line begins with a number and a tab.
fn has_line_numbers(text: &str) -> bool {
    text.lines().all(|line| {
        let rest = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
        rest.starts_with('\t') && line.trim_start().len() > rest.len()
    })
}

fn squeezed(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The position of the lines of `wanted` with any whitespace; surrounding blank lines don't count.
fn same_but_whitespace(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    let wanted: Vec<_> = wanted.iter().map(|line| squeezed(line)).collect();
    if wanted.iter().all(String::is_empty) {
        return None;
    }
    let squeezed_lines: Vec<_> = lines.iter().map(|line| squeezed(line)).collect();
    squeezed_lines.windows(wanted.len()).position(|window| window == wanted)
}

/// The position most similar to `wanted`: its longest line is aligned with the most similar line.
fn most_similar(lines: &[&str], wanted: &[&str], job: &Job) -> Result<Option<usize>, Failure> {
    let Some((anchor_at, anchor)) = wanted.iter().enumerate().max_by_key(|(_, line)| line.trim().len())
    else {
        return Ok(None);
    };
    let anchor = short(anchor.trim());
    let mut best = (LIKENESS_MIN, None);
    for (number, line) in lines.iter().take(LINES_SEARCHED_MAX).enumerate() {
        if number % 512 == 0 {
            job.go_on()?;
        }
        let likeness = strsim::sorensen_dice(short(line.trim()), anchor);
        if likeness > best.0 {
            best = (likeness, Some(number.saturating_sub(anchor_at)));
        }
    }
    Ok(best.1)
}

fn short(line: &str) -> &str {
    cut(line, LINE_BYTES_MAX).0
}

/// `count` lines from `first` on, as read_file shows them, including tabs.
fn show(lines: &[&str], first: usize, count: usize) -> String {
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate().skip(first).take(count.min(LINES_SHOWN_MAX)) {
        // Writing to a string can't fail.
        let _ = writeln!(text, "{}\t{}", number + 1, short(line));
    }
    text.trim_end_matches('\n').to_owned()
}
