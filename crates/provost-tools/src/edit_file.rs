//! `edit_file`: replaces a text in a file.

mod mismatch;
mod near;

use std::io::Read;
use std::time::Duration;

use async_trait::async_trait;
use provost_event::{Access, Json, ToolSpec, ToolSubject};
use provost_harness::{Tool, ToolContext, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use similar::TextDiff;

use crate::arguments;
use crate::failure::Failure;
use crate::job::{self, Job};
use crate::sniff::not_text;
use crate::spec::{About, FILE_TIMEOUT};
use crate::text::{count, cut, size, some_of};
use crate::workspace::WorkspacePath;

/// Maximum bytes of a file to edit: it is held in memory several times.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Maximum bytes of the diff in the output.
const DIFF_BYTES_MAX: usize = 4 * 1024;

/// How long to search for a minimal diff; after that a coarser one is used.
const DIFF_TIME_MAX: Duration = Duration::from_millis(500);

const DIFF_CONTEXT_LINES: usize = 2;

/// Maximum positions of an ambiguous text in the message.
const PLACES_TOLD_MAX: usize = 10;

const DESCRIPTION: &str = "Replaces one text in a file by another. `old_text` must be in the file exactly as given, \
with its whitespace and without the line numbers read_file shows, and only once, unless `replace_all` is true: take \
enough lines around it. Whole lines that differ only in trailing spaces or uniform indentation, and typographic \
characters, still match if just one text does; the answer then says so. Line endings stay as the file has them.";

/// Replaces a text that occurs exactly once in a file (or every occurrence), atomically.
#[derive(Debug, Clone)]
pub struct EditFile {
    spec: ToolSpec,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file: relative to the workspace, or absolute inside of it.
    path: String,
    /// What is there now, to the letter.
    old_text: String,
    /// What shall be there instead; empty to delete.
    new_text: String,
    /// Replace every occurrence. Default false.
    replace_all: Option<bool>,
}

impl EditFile {
    /// The default tool.
    #[must_use]
    pub fn new() -> Self {
        let about = About {
            name: "edit_file",
            description: DESCRIPTION,
            access: Access::Writes,
            subject: ToolSubject::written_path("path"),
            aliases: &["Edit", "MultiEdit"],
            summary_field: None,
            idempotent: false,
            timeout: FILE_TIMEOUT,
        };
        Self { spec: about.spec::<Arguments>() }
    }
}

impl Default for EditFile {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Tool for EditFile {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, input: &Json, context: &ToolContext) -> ToolOutput {
        match arguments::read(&self.spec.name, input) {
            Ok(arguments) => job::run(context, move |job| edit(&arguments, job)).await,
            Err(misfit) => misfit,
        }
    }
}

fn edit(arguments: &Arguments, job: &Job) -> Result<String, Failure> {
    let Arguments { path, old_text, new_text, replace_all } = arguments;
    if old_text.is_empty() {
        return Err(Failure::Senseless(
            "`old_text` is empty: write_file makes or replaces a whole file".to_owned(),
        ));
    }
    if old_text == new_text {
        return Err(Failure::Senseless(
            "`old_text` and `new_text` are the same: there is nothing to do".to_owned(),
        ));
    }
    let place = job.workspace.locate(path)?;
    let before = read_text(&place, job)?;
    let (old, new) = (with_endings_of(&before, old_text), with_endings_of(&before, new_text));
    let lines = lines_of(&before, &old);
    match lines.len() {
        0 if *replace_all != Some(true) => {
            return edit_near(&Wanted { path, old, new }, &place, &before, job);
        }
        0 => return Err(Failure::Said(mismatch::explain(path, &before, &old, job)?)),
        1 => {}
        _ if *replace_all == Some(true) => {}
        times => return Err(ambiguous(path, times, &lines)),
    }
    let after = before.replace(&old, &new);
    job.workspace.replace(&place, after.as_bytes(), job)?;
    let done = count(lines.len(), "replacement");
    Ok(format!("edited `{path}`: {done} at {}\n{}", at_lines(&lines), diff(&before, &after)))
}

/// The arguments, with the line ends of the file.
struct Wanted<'a> {
    path: &'a str,
    old: String,
    new: String,
}

/// Replaces the one text that is nearly `old`, if there is exactly one.
fn edit_near(wanted: &Wanted<'_>, place: &WorkspacePath, before: &str, job: &Job) -> Result<String, Failure> {
    let Wanted { path, old, new } = wanted;
    let matches = near::find(before, old, job)?;
    let [only] = matches.as_slice() else {
        return Err(Failure::Said(match matches.as_slice() {
            [] => mismatch::explain(path, before, old, job)?,
            several => several_near(path, before, several),
        }));
    };
    let (Some(difference), Some(replacement)) = (&only.difference, only.replacement(before, old, new)) else {
        return Err(Failure::Said(mismatch::explain(path, before, old, job)?));
    };
    let line = line_at(before, only.range.start);
    let mut after = before.to_owned();
    after.replace_range(only.range.clone(), &replacement);
    if after == before {
        return Err(Failure::Said(format!(
            "`{path}` already has `new_text` at line {line}; nothing was changed"
        )));
    }
    job.workspace.replace(place, after.as_bytes(), job)?;
    let told = difference.told();
    Ok(format!(
        "edited `{path}`: 1 replacement at line {line}; the file differs from `old_text` in {told}\n{}",
        diff(before, &after)
    ))
}

fn several_near(path: &str, file: &str, matches: &[near::NearMatch]) -> String {
    let mut lines: Vec<_> = matches.iter().map(|near| line_at(file, near.range.start)).collect();
    lines.sort_unstable();
    format!(
        "`old_text` is not in `{path}`, but {} texts differ from it only in spaces or typographic characters, at {}: \
         copy the one you mean exactly, with more of the lines around it; nothing was changed",
        lines.len(),
        at_lines(&lines)
    )
}

/// The number of the line that byte `at` is in.
fn line_at(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or_default().matches('\n').count() + 1
}

fn read_text(place: &WorkspacePath, job: &Job) -> Result<String, Failure> {
    let path = &place.asked;
    let (file, _) = job.workspace.open_file(place)?;
    let mut bytes = Vec::new();
    let mut stream = job.stoppable(file).take(FILE_BYTES_MAX + 1);
    stream.read_to_end(&mut bytes).map_err(|error| job.read_failure(path, error))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let max = size(FILE_BYTES_MAX);
        return Err(Failure::Said(format!(
            "`{path}` is larger than {max}: edit it with a program in the shell"
        )));
    }
    if let Some(kind) = not_text(&bytes) {
        return Err(Failure::Said(format!("`{path}` isn't text: {kind}")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::Said(format!("`{path}` isn't UTF-8 (at byte {at}): edit it with a program in the shell"))
    })
}

/// `text` with CR LF line ends if the file has only those; unchanged for other files, and if `text` has any CR.
fn with_endings_of(file: &str, text: &str) -> String {
    let ends = file.matches('\n').count();
    let only_crlf = ends > 0 && file.matches("\r\n").count() == ends;
    if only_crlf && !text.contains('\r') { text.replace('\n', "\r\n") } else { text.to_owned() }
}

/// The numbers of the lines at which `needle` begins in `text`.
fn lines_of(text: &str, needle: &str) -> Vec<usize> {
    let (mut line, mut end) = (1, 0);
    let mut lines = Vec::new();
    for (start, _) in text.match_indices(needle) {
        line += text.get(end..start).unwrap_or_default().matches('\n').count();
        end = start;
        lines.push(line);
    }
    lines
}

fn at_lines(lines: &[usize]) -> String {
    let word = if lines.len() == 1 { "line" } else { "lines" };
    format!("{word} {}", some_of(lines, PLACES_TOLD_MAX))
}

fn ambiguous(path: &str, times: usize, lines: &[usize]) -> Failure {
    Failure::Said(format!(
        "`old_text` is {times} times in `{path}`, at {}: take more of the lines around the one you mean, \
         or set `replace_all`; nothing was changed",
        at_lines(lines)
    ))
}

/// The changes, shortened.
fn diff(before: &str, after: &str) -> String {
    let diff = TextDiff::configure().timeout(DIFF_TIME_MAX).diff_lines(before, after);
    let text = diff.unified_diff().context_radius(DIFF_CONTEXT_LINES).missing_newline_hint(false).to_string();
    match cut(text.trim_end(), DIFF_BYTES_MAX) {
        (whole, true) => whole.to_owned(),
        (part, false) => format!("{part}…\n[the diff goes on]"),
    }
}
