//! Names of imported hooks: unique, and derived from what is run and for what.

use provost_event::{HookModelWork, HookPolicy, HookProgram};

use crate::http;

/// Maximum characters of the part derived from what is run, and of that derived from the matcher.
const CHARS_MAX: usize = 40;
/// File extensions of scripts for an interpreter.
const SCRIPTS: &[&str] =
    &[".sh", ".bash", ".zsh", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".lua"];

/// Words before the first that says what a command does.
const LEADING: &[&str] =
    &["[[", "[", "!", "{", "if", "then", "test", "exec", "env", "sudo", "nohup", "command", "nice", "cd"];

/// The name of a hook of `event`, such as `block-rm.sh (PreToolUse Bash)`: none of those of `others`. `label` is what
/// its file calls it, which counts where its command names no script.
pub(super) fn name_of(
    (event, matcher): (&str, Option<&str>),
    label: Option<&str>,
    program: &HookProgram,
    others: &[HookPolicy],
) -> String {
    let what = match program {
        HookProgram::Shell { command } => named(command.split_whitespace(), label),
        HookProgram::Exec { program, args } => {
            named(std::iter::once(program).chain(args).map(String::as_str), label)
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

/// The last script that a command names: those before it run it. Else its label, or its first word that says what it
/// does.
fn named<'a>(words: impl Iterator<Item = &'a str>, label: Option<&str>) -> String {
    let words: Vec<&str> = words.map(bare).filter(|word| !word.is_empty()).collect();
    let is_script = |word: &&&str| SCRIPTS.iter().any(|ending| word.ends_with(ending));
    if let (None, Some(label)) = (words.iter().rfind(is_script), label) {
        return shown(first_line(label));
    }
    let says = |word: &&&str| !is_assignment(word) && !word.starts_with('-') && !LEADING.contains(word);
    let found = words.iter().rfind(is_script).or_else(|| words.iter().find(says)).or_else(|| words.first());
    let word = found.copied().unwrap_or_default();
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
    word.trim_matches(['$', '"', '\'', ';', '&', '(', ')'])
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=')
        .is_some_and(|(name, _)| name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_'))
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn a_command_is_told_by_its_script_or_first_word() {
        for (command, name) in [
            ("\"$CLAUDE_PROJECT_DIR\"/.claude/hooks/block-rm.sh --x", "block-rm.sh"),
            ("python3 ${CLAUDE_PROJECT_DIR}/.claude/hooks/check.py", "check.py"),
            ("FOO=1 jq -r '.tool_input.command'", "jq"),
            ("echo hi", "echo"),
            ("/usr/bin/true", "true"),
            ("node \"$R/run.cjs\" \"$R/scripts/detect.mjs\" --quiet", "detect.mjs"),
            ("exec \"${SHELL:-/bin/sh}\" -lc './.codex/guard.sh'", "guard.sh"),
            ("[[ $(git branch) == main ]] && exit 2", "git"),
            ("", ""),
        ] {
            assert_eq!(named(command.split_whitespace(), None), name, "{command}");
        }
        assert_eq!(named("node -e 'run()'".split_whitespace(), Some("pre:bash")), "pre:bash");
        assert_eq!(named("./guard.sh".split_whitespace(), Some("pre:bash")), "guard.sh");
    }
}
