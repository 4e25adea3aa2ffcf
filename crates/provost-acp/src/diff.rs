//! From the unified diffs that a tool answers with to the parts of files that an editor compares.

use std::path::{Path, PathBuf};

use crate::editor::Diff;

/// A file that a call changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChangedFile {
    /// Its path as the call has it.
    pub(crate) given: String,
    /// Its absolute path.
    pub(crate) path: PathBuf,
}

/// The hunks of the unified diffs in `text`. Where a call changes several files, the path of each stands in a line before
/// its hunks.
pub(crate) fn hunks(text: &str, files: &[ChangedFile]) -> Vec<Diff> {
    let mut found: Vec<Hunk<'_>> = Vec::new();
    let Some(first) = files.first() else { return Vec::new() };
    let mut path: &Path = &first.path;
    let mut is_within = false;
    for line in text.lines() {
        if let Some(is_new) = head(line) {
            found.push(Hunk { path, is_new, before: String::new(), after: String::new() });
            is_within = true;
        } else if let Some(file) = files.iter().find(|file| file.given == line) {
            path = &file.path;
            is_within = false;
        } else if let Some(hunk) = found.last_mut().filter(|_| is_within) {
            hunk.take(line);
        }
    }
    let diff = |hunk: Hunk<'_>| Diff {
        path: hunk.path.to_owned(),
        before: (!hunk.is_new).then_some(hunk.before),
        after: hunk.after,
    };
    found.into_iter().map(diff).collect()
}

struct Hunk<'p> {
    path: &'p Path,
    is_new: bool,
    before: String,
    after: String,
}

impl Hunk<'_> {
    fn take(&mut self, line: &str) {
        let Some(sign) = line.chars().next() else { return };
        let text = line.get(1..).unwrap_or_default();
        if matches!(sign, ' ' | '-') {
            self.before.push_str(text);
            self.before.push('\n');
        }
        if matches!(sign, ' ' | '+') {
            self.after.push_str(text);
            self.after.push('\n');
        }
    }
}

/// Whether `line` is the head of a hunk, and whether that stands for a file that wasn't there.
fn head(line: &str) -> Option<bool> {
    let (before, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    rest.split_once(" @@")?;
    Some(before == "0,0")
}
