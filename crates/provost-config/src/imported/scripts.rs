//! Scripts that hooks name and that aren't there.

use std::path::{Path, PathBuf};

use provost_event::{HookPolicy, HookProgram};

/// The script that `hook` names and that isn't there. `folder` is where it would run first.
pub(super) fn missing_script(hook: &HookPolicy, folder: &Path) -> Option<PathBuf> {
    let words: Vec<&str> = match hook.program.as_ref()? {
        HookProgram::Shell { command } => command.split_whitespace().collect(),
        HookProgram::Exec { program, args } => {
            std::iter::once(program).chain(args).map(String::as_str).collect()
        }
        HookProgram::Http { .. } | HookProgram::Model(_) => return None,
    };
    // What follows a connective may make it, or be skipped.
    let first = words.iter().take_while(|word| !matches!(**word, "&&" | "||" | ";" | "|"));
    let words = first.copied().collect::<Vec<_>>();
    let before = std::iter::once("").chain(words.iter().copied());
    let run = words.iter().zip(before).filter(|(_, before)| !is_redirection(before)).map(|(word, _)| word);
    let mut named = run.filter_map(|word| path_of(word, hook, folder));
    named.find(|path| !path.exists())
}

/// Whether a word sends output to a file, or reads from one, that the next word names.
fn is_redirection(word: &str) -> bool {
    word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '&')
        .trim_end_matches('|')
        .chars()
        .all(|c| matches!(c, '<' | '>'))
        && word.contains(['<', '>'])
}

/// The path that a word of a command names, if it names a script by its path.
fn path_of(word: &str, hook: &HookPolicy, folder: &Path) -> Option<PathBuf> {
    let word = word.trim_matches(|c| matches!(c, '"' | '\'' | ';' | '(' | ')')).replace('"', "");
    let project = hook.setup.project.as_deref().unwrap_or(folder).display().to_string();
    let own = [("CLAUDE_PROJECT_DIR", project.as_str())];
    let set = hook.setup.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let mut word = word;
    for (name, value) in own.into_iter().chain(set) {
        word = word.replace(&format!("${{{name}}}"), value).replace(&format!("${name}"), value);
    }
    let is_path = word.starts_with("./")
        || word.starts_with("../")
        || word.starts_with(".claude/")
        || word.starts_with(".codex/")
        || (word.starts_with('/') && has_script_ending(&word));
    let is_literal = !word.contains(['$', '*', '`', '<', '>', '=', '{']);
    (is_path && is_literal).then(|| folder.join(&word))
}

fn has_script_ending(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or_default();
    name.rsplit_once('.').is_some_and(|(stem, ending)| !stem.is_empty() && (1..=4).contains(&ending.len()))
}

#[cfg(test)]
mod tests {
    use super::has_script_ending;

    #[test]
    fn only_names_with_an_ending_are_taken_for_scripts() {
        assert!(has_script_ending("/a/b.sh") && has_script_ending("/a/b.py"));
        assert!(!has_script_ending("/usr/bin/true") && !has_script_ending("/a/.env"));
    }
}
