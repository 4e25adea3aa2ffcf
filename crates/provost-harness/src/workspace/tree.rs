//! The files of a git work tree as a tree object. Nothing is written to the repository: new objects and the index are
//! in a temporary folder.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::git::{Git, GitError};
use crate::sandbox::is_cover;
use crate::{PrivateFolder, Redactor};

/// Untracked files over this size are left out.
const UNTRACKED_BYTES_MAX: u64 = 1024 * 1024;
/// Maximum files whose content is read. In a work tree with more changes nothing is compared.
const READ_FILES_MAX: usize = 20_000;
/// Maximum bytes of the objects that the repository lacks, compressed.
const PACK_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The files of a work tree at the time it was read.
#[derive(Debug)]
pub(super) struct FileTree<'a> {
    git: Git<'a>,
    /// The object of the tree.
    id: String,
    folder: PrivateFolder,
    /// The files that are left out, relative to the workspace.
    left_out: Vec<String>,
}

impl<'a> FileTree<'a> {
    /// Reads the work tree that `workspace` is in: the files below `workspace` as they are, the others as they are in
    /// the index. Files with a secret that
    /// `redactor` knows are left out, and untracked ones with anything that looks like one.
    ///
    /// # Errors
    /// [`GitError::Refused`] if there is no work tree, it has unresolved conflicts elsewhere or too many changes.
    pub(super) async fn read(
        workspace: &Path,
        redactor: &Arc<Redactor>,
        cancel: &'a CancellationToken,
    ) -> Result<Self, GitError> {
        let git = Git::within(workspace, cancel).await?;
        let index = git.own_data().join("index");
        let objects = git.repository().join("objects");
        let folder = blocking(move || scratch(&index, &objects)).await?;
        let variables = [("GIT_INDEX_FILE", "index"), ("GIT_OBJECT_DIRECTORY", "objects")];
        let inside = |(name, path): (&str, &str)| (OsString::from(name), folder.path().join(path).into());
        let git = git.with_variables(variables.map(inside).into());
        let git = git.inspecting(vec![folder.path().to_owned()]).await;
        let mut tree = Self { git, id: String::new(), folder, left_out: Vec::new() };
        tree.add_changes(workspace, redactor).await?;
        tree.id = tree.git.ask(["write-tree", "--missing-ok"]).await?;
        Ok(tree)
    }

    async fn add_changes(&mut self, workspace: &Path, redactor: &Arc<Redactor>) -> Result<(), GitError> {
        let changed = ["diff-files", "--name-only", "-z", "--relative", "--ignore-submodules=all", "--", "."];
        let changed = self.git.list(changed).await?;
        let untracked = self.git.list(["ls-files", "--others", "--exclude-standard", "-z"]).await?;
        let names =
            |list: &str| list.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let (changed, mut untracked): (BTreeSet<String>, BTreeSet<String>) =
            (names(&changed), names(&untracked));
        untracked.retain(|name| !is_cover(workspace, &workspace.join(name)));
        if changed.len().saturating_add(untracked.len()) > READ_FILES_MAX {
            return Err(GitError::Refused(format!("more than {READ_FILES_MAX} files were changed")));
        }
        let folder = workspace.to_path_buf();
        let redactor = redactor.clone();
        let (kept, left_out) = blocking(move || Ok(sorted(&folder, &changed, &untracked, &redactor))).await?;
        self.left_out = left_out;
        if kept.is_empty() {
            return Ok(());
        }
        let update = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"].map(OsStr::new);
        self.git.feed(&update, kept.into_bytes()).await?;
        Ok(())
    }

    pub(super) const fn git(&self) -> &Git<'a> {
        &self.git
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// The objects of the tree that the repository lacks, as a git pack; `None` if it lacks none.
    ///
    /// # Errors
    /// When they are too large, or can't be read.
    pub(super) async fn pack(&self) -> Result<Option<Vec<u8>>, GitError> {
        let objects = self.folder.path().join("objects");
        let names = blocking(move || loose_objects(&objects)).await?;
        if names.is_empty() {
            return Ok(None);
        }
        let base = self.folder.path().join("packed");
        let arguments = [OsStr::new("pack-objects"), OsStr::new("-q"), base.as_os_str()];
        let name = self.git.feed(&arguments, names.into_bytes()).await?;
        let path = self.folder.path().join(format!("packed-{name}.pack"));
        let read = move || {
            let bytes = fs::metadata(&path)?.len();
            if bytes > PACK_BYTES_MAX {
                return Err(std::io::Error::other("the changed files are too large"));
            }
            fs::read(&path)
        };
        blocking(read).await.map(Some)
    }

    /// Makes the objects of a pack readable.
    pub(super) async fn add_pack(&self, pack: Vec<u8>) -> Result<(), GitError> {
        let path = self.folder.path().join("objects/pack/pack-baseline.pack");
        let file = path.clone();
        blocking(move || fs::write(&file, pack)).await?;
        self.git.feed(&[OsStr::new("index-pack"), path.as_os_str()], Vec::new()).await?;
        Ok(())
    }
}

/// A folder for new objects, with a copy of `index` and the repository's `objects` to read from. Blocking.
fn scratch(index: &Path, objects: &Path) -> std::io::Result<PrivateFolder> {
    let folder = PrivateFolder::new("tree")?;
    let own = folder.path().join("objects");
    fs::create_dir_all(own.join("pack"))?;
    fs::create_dir_all(own.join("info"))?;
    let path = objects.to_str().filter(|path| !path.contains(['\n', '"']));
    let path = path.ok_or_else(|| std::io::Error::other("the repository's path isn't plain text"))?;
    fs::write(own.join("info/alternates"), format!("{path}\n"))?;
    if index.exists() {
        fs::copy(index, folder.path().join("index"))?;
    }
    Ok(folder)
}

/// The names to update in an index, each ended by a zero byte; and the names of files left out. Blocking.
fn sorted(
    folder: &Path,
    changed: &BTreeSet<String>,
    untracked: &BTreeSet<String>,
    redactor: &Redactor,
) -> (String, Vec<String>) {
    let (mut kept, mut left_out) = (String::new(), Vec::new());
    // A name with a slash at its end is another repository.
    let untracked = untracked.iter().filter(|name| !name.ends_with('/'));
    let changed = changed.iter().map(|name| (name, true));
    for (name, is_tracked) in changed.chain(untracked.map(|name| (name, false))) {
        let bytes_max = if is_tracked { u64::MAX } else { UNTRACKED_BYTES_MAX };
        match content(&folder.join(name), bytes_max) {
            Content::Text(text) if is_tracked && redactor.holds_known(&text) => left_out.push(name.clone()),
            Content::Text(text) if !is_tracked && matches!(redactor.redact(&text), Cow::Owned(_)) => {
                left_out.push(name.clone());
            }
            Content::LeftOut => left_out.push(name.clone()),
            Content::Text(_) | Content::NoFile => {
                kept.push_str(name);
                kept.push('\0');
            }
        }
    }
    (kept, left_out)
}

/// What is known of a file's content.
enum Content {
    /// Its first [`UNTRACKED_BYTES_MAX`] bytes.
    Text(String),
    /// It is a symbolic link, or gone.
    NoFile,
    /// It can't be read, or is over the maximum.
    LeftOut,
}

fn content(path: &Path, bytes_max: u64) -> Content {
    let Ok(found) = fs::symlink_metadata(path) else { return Content::NoFile };
    if found.is_symlink() || found.is_dir() {
        return Content::NoFile;
    }
    if !found.is_file() || found.len() > bytes_max {
        return Content::LeftOut;
    }
    let mut bytes = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(UNTRACKED_BYTES_MAX).read_to_end(&mut bytes));
    read.map_or(Content::LeftOut, |_| Content::Text(String::from_utf8_lossy(&bytes).into_owned()))
}

/// The names of the objects in a folder that are files of their own, a line each. Blocking.
fn loose_objects(folder: &Path) -> std::io::Result<String> {
    let mut names = String::new();
    for group in fs::read_dir(folder)?.flatten() {
        let prefix = group.file_name().to_string_lossy().into_owned();
        if prefix.len() != 2 {
            continue;
        }
        for object in fs::read_dir(group.path())?.flatten() {
            names.push_str(&format!("{prefix}{}\n", object.file_name().to_string_lossy()));
        }
    }
    Ok(names)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, GitError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(std::io::Error::other(error))).map_err(GitError::Files)
}
