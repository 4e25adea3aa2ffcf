//! One child from start to end.

use std::future::pending;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::process::Child;
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::capture::{Capture, Captured};
use crate::drain::{Kept, OutputWatch, drain, feed};
use crate::log_file::{LogFile, LogWriter};
use crate::registry;
use crate::registry::Registered;
use crate::start::{Control, Order, SIGKILL, Started, start};
use crate::{ChildSpec, Ending, Finished, SpawnError};

/// How long a program may take to start; only a hung file system takes that long.
const START_MAX: Duration = Duration::from_secs(10);

/// How long a guard may take to kill all processes: a stopped guard takes longer, and is then bypassed.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// The shortest grace when little time is left: enough for a program that handles SIGTERM.
const GRACE_MIN: Duration = Duration::from_millis(50);
/// How long after the child's exit its guard is waited for before something counts as left behind.
const GONE_AT_ONCE: Duration = Duration::from_millis(50);
/// How long nothing must have been read until what a child has printed is complete.
const SETTLED: Duration = Duration::from_millis(20);
/// How long a guard that closed its control channel may take to exit: only one that is stuck takes that long.
const REAP_MAX: Duration = Duration::from_secs(1);

/// Runs one child to its end; returns how it ended, and its output.
///
/// When the child exits, the call ends with its exit code even if processes it left behind hold its output open:
/// these get SIGTERM and, after [`ChildSpec::grace`], SIGKILL. On return no descendant of the child is left, and
/// all their output was read. Cancelling or the timeout ends child and descendants the same way; cancelling during
/// a grace period kills at once. On top of timeout and grace a call takes at most 10 s to start (a hung file
/// system) and 14 s to end: 1 s for the guard to kill all, 5 s each for what it leaves below it and to this
/// process to end, 2 s for pipes to close, 1 s to reap. [`Finished::is_all_ended`] is whether that was observed: a
/// process that the system doesn't release is left to its guard.
///
/// ```
/// # use std::{path::PathBuf, time::Duration};
/// # use provost_process::{ChildSpec, Confinement, Ending, Launch, Stdio, Streams, allowed_env, run};
/// # use tokio_util::sync::CancellationToken;
/// # #[tokio::main] async fn main() -> Result<(), provost_process::SpawnError> {
/// let launch = Launch {
///     program: "sh".into(),
///     args: vec!["-c".into(), "cat; sleep 1000 & exit 3".into()],
///     env: allowed_env(&[]),
///     cwd: PathBuf::from("/"),
///     stdio: Stdio { input: b"hello".to_vec(), streams: Streams::Merged },
///     confinement: Confinement::Strongest,
/// };
/// let spec = ChildSpec {
///     launch,
///     keep_bytes_max: 64 * 1024,
///     timeout: Some(Duration::from_secs(60)),
///     grace: Duration::from_secs(2),
///     ends_within: None,
/// };
/// let finished = run(spec, &CancellationToken::new()).await?;
/// assert_eq!(finished.ending, Ending::Exited(3));
/// assert_eq!(finished.stdout.to_text_lossy(), "hello");
/// # Ok(()) }
/// ```
///
/// # Errors
/// When the child couldn't be started. How it ends is never an error.
///
/// # Cancellation
/// Dropping the future doesn't block; the guard then kills all processes within milliseconds. Prefer `cancel`,
/// which asks first and returns the output. If cancelled before the start, no process is started.
///
/// # Panics
/// Outside of a tokio runtime with I/O and time enabled.
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

/// The same as [`run`], but what the child leaves behind when it exits may go on for `stay`: as soon as the child has
/// exited, `exited` gets the result so far, and the call goes on until none is left, `stay` is over or `cancel`
/// fires. Their output is read meanwhile, and dropped. With nothing left behind `exited` gets nothing.
///
/// # Errors
/// As [`run`].
///
/// # Cancellation
/// As [`run`].
pub async fn run_leaving(
    spec: ChildSpec,
    stay: Duration,
    exited: oneshot::Sender<Finished>,
    cancel: CancellationToken,
) -> Result<Finished, SpawnError> {
    let printed = [(); 2].map(|()| Mutex::new(Capture::new(spec.keep_bytes_max)));
    let [stdout, stderr] = &printed;
    let (watch, watch_stderr) = (|chunk: &[u8]| add(stdout, chunk), |chunk: &[u8]| add(stderr, chunk));
    let stay = Stay { time: stay, exited, printed: &printed };
    let reader = Reader {
        watch: Some(&watch),
        watch_stderr: Some(&watch_stderr),
        stay: Some(stay),
        ..Reader::default()
    };
    run_into(spec, reader, &cancel).await
}

fn add(capture: &Mutex<Capture>, chunk: &[u8]) {
    capture.lock().unwrap_or_else(PoisonError::into_inner).add(chunk);
}

/// What a child leaves behind may stay.
struct Stay<'r> {
    time: Duration,
    exited: oneshot::Sender<Finished>,
    /// What was read of standard output and standard error.
    printed: &'r [Mutex<Capture>; 2],
}

impl Stay<'_> {
    /// Tells the result of a child that has exited, when what it has printed is read.
    async fn tell(self, ending: Ending, began: Instant) {
        let read = || self.printed.each_ref().map(|one| capture_of(one).total_bytes());
        let mut before = read();
        loop {
            sleep(SETTLED).await;
            let now = read();
            if now == before {
                break;
            }
            before = now;
        }
        let [stdout, stderr] = self.printed.each_ref().map(capture_of);
        let finished = Finished { ending, is_all_ended: true, stdout, stderr, duration: began.elapsed() };
        // A caller that is gone has dropped this too.
        let _ = self.exited.send(finished);
    }
}

fn capture_of(capture: &Mutex<Capture>) -> Captured {
    capture.lock().unwrap_or_else(PoisonError::into_inner).clone().finish()
}

/// Who reads the output besides the caller, and whether what the child leaves behind may stay.
#[derive(Default)]
struct Reader<'r> {
    log: Option<&'r mut LogWriter>,
    watch: Option<OutputWatch<'r>>,
    watch_stderr: Option<OutputWatch<'r>>,
    stay: Option<Stay<'r>>,
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
    let deadline = spec.timeout.map(sleep);
    let spec = Arc::new(spec);
    let Started { mut guard, control, stdin, stdout, stderr } =
        start_apart(&spec).await.map_err(|source| SpawnError::new(&spec.launch, source))?;

    let ended = CancellationToken::new();
    let ((ending, is_all_ended), (), stdout, stderr) = tokio::join!(
        async {
            let _ended = ended.clone().drop_guard();
            let by = spec.ends_within.and_then(|all| began.checked_add(all));
            let how = Stop { grace: spec.grace, by, cancel, stay: reader.stay.map(|stay| (stay, began)) };
            watch(control, &mut guard, stop_asked(cancel, deadline), how).await
        },
        feed(stdin, &spec.launch.stdio.input, &ended),
        drain(
            Some(stdout),
            Kept { bytes_max: spec.keep_bytes_max, log: reader.log, watch: reader.watch },
            &ended
        ),
        drain(stderr, Kept { bytes_max: spec.keep_bytes_max, log: None, watch: reader.watch_stderr }, &ended),
    );
    if is_all_ended {
        guard.strike_out();
    }
    Ok(Finished { ending, is_all_ended, stdout, stderr, duration: began.elapsed() })
}

/// Starts the child on a thread that may block: forking a large process takes a while, and the call returns only
/// when the program's file was found and read.
async fn start_apart(spec: &Arc<ChildSpec>) -> io::Result<Started> {
    let spec = Arc::clone(spec);
    // If the caller is gone, what was started is dropped, and thereby killed.
    let starting = AbortOnDropHandle::new(tokio::task::spawn_blocking(move || start(&spec.launch)));
    match timeout(START_MAX, starting).await {
        Ok(Ok(started)) => started,
        Ok(Err(error)) => Err(io::Error::other(error)),
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

async fn stop_asked(cancel: &CancellationToken, deadline: Option<Sleep>) -> Ending {
    let timed_out = async {
        match deadline {
            Some(deadline) => deadline.await,
            None => pending().await,
        }
    };
    tokio::select! {
        biased;
        () = cancel.cancelled() => Ending::Cancelled,
        () = timed_out => Ending::TimedOut,
    }
}

/// How to end a child that is to be stopped.
struct Stop<'a> {
    grace: Duration,
    /// The deadline for the whole ending.
    by: Option<Instant>,
    cancel: &'a CancellationToken,
    /// Whether what the child leaves behind may stay, and when the child was started.
    stay: Option<(Stay<'a>, Instant)>,
}

impl Stop<'_> {
    /// Lets what the child has left behind go on, if it may.
    async fn let_stay(&mut self, control: &mut Control, ending: Ending) {
        let Some((stay, began)) = self.stay.take() else { return };
        if timeout(GONE_AT_ONCE, control.gone()).await.is_ok() {
            return;
        }
        let time = stay.time;
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => {}
            () = async { stay.tell(ending, began).await; control.gone().await } => {}
            () = sleep(time) => {}
        }
    }

    /// The grace, at most half of the remaining time: a kill takes a moment, and the caller needs time to report.
    fn fitting_grace(&self) -> Duration {
        let Some(by) = self.by else { return self.grace };
        let left = by.saturating_duration_since(Instant::now());
        self.grace.min((left / 2).max(GRACE_MIN))
    }
}

/// Waits for the child or for a reason to stop it, then ends the rest; returns whether no process was observed to
/// be left.
async fn watch(
    mut control: Control,
    guard: &mut Registered<Child>,
    stop: impl Future<Output = Ending>,
    mut how: Stop<'_>,
) -> (Ending, bool) {
    let ending = tokio::select! {
        biased;
        exit = control.exit() => exit,
        ending = stop => Some(ending),
    };
    let pid = guard.pid();
    if let Some(ending @ (Ending::Exited(_) | Ending::Signalled(_))) = ending {
        how.let_stay(&mut control, ending).await;
    }
    if let Some(ending) = ending {
        let hurry = async {
            match ending {
                Ending::Cancelled => pending().await,
                Ending::Exited(_) | Ending::Signalled(_) | Ending::TimedOut => how.cancel.cancelled().await,
            }
        };
        end_all(&mut control, pid, how.fitting_grace(), hurry).await;
    }
    // The guard has closed its control channel, so this is immediate. If it is stuck, or this future is dropped,
    // tokio's orphan queue reaps it.
    let status = timeout(REAP_MAX, guard.wait()).await;
    // It ends by itself only when no process is left.
    let has_seen_all_end = matches!(status, Ok(Ok(status)) if status.success());
    let is_all_ended =
        has_seen_all_end || apart(move || registry::end_adopted(pid)).await.unwrap_or_default();
    if !is_all_ended {
        tracing::warn!("the guard of a child was killed, or can't kill; what the child forked may be left");
    }
    (ending.unwrap_or(Ending::Signalled(SIGKILL)), is_all_ended)
}

/// Asks all processes below the guard to end and kills the rest after `grace`, or as soon as `hurry` is done.
async fn end_all(control: &mut Control, guard: u32, grace: Duration, hurry: impl Future<Output = ()>) {
    control.order(Order::Terminate).await;
    let gone_in_time = tokio::select! {
        biased;
        () = control.gone() => true,
        () = hurry => false,
        () = sleep(grace) => false,
    };
    if gone_in_time {
        return;
    }
    control.order(Order::Kill).await;
    if timeout(ANSWER_MAX, control.gone()).await.is_err() {
        // The guard was stopped, or is slow, or a process is stuck.
        apart(move || registry::end_guard(guard)).await;
    }
}

/// On a thread that may block.
async fn apart<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(act).await.ok()
}
