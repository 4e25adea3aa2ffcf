//! Walks folders, honouring ignore files.
//!
//! It uses the `.gitignore` and `.ignore` files from the top of the repository down, or from the workspace if
//! there is no repository; never those of the user or the machine: the same tree gives the same result everywhere.
//! `.git` itself is never walked into. Hidden files are included.

use std::path::Path;

use ignore::gitignore::Gitignore;
use ignore::overrides::{Override, OverrideBuilder};
use ignore::{DirEntry, Match, Walk, WalkBuilder};

use crate::failure::Failure;
use crate::workspace::{Workspace, WorkspacePath};

const IGNORE_FILES: [&str; 2] = [".ignore", ".gitignore"];

/// Walks the entries below `place`, in order of names, without following links; `depth` 1 is only the folder's own
/// entries.
pub(crate) fn walk(workspace: &Workspace, place: &WorkspacePath, depth: Option<usize>) -> Walk {
    let above = ignore_files_above(workspace.root_of(place), &place.absolute);
    let hidden = workspace.masked();
    let root = workspace.root().to_owned();
    let mut builder = WalkBuilder::new(&place.absolute);
    builder
        .max_depth(depth)
        .hidden(false)
        .parents(false)
        .require_git(false)
        .git_global(false)
        .git_exclude(false)
        .sort_by_file_name(std::ffi::OsStr::cmp)
        .filter_entry(move |entry| {
            entry.file_name() != ".git" && !ignored(&above, entry) && !hidden.hides(entry.path(), &root)
        });
    builder.build()
}

/// Which files of `folder` match `glob`.
pub(crate) fn globs(folder: &Path, glob: &str) -> Result<Override, Failure> {
    let mut builder = OverrideBuilder::new(folder);
    builder
        .add(glob)
        .and_then(|builder| builder.build())
        .map_err(|error| Failure::Senseless(format!("`glob` can't be used: {error}")))
}

/// The ignore files of the folders above `start`, the nearest first.
fn ignore_files_above(workspace: &Path, start: &Path) -> Vec<Gitignore> {
    let top = workspace.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(workspace);
    let above = start.ancestors().skip(1).take_while(|folder| folder.starts_with(top));
    let files = above.flat_map(|folder| IGNORE_FILES.map(|name| folder.join(name)));
    // An invalid pattern line is skipped, as git does.
    files.filter(|file| file.is_file()).map(|file| Gitignore::new(file).0).collect()
}

fn ignored(above: &[Gitignore], entry: &DirEntry) -> bool {
    let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
    let says = above.iter().map(|file| file.matched(entry.path(), is_folder)).find(|says| !says.is_none());
    matches!(says, Some(Match::Ignore(_)))
}
