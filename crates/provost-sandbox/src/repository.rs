//! How the git repository that an agent works in is protected: what a commit writes may be written, and what makes git
//! run something stays as it is.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::denial::real;
use crate::git_settings::{NamedFiles, values};
use crate::{Cover, Protected};

/// What of a repository may be written, and what stays as it is.
#[derive(Debug, Default)]
pub(crate) struct Repository {
    pub(crate) write: Vec<PathBuf>,
    pub(crate) protected: Vec<Protected>,
    /// What stays as it is and lies somewhere in a folder that may be written, or nowhere.
    pub(crate) kept: Vec<Kept>,
    /// The work trees that the data of submodules name.
    module_work_trees: Vec<PathBuf>,
    /// The file with names that git doesn't list, and the folder that they are in.
    pub(crate) exclude: Option<Exclude>,
}

/// A path that stays as it is where it lies in a folder that may be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The path, without symlinks.
    pub(crate) path: PathBuf,
    /// What covers it if it isn't there; [`Cover::Pinned`]: it stays where it is, and may be written.
    pub(crate) absent: Cover,
}

/// A repository's own file of names that git ignores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exclude {
    /// The file, which is there.
    pub file: PathBuf,
    /// The top of the work tree.
    pub top: PathBuf,
}

impl Exclude {
    fn of(data: &Path, top: &Path) -> Option<Self> {
        let file = data.join("info").join("exclude");
        file.is_file().then(|| Self { file, top: top.to_owned() })
    }

    /// The file's text with these paths besides.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn with<'a>(&self, paths: impl Iterator<Item = &'a Path>) -> std::io::Result<Vec<u8>> {
        let mut text = fs::read(&self.file)?;
        for path in paths.filter_map(|path| path.strip_prefix(&self.top).ok()) {
            text.extend(b"\n/");
            text.extend(path.as_os_str().as_encoded_bytes());
        }
        text.push(b'\n');
        Ok(text)
    }
}

/// What a file says that names the folder it is in.
pub(crate) const THIS_FOLDER: &str = ".\n";
/// Maximum submodules whose settings are protected.
const MODULES_MAX: usize = 200;

/// The repository of a workspace: the one in it, or in a folder above.
pub(crate) fn of(workspace: &Path, home: Option<&Path>) -> Option<Repository> {
    let entry = workspace.ancestors().map(|folder| folder.join(".git")).find(|entry| is_one(entry))?;
    let mut found = Repository::default();
    if entry.is_dir() {
        let data = entry.canonicalize().ok()?;
        found.main(&data);
        found.in_work_tree(&data, entry.parent()?, home);
        found.exclude = Exclude::of(&data, entry.parent()?);
        return Some(found);
    }
    let text = fs::read_to_string(&entry).ok()?;
    let named = text.trim().strip_prefix("gitdir:")?.trim();
    let own = entry.parent()?.join(named).canonicalize().ok()?;
    found.protected.push(Protected { path: entry.clone(), cover: Cover::Itself });
    match fs::read_to_string(own.join("commondir")) {
        Ok(common) => {
            let common = own.join(common.trim()).canonicalize().ok()?;
            found.worktree(&own, &common);
            found.in_work_tree(&common, entry.parent()?, home);
            found.exclude = Exclude::of(&common, entry.parent()?);
        }
        // A submodule.
        Err(_) => {
            found.main(&own);
            found.in_work_tree(&own, entry.parent()?, home);
            found.exclude = Exclude::of(&own, entry.parent()?);
        }
    }
    Some(found)
}

/// Whether this leads to a repository. An empty folder may be a cover.
fn is_one(entry: &Path) -> bool {
    entry.is_file() || entry.join("HEAD").is_file()
}

impl Repository {
    /// The data of a repository with a work tree of its own.
    fn main(&mut self, data: &Path) {
        self.write.push(data.to_owned());
        self.pin(data);
        self.settings(data);
        self.itself_if_there(&data.join("worktrees"));
        let mut left = MODULES_MAX;
        self.modules(&data.join("modules"), &mut left);
    }

    /// What the settings name in a work tree, and its submodules' work trees.
    fn in_work_tree(&mut self, data: &Path, top: &Path, home: Option<&Path>) {
        let settings = ["config", "config.worktree"].map(|name| data.join(name));
        self.kept.extend(NamedFiles::of(&settings, top, home));
        let named = values(&top.join(".gitmodules"), "submodule", "path").into_iter().take(MODULES_MAX);
        let named = named.map(|path| top.join(path)).filter(|path| path != top);
        let all = named.chain(self.module_work_trees.drain(..)).collect::<BTreeSet<_>>();
        for work_tree in all {
            let entry = real(&work_tree).join(".git");
            if entry.join("HEAD").is_file() {
                self.kept.push(Kept { path: entry.clone(), absent: Cover::Pinned });
                self.settings(&entry);
            } else {
                self.kept.push(Kept { path: entry, absent: Cover::EmptyFolder });
            }
        }
    }

    /// The data of submodules, which may be in each other's. None is added: git reads the settings of each.
    fn modules(&mut self, folder: &Path, left: &mut usize) {
        self.cover(folder.to_owned(), Cover::EmptyFolder);
        let Ok(entries) = fs::read_dir(folder) else { return };
        for module in entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()) {
            if *left == 0 {
                return;
            }
            *left = left.saturating_sub(1);
            if module.join("HEAD").is_file() {
                self.pin(&module);
                self.settings(&module);
                let work_trees = values(&module.join("config"), "core", "worktree").into_iter();
                self.module_work_trees.extend(work_trees.map(|path| module.join(path)));
                self.modules(&module.join("modules"), left);
            } else {
                self.modules(&module, left);
            }
        }
    }

    /// A linked worktree: its own data, and what all of them share.
    fn worktree(&mut self, own: &Path, common: &Path) {
        self.write.push(own.to_owned());
        self.pin(own);
        for name in ["commondir", "gitdir"] {
            self.itself_if_there(&own.join(name));
        }
        self.cover(own.join("config.worktree"), Cover::EmptyFile);
        self.write.extend(
            ["objects", "refs", "logs"]
                .map(|name| common.join(name))
                .into_iter()
                .filter(|path| path.is_dir()),
        );
    }

    fn settings(&mut self, data: &Path) {
        // It would name another folder for hooks and settings.
        let common = data.join("commondir");
        let is_own = fs::read_to_string(&common).is_ok_and(|text| text != THIS_FOLDER);
        let cover = if is_own { Cover::Itself } else { Cover::ThisFolder };
        self.protected.push(Protected { path: common, cover });
        self.cover(data.join("hooks"), Cover::EmptyFolder);
        self.cover(data.join("config"), Cover::EmptyFile);
        self.cover(data.join("config.worktree"), Cover::EmptyFile);
        let info = data.join("info");
        if info.is_dir() {
            self.pin(&info);
        } else {
            self.protected.push(Protected { path: info.clone(), cover: Cover::EmptyFolder });
            return;
        }
        self.cover(info.join("attributes"), Cover::EmptyFile);
    }

    /// Can't be renamed.
    fn pin(&mut self, path: &Path) {
        self.protected.push(Protected { path: path.to_owned(), cover: Cover::Pinned });
    }

    fn itself_if_there(&mut self, path: &Path) {
        if path.exists() {
            self.protected.push(Protected { path: path.to_owned(), cover: Cover::Itself });
        }
    }

    fn cover(&mut self, path: PathBuf, absent: Cover) {
        let cover = if crate::rules::is_absent(&path) { absent } else { Cover::Itself };
        self.protected.push(Protected { path, cover });
    }
}
