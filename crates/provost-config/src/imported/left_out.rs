//! What of other programs' files is left out, besides what their hooks are read from.

use std::fs;
use std::path::{Path, PathBuf};

use provost_hooks::Skipped;

use crate::layers::read;

/// Settings of Codex that aren't taken, and what to do instead.
const OF_CODEX: [(&str, &str); 3] = [
    ("approval_policy", "it isn't taken over: permissions.default says which calls a person is asked about"),
    ("sandbox_mode", "it isn't taken over: Provost's own [sandbox] says what programs may reach"),
    ("notify", "it isn't run: [notify], or a hook with event = \"notification\", does what it would"),
];

/// What of a configuration of Codex isn't taken.
pub(super) fn of_codex(name: &str, text: &str) -> Vec<Skipped> {
    let table = text.parse::<toml::Table>().unwrap_or_default();
    let there = OF_CODEX.iter().filter(|(key, _)| table.contains_key(*key));
    let skipped = there.map(|(key, why)| Skipped {
        place: name.to_owned(),
        what: format!("`{key}`"),
        why: (*why).to_owned(),
        is_guard: false,
    });
    skipped.collect()
}

/// The files of skills and agents below `folder` that declare hooks, which aren't taken.
pub(super) fn in_front_matter(folder: &Path) -> Vec<String> {
    let skills = entries(&folder.join(".claude/skills")).into_iter().map(|skill| skill.join("SKILL.md"));
    let agents = entries(&folder.join(".claude/agents"));
    let agents = agents.into_iter().filter(|file| file.extension().is_some_and(|ending| ending == "md"));
    let files = skills.chain(agents).filter(|file| declares_hooks(file));
    let told = files.map(|file| {
        let name = file.strip_prefix(folder).unwrap_or(&file).display().to_string();
        format!("{name}: `hooks`: hooks of a skill or agent aren't taken: move them to .claude/settings.json")
    });
    told.collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths = entries.map(|entry| entry.path()).collect::<Vec<_>>();
    paths.sort();
    paths
}

fn declares_hooks(file: &Path) -> bool {
    let Ok(text) = read(file) else { return false };
    let mut lines = text.trim_start_matches('\u{feff}').lines();
    let begins = lines.next().is_some_and(|line| line.trim_end() == "---");
    begins && lines.take_while(|line| line.trim_end() != "---").any(|line| line.starts_with("hooks:"))
}
