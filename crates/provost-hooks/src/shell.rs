//! The shell that runs a hook's command: that of its contract.

use std::env::split_paths;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use provost_event::HookContract;
use provost_process::helper_env;

/// What only bash understands. Elsewhere such a command fails, or does something else.
const OF_BASH: [&str; 9] = ["[[", "PIPESTATUS", "<<<", "=~", "<(", ">(", "BASH_", "shopt", "pipefail"];

/// The shell for commands with this contract. That of Claude Code is bash, where there is one.
pub(crate) fn shell_for(contract: HookContract) -> OsString {
    match contract {
        HookContract::Claude => bash().map_or_else(|| "sh".into(), PathBuf::into_os_string),
        HookContract::Codex | HookContract::Provost => "sh".into(),
    }
}

/// Whether a command looks as if it was written for bash, and there is none to run it.
#[must_use]
pub fn lacks_bash(contract: HookContract, command: &str) -> bool {
    contract == HookContract::Claude && is_for_bash(command) && bash().is_none()
}

fn is_for_bash(command: &str) -> bool {
    OF_BASH.iter().any(|sign| command.contains(sign))
}

fn bash() -> Option<PathBuf> {
    let env = helper_env(&[]);
    let (_, path) = env.iter().find(|(name, _)| name == "PATH")?;
    split_paths(path).map(|folder| folder.join("bash")).find(|file| is_program(file))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::is_for_bash;

    #[test]
    fn commands_for_bash_are_told_by_what_only_bash_understands() {
        for command in
            ["[[ $a == b ]] && exit 2", "a | b; exit ${PIPESTATUS[0]}", "read x <<< y", "diff <(a) b"]
        {
            assert!(is_for_bash(command), "{command}");
        }
        for command in ["[ \"$a\" = b ] && exit 2", "cat <<EOF\nx\nEOF", "./guard.sh 2>&1"] {
            assert!(!is_for_bash(command), "{command}");
        }
    }
}
