//! The folder in which a hook's command runs.
//!
//! A program that a command names by a relative path is the project's: an agent that changes its folder must not be
//! able to put another program in its place, or to leave the hook without one. Every other command runs where the
//! agent is.

use std::path::Path;

use provost_engine::scripts_named;
use provost_event::{HookProgram, HookSetup, Json, ToolIdentity, ToolSubject};
use serde_json::json;

/// The argument of the call as which a command is parsed.
const COMMAND: &str = "command";
/// Endings of scripts, which interpreters find in the current folder.
const ENDINGS: [&str; 10] = ["sh", "bash", "py", "js", "mjs", "cjs", "ts", "rb", "pl", "php"];
/// Beginnings of paths that lead to the agent's folder although they are absolute, when the quotes are removed.
const OF_THE_AGENT: [&str; 4] = [")/", "`/", "$PWD", "${PWD"];

/// The folder in which `program` runs for an agent in `folder`.
pub(crate) fn folder_of<'a>(
    program: &HookProgram,
    setup: &HookSetup,
    project: &'a Path,
    folder: &'a Path,
) -> &'a Path {
    let text = match program {
        HookProgram::Shell { command } => command.clone(),
        HookProgram::Exec { program, args } => {
            let words = std::iter::once(program).chain(args);
            words.map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect::<Vec<_>>().join(" ")
        }
        HookProgram::Http { .. } | HookProgram::Model(_) => return folder,
    };
    if names_relative_script(&with_known_folders(text, setup), project) { project } else { folder }
}

/// The command with its variables for folders replaced by a path of the same kind.
fn with_known_folders(text: String, setup: &HookSetup) -> String {
    let set = setup.env.iter().map(|(name, value)| (name.as_str(), Path::new(value).is_absolute()));
    let known = [("CLAUDE_PROJECT_DIR", true), ("HOME", true)].into_iter().chain(set);
    known.filter(|(_, is_absolute)| *is_absolute).fold(text, |text, (name, _)| {
        let text = text.replace(&format!("${{{name}}}"), "/known");
        let (plain, followed) = (format!("${name}"), |rest: &str| {
            rest.starts_with(|c: char| c == '_' || c.is_ascii_alphanumeric())
        });
        let mut out = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once(&plain) {
            out.push_str(before);
            out.push_str(if followed(after) { &plain } else { "/known" });
            rest = after;
        }
        out + rest
    })
}

fn names_relative_script(command: &str, project: &Path) -> bool {
    let unquoted = command.replace(['"', '\''], "");
    if OF_THE_AGENT.iter().any(|begin| unquoted.contains(begin)) {
        return true;
    }
    let tool =
        ToolIdentity { subject: ToolSubject::command(COMMAND), ..ToolIdentity::unknown("a hook's command") };
    let Ok(input) = Json::of(&json!({ COMMAND: command })) else { return true };
    let named = scripts_named(&tool, &input).map(|names| names.files).unwrap_or_default();
    named.iter().any(|name| is_relative_script(name, project))
}

fn is_relative_script(name: &str, project: &Path) -> bool {
    let path = Path::new(name);
    if path.is_absolute() || name.starts_with(['~', '-']) {
        return false;
    }
    let has_ending = path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known));
    name.contains('/') || has_ending || project.join(path).is_file()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use provost_event::{HookProgram, HookSetup};

    use super::folder_of;

    fn is_in_project(program: &HookProgram) -> bool {
        let setup = HookSetup {
            env: vec![("CLAUDE_PLUGIN_ROOT".to_owned(), "/plugins/a".to_owned())],
            ..HookSetup::default()
        };
        let project = Path::new("/nowhere/project");
        folder_of(program, &setup, project, Path::new("/nowhere/project/sub")) == project
    }

    #[test]
    fn a_command_with_a_relative_script_runs_in_the_projects_folder() {
        let runs = |command: &str| is_in_project(&HookProgram::Shell { command: command.to_owned() });
        for command in [
            "./guard.sh",
            ".claude/hooks/g.sh",
            "true && scripts/guard",
            "python3 guard.py --strict",
            "bash -c './guard.sh'",
            "exec bash -c 'tools/guard.py'",
            "exec \"${SHELL:-/bin/sh}\" -lc './.codex/g.sh'",
            "\"$(git rev-parse --show-toplevel)\"/.claude/hooks/g.sh",
            "$PWD/g.sh",
            ". ./lib.sh; check",
        ] {
            assert!(runs(command), "{command}");
        }
        for command in [
            "/usr/local/bin/guard",
            "\"$CLAUDE_PROJECT_DIR\"/.claude/hooks/g.sh",
            "$CLAUDE_PROJECT_DIR/.claude/hooks/g.sh",
            "${CLAUDE_PLUGIN_ROOT}/say.sh",
            "test ! -e FROZEN || { echo 'this one is frozen' >&2; exit 2; }",
            "git diff --quiet || exit 2",
            "jq -r .tool_input.file_path | grep -q src/ && exit 2",
            "cat > told.json; pwd >&2; exit 2",
            "guard --strict",
        ] {
            assert!(!runs(command), "{command}");
        }
    }

    #[test]
    fn so_does_a_program_without_a_shell() {
        let exec = |program: &str, args: &[&str]| HookProgram::Exec {
            program: program.to_owned(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        };
        assert!(is_in_project(&exec("./guard", &[])));
        assert!(is_in_project(&exec("python3", &["tools/guard.py"])));
        assert!(!is_in_project(&exec("/usr/bin/guard", &["it's"])));
        assert!(!is_in_project(&exec("${CLAUDE_PLUGIN_ROOT}/say.sh", &[])));
    }
}
