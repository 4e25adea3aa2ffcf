//! The state of a workspace as a whole.

mod changes;
mod diff;
mod since_start;
mod tree;

#[cfg(unix)]
use std::fs::File;
use std::fs::Metadata;
use std::path::Path;
use std::time::UNIX_EPOCH;

use ignore::WalkBuilder;

use crate::sandbox::is_cover;

pub(crate) use changes::{Changes, WorkspaceSnapshot};
pub(crate) use diff::{Base, Comparison, baseline, hunks_of};
pub use diff::{FileChange, FileChangeKind};
pub use since_start::{WorkspaceDiff, WorkspaceDiffError, WorkspaceDiffQuery, workspace_diff};

/// Maximum files inspected; in a larger workspace only the first ones count.
const FILES_MAX: usize = 50_000;

/// A fingerprint of the files in `workspace` by name, size and modification time: equal if nothing changed. Files
/// ignored by git don't count. Blocking; reads each file's metadata once.
pub(crate) fn fingerprint(workspace: &Path) -> String {
    let own_output = OwnOutput::find();
    let mut hasher = blake3::Hasher::new();
    let walk = WalkBuilder::new(workspace)
        .hidden(false)
        .require_git(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .sort_by_file_path(Path::cmp)
        .build();
    for entry in walk.flatten().filter(|entry| !is_cover(workspace, entry.path())).take(FILES_MAX) {
        hasher.update(entry.path().as_os_str().as_encoded_bytes());
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_file() && !own_output.includes(&metadata) {
            let changed = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
            hasher.update(&metadata.len().to_le_bytes());
            hasher.update(&changed.unwrap_or_default().as_nanos().to_le_bytes());
        }
    }
    hasher.finalize().to_hex().chars().take(32).collect()
}

/// The files behind this process's standard output and error, which grow while it works: they are no work of an agent.
struct OwnOutput(Vec<FileId>);

/// The device and the number of a file.
type FileId = (u64, u64);

impl OwnOutput {
    #[cfg(unix)]
    fn find() -> Self {
        use std::os::fd::{AsFd as _, BorrowedFd};

        let id_of = |stream: BorrowedFd<'_>| {
            let metadata = File::from(stream.try_clone_to_owned().ok()?).metadata().ok()?;
            Some(file_id(&metadata))
        };
        let streams = [id_of(std::io::stdout().as_fd()), id_of(std::io::stderr().as_fd())];
        Self(streams.into_iter().flatten().collect())
    }

    /// What a stream leads to isn't known there.
    #[cfg(not(unix))]
    fn find() -> Self {
        Self(Vec::new())
    }

    fn includes(&self, metadata: &Metadata) -> bool {
        self.0.contains(&file_id(metadata))
    }
}

#[cfg(unix)]
fn file_id(metadata: &Metadata) -> FileId {
    use std::os::unix::fs::MetadataExt as _;

    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn file_id(_: &Metadata) -> FileId {
    (0, 0)
}

#[cfg(test)]
mod tests {
    use super::fingerprint;

    #[test]
    fn it_changes_with_a_file_and_not_with_an_ignored_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        std::fs::write(path.join(".gitignore"), "target\n").expect("written");
        std::fs::write(path.join("a"), "1").expect("written");
        let first = fingerprint(path);
        assert_eq!(fingerprint(path), first);
        std::fs::create_dir(path.join("target")).expect("made");
        std::fs::write(path.join("target/x"), "1").expect("written");
        assert_eq!(fingerprint(path), first, "ignored files don't count");
        std::fs::write(path.join("a"), "12").expect("written");
        assert_ne!(fingerprint(path), first);
    }
}
