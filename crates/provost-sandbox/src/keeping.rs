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
        if !self.pin_above(path, &root) {
            return;
        }
        match kept.absent {
            Cover::Pinned => self.pin(path.to_owned()),
            absent => self.add(path.to_owned(), absent),
        }
    }

    /// Keeps the folders above a path from being renamed, as far as they may be written.
    pub(crate) fn keep_above(&mut self, path: &Path) {
        let root = self.write.iter().filter(|root| path.starts_with(root) && path != root.as_path());
        if let Some(root) = root.max_by_key(|root| root.components().count()).cloned() {
            self.pin_above(path, &root);
        }
    }

    /// Pins the folders between `root` and a path. Where one isn't there, it is covered, and with it all that would be in
    /// it: then this is false.
    fn pin_above(&mut self, path: &Path, root: &Path) -> bool {
        let above = path.ancestors().skip(1).take_while(|folder| *folder != root).map(Path::to_owned);
        for folder in above.collect::<Vec<_>>().into_iter().rev() {
            if !folder.is_dir() {
                self.add(folder, Cover::EmptyFolder);
                return false;
            }
            self.pin(folder);
        }
        true
    }

    /// Has what the settings deny be unreadable also if it is made while a program runs.
    pub(crate) fn deny_what_is_absent(&mut self) {
        let absent = self.denied.iter().filter(|path| !path.exists()).cloned().collect::<Vec<_>>();
        for path in absent {
            let is_shown = self.shown.iter().any(|shown| path.parent() == Some(shown.folder.as_path()));
            let is_elsewhere = !self.read_only_from.is_empty();
            if self.write.iter().any(|root| path.starts_with(root)) {
                self.keep(&Kept { path: path.clone(), absent: Cover::EmptyFile });
                // Unless a folder above it is what is covered.
                if self.protected.iter().any(|known| known.path == path) {
                    self.masked.push(path);
                }
            } else if !is_shown && !is_elsewhere {
                self.gaps.push(format!(
                    "{} isn't there: if it is made while a program runs, that one reads it",
                    path.display()
                ));
            }
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
        let absent =
            ["refs", "objects"].map(|name| workspace.join(name)).into_iter().find(|path| !path.is_dir());
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
