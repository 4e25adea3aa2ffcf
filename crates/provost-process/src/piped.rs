//! A long-lived child with a line protocol over its standard input and output.

#[cfg(not(unix))]
#[path = "piped/portable.rs"]
mod keeper;
#[cfg(unix)]
#[path = "piped/unix.rs"]
mod keeper;
mod lines;
mod own_streams;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use provost_event::Exit;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::{Launch, OpenPipes, SpawnError};
use keeper::{Keeper, Output};
use lines::Lines;
pub use own_streams::OwnStreamsChild;

/// Messages queued for the child; further senders wait.
const QUEUE_MAX: usize = 16;

/// How long lines are read after the child's end, in case one of its processes holds its output open.
const DRAIN_MAX: Duration = Duration::from_millis(200);

/// How long a guard may take to kill all processes; only a stopped guard takes longer.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// How long killed processes may take to end.
const VANISH_MAX: Duration = Duration::from_secs(5);

const CHUNK_BYTES: usize = 8 * 1024;

/// The program to start, and what is kept of its output.
#[derive(Debug, Clone)]
pub struct PipedCommand {
    /// The program.
    pub launch: Launch<OpenPipes>,
    /// Bytes kept of a line; of a longer one only its length is reported.
    pub line_bytes_max: usize,
    /// Bytes kept from the end of standard error.
    pub stderr_bytes_max: usize,
}

/// Output or end of a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piped {
    /// A line of its standard output, without the line end, with U+FFFD for what isn't UTF-8. Output that ends
    /// without a line end is a line too.
    Line(String),
    /// A line longer than the limit.
    TooLong {
        /// Its length.
        bytes: u64,
        /// Its first 200 bytes, or as many as the limit allows, with U+FFFD for what isn't UTF-8.
        begin: String,
    },
    /// It has ended, and all its output was read.
    Ended(Exit),
}

/// How a child is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PipedEnding {
    /// How long it may take to end by itself once its input is closed. Zero: SIGTERM at once.
    pub own: Duration,
    /// How long it and its descendants may take between SIGTERM and SIGKILL.
    pub grace: Duration,
}

/// The child's input is closed, or the child no longer reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the program no longer reads what it is told")]
pub struct PipeClosed;

/// A child below a guard of its own: its descendants end with it, and with Provost, however that ends.
///
/// Only [`next`](Self::next) reads its output: between calls the pipe fills and the child blocks. Dropping this
/// doesn't block, and kills the child.
pub struct PipedChild {
    keeper: Keeper,
    lines: Lines<Output>,
    input: Option<mpsc::Sender<Vec<u8>>>,
    stderr: Arc<Mutex<Vec<u8>>>,
    drains_until: Option<Instant>,
    is_drained: bool,
    _tasks: [AbortOnDropHandle<()>; 2],
}

impl PipedChild {
    /// Starts the program.
    ///
    /// # Errors
    /// When it couldn't be started; no process is left of the attempt.
    ///
    /// # Cancellation
    /// What was started is killed.
    ///
    /// # Panics
    /// Outside of a tokio runtime with I/O and time enabled.
    pub async fn spawn(command: PipedCommand) -> Result<Self, SpawnError> {
        let PipedCommand { launch, line_bytes_max, stderr_bytes_max } = command;
        let launch = Arc::new(launch);
        let started = keeper::start(Arc::clone(&launch)).await;
        let started = started.map_err(|error| SpawnError::new(&launch, error))?;
        let (input, messages) = mpsc::channel(QUEUE_MAX);
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let tasks = [
            AbortOnDropHandle::new(tokio::spawn(write(started.stdin, messages))),
            AbortOnDropHandle::new(tokio::spawn(keep_end(
                started.stderr,
                stderr_bytes_max,
                Arc::clone(&stderr),
            ))),
        ];
        Ok(Self {
            keeper: started.keeper,
            lines: Lines::new(started.stdout, line_bytes_max),
            input: Some(input),
            stderr,
            drains_until: None,
            is_drained: false,
            _tasks: tasks,
        })
    }

    /// Its process id.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.keeper.pid()
    }

    /// Queues a line for its input, and adds the line end. Returns before the child reads it.
    ///
    /// # Errors
    /// When its input is closed, or the child no longer reads it.
    ///
    /// # Cancellation
    /// Safe: the line is queued or not.
    pub async fn send(&self, line: &str) -> Result<(), PipeClosed> {
        let input = self.input.as_ref().ok_or(PipeClosed)?;
        let mut bytes = Vec::with_capacity(line.len().saturating_add(1));
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
        input.send(bytes).await.map_err(|_| PipeClosed)
    }

    /// Closes its input, once the queue is written.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Waits for its next output. After its end, returns the end each time.
    ///
    /// # Cancellation
    /// Safe: nothing is lost.
    pub async fn next(&mut self) -> Piped {
        while !self.is_drained {
            if self.drains_until.is_none() && self.keeper.exit().is_some() {
                self.drains_until = Some(Instant::now() + DRAIN_MAX);
            }
            let drained = async {
                match self.drains_until {
                    Some(until) => sleep_until(until).await,
                    None => drop(self.keeper.exited().await),
                }
            };
            tokio::select! {
                biased;
                line = self.lines.next() => match line {
                    Some(line) => return line,
                    None => self.is_drained = true,
                },
                () = drained => self.is_drained = self.drains_until.is_some(),
            }
        }
        Piped::Ended(self.keeper.exited().await)
    }

    /// Its exit, if it has ended.
    #[must_use]
    pub fn exit(&self) -> Option<Exit> {
        self.keeper.exit()
    }

    /// Whether all its processes were observed to end, after [`end`](Self::end). It is `false` when the system
    /// doesn't release a process, when its guard was killed and this process doesn't adopt orphans
    /// ([`adopt_orphans`](crate::adopt_orphans)), and where there are no guards.
    #[must_use]
    pub fn is_all_ended(&self) -> bool {
        self.keeper.is_all_ended()
    }

    /// The end of its standard error so far; if the beginning was cut, from the next line on.
    #[must_use]
    pub fn stderr(&self) -> String {
        let kept = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept).into_owned()
    }

    /// Ends it and all its descendants: closes its input, sends SIGTERM, then SIGKILL. Further output is dropped.
    /// On return no process is left, except those that the system doesn't release; the guard goes on killing
    /// these.
    ///
    /// # Cancellation
    /// When `cancel` fires, the rest is killed at once. After a drop it may be called again.
    pub async fn end(&mut self, ending: PipedEnding, cancel: &CancellationToken) -> Exit {
        self.close_input();
        let Self { keeper, lines, .. } = self;
        tokio::select! {
            biased;
            exit = end(keeper, ending, cancel) => exit,
            never = lines.discard() => match never {},
        }
    }
}

async fn end(keeper: &mut Keeper, ending: PipedEnding, cancel: &CancellationToken) -> Exit {
    tokio::select! {
        _ = keeper.exited() => {}
        () = sleep(ending.own) => {}
        () = cancel.cancelled() => {}
    }
    keeper.ask_to_end().await;
    let is_gone = tokio::select! {
        biased;
        () = keeper.gone() => true,
        () = cancel.cancelled() => false,
        () = sleep(ending.grace) => false,
    };
    if !is_gone {
        keeper.kill().await;
        if timeout(ANSWER_MAX, keeper.gone()).await.is_err() {
            keeper.force().await;
        }
        if timeout(VANISH_MAX, keeper.gone()).await.is_err() {
            tracing::warn!("a killed process is still there; its guard stays with it");
            return keeper.exit().unwrap_or(Exit::Signal(9));
        }
    }
    keeper.exited().await
}

async fn write(mut pipe: impl AsyncWrite + Unpin, mut messages: mpsc::Receiver<Vec<u8>>) {
    while let Some(message) = messages.recv().await {
        if let Err(error) = pipe.write_all(&message).await {
            return tracing::debug!(%error, "a child no longer reads its input");
        }
    }
}

/// Keeps the last `bytes_max` bytes in `kept`.
async fn keep_end(mut pipe: impl AsyncRead + Unpin, bytes_max: usize, kept: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = [0; CHUNK_BYTES];
    while let Ok(count) = pipe.read(&mut buffer).await {
        if count == 0 {
            return;
        }
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(buffer.get(..count).unwrap_or_default());
        let over = kept.len().saturating_sub(bytes_max);
        if over > 0 {
            // A cut line is of no use, and may be half a secret.
            let cut = kept.iter().skip(over).position(|byte| *byte == b'\n');
            let from = cut.map_or(over, |at| over.saturating_add(at).saturating_add(1));
            kept.drain(..from);
        }
    }
}
