//! Keeping a path as it is, wherever it is in a folder that may be written: it can't be written, and the folders above
//! it can't be renamed.

use std::path::{Path, PathBuf};

use crate::repository::Kept;
use crate::{Cover, FileRules, Protected};

impl FileRules {
    /// Keeps what lies in a folder that may be written; elsewhere it can't be written anyway.
    pub(crate) fn keep(&mut self, kept: &Kept) {
        let path = kept.path.as_path();
        let root = self.write.iter().filter(|root| path.starts_with(root) && path != root.as_path());
        let Some(root) = root.max_by_key(|root| root.components().count()).cloned() else { return };
        let is_covered = self.nearest_protected(path).is_some_and(|near| near.cover != Cover::Pinned);
        if is_covered && kept.absent != Cover::Pinned {
            return;
        }
        let above = path.ancestors().skip(1).take_while(|folder| *folder != root);
        for folder in above.map(Path::to_owned).collect::<Vec<_>>().into_iter().rev() {
            if crate::rules::is_absent(&folder) && !folder.is_dir() {
                // What isn't there can't be made then, and what would be in it neither.
                self.add(folder, Cover::EmptyFolder);
                return;
            }
            self.pin(folder);
        }
        match kept.absent {
            Cover::Pinned => self.pin(path.to_owned()),
            absent => self.add(path.to_owned(), absent),
        }
    }

    fn pin(&mut self, path: PathBuf) {
        let is_link = path.symlink_metadata().is_ok_and(|facts| facts.is_symlink());
        if !is_link && !self.protected.iter().any(|known| known.path == path) {
            self.protected.push(Protected { path, cover: Cover::Pinned });
        }
    }

    /// What decides over a path: the innermost of what is protected around it.
    pub(crate) fn nearest_protected(&self, path: &Path) -> Option<&Protected> {
        let around = self.protected.iter().filter(|one| path.starts_with(&one.path));
        around.max_by_key(|one| one.path.components().count())
    }

    /// Has no repository without a work tree be made at the top of the workspace: git would take the workspace for one
    /// where `.git` is none, and read its settings. One needs a folder `refs`, or `objects`, and no other folder for them.
    pub(crate) fn no_bare_repository(&mut self, workspace: &Path) {
        self.add(workspace.join("commondir"), Cover::Nothing);
        let absent = ["refs", "objects"].map(|name| workspace.join(name)).into_iter().find(|path| !path.is_dir());
        match absent {
            Some(path) => self.add(path, Cover::Nothing),
            None => self.gaps.push(format!(
                "{} has folders named refs and objects: with a HEAD and a config beside them git may take it for a \
                 repository (git config --global safe.bareRepository explicit)",
                workspace.display()
            )),
        }
    }
}
