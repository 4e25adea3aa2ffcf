//! Programs at a pseudo-terminal: started, shown, typed at, looked on at, and ended for certain.
//!
//! ```text
//!  handles ──asks, keys──▶ ┌ terminal's thread ┐ ──▶ screen and detector ──▶ replies, events
//!  output, events, views ◀─┤ poll: master,     │ ──▶ recording
//!  watchers ◀──────────────┤ wake, guard, time │ ◀──master──▶ program ── guard
//!                          └───────────────────┘
//! ```
//!
//! One thread a terminal owns everything of it. It never waits for anybody: whoever is to catch up (the output's
//! reader, the taker of events) has it stop reading the terminal, and nothing else; a watcher that is slow is given a
//! new snapshot; keys that the program doesn't take wait.

mod device;
mod ending;
mod events;
#[cfg_attr(windows, allow(dead_code, reason = "nothing there tells of the processes at a console"))]
pub(crate) mod kernel;
#[cfg_attr(windows, allow(dead_code, reason = "nothing there tells of the processes at a console"))]
mod live;
mod options;
mod output;
mod shared;
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
use provost_terminal::{Detected, Detector, KernelSample};
use secrecy::SecretString;
use tokio::sync::oneshot;
use tokio::time::timeout;

#[cfg(unix)]
use unix::supervise;
#[cfg(windows)]
use windows::supervise;

use crate::SpawnError;

pub use events::{EVENTS_MAX, Events};
pub use options::{
    EventWish, OutputWish, PtyCommand, PtyError, PtyOptions, PtySignal, QuitPlan, QuitStep, Recorder,
};
pub use output::OUTPUT_BYTES_MAX;
use shared::{Ask, Keys, Shared};
pub use view::{Changes, TerminalView};
pub use watcher::{Painted, WATCHER_BYTES_MAX, Watcher};

/// How long a program may take to begin; only a hung file system takes that long.
const START_MAX: Duration = Duration::from_secs(10);

/// A program at a terminal.
///
/// All methods may be called from several tasks at once. Dropping it doesn't block, and kills the program and all below
/// it within milliseconds, also when this process is killed; [`end`](Self::end) is the civil way.
///
/// ```
/// # #[cfg(target_os = "linux")]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::sync::Arc;
/// # use provost_event::{Exit, WindowSize};
/// # use provost_process::{OutputWish, PtyCommand, PtyOptions, PtySupervisor, allowed_env};
/// # let profile = Arc::new(provost_terminal::Profile::named("generic").ok_or("no profile")?);
/// let mut options = PtyOptions::new(profile);
/// options.hears_output = OutputWish::Wanted;
/// let command = PtyCommand {
///     program: "sh".into(),
///     args: vec!["-c".into(), "read name; echo hello $name; exit 3".into()],
///     env: allowed_env(&[]),
///     cwd: "/".into(),
///     size: WindowSize::default(),
/// };
/// let terminal = PtySupervisor::spawn(command, options).await?;
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

/// What the thread of a terminal begins with.
struct Start {
    command: PtyCommand,
    options: PtyOptions,
    answer: oneshot::Sender<io::Result<PtySupervisor>>,
}

impl PtySupervisor {
    /// Starts the program at a terminal of its own and returns once it executes.
    ///
    /// # Errors
    /// When it couldn't be started, or took more than 10 s to; nothing is left of the attempt.
    ///
    /// # Cancellation
    /// What was started is killed.
    pub async fn spawn(command: PtyCommand, options: PtyOptions) -> Result<Self, SpawnError> {
        let (program, cwd) = (command.program.clone(), command.cwd.clone());
        let (answer, started) = oneshot::channel();
        let start = Start { command, options, answer };
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
        .map_err(|source| SpawnError::of(&program, &cwd, source))
    }

    /// Types this, after everything that was to be typed before, and returns when the terminal has taken all of it,
    /// which for a program that doesn't read may be never. A line of any length reaches the program whole.
    ///
    /// # Errors
    /// When the program has ended, or the system refuses.
    ///
    /// # Cancellation
    /// What the terminal has taken by then stays typed, the rest isn't typed.
    pub async fn send_input(&self, text: &str) -> Result<(), PtyError> {
        self.shared.type_keys(Keys::Input(text.as_bytes().to_vec()), None).await.map(drop)
    }

    /// Types this if `check` agrees, as [`send_input`](Self::send_input) does, and tells whether it was typed. The check
    /// sees the detector and its screen right before the first byte, with all that the program has written by then
    /// (unless whoever reads the output is behind): an answer can be bound to the question it was given for. It runs on
    /// the terminal's thread and should be quick.
    ///
    /// # Errors
    /// As for `send_input`.
    ///
    /// # Cancellation
    /// As for `send_input`.
    pub async fn send_if(
        &self,
        text: &str,
        check: impl FnOnce(&Detector) -> bool + Send + 'static,
    ) -> Result<bool, PtyError> {
        self.shared.type_keys(Keys::Input(text.as_bytes().to_vec()), Some(Box::new(check))).await
    }

    /// Types what the keyboard of an attached person sends. As [`send_input`](Self::send_input) in all else.
    ///
    /// # Errors
    /// As there.
    pub async fn input_raw(&self, bytes: &[u8]) -> Result<(), PtyError> {
        self.shared.type_keys(Keys::Raw(bytes.to_vec()), None).await.map(drop)
    }

    /// Types a secret and a return, once, and only if the terminal doesn't show what is typed at that very moment. It
    /// is neither recorded nor logged nor shown to the detector, and wiped from memory after.
    ///
    /// # Errors
    /// When the terminal shows what is typed, or can't tell: nothing was typed then. When it is longer than a line
    /// (4,095 bytes), or the program has ended.
    ///
    /// # Cancellation
    /// It is either typed or not; which of both can't be told.
    pub async fn send_secret(&self, secret: SecretString) -> Result<(), PtyError> {
        self.shared.type_keys(Keys::Secret(secret), None).await.map(drop)
    }

    /// Returns what the program has written since the last call, as text, with U+FFFD for what isn't UTF-8; waits for
    /// it. A character that was written in two pieces is one. `None` when nothing will come any more, or output wasn't
    /// wanted and the program and all below it has ended. While [`OUTPUT_BYTES_MAX`] wait, the program does too.
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

    /// Gives a handle that takes what is noticed. Several share one queue: each observation goes to one of them.
    pub fn events(&self) -> Events {
        Events { shared: Arc::clone(&self.shared) }
    }

    /// Returns what was noticed next: [`Events::next`] of such a handle.
    pub async fn next_event(&self) -> Option<Detected> {
        self.events().next().await
    }

    /// Gives the window another size, of at least one cell; the program is told.
    ///
    /// # Errors
    /// When the program has ended, or the system refuses.
    pub async fn resize(&self, size: WindowSize) -> Result<(), PtyError> {
        self.asked(|answer| Ask::Resize(size, answer)).await
    }

    /// Signals the terminal's foreground group; what ends or continues a program goes to its own group too.
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

    /// Waits for the program's end. What it wrote before is read then, unless somebody else goes on writing to the
    /// terminal. What it has left behind is then asked to end, and killed after
    /// [`PtyOptions::grace`]; [`gone`](Self::gone) waits for that.
    ///
    /// Ended by signal 9 is also a program whose guard was killed, or that a kill didn't end.
    ///
    /// # Cancellation
    /// It may be called again, and by many at once.
    pub async fn wait(&self) -> Exit {
        let mut status = self.shared.status.subscribe();
        let status = status.wait_for(|status| status.exit.is_some()).await;
        status.ok().and_then(|status| status.exit).unwrap_or(Exit::Signal(9))
    }

    /// Waits until the program has ended and nothing below it is left, or what is left won't go within 5 s of being
    /// killed.
    ///
    /// # Cancellation
    /// It may be called again, and by many at once.
    pub async fn gone(&self) -> Exit {
        let mut status = self.shared.status.subscribe();
        let status = status.wait_for(|status| status.is_gone).await;
        status.ok().and_then(|status| status.exit).unwrap_or(Exit::Signal(9))
    }

    /// Makes the program end as `plan` says, and returns when nothing below it is left. Each further call makes it
    /// harder at once: the rest of the steps is left out, then the grace is.
    ///
    /// # Cancellation
    /// What has begun goes on.
    pub async fn end(&self, plan: QuitPlan) -> Exit {
        // If nobody takes it, all is over already.
        let _ = self.shared.ask(Ask::End(plan)).await;
        self.gone().await
    }

    /// Returns what the terminal shows; after the program's end, what it showed last.
    ///
    /// # Errors
    /// When the terminal's thread is gone, which only a failure of Provost's own makes happen.
    pub async fn view(&self) -> Result<TerminalView, PtyError> {
        view::view(&self.shared).await.ok_or(PtyError::Ended)
    }

    /// Returns what the kernel says of the terminal and the processes at it just now.
    ///
    /// # Errors
    /// As for [`view`](Self::view).
    pub async fn sample(&self) -> Result<KernelSample, PtyError> {
        let (answer, sample) = oneshot::channel();
        self.shared.ask(Ask::Sample(answer)).await?;
        sample.await.map_err(|_| PtyError::Ended)
    }

    /// Follows the settled changes of the screen from now on.
    pub fn changes(&self) -> Changes {
        Changes { shared: Arc::clone(&self.shared), revision: self.shared.revision.subscribe() }
    }

    /// Looks on: first a snapshot, then what is written after it, without a gap.
    ///
    /// # Errors
    /// As for [`view`](Self::view).
    pub async fn watch(&self) -> Result<Watcher, PtyError> {
        let (answer, queue) = oneshot::channel();
        self.shared.ask(Ask::Watch(answer)).await?;
        let queue = queue.await.map_err(|_| PtyError::Ended)?;
        Ok(Watcher { queue, shared: Arc::clone(&self.shared) })
    }

    /// Tells whether the program runs.
    pub fn is_running(&self) -> bool {
        self.shared.is_running()
    }

    /// Tells whether it was seen that nothing below the terminal is left, once the program is [gone](Self::gone). It is `false` when
    /// the system doesn't let a process go, when its guard was killed while nobody adopts orphans
    /// ([`adopt_orphans`](crate::adopt_orphans)), and where there are no guards.
    pub fn is_all_ended(&self) -> bool {
        self.shared.status.borrow().is_all_ended
    }

    /// Returns the program's process number.
    pub const fn pid(&self) -> u32 {
        self.pid
    }
}

impl Drop for PtySupervisor {
    fn drop(&mut self) {
        self.shared.abandon();
    }
}

/// A lock is held for moments only, and nothing is left half done in between.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
