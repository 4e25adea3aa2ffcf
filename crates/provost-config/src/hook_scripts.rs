//! The files that hooks run: what decides over an agent isn't the agent's to write.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use provost_event::HookProgram;

use crate::Settings;

/// Programs that run the script that their first argument names.
const RUN_SCRIPTS: &[&str] = &[
    "sh", "bash", "dash", "ksh", "zsh", "fish", "env", "exec", "nice", "timeout", "python", "python3",
    "node", "deno", "bun", "ruby", "perl", "php", "run", "uv",
];
/// How a command names the folder of the project.
const PROJECT: &[&str] = &["${CLAUDE_PROJECT_DIR}", "$CLAUDE_PROJECT_DIR"];

/// The files in `workspace` that the commands of hooks and stop hooks run, without symlinks. Of hooks, which guard
/// calls, all files that they name; of stop hooks, which name what they check too, only what is run.
pub(crate) fn hook_scripts(settings: &Settings, workspace: &Path) -> Vec<PathBuf> {
    let mut found = BTreeSet::new();
    let mut add = |word: &str| {
        let word = PROJECT.iter().fold(word.to_owned(), |word, name| word.replace(name, "."));
        let file = workspace.join(word).canonicalize().ok().filter(|file| file.is_file());
        found.extend(file.filter(|file| file.starts_with(workspace)));
    };
    for placed in settings.all_hooks() {
        match &placed.policy.program {
            Some(HookProgram::Shell { command }) => words(command).for_each(&mut add),
            Some(HookProgram::Exec { program, args }) => {
                std::iter::once(program).chain(args).for_each(|word| add(word));
            }
            Some(HookProgram::Http { .. } | HookProgram::Model(_)) | None => {}
        }
    }
    for hook in &settings.stop_hooks {
        hook.command.split(['&', '|', ';', '\n', '(', ')']).filter_map(run_by).for_each(&mut add);
    }
    found.into_iter().collect()
}

/// The words of a command, without quotes.
fn words(command: &str) -> impl Iterator<Item = &str> {
    let ends = |c: char| c.is_whitespace() || "&|;()<>\"'`".contains(c);
    command.split(ends).filter(|word| !word.is_empty())
}

/// What a simple command runs: its program, or the script for an interpreter.
fn run_by(command: &str) -> Option<&str> {
    words(command).find(|word| {
        let name = Path::new(word).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_part = word.starts_with('-') || word.chars().all(|c| c.is_ascii_digit());
        !is_part && !word.contains('=') && !RUN_SCRIPTS.contains(&name)
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::hook_scripts;
    use crate::Settings;

    #[test]
    fn what_hooks_run_is_found_and_what_stop_hooks_check_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().canonicalize().unwrap();
        for name in ["guard.sh", "rules.txt", "check.py", "tests.py", "verify", "outside"] {
            fs::write(workspace.join(name), "").unwrap();
        }
        let text = "[[hooks]]\nevent = \"pre_tool_call\"\ncommand = \"sh '$CLAUDE_PROJECT_DIR/guard.sh' rules.txt\"\n\
                    [[stop_hooks]]\nname = \"a\"\ncommand = \"A=1 python3 -u ./check.py tests.py\"\n\
                    [[stop_hooks]]\nname = \"b\"\ncommand = \"cd . && ./verify outside; pytest tests.py\"\n";
        fs::write(workspace.join("provost.toml"), text).unwrap();
        let settings = loaded(&workspace);
        let names = hook_scripts(&settings, &workspace)
            .into_iter()
            .map(|path| path.strip_prefix(&workspace).unwrap().display().to_string());
        assert_eq!(names.collect::<Vec<_>>(), ["check.py", "guard.sh", "rules.txt", "verify"]);
    }

    fn loaded(folder: &std::path::Path) -> Settings {
        let folders = crate::Folders { user_file: folder.join("none.toml"), state: folder.join("state") };
        let variables = std::collections::BTreeMap::new();
        let tools = crate::AvailableTools::default();
        let request = crate::Request::new(crate::Scope::Project, folder, &variables, tools);
        crate::load_in(&request, &folders).settled().unwrap().settings
    }
}
