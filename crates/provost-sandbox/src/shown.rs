//! Folders of which programs see what was there when they were started, and none of what is masked. What is put in the
//! place of a masked file later, or at a masked name where there was nothing, isn't seen then.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use provost_harness::masked_paths;

use crate::{FileRules, Places};

/// Maximum entries that are mounted one by one. The time of a start grows with their square: `bwrap` looks at all mounts
/// for each.
const ENTRIES_MAX: usize = 128;

/// A folder of which only these entries are seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The folder.
    pub folder: PathBuf,
    /// Its entries.
    pub entries: Vec<ShownEntry>,
}

/// An entry that is seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownEntry {
    /// Its path.
    pub path: PathBuf,
    /// Where it leads if it is a symlink.
    pub target: Option<PathBuf>,
}

impl FileRules {
    /// Shows of the user's home folder what is there now.
    pub(crate) fn show_home(&mut self, places: &Places) {
        let home = places.home.as_ref().filter(|home| home.is_absolute());
        let home = home.and_then(|home| home.canonicalize().ok()).filter(|home| home.parent().is_some());
        if let Some(home) = home {
            let names = masked_paths(Some(&home), None).into_iter().filter(|path| path.starts_with(&home));
            self.show(&home, &names.collect::<Vec<_>>());
        }
    }

    /// Shows of a home folder, and of the folders in it that hold something masked, what is there now. `masked` are
    /// all names that are masked, whether or not they are there.
    fn show(&mut self, home: &Path, masked: &[PathBuf]) {
        let inner = masked.iter().filter_map(|path| path.parent()).filter(|folder| folder.starts_with(home));
        let folders = std::iter::once(home).chain(inner).collect::<BTreeSet<_>>();
        let mut left = ENTRIES_MAX;
        let mut is_whole = true;
        for folder in folders {
            let is_real = folder.canonicalize().is_ok_and(|real| real == folder && real.is_dir());
            if !is_real || self.is_used(folder) {
                continue;
            }
            let entries = self.entries_of(folder);
            match left.checked_sub(entries.len()) {
                Some(rest) => left = rest,
                None => {
                    is_whole = false;
                    continue;
                }
            }
            self.shown.push(Shown { folder: folder.to_owned(), entries });
        }
        if !is_whole {
            self.gaps.push(format!(
                "{} has too many entries to show them one by one: a credential that is made or replaced there while a \
                 program runs can be read by it",
                home.display()
            ));
        }
    }

    /// Whether a folder may be written, or something decides over it as a whole.
    fn is_used(&self, folder: &Path) -> bool {
        let caches = self.caches.iter().map(|cache| &cache.folder);
        let mut all = self.write.iter().chain(&self.masked).chain(caches).chain([&self.workspace]);
        all.any(|one| folder.starts_with(one))
    }

    fn entries_of(&self, folder: &Path) -> Vec<ShownEntry> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let entries = entries.filter(|path| !self.masked.contains(path));
        let entry = |path: PathBuf| {
            // What can't be looked at can't be mounted.
            let facts = path.symlink_metadata().ok()?;
            let target = if facts.is_symlink() { Some(fs::read_link(&path).ok()?) } else { None };
            Some(ShownEntry { path, target })
        };
        entries.filter_map(entry).take(ENTRIES_MAX.saturating_add(1)).collect()
    }
}
