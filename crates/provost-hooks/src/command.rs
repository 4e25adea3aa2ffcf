//! Runs a hook command: its environment, its input and its result.

use std::convert::Infallible;
use std::ffi::OsString;
use std::future::pending;
use std::path::Path;
use std::time::Duration;

use provost_event::{HookContract, HookProgram, HookSetup, SessionId};
use provost_harness::HookCommand;
use provost_process::{Finished, helper_env};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::background::Background;
use crate::ids::session_name;
use crate::question::HookQuery;
use crate::shell::shell_for;
use crate::whereabouts::folder_of;

/// Bytes kept of standard output, and of standard error: a longer answer is incomplete.
pub(crate) const HOOK_OUTPUT_BYTES_MAX: usize = 1024 * 1024;
/// How long processes that a command leaves behind may go on.
const STAY: Duration = Duration::from_secs(30);
/// Time between the request to end and the forced end.
const GRACE: Duration = Duration::from_millis(500);
/// Variables with this prefix are Provost's own telemetry; they are removed even if a setting passes them by name.
const NEVER_PASSED: &str = "OTEL_";

/// A command and its limits.
#[derive(Clone, Copy)]
pub(crate) struct Command<'a> {
    pub(crate) program: &'a HookProgram,
    pub(crate) setup: &'a HookSetup,
    /// From the start on, including writing the question.
    pub(crate) timeout: Duration,
    /// Variables that it sees besides those of every child process.
    pub(crate) extra_env: &'a [(String, String)],
}

impl<'a> Command<'a> {
    /// Runs it with `question` on its standard input. Processes that it leaves behind when it exits may go on for
    /// half a minute, at most as long as its session.
    ///
    /// # Errors
    /// Why it couldn't be started.
    ///
    /// # Cancellation
    /// When `cancel` fires it returns within the grace period, with nothing left running; sooner if less of the
    /// session's time limit is left.
    pub(crate) async fn ask(
        self,
        asked: HookQuery<'_>,
        question: Vec<u8>,
        background: &Background,
        cancel: &CancellationToken,
    ) -> Result<Finished, String> {
        let own = self.own_env(asked);
        let (program, args) = match self.program {
            HookProgram::Exec { program, args } => {
                (filled(program, &own), args.iter().map(|arg| filled(arg, &own)).collect())
            }
            // The shell expands the variables itself, and so keeps quoted text in one piece.
            HookProgram::Shell { command } => {
                (shell_for(asked.contract()), vec!["-c".into(), command.into()])
            }
            HookProgram::Http { .. } | HookProgram::Model(_) => (OsString::new(), Vec::new()),
        };
        self.make_data_folder();
        let mut env = helper_env(&[]);
        env.extend(self.extra_env.iter().map(|(name, value)| (name.into(), value.into())));
        env.retain(|(name, _)| !name.to_string_lossy().starts_with(NEVER_PASSED));
        // Later entries take precedence, even if a setting passes one of these by name.
        let set = self.setup.env.iter().map(|(name, value)| (name.into(), value.into()));
        env.extend(set);
        env.extend(own.into_iter().map(|(name, value)| (name.into(), value)));
        let command = HookCommand {
            program,
            args,
            env,
            cwd: folder_of(self.program, self.setup, self.project(asked), &asked.question.folder)
                .to_path_buf(),
            input: question,
            keep_bytes_max: HOOK_OUTPUT_BYTES_MAX,
            timeout: self.timeout,
            grace: GRACE,
            ends_within: asked.limit(),
            confinement: asked.question.confinement.clone(),
        };
        let (exited, exits) = oneshot::channel();
        // The caller cancels its own token when it has the answer.
        let stop = CancellationToken::new();
        let mut running = Box::pin(command.run_leaving(STAY, exited, stop.clone()));
        let left = tokio::select! {
            biased;
            finished = &mut running => return finished,
            Ok(finished) = exits => finished,
            never = passed_on(cancel, &stop) => match never {},
        };
        // What can't be kept is dropped, and thereby killed.
        background.keep(asked.session(), running);
        Ok(left)
    }

    /// Makes the folder in which a plugin keeps its data. A hook that needs it says so if it can't be made.
    fn make_data_folder(&self) {
        for (_, folder) in self.setup.env.iter().filter(|(name, _)| name == PLUGIN_DATA) {
            let _ = std::fs::create_dir_all(folder);
        }
    }

    /// The folder of the project whose settings have the hook.
    fn project(self, asked: HookQuery<'a>) -> &'a Path {
        self.setup.project.as_deref().unwrap_or(&asked.question.workspace)
    }

    /// The environment variables of every command, and those that its file sets for its kind.
    fn own_env(self, asked: HookQuery<'_>) -> Vec<(&'a str, OsString)> {
        let session = asked.session();
        let project = self.project(asked);
        let mut env = vec![
            ("CLAUDE_PROJECT_DIR", project.as_os_str().to_owned()),
            (
                "CLAUDE_CODE_SESSION_ID",
                session_name(HookContract::Claude, SessionId::root(session.run)).into(),
            ),
            ("PROVOST_SESSION_ID", session.to_string().into()),
            ("PROVOST_RUN_ID", session.run.to_string().into()),
        ];
        env.extend(asked.effort().map(|level| ("CLAUDE_EFFORT", level.into())));
        let env_file = asked.question.env_file.as_ref();
        env.extend(env_file.map(|path| ("CLAUDE_ENV_FILE", path.into())));
        let is_plugins = |name: &str| name.starts_with(PLUGIN_PREFIX);
        let plugins = self.setup.env.iter().filter(|(name, _)| is_plugins(name));
        env.extend(plugins.map(|(name, value)| (name.as_str(), value.into())));
        env
    }
}

/// Cancels `stop` with `cancel`.
async fn passed_on(cancel: &CancellationToken, stop: &CancellationToken) -> Infallible {
    cancel.cancelled().await;
    stop.cancel();
    pending().await
}

const PLUGIN_DATA: &str = "CLAUDE_PLUGIN_DATA";
/// The beginning of the names of the variables of a plugin's hooks, which work as placeholders too.
pub(crate) const PLUGIN_PREFIX: &str = "CLAUDE_PLUGIN_";

/// `text` with `${NAME}` replaced by the value of each variable, as plain text.
fn filled(text: &str, env: &[(&str, OsString)]) -> OsString {
    let mut out = OsString::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push(before);
        let known = after.split_once('}').and_then(|(name, behind)| {
            env.iter().find(|(known, _)| *known == name).map(|(_, value)| (value, behind))
        });
        match known {
            Some((value, behind)) => {
                out.push(value);
                rest = behind;
            }
            None => {
                out.push("${");
                rest = after;
            }
        }
    }
    out.push(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::filled;

    #[test]
    fn known_names_are_filled_in_once_and_others_stay() {
        let env = [("A", "x y${A}".into()), ("LONG_NAME", "z".into())];
        let fill = |text| filled(text, &env).into_string().unwrap();
        assert_eq!(fill("${A}/b"), "x y${A}/b", "what is filled in isn't read again");
        assert_eq!(fill("${A}${LONG_NAME}${B}$A${A"), "x y${A}z${B}$A${A");
        assert_eq!(fill("${B${A}}"), "${Bx y${A}}");
        assert_eq!(fill(""), "");
    }
}
