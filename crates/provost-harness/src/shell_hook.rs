//! Stop hooks that are shell commands.

use std::time::Duration;

use async_trait::async_trait;
use provost_event::{StopHookVerdict, counted, grouped};
use provost_process::{Captured, Ending, Finished, MAYBE_LEFT, helper_env};
use tokio_util::sync::CancellationToken;

use crate::HookCommand;
use crate::stop_hook::{StopHookContext, StopHookHandler};

/// Default time limit of a command.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes kept of standard output, and of standard error.
const OUTPUT_BYTES_MAX: usize = 64 * 1024;
/// Maximum bytes of the end of each stream in the reason of a failed check.
const TAIL_BYTES_MAX: usize = 4 * 1024;
/// A shell's exit status for a command that it can't execute, and for one that doesn't exist.
const NOT_EXECUTABLE: i32 = 126;
const NOT_FOUND: i32 = 127;
/// Time between the request to end and the forced end.
const GRACE: Duration = Duration::from_secs(2);

/// Runs a command in the workspace, with the [`StopHookContext`] as JSON on its standard input.
///
/// Exit status 0 allows; 2 blocks, with standard output (or standard error if that is empty) as the reason; 3
/// halts, with the same as the reason. Everything else is an error of some kind, whose meaning is the policy's
/// [`on_error`](provost_event::StopHookPolicy::on_error): another status is [`StopHookVerdict::Error`] with the
/// end of the output; 126, 127, a signal and a command that can't be started are [`StopHookVerdict::Broken`];
/// running longer than `timeout` is [`StopHookVerdict::TimedOut`]. All processes of the command have ended when
/// the verdict is returned; if that couldn't be confirmed, an allowance becomes `Broken`, and every verdict says
/// so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellStopHook {
    /// Its name.
    pub name: String,
    /// The command, for `sh -c`.
    pub command: String,
    /// Its time limit.
    pub timeout: Duration,
    /// The limit of all of its time, including its forced end: a process that ignores a request to end is killed
    /// in time. `None`: no limit.
    pub ends_within: Option<Duration>,
}

impl ShellStopHook {
    /// A hook with the default timeout of 30 s.
    pub fn new(name: impl Into<String>, command: impl Into<String>) -> Self {
        Self { name: name.into(), command: command.into(), timeout: DEFAULT_TIMEOUT, ends_within: None }
    }

    fn started(&self, context: &StopHookContext) -> Result<HookCommand, serde_json::Error> {
        let mut env = helper_env(&[]);
        env.push(("PROVOST_SESSION_ID".into(), context.session_id.to_string().into()));
        env.push(("CLAUDE_PROJECT_DIR".into(), context.cwd.clone().into()));
        Ok(HookCommand {
            program: "sh".into(),
            args: vec!["-c".into(), self.command.clone().into()],
            env,
            cwd: context.cwd.clone(),
            input: serde_json::to_vec(context)?,
            keep_bytes_max: OUTPUT_BYTES_MAX,
            timeout: self.timeout,
            grace: GRACE,
            ends_within: self.ends_within,
        })
    }

    fn verdict(&self, finished: &Finished) -> StopHookVerdict {
        let verdict = self.answer(finished);
        // On other platforms its processes can't be tracked.
        if finished.is_all_ended || !cfg!(unix) { verdict } else { with_what_is_left(verdict) }
    }

    fn answer(&self, finished: &Finished) -> StopHookVerdict {
        match finished.ending {
            Ending::Exited(0) => StopHookVerdict::Allow,
            Ending::Exited(2) => StopHookVerdict::Block(words(finished, "it gave no reason")),
            Ending::Exited(3) => StopHookVerdict::Halt(words(finished, "it gave no reason")),
            Ending::Exited(code @ (NOT_EXECUTABLE | NOT_FOUND)) => {
                StopHookVerdict::Broken(format!("exit status {code}: {}", last_output(finished)))
            }
            Ending::Exited(code) => {
                StopHookVerdict::Error(format!("exit status {code}: {}", last_output(finished)))
            }
            Ending::Signalled(signal) => StopHookVerdict::Broken(format!("killed by signal {signal}")),
            Ending::TimedOut => timed_out(self.timeout),
            Ending::Cancelled => StopHookVerdict::Error("cancelled".to_owned()),
        }
    }
}

/// The verdict of a hook that has left processes running: they may still change what the hook has approved.
fn with_what_is_left(verdict: StopHookVerdict) -> StopHookVerdict {
    let and_left = |words: String| format!("{words}\n[{MAYBE_LEFT}]");
    match verdict {
        StopHookVerdict::Allow => StopHookVerdict::Broken(format!("it allows the stop, but {MAYBE_LEFT}")),
        StopHookVerdict::Block(reason) => StopHookVerdict::Block(and_left(reason)),
        StopHookVerdict::Halt(reason) => StopHookVerdict::Halt(and_left(reason)),
        StopHookVerdict::Error(why) => StopHookVerdict::Error(and_left(why)),
        broken @ (StopHookVerdict::Broken(_) | StopHookVerdict::TimedOut(_)) => {
            StopHookVerdict::Broken(and_left(broken.error().unwrap_or_default()))
        }
    }
}

/// The verdict of a hook that exceeded `timeout`.
pub(crate) fn timed_out(timeout: Duration) -> StopHookVerdict {
    StopHookVerdict::TimedOut(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX))
}

/// The end of the output on both streams, which usually has the cause.
fn last_output(finished: &Finished) -> String {
    let ends = [&finished.stdout, &finished.stderr].map(tail);
    let printed = ends.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>();
    if printed.is_empty() { "it printed nothing".to_owned() } else { printed.join("\n") }
}

/// The last [`TAIL_BYTES_MAX`] bytes of the output, from the beginning of a line if there is one in them; and its
/// share of the whole.
fn tail(printed: &Captured) -> String {
    let text = printed.to_text_lossy();
    let text = text.trim();
    let cut = text.ceil_char_boundary(text.len().saturating_sub(TAIL_BYTES_MAX));
    let (before, end) = text.split_at(cut);
    if before.is_empty() {
        return end.to_owned();
    }
    let end = end.split_once('\n').map_or(end, |(_, lines)| lines);
    let all = counted(printed.total_bytes(), "byte");
    format!("[{all} printed, of which the last {} are kept]\n{end}", grouped(end.len() as u64))
}

fn words(finished: &Finished, otherwise: &str) -> String {
    let stdout = finished.stdout.to_text_lossy();
    let stderr = finished.stderr.to_text_lossy();
    let said = [stdout.trim(), stderr.trim(), otherwise];
    said.into_iter().find(|text| !text.is_empty()).unwrap_or_default().to_owned()
}

#[async_trait]
impl StopHookHandler for ShellStopHook {
    fn name(&self) -> &str {
        &self.name
    }

    async fn evaluate(&self, context: &StopHookContext, cancel: &CancellationToken) -> StopHookVerdict {
        let command = match self.started(context) {
            Ok(command) => command,
            Err(error) => return StopHookVerdict::Broken(format!("its input can't be written: {error}")),
        };
        match command.run(cancel).await {
            Ok(finished) => self.verdict(&finished),
            Err(why) => StopHookVerdict::Broken(why),
        }
    }
}
