//! What git's settings name in a work tree: settings that are included, and files and folders that git runs. A program that
//! writes to them has git run something, as in the settings themselves.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::Cover;
use crate::repository::Kept;

/// Maximum files of settings that are read, included ones too.
const FILES_MAX: usize = 50;
/// Sections whose values are names of people, branches and the like.
const NAME_NO_FILES: &[&str] = &["user", "author", "committer", "branch", "color", "i18n", "init", "gui"];
/// Maximum bytes of each.
const BYTES_MAX: u64 = 1024 * 1024;

/// The files that settings name, of a work tree with the folder `top`.
pub(crate) struct NamedFiles<'a> {
    top: &'a Path,
    home: Option<&'a Path>,
    read: BTreeSet<PathBuf>,
    found: Vec<Kept>,
}

impl<'a> NamedFiles<'a> {
    /// What these files of settings and the user's name.
    pub(crate) fn of(settings: &[PathBuf], top: &'a Path, home: Option<&'a Path>) -> Vec<Kept> {
        let mut named = Self { top, home, read: BTreeSet::new(), found: Vec::new() };
        let of_user = [".gitconfig", ".config/git/config"].map(|name| home.map(|home| home.join(name)));
        let all = settings.iter().cloned().chain(of_user.into_iter().flatten());
        all.for_each(|file| named.read(&file));
        named.found
    }

    fn read(&mut self, file: &Path) {
        let is_small = fs::metadata(file).is_ok_and(|facts| facts.is_file() && facts.len() <= BYTES_MAX);
        if !is_small || self.read.len() >= FILES_MAX || !self.read.insert(file.to_owned()) {
            return;
        }
        let text = fs::read(file).unwrap_or_default();
        for Entry { section, key, value } in entries(&String::from_utf8_lossy(&text)) {
            match (section.as_str(), key.as_str()) {
                ("include" | "includeif", "path") => {
                    let path = self.whole(&value, file.parent().unwrap_or(self.top));
                    self.keep(path.clone(), Cover::EmptyFile);
                    self.read(&path);
                }
                ("core", "hookspath") => self.hooks(&value),
                (section, _) if NAME_NO_FILES.contains(&section) => {}
                _ => self.words(&value),
            }
        }
    }

    /// A folder of hooks. One that is named as if it weren't to be touched holds hooks that run those beside it.
    fn hooks(&mut self, value: &str) {
        let folder = self.whole(value, self.top);
        let is_inner = folder.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"_"));
        let outer = folder.parent().filter(|outer| is_inner && *outer != self.top).map(Path::to_owned);
        self.keep(outer.unwrap_or(folder), Cover::EmptyFolder);
    }

    /// Files among the words of a value, which may be a command. One word alone is a program in `PATH`, or none.
    fn words(&mut self, value: &str) {
        let ends = |c: char| c.is_whitespace() || "!&|;()<>\"'`".contains(c);
        let is_command = value.trim().contains(char::is_whitespace);
        let words = value.split(ends).chain([value]).filter(|word| !word.is_empty());
        let words = words.filter(|word| is_command || word.contains('/'));
        for path in words.map(|word| self.whole(word, self.top)).collect::<BTreeSet<_>>() {
            if path.is_file() {
                self.keep(path, Cover::Itself);
            }
        }
    }

    fn keep(&mut self, path: PathBuf, absent: Cover) {
        self.found.push(Kept { path: crate::denial::real(&path), absent });
    }

    fn whole(&self, value: &str, base: &Path) -> PathBuf {
        match (value.strip_prefix("~/"), self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => base.join(value),
        }
    }
}

/// A line of a file of settings: the name of its section without what is in quotes, in lower case as the key is.
struct Entry {
    section: String,
    key: String,
    value: String,
}

/// All entries, read generously: what git would refuse may be among them.
fn entries(text: &str) -> Vec<Entry> {
    let mut section = String::new();
    let mut all = Vec::new();
    for line in text.lines() {
        let mut line = line.trim();
        if let Some((name, rest)) = line.strip_prefix('[').and_then(|line| line.split_once(']')) {
            section = name.split_whitespace().next().unwrap_or_default().to_lowercase();
            line = rest.trim();
        }
        if let Some((key, value)) = line.split_once('=').filter(|_| !line.starts_with(['#', ';'])) {
            let value = without_comment(value).replace('"', "").trim().to_owned();
            all.push(Entry { section: section.clone(), key: key.trim().to_lowercase(), value });
        }
    }
    all
}

/// The value up to a comment outside of quotes.
fn without_comment(value: &str) -> &str {
    let mut is_quoted = false;
    let ends = |c: char| {
        is_quoted ^= c == '"';
        !is_quoted && (c == '#' || c == ';')
    };
    value.find(ends).and_then(|at| value.get(..at)).unwrap_or(value)
}

/// The values of a key in a file of settings.
pub(crate) fn values(file: &Path, section: &str, key: &str) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let its = |entry: &Entry| entry.section == section && entry.key == key;
    entries(&text).into_iter().filter(its).map(|entry| entry.value).collect()
}
