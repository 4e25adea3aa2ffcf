//! The names in a folder, two deep.

use std::path::Path;

use ignore::WalkBuilder;

/// Maximum characters of a name.
const NAME_CHARS_MAX: usize = 40;
/// Maximum names kept of a folder.
const KEPT_MAX: usize = 60;

/// The names in a folder and in the folders in it, in the order of the alphabet, without hidden ones and those that
/// git ignores.
pub(super) struct Listing {
    folders: Vec<(String, Vec<String>)>,
    files: Vec<String>,
    is_whole: bool,
}

impl Listing {
    /// Of `folder`. Symlinks aren't followed. Blocking.
    pub(super) fn of(folder: &Path) -> Self {
        let (mut folders, mut files) = (Vec::new(), Vec::new());
        let (entries, is_whole) = entries(folder);
        for (name, is_folder) in entries {
            if is_folder {
                let inner = self::entries(&folder.join(&name)).0.into_iter();
                let inner = inner.map(|(name, is_folder)| marked(&name, is_folder));
                folders.push((marked(&name, true), inner.collect()));
            } else {
                files.push(marked(&name, false));
            }
        }
        Self { folders, files, is_whole }
    }

    /// At most `names_max` names in lines, and whether these are all: the folder's own names first, then for each
    /// folder in it an equal part of the rest.
    pub(super) fn lines(&self, names_max: usize) -> (Vec<String>, bool) {
        let folders_shown = self.folders.len().min(names_max);
        let mut left = names_max.saturating_sub(folders_shown);
        let files_shown = self.files.len().min(left);
        left = left.saturating_sub(files_shown);
        let mut is_whole =
            self.is_whole && folders_shown == self.folders.len() && files_shown == self.files.len();
        let mut lines = Vec::new();
        for (at, (name, inner)) in self.folders.iter().take(folders_shown).enumerate() {
            let part = left.div_ceil(folders_shown.saturating_sub(at).max(1)).min(inner.len());
            left = left.saturating_sub(part);
            let mut names = inner.iter().take(part).map(String::as_str).collect::<Vec<_>>();
            if part < inner.len() {
                names.push("…");
                is_whole = false;
            }
            lines.push(format!("{name} {}", names.join(" ")).trim_end().to_owned());
        }
        let files = self.files.iter().take(files_shown).map(String::as_str);
        let more = (files_shown < self.files.len() || folders_shown < self.folders.len()).then_some("…");
        let files = files.chain(more).collect::<Vec<_>>();
        if !files.is_empty() {
            lines.push(files.join(" "));
        }
        (lines, is_whole)
    }
}

/// The names in `folder`, each with whether it is a folder, and whether these are all.
fn entries(folder: &Path) -> (Vec<(String, bool)>, bool) {
    let walk = WalkBuilder::new(folder)
        .max_depth(Some(1))
        .require_git(false)
        .git_global(false)
        .sort_by_file_name(std::cmp::Ord::cmp)
        .build();
    let entries = walk.flatten().filter(|entry| entry.depth() > 0).map(|entry| {
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        (entry.file_name().to_string_lossy().into_owned(), is_folder)
    });
    let mut entries = entries.take(KEPT_MAX + 1).collect::<Vec<_>>();
    let is_whole = entries.len() <= KEPT_MAX;
    entries.truncate(KEPT_MAX);
    (entries, is_whole)
}

/// A name that is quoted where it has a space, and cut where it is long; that of a folder ends with a slash.
fn marked(name: &str, is_folder: bool) -> String {
    let cut = name.chars().take(NAME_CHARS_MAX).collect::<String>();
    let more = if cut.len() < name.len() { "…" } else { "" };
    let slash = if is_folder { "/" } else { "" };
    let name = format!("{cut}{more}{slash}");
    if name.contains(char::is_whitespace) { format!("{name:?}") } else { name }
}
