//! `edit_file`: replaces a text in a file.

mod mismatch;
pub(crate) mod near;

use std::io::Read;
use std::time::Duration;

use async_trait::async_trait;
use provost_event::{Access, CallForm, Json, SessionId, ToolSpec, ToolSubject, ValueForm};
use provost_harness::{Tool, ToolContext, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use similar::TextDiff;

use crate::arguments;
use crate::failure::Failure;
use crate::form::{FILE_NAMES, editor_form, form, ignoring, named, valued};
use crate::job::{self, Job};
use crate::seen::{FilesSeen, SeenBy};
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

/// The tool's name.
pub(crate) const NAME: &str = "edit_file";

const DESCRIPTION: &str = "Replaces one text in a file by another. `old_text` must be in the file exactly as given, \
with its whitespace and without the line numbers read_file shows, and only once, unless `replace_all` is true: take \
enough lines around it. Whole lines that differ only in trailing spaces or uniform indentation, and typographic \
characters, still match if just one text does; the answer then says so. Line endings stay as the file has them.";

/// Replaces a text that occurs exactly once in a file (or every occurrence), atomically.
#[derive(Debug, Clone)]
pub struct EditFile {
    spec: ToolSpec,
    seen: FilesSeen,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file: relative to the workspace, or absolute.
    path: String,
    /// What is there now, to the letter.
    old_text: Option<String>,
    /// The replacement; empty to delete.
    new_text: Option<String>,
    /// Replace every occurrence. Default false.
    replace_all: Option<bool>,
    /// Several edits in place of one, made in this order: all of them, or none if one fails.
    edits: Option<Vec<Edit>>,
}

/// One replacement.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Edit {
    old_text: String,
    new_text: String,
    replace_all: Option<bool>,
}

impl Arguments {
    fn edits(self) -> Result<Vec<Edit>, Failure> {
        let Self { old_text, new_text, replace_all, edits, .. } = self;
        match (old_text, new_text, edits) {
            (Some(old_text), Some(new_text), None) => Ok(vec![Edit { old_text, new_text, replace_all }]),
            (None, None, Some(edits)) if !edits.is_empty() => Ok(edits),
            (None, None, _) => Err(Failure::Senseless(
                "there is nothing to replace: give `old_text` and `new_text`, or `edits`".to_owned(),
            )),
            (Some(_), None, None) => {
                Err(Failure::Senseless("`new_text` is missing; give \"\" to delete `old_text`".to_owned()))
            }
            (None, Some(_), None) => Err(Failure::Senseless("`old_text` is missing".to_owned())),
            (_, _, Some(_)) => Err(Failure::Senseless(
                "give either `old_text` and `new_text`, or `edits`; nothing was changed".to_owned(),
            )),
        }
    }
}

impl EditFile {
    /// The default tool.
    #[must_use]
    pub fn new() -> Self {
        let about = About {
            name: NAME,
            description: DESCRIPTION,
            access: Access::Writes,
            subject: ToolSubject::written_path("path"),
            aliases: &["Edit", "MultiEdit"],
            forms: forms(),
            grammar: None,
            summary_field: None,
            idempotent: false,
            timeout: FILE_TIMEOUT,
        };
        Self { spec: about.spec::<Arguments>(), seen: FilesSeen::default() }
    }

    /// Shares with other tools which files an agent knows.
    #[must_use]
    pub fn with_seen(mut self, seen: FilesSeen) -> Self {
        self.seen = seen;
        self
    }
}

/// Its calls elsewhere.
fn forms() -> Vec<CallForm> {
    let texts = || {
        vec![
            named("old_text", &["old_string", "old_str", "oldString", "oldText"]),
            named("new_text", &["new_string", "new_str", "newString", "newText"]),
            named("replace_all", &["replaceAll", "allow_multiple"]),
        ]
    };
    let mut fields = texts();
    fields.push(named("path", FILE_NAMES));
    fields.push(valued(
        "edits",
        &["replacements"],
        ValueForm::Items { fields: texts(), ignored: Vec::new() },
    ));
    vec![
        ignoring(form(&["Edit", "MultiEdit", "edit", "replace", "str_replace"], fields), &["instruction"]),
        editor_form("str_replace", texts()),
    ]
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

    fn session_over(&self, session: SessionId) {
        self.seen.forget(session);
    }

    async fn call(&self, input: &Json, context: &ToolContext) -> ToolOutput {
        match arguments::read(&self.spec.name, input) {
            Ok(arguments) => {
                let seen = self.seen.by(context);
                job::run(context, move |job| edit(arguments, &seen, job)).await
            }
            Err(misfit) => misfit,
        }
    }
}

fn edit(arguments: Arguments, seen: &SeenBy, job: &Job) -> Result<String, Failure> {
    let path = arguments.path.clone();
    let edits = arguments.edits()?;
    let place = job.workspace.locate_to_write(&path)?;
    let before = read_text(&place, job)?;
    let mut after = before.clone();
    let mut told = Vec::new();
    for (at, edit) in edits.iter().enumerate() {
        let edited = edited(&path, &after, edit, job).map_err(|failure| match edits.len() {
            1 => failure,
            several => failure.within(&format!("edit {} of {several}", at + 1)),
        })?;
        after = edited.text;
        told.push(edited.told);
    }
    job.workspace.replace(&place, after.as_bytes(), job)?;
    if let Ok(metadata) = job.workspace.metadata(&place) {
        seen.note(&place.absolute, &metadata);
    }
    let told = match told.as_slice() {
        [only] => only.clone(),
        several => format!("{} edits: {}", several.len(), several.join("; ")),
    };
    Ok(format!("edited `{path}`: {told}\n{}", diff(&before, &after)))
}

/// A file's text after an edit, and what was done.
struct Edited {
    text: String,
    told: String,
}

fn edited(path: &str, before: &str, edit: &Edit, job: &Job) -> Result<Edited, Failure> {
    let Edit { old_text, new_text, replace_all } = edit;
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
    let wanted =
        Wanted { path, old: with_endings_of(before, old_text), new: with_endings_of(before, new_text) };
    let lines = lines_of(before, &wanted.old);
    match lines.len() {
        0 if *replace_all != Some(true) => return edited_near(&wanted, before, job),
        0 => return Err(Failure::Said(mismatch::explain(path, before, &wanted.old, job)?)),
        1 => {}
        _ if *replace_all == Some(true) => {}
        times => return Err(ambiguous(path, times, &lines)),
    }
    let told = format!("{} at {}", count(lines.len(), "replacement"), at_lines(&lines));
    Ok(Edited { text: before.replace(&wanted.old, &wanted.new), told })
}

/// The arguments, with the line ends of the file.
struct Wanted<'a> {
    path: &'a str,
    old: String,
    new: String,
}

/// Replaces the one text that is nearly `old`, if there is exactly one.
fn edited_near(wanted: &Wanted<'_>, before: &str, job: &Job) -> Result<Edited, Failure> {
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
    let mut text = before.to_owned();
    text.replace_range(only.range.clone(), &replacement);
    if text == before {
        return Err(Failure::Said(format!(
            "`{path}` already has `new_text` at line {line}; nothing was changed"
        )));
    }
    let told =
        format!("1 replacement at line {line}; the file differs from `old_text` in {}", difference.told());
    Ok(Edited { text, told })
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

/// The content of a file, which is text.
pub(crate) fn read_text(place: &WorkspacePath, job: &Job) -> Result<String, Failure> {
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
pub(crate) fn diff(before: &str, after: &str) -> String {
    let diff = TextDiff::configure().timeout(DIFF_TIME_MAX).diff_lines(before, after);
    let text = diff.unified_diff().context_radius(DIFF_CONTEXT_LINES).missing_newline_hint(false).to_string();
    match cut(text.trim_end(), DIFF_BYTES_MAX) {
        (whole, true) => whole.to_owned(),
        (part, false) => format!("{part}…\n[the diff goes on]"),
    }
}
