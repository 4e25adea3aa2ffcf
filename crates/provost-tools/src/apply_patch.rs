//! `apply_patch`: changes several files by a patch, all or none.

mod lines;
mod patch;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use async_trait::async_trait;
use provost_event::{Access, Json, SessionId, ToolSpec, ToolSubject, patched_paths};
use provost_harness::{Tool, ToolContext, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::arguments;
use crate::edit_file::{diff, read_text};
use crate::failure::{Failure, chain};
use crate::form::{form, named};
use crate::job::{self, Job};
use crate::seen::{FilesSeen, SeenBy};
use crate::spec::{About, FILE_TIMEOUT};
use crate::text::count;
use crate::workspace::WorkspacePath;
use patch::Change;

/// Maximum files of a patch: their contents are held in memory.
const FILES_MAX: usize = 200;

/// Maximum bytes of the diffs in the output, all together.
const DIFF_BYTES_MAX: usize = 8 * 1024;

/// After the name of a file whose lines the patch has otherwise.
const ADAPTED: &str = "; the file differs from the patch in indentation, to which the new lines were adapted";

/// The tool's name.
pub(crate) const NAME: &str = "apply_patch";

const DESCRIPTION: &str =
    "Adds, changes, moves and deletes files by one patch: all of it is applied, or nothing.
*** Begin Patch
*** Add File: path
+each line of it
*** Update File: path
*** Move to: new path (optional)
@@ optional line above the change, such as a function's head
 line that stays
-line that goes
+line that comes
*** Delete File: path
*** End Patch
Give about 3 lines around each change, exactly as the file has them, without line numbers.";

/// What a patch may be, for wire formats in which a model writes it as it is.
const GRAMMAR: &str = include_str!("apply_patch/patch.lark");

/// Applies patches in the format of Codex's `apply_patch`.
#[derive(Debug, Clone)]
pub struct ApplyPatch {
    spec: ToolSpec,
    seen: FilesSeen,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The patch, from `*** Begin Patch` to `*** End Patch`.
    input: String,
}

impl ApplyPatch {
    /// The default tool.
    #[must_use]
    pub fn new() -> Self {
        let about = About {
            name: NAME,
            description: DESCRIPTION,
            access: Access::Writes,
            subject: ToolSubject::Patch { field: "input".to_owned() },
            // What permissions and hooks say of edits holds for patches.
            aliases: &["ApplyPatch", "Edit", "MultiEdit", "Write", "edit_file", "write_file"],
            forms: vec![form(&["applypatch"], vec![named("input", &["patch", "patchText", "patch_text"])])],
            grammar: Some(GRAMMAR),
            summary_field: Some("input"),
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

impl Default for ApplyPatch {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Tool for ApplyPatch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn session_over(&self, session: SessionId) {
        self.seen.forget(session);
    }

    async fn call(&self, input: &Json, context: &ToolContext) -> ToolOutput {
        match arguments::read::<Arguments>(&self.spec.name, input) {
            Ok(arguments) => {
                let seen = self.seen.by(context);
                job::run(context, move |job| apply(&arguments.input, &seen, job)).await
            }
            Err(misfit) => misfit,
        }
    }
}

/// What is to be written, before anything is.
#[derive(Default)]
struct Planned {
    /// Each path with its content before and after; absent where there is no file.
    files: BTreeMap<std::path::PathBuf, PlannedFile>,
    told: String,
    diffs: String,
}

struct PlannedFile {
    place: WorkspacePath,
    before: Option<String>,
    after: Option<String>,
}

fn apply(patch: &str, seen: &SeenBy, job: &Job) -> Result<String, Failure> {
    let changes = patch::parse(patch).map_err(Failure::Senseless)?;
    if changes.len() > FILES_MAX {
        return Err(Failure::Senseless(format!("a patch may have at most {FILES_MAX} files: take several")));
    }
    let mut planned = Planned::default();
    for change in &changes {
        job.go_on()?;
        planned.add(change, patch, job).map_err(nothing_applied)?;
    }
    write(planned.files.values().collect(), job)?;
    for file in planned.files.values() {
        if let Ok(metadata) = job.workspace.metadata(&file.place) {
            seen.note(&file.place.absolute, &metadata);
        }
    }
    let Planned { told, mut diffs, .. } = planned;
    let shown = diffs.floor_char_boundary(DIFF_BYTES_MAX);
    if shown < diffs.len() {
        diffs.truncate(shown);
        diffs.push_str("…\n[the diff goes on]");
    }
    Ok(format!("{told}{diffs}").trim_end().to_owned())
}

fn nothing_applied(failure: Failure) -> Failure {
    match failure {
        Failure::Cancelled => Failure::Cancelled,
        Failure::Senseless(text) => Failure::Senseless(format!("{text}\nNothing of the patch was applied.")),
        other => Failure::Said(format!("{}\nNothing of the patch was applied.", chain(&other))),
    }
}

impl Planned {
    fn add(&mut self, change: &Change<'_>, patch: &str, job: &Job) -> Result<(), Failure> {
        match change {
            Change::Add { path, content } => {
                let place = self.new_place(path, patch, job)?;
                let _ = writeln!(self.told, "added `{path}`: {}", count(content.lines().count(), "line"));
                self.put(PlannedFile { place, before: None, after: Some(content.clone()) })
            }
            Change::Delete { path } => {
                let place = locate(path, patch, job)?;
                let before = read_text(&place, job)?;
                let _ = writeln!(self.told, "deleted `{path}`");
                self.put(PlannedFile { place, before: Some(before), after: None })
            }
            Change::Update { path, to, hunks } => {
                let place = locate(path, patch, job)?;
                let before = read_text(&place, job)?;
                let applied = lines::apply(&before, hunks)
                    .map_err(|why| Failure::Said(format!("`{path}` can't be changed: {why}")))?;
                let note = if applied.is_indented { ADAPTED } else { "" };
                let after = applied.text;
                let shown = diff(&before, &after);
                let Some(to) = to else {
                    let _ = writeln!(self.told, "changed `{path}`{note}");
                    let _ = writeln!(self.diffs, "{path}\n{shown}");
                    return self.put(PlannedFile { place, before: Some(before), after: Some(after) });
                };
                let target = self.new_place(to, patch, job)?;
                let _ = writeln!(self.told, "moved `{path}` to `{to}`{note}");
                let _ = writeln!(self.diffs, "{to}\n{shown}");
                self.put(PlannedFile { place, before: Some(before), after: None })?;
                self.put(PlannedFile { place: target, before: None, after: Some(after) })
            }
        }
    }

    fn new_place(&self, path: &str, patch: &str, job: &Job) -> Result<WorkspacePath, Failure> {
        let place = locate(path, patch, job)?;
        match job.workspace.metadata(&place) {
            Ok(_) => Err(Failure::Said(format!("`{path}` already exists: change it with `*** Update File`"))),
            Err(Failure::NotFound { .. }) => Ok(place),
            Err(other) => Err(other),
        }
    }

    fn put(&mut self, file: PlannedFile) -> Result<(), Failure> {
        let asked = file.place.asked.clone();
        match self.files.insert(file.place.absolute.clone(), file) {
            None => Ok(()),
            Some(_) => {
                Err(Failure::Senseless(format!("the patch names `{asked}` twice: put its changes together")))
            }
        }
    }
}

/// The place of a path, which permissions were compared with.
fn locate(path: &str, patch: &str, job: &Job) -> Result<WorkspacePath, Failure> {
    if !patched_paths(patch).contains(&path) {
        return Err(Failure::Senseless(format!("`{path}` isn't named on a line of its own")));
    }
    job.workspace.locate_to_write(path)
}

/// Writes all files; if one can't be written, those before it get their old content back.
fn write(files: Vec<&PlannedFile>, job: &Job) -> Result<(), Failure> {
    for (at, file) in files.iter().enumerate() {
        let Err(failure) = make(&file.place, file.after.as_deref(), job) else { continue };
        let mut text = chain(&failure);
        let failed =
            files.iter().take(at).filter(|file| make(&file.place, file.before.as_deref(), job).is_err());
        let failed = failed.map(|file| format!("`{}`", file.place.asked)).collect::<Vec<_>>();
        text.push_str(&match failed.as_slice() {
            [] => "\nNothing of the patch was applied.".to_owned(),
            several => format!("\nThese files couldn't be put back as they were: {}.", several.join(", ")),
        });
        return Err(Failure::Said(text));
    }
    Ok(())
}

fn make(place: &WorkspacePath, content: Option<&str>, job: &Job) -> Result<(), Failure> {
    match content {
        Some(content) => job.workspace.replace(place, content.as_bytes(), job).map(|_| ()),
        None => job.workspace.remove(place),
    }
}
