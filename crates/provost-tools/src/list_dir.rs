//! `list_dir`: the entries of a folder.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use ignore::DirEntry;
use ignore::overrides::Override;
use provost_event::{Access, CallForm, Json, ToolSpec, ToolSubject};
use provost_harness::{Tool, ToolContext, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::arguments;
use crate::failure::Failure;
use crate::form::{FILE_NAMES, FOLDER_NAMES, form, named, positive};
use crate::job::{self, Job};
use crate::spec::{About, FILE_TIMEOUT, PAGE_BYTES_MAX};
use crate::text::{count, size, some_of};
use crate::walk::{globs, walk};
use crate::workspace::WorkspacePath;

/// Maximum entries shown.
const ENTRIES_MAX: usize = 500;

/// Maximum entries counted.
const COUNTED_MAX: usize = 50_000;

/// Maximum names of ignored entries in the output.
const IGNORED_TOLD_MAX: usize = 5;

const DESCRIPTION: &str = "Lists a folder, sorted by name: folders end with `/`, files come with their size, links \
with where they lead. With `glob`, finds files by name in all folders below. What ignore files (.gitignore) name is left out and counted.";

/// Lists a folder and optionally its subfolders.
#[derive(Debug, Clone)]
pub struct ListDir {
    spec: ToolSpec,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The folder: relative to the workspace, or absolute. Default: the workspace.
    path: Option<String>,
    /// How many levels of folders to list. Default 1: only what is in the folder itself.
    depth: Option<NonZeroUsize>,
    /// Only files that match this, in all folders below: `*.rs`, `src/**/*_test.{ts,tsx}`.
    glob: Option<String>,
}

impl ListDir {
    /// The default tool.
    #[must_use]
    pub fn new() -> Self {
        let about = About {
            name: "list_dir",
            description: DESCRIPTION,
            access: Access::Reads,
            subject: ToolSubject::Path {
                field: "path".to_owned(),
                walks: true,
                writes: false,
                anywhere: false,
            },
            aliases: &["Glob", "LS"],
            forms: forms(),
            grammar: None,
            summary_field: None,
            idempotent: true,
            timeout: FILE_TIMEOUT,
        };
        Self { spec: about.spec::<Arguments>() }
    }
}

/// Its calls elsewhere.
fn forms() -> Vec<CallForm> {
    let path = || named("path", &[FOLDER_NAMES, FILE_NAMES].concat());
    vec![
        form(&["ls", "list", "list_directory"], vec![path(), positive("depth", &[])]),
        form(&["Glob", "glob"], vec![path(), positive("depth", &[]), named("glob", &["pattern"])]),
    ]
}

impl Default for ListDir {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Tool for ListDir {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, input: &Json, context: &ToolContext) -> ToolOutput {
        match arguments::read(&self.spec.name, input) {
            Ok(arguments) => job::run(context, move |job| list(&arguments, job)).await,
            Err(misfit) => misfit,
        }
    }
}

fn list(arguments: &Arguments, job: &Job) -> Result<String, Failure> {
    let path = arguments.path.as_deref().unwrap_or(".");
    let place = job.workspace.locate(path)?;
    if !job.workspace.metadata(&place)?.is_dir() {
        return Err(Failure::IsFile { path: path.to_owned(), hint: "read_file shows what is in it" });
    }
    // Walking skips what it can't open; a failure for the folder itself must be reported.
    place.absolute.read_dir().map_err(|error| Failure::io("list", path, error))?;
    let globs = arguments.glob.as_deref().map(|glob| globs(&place.absolute, glob)).transpose()?;
    let deepest = if globs.is_some() { usize::MAX } else { 1 };
    let depth = arguments.depth.map_or(deepest, NonZeroUsize::get);
    let mut listing = Listing::default();
    for entry in walk(&job.workspace, &place, Some(depth)).flatten() {
        job.go_on()?;
        let is_added = match &globs {
            Some(globs) => !is_found(&entry, globs) || listing.add_found(&entry, &place),
            None => listing.add(&entry, &place, depth),
        };
        if !is_added {
            break;
        }
    }
    Ok(format!("{}[{}]", listing.text, listing.summary(path)))
}

/// Whether an entry is a file, or a link, that matches.
fn is_found(entry: &DirEntry, globs: &Override) -> bool {
    let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
    !is_folder && !globs.matched(entry.path(), false).is_ignore()
}

#[derive(Default)]
struct Listing {
    text: String,
    shown: usize,
    counted: usize,
    /// The entries of each visited folder that were not ignored.
    folders: BTreeMap<PathBuf, Vec<std::ffi::OsString>>,
}

impl Listing {
    /// Adds an entry; false once the count limit is reached.
    fn add(&mut self, entry: &DirEntry, place: &WorkspacePath, depth: usize) -> bool {
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        if is_folder && entry.depth() < depth {
            self.folders.insert(entry.path().to_owned(), Vec::new());
        }
        if entry.depth() == 0 {
            return true;
        }
        if let Some(siblings) = entry.path().parent().and_then(|folder| self.folders.get_mut(folder)) {
            siblings.push(entry.file_name().to_owned());
        }
        self.add_found(entry, place)
    }

    /// Adds an entry, whatever it is; false once the count limit is reached.
    fn add_found(&mut self, entry: &DirEntry, place: &WorkspacePath) -> bool {
        self.counted += 1;
        let line = describe(entry, &place.absolute);
        if self.shown + 1 == self.counted
            && self.shown < ENTRIES_MAX
            && self.text.len() + line.len() < PAGE_BYTES_MAX
        {
            self.text.push_str(&line);
            self.shown += 1;
        }
        self.counted < COUNTED_MAX
    }

    /// The number of entries, shown or not.
    fn summary(&self, path: &str) -> String {
        let complete = self.counted < COUNTED_MAX;
        let mut text = if self.counted == 0 {
            format!("`{path}` has nothing to list")
        } else if self.shown < self.counted {
            let more = self.counted - self.shown;
            let least = if complete { "" } else { "at least " };
            format!("{} and {least}{more} more: list a folder of it", count(self.shown, "entry"))
        } else {
            count(self.shown, "entry")
        };
        let ignored = if complete { self.ignored() } else { Vec::new() };
        if !ignored.is_empty() {
            let names = some_of(&ignored, IGNORED_TOLD_MAX);
            text.push_str(&format!("; {} left out by ignore rules: {names}", ignored.len()));
        }
        text
    }

    /// The names in the visited folders that the walk left out.
    fn ignored(&self) -> Vec<String> {
        let mut names = Vec::new();
        for (folder, met) in &self.folders {
            let there = folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.file_name());
            let mut ignored: Vec<_> = there
                .filter(|name| !met.contains(name))
                .map(|name| name.to_string_lossy().into_owned())
                .collect();
            ignored.sort();
            names.append(&mut ignored);
        }
        names
    }
}

/// An entry's line: its path relative to the listed folder, and its kind.
fn describe(entry: &DirEntry, folder: &Path) -> String {
    let path = entry.path().strip_prefix(folder).unwrap_or(entry.path()).display();
    match entry.file_type() {
        Some(kind) if kind.is_dir() => format!("{path}/\n"),
        Some(kind) if kind.is_symlink() => match entry.path().read_link() {
            Ok(target) => format!("{path} -> {}\n", target.display()),
            Err(_) => format!("{path} -> ?\n"),
        },
        Some(kind) if kind.is_file() => {
            let bytes = entry.metadata().map(|metadata| metadata.len());
            format!("{path}  {}\n", bytes.map_or_else(|_| "size unknown".to_owned(), size))
        }
        Some(_) | None => format!("{path}  (special file)\n"),
    }
}
