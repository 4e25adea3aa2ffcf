//! The changed files of a workspace between two inspections.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, Instant, UNIX_EPOCH};

use ignore::WalkBuilder;
use provost_engine::kind_of_text;

use super::OwnOutput;
use crate::sandbox::is_cover;

/// Maximum files inspected.
const FILES_MAX: usize = 50_000;
/// Time limit of an inspection; files after that aren't inspected.
const LOOK_MAX: Duration = Duration::from_secs(2);
/// Bytes of a file that its fingerprint covers.
const CONTENT_BYTES_MAX: u64 = 64 * 1024;
/// Extensions of files that aren't meant to stay.
const TEMPORARY: [&str; 9] = ["tmp", "temp", "log", "out", "err", "pid", "lock", "bak", "swp"];
/// Maximum reported changes.
const CHANGES_MAX: usize = 20;
/// The range of numbers that every JSON parser preserves.
const JSON_SAFE: u64 = (1 << 53) - 1;

/// A workspace at its last inspection: each file's size and modification time, both as hashes.
#[derive(Debug, Default)]
pub(crate) struct WorkspaceSnapshot {
    files: Option<HashMap<u64, u64>>,
    /// The agent's calls have begun since it was last inspected for changes.
    has_begun: bool,
}

/// The changes of a workspace since the last inspection.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// A fingerprint for each changed file's path and content, both without numbers, so that a counter, a time or a
    /// temporary name makes no difference.
    pub(crate) files: Vec<u64>,
    /// Files that weren't there before, by their exact names; those with the extension of a temporary file don't count.
    pub(crate) new: u32,
}

impl WorkspaceSnapshot {
    /// Before a call: the first one after an inspection begins a new one, so that changes by others meanwhile don't
    /// count. Blocking.
    pub(crate) fn begin(&mut self, workspace: &Path) {
        if !self.has_begun {
            self.look(workspace);
            self.has_begun = true;
        }
    }

    /// Inspects `workspace` and returns the changes since the last inspection; the first one returns nothing. Files
    /// ignored by git don't count. Blocking: reads each file's metadata, and the content of changed files.
    pub(crate) fn look(&mut self, workspace: &Path) -> Changes {
        let due = Instant::now() + LOOK_MAX;
        let own_output = OwnOutput::find();
        let before = self.files.take();
        let mut now = HashMap::new();
        let mut changes = Vec::new();
        let mut new = 0_u32;
        let mut is_whole = true;
        for (count, entry) in walk(workspace).enumerate() {
            if count >= FILES_MAX || Instant::now() >= due {
                is_whole = false;
                break;
            }
            let Some(metadata) = entry.metadata().ok().filter(fs::Metadata::is_file) else { continue };
            if own_output.includes(&metadata) {
                continue;
            }
            let name = entry.path().strip_prefix(workspace).unwrap_or(entry.path());
            let (file, state) = (number_of(&name.to_string_lossy()), state_of(&metadata));
            let is_changed = before.as_ref().is_some_and(|before| before.get(&file) != Some(&state));
            if before.as_ref().is_some_and(|before| !before.contains_key(&file)) && !is_temporary(name) {
                new = new.saturating_add(1);
            }
            if is_changed && changes.len() < CHANGES_MAX {
                changes.push(change(entry.path(), name));
            }
            now.insert(file, state);
        }
        if is_whole && let Some(before) = &before {
            let is_gone = |file: &&u64| !now.contains_key(*file);
            let gone = before.keys().filter(is_gone).map(|file| file.rotate_left(1));
            changes.extend(gone.take(CHANGES_MAX.saturating_sub(changes.len())));
        }
        self.files = Some(now);
        self.has_begun = false;
        let changes = changes.into_iter().map(|change| change & JSON_SAFE).collect::<HashSet<_>>();
        let mut changes = changes.into_iter().collect::<Vec<_>>();
        changes.sort_unstable();
        Changes { files: changes, new }
    }
}

fn walk(workspace: &Path) -> impl Iterator<Item = ignore::DirEntry> {
    let mut walk = WalkBuilder::new(workspace);
    walk.hidden(false).require_git(false).filter_entry(|entry| entry.file_name() != ".git");
    walk.build().flatten().filter(|entry| !is_cover(workspace, entry.path()))
}

fn is_temporary(name: &Path) -> bool {
    name.extension().is_some_and(|extension| TEMPORARY.iter().any(|one| extension.eq_ignore_ascii_case(one)))
}

fn state_of(metadata: &fs::Metadata) -> u64 {
    let changed = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let changed = changed.unwrap_or_default();
    metadata.len() ^ changed.as_secs().rotate_left(32) ^ u64::from(changed.subsec_nanos()).rotate_left(20)
}

/// The fingerprint of a file's path and content, both without numbers.
fn change(path: &Path, name: &Path) -> u64 {
    let mut content = Vec::new();
    let read = fs::File::open(path).map(|file| file.take(CONTENT_BYTES_MAX).read_to_end(&mut content));
    let content = match read {
        Ok(Ok(_)) => kind_of_text(&String::from_utf8_lossy(&content)),
        // A file that can't be read still has a name.
        Ok(Err(_)) | Err(_) => 0,
    };
    kind_of_text(&name.to_string_lossy()).rotate_left(1) ^ content
}

fn number_of(text: &str) -> u64 {
    let hash = blake3::hash(text.as_bytes());
    let mut bytes = [0; 8];
    bytes.iter_mut().zip(hash.as_bytes()).for_each(|(to, from)| *to = *from);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::{Changes, WorkspaceSnapshot};

    #[test]
    fn a_changed_file_is_told_and_a_counter_in_it_is_the_same_change() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
        write(".gitignore", "target\n");
        write("a", "one");
        let mut seen = WorkspaceSnapshot::default();
        assert_eq!(seen.look(folder.path()), Changes::default(), "the first look");
        assert_eq!(seen.look(folder.path()), Changes::default(), "nothing has changed");
        write("a", "two words");
        let words = seen.look(folder.path());
        assert_eq!((words.files.len(), words.new), (1, 0));
        write("a", "count 17");
        let counter = seen.look(folder.path());
        assert_ne!(words, counter);
        write("a", "count 123456");
        assert_eq!(seen.look(folder.path()), counter);
        write("out-1.log", "x");
        let temporary = seen.look(folder.path());
        write("out-22.log", "x");
        assert_eq!(seen.look(folder.path()), temporary);
        write("page-1.html", "x");
        let page = seen.look(folder.path());
        write("page-2.html", "x");
        let again = seen.look(folder.path());
        assert_eq!((&again, page.new), (&page, 1), "the same kind of change, with a new file each");
        std::fs::create_dir(folder.path().join("target")).expect("made");
        write("target/x", "ignored");
        assert_eq!(seen.look(folder.path()), Changes::default());
        std::fs::remove_file(folder.path().join("a")).expect("removed");
        assert_eq!(seen.look(folder.path()).files.len(), 1, "a file is gone");
    }
}
