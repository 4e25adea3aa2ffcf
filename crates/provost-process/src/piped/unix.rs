//! A child with pipes, below its guard.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use provost_event::Exit;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::Child;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use crate::guard::{Order, signal_message};
use crate::launch::{self, ChildEnds, Guarded};
use crate::registry::{self, Registered};
use crate::{Launch, OpenPipes, OwnStreams, PtySignal};

const SIGKILL: i32 = 9;

/// How long a program may take to start; only a hung file system takes that long.
const START_MAX: Duration = Duration::from_secs(10);

/// How long a running guard may take to send the child's process id.
const GUARD_WORD_MAX: Duration = Duration::from_secs(5);

/// How long a guard that closed its control channel may take to exit: only one that is stuck takes that long.
const REAP_MAX: Duration = Duration::from_secs(1);

pub(super) type Output = Receiver;

/// A started child.
pub(super) struct Started {
    pub(super) keeper: Keeper,
    pub(super) stdin: Sender,
    pub(super) stdout: Receiver,
    pub(super) stderr: Receiver,
}

/// Our end of the channel to the guard. Closing it makes the guard kill everything.
pub(super) struct Keeper {
    pid: u32,
    guard: u32,
    stage: watch::Receiver<Stage>,
    orders: OwnedWriteHalf,
    _listener: AbortOnDropHandle<()>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Stage {
    exit: Option<Exit>,
    is_gone: bool,
    is_all_ended: bool,
}

/// Starts it on a thread that may block.
pub(super) async fn start(launch: Arc<Launch<OpenPipes>>) -> io::Result<Started> {
    let Spawned { guarded, stdin, stdout, stderr } = apart(move || spawn(&launch)).await?;
    Ok(Started { keeper: Keeper::of(guarded).await?, stdin, stdout, stderr })
}

/// The same with the streams of this process.
pub(super) async fn start_with_own(launch: Arc<Launch<OwnStreams>>) -> io::Result<Keeper> {
    let ends = ChildEnds::own(launch.stdio);
    Keeper::of(apart(move || launch::start(&*launch, ends)).await?).await
}

async fn apart<T: Send + 'static>(start: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    let starting = AbortOnDropHandle::new(tokio::task::spawn_blocking(start));
    let Ok(joined) = timeout(START_MAX, starting).await else { return Err(io::ErrorKind::TimedOut.into()) };
    joined.map_err(io::Error::other)?
}

struct Spawned {
    guarded: Guarded<Child, UnixStream>,
    stdin: Sender,
    stdout: Receiver,
    stderr: Receiver,
}

fn spawn(launch: &Launch<OpenPipes>) -> io::Result<Spawned> {
    let (stdin_end, stdin) = io::pipe()?;
    let (stdout, stdout_end) = io::pipe()?;
    let (stderr, stderr_end) = io::pipe()?;
    let stdin = Sender::from_owned_fd(OwnedFd::from(stdin))?;
    let stdout = Receiver::from_owned_fd(OwnedFd::from(stdout))?;
    let stderr = Receiver::from_owned_fd(OwnedFd::from(stderr))?;
    let ends = ChildEnds { stdin: stdin_end.into(), stdout: stdout_end.into(), stderr: stderr_end.into() };
    Ok(Spawned { guarded: launch::start(launch, ends)?, stdin, stdout, stderr })
}

/// Receives the child's end, and the end of all processes below the guard, which tokio reaps when this is dropped.
async fn listen(mut words: OwnedReadHalf, mut guard: Registered<Child>, stage: watch::Sender<Stage>) {
    let mut status = [0; 4];
    let exit = match words.read_exact(&mut status).await {
        Ok(_) => exit_of(ExitStatus::from_raw(i32::from_ne_bytes(status))),
        Err(_) => {
            tracing::warn!("the guard of a child was killed");
            Exit::Signal(SIGKILL)
        }
    };
    stage.send_modify(|stage| stage.exit = Some(exit));
    let mut rest = [0; 4];
    while words.read(&mut rest).await.is_ok_and(|count| count > 0) {}
    // It has ended by itself, which means that no process is left, or it was killed.
    let pid = guard.pid();
    let status = timeout(REAP_MAX, guard.wait()).await;
    let is_all_ended = matches!(status, Ok(Ok(status)) if status.success())
        || tokio::task::spawn_blocking(move || registry::end_adopted(pid)).await.unwrap_or_default();
    if is_all_ended {
        guard.strike_out();
    } else {
        tracing::warn!("the guard of a child was killed, or can't kill; what the child forked may be left");
    }
    stage.send_modify(|stage| (stage.is_gone, stage.is_all_ended) = (true, is_all_ended));
}

fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or(SIGKILL)),
    }
}

impl Keeper {
    async fn of(Guarded { guard, control }: Guarded<Child, UnixStream>) -> io::Result<Self> {
        let (mut words, orders) = control.into_split();
        let mut number = [0; 4];
        timeout(GUARD_WORD_MAX, words.read_exact(&mut number))
            .await
            .map_err(|_| io::ErrorKind::TimedOut)??;
        let pid = u32::from_ne_bytes(number);
        let (stage_told, stage) = watch::channel(Stage::default());
        let guard_pid = guard.pid();
        let listener = AbortOnDropHandle::new(tokio::spawn(listen(words, guard, stage_told)));
        Ok(Self { pid, guard: guard_pid, stage, orders, _listener: listener })
    }

    /// Signals the child's own group, unless the child has ended.
    pub(super) async fn signal(&mut self, signal: PtySignal) {
        let group = i32::try_from(self.pid).unwrap_or_default();
        let Some(message) = signal_message(signal.number(), group) else { return };
        if let Err(error) = self.orders.write_all(&message).await {
            tracing::trace!(%error, "the guard is already gone");
        }
    }

    pub(super) const fn pid(&self) -> u32 {
        self.pid
    }

    pub(super) fn exit(&self) -> Option<Exit> {
        self.stage.borrow().exit
    }

    /// Waits for the child's end. Cancel safe.
    pub(super) async fn exited(&self) -> Exit {
        let mut stage = self.stage.clone();
        // The listener ends only after it has sent the end.
        stage
            .wait_for(|stage| stage.exit.is_some())
            .await
            .ok()
            .and_then(|stage| stage.exit)
            .unwrap_or(Exit::Unseen)
    }

    /// Waits until no process is left. Cancel safe.
    pub(super) async fn gone(&self) {
        // The listener ends only after it has sent the end.
        drop(self.stage.clone().wait_for(|stage| stage.is_gone).await);
    }

    pub(super) async fn ask_to_end(&mut self) {
        self.order(Order::Terminate).await;
    }

    pub(super) async fn kill(&mut self) {
        self.order(Order::Kill).await;
    }

    /// Whether it was observed, after [`gone`](Self::gone), that no process is left.
    pub(super) fn is_all_ended(&self) -> bool {
        self.stage.borrow().is_all_ended
    }

    /// Kills the rest, and the guard, if that still doesn't answer.
    pub(super) async fn force(&mut self) {
        let guard = self.guard;
        if let Err(error) = tokio::task::spawn_blocking(move || registry::end_guard(guard)).await {
            tracing::warn!(%error, "a guard that doesn't answer was not ended");
        }
    }

    async fn order(&mut self, order: Order) {
        if let Err(error) = self.orders.write_all(&[order.byte()]).await {
            tracing::trace!(%error, "the guard is already gone");
        }
    }
}
