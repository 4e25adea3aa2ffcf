//! Names of imported hooks: unique, and derived from what is run and for what.

use provost_event::{HookModelWork, HookPolicy, HookProgram};

use crate::http;

/// Maximum characters of the part derived from what is run, and of that derived from the matcher.
const CHARS_MAX: usize = 40;
/// File extensions of scripts for an interpreter.
const SCRIPTS: &[&str] =
    &[".sh", ".bash", ".zsh", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".lua"];

/// The name of a hook of `event`, such as `block-rm.sh (PreToolUse Bash)`: none of those of `others`.
pub(super) fn name_of(
    event: &str,
    matcher: Option<&str>,
    program: &HookProgram,
    others: &[HookPolicy],
) -> String {
    let what = match program {
        HookProgram::Shell { command } => script_in(command.split_whitespace()),
        HookProgram::Exec { program, args } => {
            script_in(std::iter::once(program).chain(args).map(String::as_str))
        }
        HookProgram::Http { url, .. } => {
            http::parse(url).map_or_else(|_| String::new(), |url| http::place(&url))
        }
        HookProgram::Model(model) => {
            let kind = match model.work {
                HookModelWork::Answers => "prompt",
                HookModelWork::Reads => "agent",
            };
            format!("{kind} \"{}\"", shown(first_line(&model.prompt)))
        }
    };
    let matcher = matcher.map(|matcher| format!(" {}", shown(matcher))).unwrap_or_default();
    let name = format!("{what} ({event}{matcher})");
    let is_taken = |name: &str| others.iter().any(|other| other.name == name);
    let numbered = (2..).map(|number| format!("{what} {number} ({event}{matcher})"));
    std::iter::once(name).chain(numbered).find(|name| !is_taken(name)).unwrap_or_default()
}

/// The script that a command runs, else its first word.
fn script_in<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<&str> = words.map(bare).collect();
    let is_script = |word: &&&str| SCRIPTS.iter().any(|ending| word.ends_with(ending));
    let word = words.iter().find(is_script).or_else(|| words.iter().find(|word| !is_assignment(word)));
    let word = word.copied().unwrap_or_default();
    let base = word.rsplit('/').next().filter(|base| !base.is_empty()).unwrap_or(word);
    shown(base)
}

fn first_line(text: &str) -> &str {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

fn shown(text: &str) -> String {
    text.chars().filter(|char| !char.is_control()).take(CHARS_MAX).collect()
}

fn bare(word: &str) -> &str {
    word.trim_matches(['"', '\'', ';', '&', '(', ')'])
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=')
        .is_some_and(|(name, _)| name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_'))
}

#[cfg(test)]
mod tests {
    use super::script_in;

    #[test]
    fn a_command_is_told_by_its_script_or_first_word() {
        for (command, name) in [
            ("\"$CLAUDE_PROJECT_DIR\"/.claude/hooks/block-rm.sh --x", "block-rm.sh"),
            ("python3 ${CLAUDE_PROJECT_DIR}/.claude/hooks/check.py", "check.py"),
            ("FOO=1 jq -r '.tool_input.command'", "jq"),
            ("echo hi", "echo"),
            ("/usr/bin/true", "true"),
            ("", ""),
        ] {
            assert_eq!(script_in(command.split_whitespace()), name, "{command}");
        }
    }
}
