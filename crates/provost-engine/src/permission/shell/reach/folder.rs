//! In which folders commands run: git runs what a repository's settings name, so that another repository than the
//! workspace's is another program.

use std::path::{Path, PathBuf};

use super::super::Reader;
use super::super::files::resolved;
use super::{At, Reach, Within, Word};
use crate::permission::glob::HOLE;
use crate::permission::path::NormalizedPath;

pub(super) const REPOSITORY: &str =
    "git runs what the settings of a repository outside of the workspace name";
const LEAVES: &str = "later lines run outside of the workspace";

/// Folders that are the same repository's, whatever they are.
const SAME: [&str; 4] =
    ["\"$PWD\"", "\"${PWD}\"", "\"$(git rev-parse --show-toplevel)\"", "$(git rev-parse --show-toplevel)"];

/// The folders of a script's commands.
#[derive(Debug, Default)]
pub(super) struct Folders {
    workspace: PathBuf,
    at_terminal: bool,
    /// Whether it may leave the workspace.
    leaves: bool,
    /// The commands of git that open a repository where they run.
    repositories: Vec<Vec<Within>>,
}

impl Folders {
    pub(super) fn of(workspace: &Path, reader: Reader) -> Self {
        Self { workspace: workspace.to_owned(), at_terminal: reader == Reader::Terminal, ..Self::default() }
    }

    /// Whether a folder may be outside of the workspace.
    pub(super) fn is_outside(&self, word: &Word) -> bool {
        if SAME.contains(&word.raw.as_str()) {
            return false;
        }
        let path = resolved(word);
        let unknown = path.contains(HOLE) || !word.plain && !word.value.contains(HOLE) || word.splits;
        unknown || word.raw.starts_with('~') || !NormalizedPath::is_inside(&path, &self.workspace)
    }
}

impl Reach {
    /// Records whether a command changes into a folder outside of the workspace.
    pub(super) fn changes_folder(&mut self, at: At<'_>) {
        match at.program {
            "cd" | "pushd" => self.cd(at),
            "env" | "sudo" | "unshare" => {
                for (place, word) in at.arguments.iter().enumerate() {
                    let value = word.value.as_str();
                    let long = value.starts_with("--chdir") || value.starts_with("--wd");
                    let short =
                        value.starts_with('-') && !value.starts_with("--") && value.contains(['C', 'D', 'w']);
                    if long || short {
                        let (_, attached) = value.split_once(['=', 'C', 'D', 'w']).unwrap_or_default();
                        let named = at.arguments.get(place + 1).filter(|_| attached.is_empty());
                        let attached = Word { value: attached.to_owned(), ..word.clone() };
                        self.folders.leaves |= self.folders.is_outside(named.unwrap_or(&attached));
                    }
                }
            }
            "find" | "gfind" | "bfs" => {
                let each =
                    at.arguments.iter().any(|word| matches!(word.value.as_str(), "-execdir" | "-okdir"));
                let starts = at.arguments.iter().take_while(|word| !word.value.starts_with(['-', '(', '!']));
                self.folders.leaves |= each && starts.into_iter().any(|word| self.folders.is_outside(word));
            }
            "fd" | "fdfind" => {
                let elsewhere = |word: &Word| word.value.starts_with("--b") || word.value.starts_with(HOLE);
                self.folders.leaves |= at.arguments.iter().any(elsewhere);
            }
            _ => {}
        }
    }

    fn cd(&mut self, at: At<'_>) {
        let is_option = |word: &&Word| matches!(word.value.as_str(), "-L" | "-P" | "-e" | "-@" | "-n" | "--");
        let place = at.arguments.iter().take_while(is_option).count();
        let outside = match at.arguments.get(place) {
            None => at.program == "cd",
            // The folder before, or one of the stack: it was judged when it was entered.
            Some(word) if word.plain && word.value == "-" => false,
            Some(word) if at.program == "pushd" && word.plain && word.value.starts_with(['+', '-']) => false,
            Some(word) => self.folders.is_outside(word),
        };
        self.folders.leaves |= outside;
        if outside && self.folders.at_terminal {
            self.unread(LEAVES, at, place);
        }
    }

    /// Records a command of git that opens the repository of the folder where it runs.
    pub(super) fn repository(&mut self, at: At<'_>) {
        self.folders.repositories.push(at.within(usize::MAX));
    }

    /// Marks what git does outside of the workspace, at the end of a script.
    pub(in super::super) fn note_repositories(&mut self) {
        let repositories = std::mem::take(&mut self.folders.repositories);
        if self.folders.leaves {
            repositories.into_iter().for_each(|within| self.push_unread(REPOSITORY, within));
        }
    }
}
