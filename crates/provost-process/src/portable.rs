//! The same `run` where there are no guards: only the child itself is sure to end.

use std::future::pending;
use std::io;
use std::pin::Pin;
use std::process::Stdio;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::process::Child;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::drain::{Kept, OutputWatch, drain, feed};
use crate::log_file::{LogFile, LogWriter};
use crate::{ChildSpec, Ending, Finished, Launch, SpawnError, Streams, launch};

/// Runs one child to its end; returns how it ended, and its output.
///
/// Unlike on Unix, only the child itself is ended, by a kill and without grace. Its descendants may be left, also
/// when this process is killed; their output is waited for 2 s. Merged streams keep the order of writing roughly.
///
/// # Errors
/// When the child couldn't be started. How it ends is never an error.
///
/// # Cancellation
/// Dropping the future kills the child.
pub async fn run(spec: ChildSpec, cancel: &CancellationToken) -> Result<Finished, SpawnError> {
    run_into(spec, Reader::default(), cancel).await
}

/// The same as [`run`]; `watch` is shown the standard output as it comes.
///
/// # Errors
/// As [`run`].
///
/// # Cancellation
/// As [`run`].
pub async fn run_watched(
    spec: ChildSpec,
    watch: OutputWatch<'_>,
    cancel: &CancellationToken,
) -> Result<Finished, SpawnError> {
    run_into(spec, Reader { watch: Some(watch), ..Reader::default() }, cancel).await
}

/// The same as [`run`]: here nothing ends what a child leaves behind, so that `exited` gets nothing.
///
/// # Errors
/// As [`run`].
///
/// # Cancellation
/// As [`run`].
pub async fn run_leaving(
    spec: ChildSpec,
    _stay: std::time::Duration,
    _exited: tokio::sync::oneshot::Sender<Finished>,
    cancel: CancellationToken,
) -> Result<Finished, SpawnError> {
    run(spec, &cancel).await
}

/// Who reads the standard output besides the caller.
#[derive(Default)]
struct Reader<'r> {
    log: Option<&'r mut LogWriter>,
    watch: Option<OutputWatch<'r>>,
}

/// The same as [`run`], with the standard output also in a file, as it comes.
///
/// # Errors
/// As [`run`]; also when the file can't be created. If it can't be written later, the child goes on.
///
/// # Cancellation
/// As [`run`].
pub async fn run_logged(
    spec: ChildSpec,
    log: &LogFile,
    cancel: &CancellationToken,
) -> Result<Finished, SpawnError> {
    let mut log = LogWriter::create(log).map_err(|source| SpawnError::new(&spec.launch, source))?;
    run_into(spec, Reader { log: Some(&mut log), ..Reader::default() }, cancel).await
}

async fn run_into(
    spec: ChildSpec,
    reader: Reader<'_>,
    cancel: &CancellationToken,
) -> Result<Finished, SpawnError> {
    if cancel.is_cancelled() {
        return Ok(Finished::cancelled_before_start());
    }
    let began = Instant::now();
    let deadline = spec.timeout.and_then(|timeout| began.checked_add(timeout));
    let mut child = start(&spec.launch).map_err(|source| SpawnError::new(&spec.launch, source))?;
    let stdin = child.stdin.take();
    let stdout: Option<Stream> = child.stdout.take().map(|pipe| Box::new(pipe) as Stream);
    let stderr: Option<Stream> = child.stderr.take().map(|pipe| Box::new(pipe) as Stream);
    let (stdout, stderr) = match spec.launch.stdio.streams {
        Streams::Merged => (Both([stdout, stderr]), None),
        Streams::Apart => (Both([stdout, None]), stderr),
    };
    let ended = CancellationToken::new();
    let (ending, (), stdout, stderr) = tokio::join!(
        async {
            let _ended = ended.clone().drop_guard();
            end(&mut child, cancel, deadline).await
        },
        feed(stdin, &spec.launch.stdio.input, &ended),
        drain(
            Some(stdout),
            Kept { bytes_max: spec.keep_bytes_max, log: reader.log, watch: reader.watch },
            &ended
        ),
        drain(stderr, Kept { bytes_max: spec.keep_bytes_max, log: None, watch: None }, &ended),
    );
    Ok(Finished { ending, is_all_ended: false, stdout, stderr, duration: began.elapsed() })
}

/// Not available on this platform.
pub fn adopt_orphans() -> bool {
    false
}

/// No process was adopted.
pub fn end_adopted_leftovers() -> bool {
    false
}

/// There are no guards to list on this platform.
pub fn keep_ledger(_folder: std::path::PathBuf) {}

fn start(launch: &Launch) -> io::Result<Child> {
    let stdin = if launch.stdio.input.is_empty() { Stdio::null() } else { Stdio::piped() };
    launch::start(launch, stdin)
}

async fn end(child: &mut Child, cancel: &CancellationToken, deadline: Option<Instant>) -> Ending {
    let timed_out = async {
        match deadline {
            Some(deadline) => sleep_until(deadline).await,
            None => pending().await,
        }
    };
    let ending = tokio::select! {
        biased;
        status = child.wait() => {
            return Ending::Exited(status.ok().and_then(|status| status.code()).unwrap_or(-1));
        }
        () = cancel.cancelled() => Ending::Cancelled,
        () = timed_out => Ending::TimedOut,
    };
    if let Err(error) = child.kill().await {
        tracing::warn!(%error, "a child could not be killed");
    }
    ending
}

type Stream = Box<dyn AsyncRead + Send + Unpin>;

/// Up to two streams read as one, in the order of their output.
struct Both([Option<Stream>; 2]);

impl AsyncRead for Both {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let filled = buf.filled().len();
        for slot in &mut self.0 {
            let Some(stream) = slot else { continue };
            match Pin::new(stream).poll_read(cx, buf) {
                Poll::Pending => {}
                Poll::Ready(Ok(())) if buf.filled().len() == filled => *slot = None,
                ready => return ready,
            }
        }
        if self.0.iter().all(Option::is_none) { Poll::Ready(Ok(())) } else { Poll::Pending }
    }
}
