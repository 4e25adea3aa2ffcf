//! The shell's script: the command, and a way to learn its last working directory.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use provost_harness::{AgentSandbox, PrivateFolder, ScratchFolder, ToolOutput};

use crate::failure::chain;
use crate::text::size;

/// Maximum bytes of a script: Linux's limit for one argument (`MAX_ARG_STRLEN`, 128 KiB), less its end.
const SCRIPT_BYTES_MAX: usize = 128 * 1024 - 1;

/// A command as a script that writes its last working directory to a file of the tool.
pub(crate) struct Script {
    text: String,
    private: PrivateFolder,
}

impl Script {
    /// Wraps `command`; an output for the model if that isn't possible.
    pub(crate) fn new(command: &str, sandbox: &dyn AgentSandbox) -> Result<Self, ToolOutput> {
        check(command)?;
        let scratch = sandbox.scratch();
        let private = match &scratch {
            Some(scratch) => PrivateFolder::within(&scratch.outside, "shell"),
            None => PrivateFolder::new("shell"),
        };
        let private = private.map_err(|error| {
            ToolOutput::error(format!("can't make a temporary folder for the shell: {}", chain(&error)))
        })?;
        let file = file_in(&private);
        let seen = match &scratch {
            Some(ScratchFolder { outside, inside }) => {
                file.strip_prefix(outside).map_or_else(|_| file.clone(), |rest| inside.join(rest))
            }
            None => file,
        };
        let text = wrapped(command, &seen);
        if text.len() > SCRIPT_BYTES_MAX {
            return Err(too_long(command));
        }
        Ok(Self { text, private })
    }

    /// The argument of the shell's `-c`.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The shell's last working directory; `None` if it couldn't report it: killed, replaced by `exec`, in a
    /// deleted folder, or ended by `exit` where the command has its own EXIT trap.
    pub(crate) fn final_cwd(&self) -> Option<PathBuf> {
        let written = written(&file_in(&self.private))?;
        let path = PathBuf::from(written.strip_suffix('\n')?);
        path.is_dir().then_some(path)
    }
}

/// An output for the model if no shell can run `command`.
pub(crate) fn check(command: &str) -> Result<(), ToolOutput> {
    if command.trim().is_empty() {
        return Err(ToolOutput::rejected("`command` is empty: there is nothing to run"));
    }
    if command.contains('\0') {
        return Err(ToolOutput::rejected("`command` holds a NUL character, which no shell can take"));
    }
    if command.len() > SCRIPT_BYTES_MAX {
        return Err(too_long(command));
    }
    Ok(())
}

fn too_long(command: &str) -> ToolOutput {
    ToolOutput::rejected(format!(
        "`command` is too long ({}; at most about {}): write it to a file with write_file and run that",
        size(command.len() as u64),
        size(SCRIPT_BYTES_MAX as u64)
    ))
}

/// Bytes of a path, with a line end.
const PATH_BYTES_MAX: u64 = 8 * 1024;

/// What the script has written. The command could have put something else there.
fn written(file: &Path) -> Option<String> {
    use std::io::Read as _;
    let mut options = std::fs::OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK | libc::O_NOFOLLOW);
    let file = options.open(file).ok().filter(|file| file.metadata().is_ok_and(|facts| facts.is_file()))?;
    let mut text = String::new();
    file.take(PATH_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

fn file_in(private: &PrivateFolder) -> PathBuf {
    private.path().join("cwd")
}

/// The command in a script of three parts, each quiet under `set -x`, and correct under `set -e`, `set -u` and
/// `set -C`:
///
/// - a trap, for commands that end by `exit`;
/// - the command, under `eval`, so that a syntax error in it doesn't end the script;
/// - the same again as the trap's, for commands that set a trap of their own; its status is the command's.
///
/// The command begins on the first line, so that the line numbers in a shell's errors are right.
fn wrapped(command: &str, file: &Path) -> String {
    let (command, file) = (quoted(command), quoted(&file.to_string_lossy()));
    format!(
        "__provost_end() {{ __provost_status=$?; command pwd -P >| {file}; return $__provost_status; }}; \
         trap '{{ __provost_end; }} 2>/dev/null' EXIT; \
         eval {command}\n\
         {{ __provost_end; }} 2>/dev/null\n"
    )
}

/// `text` as one word of a POSIX shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// `bash` if it is in the `PATH` of `env`, else `sh`.
pub(crate) fn shell_in(env: &[(OsString, OsString)]) -> OsString {
    let path =
        env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone()).unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join("bash"))
        .find(|file| file.is_file())
        .map_or_else(|| OsString::from("sh"), PathBuf::into_os_string)
}
