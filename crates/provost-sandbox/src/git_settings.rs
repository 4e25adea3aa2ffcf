//! What a repository's settings name in its work tree that git runs or reads as settings: folders of hooks and included
//! files. Read as text: git itself isn't started.

use std::path::{Component, Path, PathBuf};

use crate::Cover;

/// The files with settings that count in the repository with this data, the user's last.
pub(crate) fn files(data: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let own = ["config", "config.worktree"].map(|name| data.join(name));
    let users = home.into_iter().flat_map(|home| [home.join(".gitconfig"), home.join(".config/git/config")]);
    own.into_iter().chain(users).collect()
}

/// A folder of wrappers that run the file of their own name in the folder above.
const WRAPPERS: &str = "_";

/// What a file with settings names in the work tree `top`: paths below it, and what covers one that isn't there.
pub(crate) fn named(file: &Path, top: &Path) -> Vec<(PathBuf, Cover)> {
    let Ok(text) = std::fs::read_to_string(file) else { return Vec::new() };
    let beside = file.parent().unwrap_or(top);
    let mut section = String::new();
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        let mut rest = line;
        if let Some((name, behind)) = line.strip_prefix('[').and_then(|line| line.split_once(']')) {
            section = name.split_whitespace().next().unwrap_or_default().to_lowercase();
            rest = behind.trim();
        }
        let Some((key, value)) = rest.split_once('=') else { continue };
        let value = value.split([';', '#']).next().unwrap_or_default().trim().trim_matches('"');
        if value.starts_with('~') {
            continue;
        }
        let (path, absent) = match (section.as_str(), key.trim().to_lowercase().as_str()) {
            ("core", "hookspath") => (top.join(value), Cover::EmptyFolder),
            ("include" | "includeif", "path") => (beside.join(value), Cover::EmptyFile),
            _ => continue,
        };
        let path = without_dots(&path);
        let outer = path.parent().filter(|_| path.ends_with(WRAPPERS)).map(Path::to_owned);
        found.push((outer.unwrap_or(path), absent));
    }
    found.retain(|(path, _)| path.starts_with(top) && path != top);
    found
}

/// The path without `.` and `..`, by its text.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_and_included_files_in_the_work_tree_are_found_however_they_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let (top, file) = (folder.path(), folder.path().join(".git/config"));
        std::fs::create_dir(top.join(".git")).unwrap();
        for (text, expected) in [
            ("[core]\n\thooksPath = .husky/_\n", vec![".husky"]),
            ("[Core] HooksPath = \"scripts/hooks\" ; ours\n", vec!["scripts/hooks"]),
            ("[include]\n path = ../.gitconfig\n", vec![".gitconfig"]),
            ("[includeIf \"gitdir:/x/\"]\npath=../a/./b\n", vec!["a/b"]),
            ("[core]\nhooksPath = /dev/null\n[alias]\npath = x\n[include]\npath = ~/mine\n", vec![]),
            ("[core]\nhooksPath = .\n", vec![]),
        ] {
            std::fs::write(&file, text).unwrap();
            let expected = expected.into_iter().map(|name| top.join(name)).collect::<Vec<_>>();
            let found = named(&file, top).into_iter().map(|(path, _)| path).collect::<Vec<_>>();
            assert_eq!(found, expected, "{text}");
        }
    }
}
