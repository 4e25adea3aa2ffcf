//! Blocking work: on a thread of its own, stopped by the call's cancel token.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use provost_event::ToolStatus;
use provost_harness::{ToolContext, ToolOutput};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::failure::{Failure, chain};
use crate::workspace::Workspace;

/// How long work may take to notice a cancel; only a file system that doesn't answer takes that long.
const STOP_MAX: Duration = Duration::from_secs(2);

/// The context of blocking work.
pub(crate) struct Job {
    pub(crate) workspace: Workspace,
    stop: CancellationToken,
}

impl Job {
    /// Fails once the call is cancelled. Call it before each piece of work.
    pub(crate) fn go_on(&self) -> Result<(), Failure> {
        if self.stop.is_cancelled() { Err(Failure::Cancelled) } else { Ok(()) }
    }

    /// `reader`, which fails once the call is cancelled.
    pub(crate) fn stoppable<R: Read>(&self, reader: R) -> Stoppable<R> {
        Stoppable { reader, stop: self.stop.clone() }
    }

    /// The failure of a read: cancelled, or refused by the system.
    pub(crate) fn read_failure(&self, path: &str, source: io::Error) -> Failure {
        if self.stop.is_cancelled() { Failure::Cancelled } else { Failure::io("read", path, source) }
    }
}

/// Runs `work`, whose result is text, on a thread that may block.
///
/// # Cancellation
/// As [`run_to_output`].
pub(crate) async fn run<W>(context: &ToolContext, work: W) -> ToolOutput
where
    W: FnOnce(&Job) -> Result<String, Failure> + Send + 'static,
{
    run_to_output(context, |job| work(job).map(ToolOutput::ok)).await
}

/// Runs `work` on a thread that may block.
///
/// # Cancellation
/// Dropping the future or cancelling the call stops the work at its next piece.
pub(crate) async fn run_to_output<W>(context: &ToolContext, work: W) -> ToolOutput
where
    W: FnOnce(&Job) -> Result<ToolOutput, Failure> + Send + 'static,
{
    let stop = context.cancel.child_token();
    let _stop_when_dropped = stop.clone().drop_guard();
    let root = Arc::clone(&context.workspace);
    let reach = context.reach.clone();
    let sandbox = Arc::clone(&context.sandbox);
    let working = tokio::task::spawn_blocking(move || {
        let job = Job { workspace: Workspace::open(root, &reach, sandbox)?, stop };
        job.go_on()?;
        work(&job)
    });
    let out_of_patience = async {
        context.cancel.cancelled().await;
        sleep(STOP_MAX).await;
    };
    tokio::select! {
        biased;
        done = working => match done {
            Ok(Ok(output)) => output,
            Ok(Err(failure)) => failure.into_output(),
            Err(died) => ToolOutput::error(format!("the tool itself failed: {}", chain(&died))),
        },
        () = out_of_patience => ToolOutput {
            status: ToolStatus::Cancelled,
            ..ToolOutput::error("cancelled; the file system doesn't answer, so the call may still take effect")
        },
    }
}

/// A reader that fails once its call is cancelled, between two reads.
pub(crate) struct Stoppable<R> {
    reader: R,
    stop: CancellationToken,
}

impl<R: Read> Read for Stoppable<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        self.reader.read(buffer)
    }
}
