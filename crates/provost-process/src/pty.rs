//! Programs at a pseudo-terminal: start, screen, input, watchers, and a reliable end.
//!
//! ```text
//!  handles ──asks, keys──▶ ┌ terminal's thread ┐ ──▶ reader of the screen ─▶ replies, events
//!  output, events, views ◀─┤ poll: master,     │ ──▶ recording
//!  watchers ◀──────────────┤ wake, guard, time │ ◀──master──▶ program ── guard
//!                          └───────────────────┘
//! ```
//!
//! Each terminal has one thread that owns all its state. It never waits for a caller. While the output's reader, the
//! receiver of events or a person's terminal is behind, it stops reading the terminal, and nothing else; a slow copy of
//! the screen gets a new snapshot; keys that the program doesn't take are queued.

mod connections;
mod device;
mod ending;
mod events;
mod exposed;
#[cfg_attr(windows, allow(dead_code, reason = "nothing there tells of the processes at a console"))]
pub(crate) mod kernel;
#[cfg_attr(windows, allow(dead_code, reason = "nothing there tells of the processes at a console"))]
mod live;
mod options;
mod output;
mod queries;
mod reader;
mod shared;
#[cfg(target_os = "linux")]
mod socket_diag;
mod terminal;
mod typing;
#[cfg(unix)]
mod unix;
mod view;
mod watcher;
#[cfg(windows)]
mod windows;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use provost_event::{Exit, WindowSize};
use secrecy::SecretString;
use tokio::sync::oneshot;
use tokio::time::timeout;

#[cfg(unix)]
use unix::supervise;
#[cfg(windows)]
use windows::supervise;

use crate::{AtTerminal, Launch, SpawnError};

pub use connections::{KernelConnections, ModelConnections};
pub use events::{EVENTS_MAX, Events};
pub use options::{
    EventSubscription, ExposedSecret, OutputSubscription, PtyError, PtyOptions, PtySignal, QuitPlan,
    QuitStep, Recorder,
};
pub use output::OUTPUT_BYTES_MAX;
pub use reader::{Detected, KernelSample, NewScreenReader, ScreenReader, is_shell};
use shared::{Ask, Keys, Shared};
pub use view::{Changes, Cursor, Modes, Mouse, TerminalView};
pub use watcher::{Painted, WATCHER_BYTES_MAX, Watcher, WatcherKind};

/// How long a program may take to start; only a hung file system takes that long.
const START_MAX: Duration = Duration::from_secs(10);

/// A program at a terminal.
///
/// All methods may be called from several tasks at once. Dropping it doesn't block, and kills the program and all
/// its descendants within milliseconds, also when this process is killed; [`end`](Self::end) ends them gracefully.
///
/// ```
/// # #[cfg(target_os = "linux")]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::sync::Arc;
/// # use provost_event::{Exit, WindowSize};
/// # use provost_process::{AtTerminal, Confinement, Launch, allowed_env};
/// # use provost_process::{OutputSubscription, PtyOptions, PtySupervisor};
/// # let profile = Arc::new(provost_terminal::Profile::named("generic").ok_or("no profile")?);
/// let mut options = PtyOptions::new(provost_terminal::Detector::of_terminal(profile));
/// options.hears_output = OutputSubscription::Wanted;
/// let launch = Launch {
///     program: "sh".into(),
///     args: vec!["-c".into(), "read name; echo hello $name; exit 3".into()],
///     env: allowed_env(&[]),
///     cwd: "/".into(),
///     stdio: AtTerminal { size: WindowSize::default() },
///     confinement: Confinement::Strongest,
/// };
/// let terminal = PtySupervisor::spawn(launch, options).await?;
/// terminal.send_input("world\r").await?;
/// assert_eq!(terminal.wait().await, Exit::Code(3));
/// let mut text = String::new();
/// while let Some(more) = terminal.read_output().await {
///     text.push_str(&more);
/// }
/// assert!(text.ends_with("hello world\r\n"));
/// # Ok(()) }
/// # #[cfg(not(target_os = "linux"))] fn main() {}
/// ```
pub struct PtySupervisor {
    shared: Arc<Shared>,
    pid: u32,
}

/// The initial state of a terminal's thread.
struct Start {
    launch: Arc<Launch<AtTerminal>>,
    options: PtyOptions,
    answer: oneshot::Sender<io::Result<PtySupervisor>>,
}

impl PtySupervisor {
    /// Starts the program at a terminal of its own and returns once it executes. `TERM=xterm-256color` is added to
    /// an environment without `TERM`.
    ///
    /// # Errors
    /// When it couldn't be started, or took more than 10 s; no process is left of the attempt.
    ///
    /// # Cancellation
    /// What was started is killed.
    pub async fn spawn(mut launch: Launch<AtTerminal>, options: PtyOptions) -> Result<Self, SpawnError> {
        if launch.env.iter().all(|(name, _)| name != "TERM") {
            launch.env.push(("TERM".into(), "xterm-256color".into()));
        }
        let launch = Arc::new(launch);
        let (answer, started) = oneshot::channel();
        let start = Start { launch: Arc::clone(&launch), options, answer };
        // Forking a large process takes a while, so the thread does that too.
        let thread = std::thread::Builder::new().name("terminal".to_owned()).spawn(|| supervise(start));
        let started = match thread {
            Ok(_ends_by_itself) => timeout(START_MAX, started).await,
            Err(error) => Ok(Ok(Err(error))),
        };
        match started {
            Ok(Ok(started)) => started,
            Ok(Err(_)) => Err(io::Error::other("the terminal's thread has ended")),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
        .map_err(|source| SpawnError::new(&launch, source))
    }

    /// Types this after all earlier input, and returns when the terminal has taken all of it, which may be never
    /// if the program doesn't read. A line of any length reaches the program whole.
    ///
    /// # Errors
    /// When the program has ended, or the system refuses.
    ///
    /// # Cancellation
    /// Input that the terminal has already taken stays typed; the rest isn't typed.
    pub async fn send_input(&self, text: &str) -> Result<(), PtyError> {
        self.shared.type_keys(Keys::Input(text.as_bytes().to_vec()), None).await.map(drop)
    }

    /// Types this like [`send_input`](Self::send_input) if `check` agrees, and returns whether it was typed. The
    /// check sees the screen and what it means right before the first byte, including all output until then (unless
    /// the output's reader is behind): this binds an answer to its question. It runs on the terminal's thread and
    /// should be quick.
    ///
    /// # Errors
    /// As for `send_input`.
    ///
    /// # Cancellation
    /// As for `send_input`.
    pub async fn send_if(
        &self,
        text: &str,
        check: impl FnOnce(&TerminalView) -> bool + Send + 'static,
    ) -> Result<bool, PtyError> {
        self.shared.type_keys(Keys::Input(text.as_bytes().to_vec()), Some(Box::new(check))).await
    }

    /// Types the keyboard input of an attached person. Otherwise like [`send_input`](Self::send_input).
    ///
    /// # Errors
    /// As for that method.
    pub async fn input_raw(&self, bytes: &[u8]) -> Result<(), PtyError> {
        self.shared.type_keys(Keys::Raw(bytes.to_vec()), None).await.map(drop)
    }

    /// Types what a person's terminal replied to queries of the program, before all input that hasn't begun.
    ///
    /// # Errors
    /// When the program and its descendants have ended.
    pub async fn reply(&self, bytes: &[u8]) -> Result<(), PtyError> {
        self.shared.ask(Ask::Reply(bytes.to_vec())).await
    }

    /// Types a secret and a return, once, and only if the terminal's echo is off at that moment. The secret is
    /// neither recorded nor logged nor shown to the reader, and its memory is wiped.
    ///
    /// # Errors
    /// When the terminal's echo is on or unknown: nothing is typed. When the secret is longer than a line (4,095
    /// bytes), or the program has ended.
    ///
    /// # Cancellation
    /// The secret is either typed or not; the caller can't know which.
    pub async fn send_secret(&self, secret: SecretString) -> Result<(), PtyError> {
        self.shared.type_keys(Keys::Secret(secret), None).await.map(drop)
    }

    /// Waits for output, and returns all since the last call as text, with U+FFFD for what isn't UTF-8. A
    /// character that was written in two pieces is one. `None` when no more output will come, or if output isn't
    /// kept and the program and its descendants have ended. While [`OUTPUT_BYTES_MAX`] bytes are queued, the
    /// program waits too.
    ///
    /// # Cancellation
    /// Nothing is lost.
    pub async fn read_output(&self) -> Option<String> {
        let (text, was_full) = self.shared.output.take().await?;
        if was_full {
            self.shared.wake();
        }
        Some(text)
    }

    /// Returns a handle that receives events. Several handles share one queue: each event goes to one of them.
    pub fn events(&self) -> Events {
        Events { shared: Arc::clone(&self.shared) }
    }

    /// Returns the next event: [`Events::next`] of such a handle.
    pub async fn next_event(&self) -> Option<Detected> {
        self.events().next().await
    }

    /// Sets the window size, at least one cell; the program gets SIGWINCH.
    ///
    /// # Errors
    /// When the program has ended, or the system refuses.
    pub async fn resize(&self, size: WindowSize) -> Result<(), PtyError> {
        self.asked(|answer| Ask::Resize(size, answer)).await
    }

    /// Signals the terminal's foreground group; a signal that ends or continues a program goes to its own group
    /// too.
    ///
    /// # Errors
    /// When the program has ended, or the platform has no such signal.
    pub async fn signal(&self, signal: PtySignal) -> Result<(), PtyError> {
        self.asked(|answer| Ask::Signal(signal, answer)).await
    }

    async fn asked(
        &self,
        ask: impl FnOnce(oneshot::Sender<Result<(), PtyError>>) -> Ask,
    ) -> Result<(), PtyError> {
        let (answer, answered) = oneshot::channel();
        self.shared.ask(ask(answer)).await?;
        answered.await.unwrap_or(Err(PtyError::Ended))
    }

    /// Waits for the program's end. Its earlier output has then been read, unless another process goes on writing
    /// to the terminal. Its remaining processes are then asked to end, and killed after [`PtyOptions::grace`];
    /// [`gone`](Self::gone) waits for that.
    ///
    /// A program whose guard was killed, or that a kill didn't end, also counts as ended by signal 9.
    ///
    /// # Cancellation
    /// May be called repeatedly and concurrently.
    pub async fn wait(&self) -> Exit {
        let mut status = self.shared.status.subscribe();
        let status = status.wait_for(|status| status.exit.is_some()).await;
        status.ok().and_then(|status| status.exit).unwrap_or(Exit::Signal(9))
    }

    /// Waits until the program has ended and none of its descendants is left, or those left don't end within 5 s
    /// of being killed.
    ///
    /// # Cancellation
    /// May be called repeatedly and concurrently.
    pub async fn gone(&self) -> Exit {
        let mut status = self.shared.status.subscribe();
        let status = status.wait_for(|status| status.is_gone).await;
        status.ok().and_then(|status| status.exit).unwrap_or(Exit::Signal(9))
    }

    /// Ends the program as `plan` says, and returns when none of its descendants is left. Each further call
    /// escalates at once: it skips first the remaining steps, then the grace.
    ///
    /// # Cancellation
    /// An ending that has begun continues.
    pub async fn end(&self, plan: QuitPlan) -> Exit {
        // A closed inbox means that the terminal has already ended.
        let _ = self.shared.ask(Ask::End(plan)).await;
        self.gone().await
    }

    /// Returns the present screen; after the program's end, the last one.
    ///
    /// # Errors
    /// When the terminal's thread is gone, which only a bug in Provost causes.
    pub async fn view(&self) -> Result<TerminalView, PtyError> {
        view::view(&self.shared).await.ok_or(PtyError::Ended)
    }

    /// Returns the kernel's present data about the terminal and its processes.
    ///
    /// # Errors
    /// As for [`view`](Self::view).
    pub async fn sample(&self) -> Result<KernelSample, PtyError> {
        let (answer, sample) = oneshot::channel();
        self.shared.ask(Ask::Sample(answer)).await?;
        sample.await.map_err(|_| PtyError::Ended)
    }

    /// Returns a stream of the settled changes of the screen from now on.
    pub fn changes(&self) -> Changes {
        Changes { shared: Arc::clone(&self.shared), revision: self.shared.revision.subscribe() }
    }

    /// Watches the terminal: first a snapshot, then all output after it, without a gap.
    ///
    /// # Errors
    /// As for [`view`](Self::view).
    pub async fn watch(&self, kind: WatcherKind) -> Result<Watcher, PtyError> {
        let (answer, queue) = oneshot::channel();
        self.shared.ask(Ask::Watch(kind, answer)).await?;
        let queue = queue.await.map_err(|_| PtyError::Ended)?;
        Ok(Watcher { queue, shared: Arc::clone(&self.shared) })
    }

    /// Returns whether the program runs.
    pub fn is_running(&self) -> bool {
        self.shared.is_running()
    }

    /// Returns whether all processes below the terminal were observed to end, once the program is
    /// [gone](Self::gone). It is `false` when the system doesn't release a process, when its guard was killed and
    /// this process doesn't adopt orphans ([`adopt_orphans`](crate::adopt_orphans)), and where there are no
    /// guards.
    pub fn is_all_ended(&self) -> bool {
        self.shared.status.borrow().is_all_ended
    }

    /// Returns the program's process id.
    pub const fn pid(&self) -> u32 {
        self.pid
    }
}

impl Drop for PtySupervisor {
    fn drop(&mut self) {
        self.shared.abandon();
    }
}

/// Each lock is held briefly, and a panic within leaves no partial change.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
