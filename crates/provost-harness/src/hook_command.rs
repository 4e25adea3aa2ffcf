//! Runs a hook that is a program: stop hooks, and hooks of every other hook point.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use provost_process::{
    ChildSpec, Confinement, Finished, Launch, SpawnError, Stdio, Streams, run, run_leaving,
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// The start of a hook that is a program, and its limits.
#[derive(Debug, Clone)]
pub struct HookCommand {
    /// The program, looked up in the environment's `PATH`.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its whole environment; of one name the last counts.
    pub env: Vec<(OsString, OsString)>,
    /// Its working folder.
    pub cwd: PathBuf,
    /// Its standard input.
    pub input: Vec<u8>,
    /// Bytes kept of standard output, and of standard error.
    pub keep_bytes_max: usize,
    /// From the start on, including writing the input.
    pub timeout: Duration,
    /// Time between the request to end and the forced end.
    pub grace: Duration,
    /// The limit of all of its time, including its forced end. `None`: no limit.
    pub ends_within: Option<Duration>,
    /// What confines it.
    pub confinement: Confinement,
}

impl HookCommand {
    /// Runs it, and ends all processes that it started.
    ///
    /// # Errors
    /// Why it couldn't be started.
    ///
    /// # Cancellation
    /// When `cancel` fires it returns within the grace period, with nothing left running.
    pub async fn run(self, cancel: &CancellationToken) -> Result<Finished, String> {
        run(self.spec(), cancel).await.map_err(in_words)
    }

    /// The same, but processes that it leaves behind when it exits may go on for `stay`. `exited` gets the result as soon
    /// as it has exited, if there are any; this ends with them.
    ///
    /// # Errors
    /// Why it couldn't be started.
    ///
    /// # Cancellation
    /// As [`run`](Self::run); dropping the future kills all of its processes.
    pub async fn run_leaving(
        self,
        stay: Duration,
        exited: oneshot::Sender<Finished>,
        cancel: CancellationToken,
    ) -> Result<Finished, String> {
        run_leaving(self.spec(), stay, exited, cancel).await.map_err(in_words)
    }

    fn spec(self) -> ChildSpec {
        let Self { program, args, env, cwd, input, keep_bytes_max, timeout, grace, ends_within, confinement } =
            self;
        let launch =
            Launch { program, args, env, cwd, stdio: Stdio { input, streams: Streams::Apart }, confinement };
        ChildSpec { launch, keep_bytes_max, timeout: Some(timeout), grace, ends_within }
    }
}

fn in_words(error: SpawnError) -> String {
    match std::error::Error::source(&error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
