//! State that the terminal's thread and its handles share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use provost_event::{Exit, WindowSize};
use secrecy::SecretString;
use tokio::sync::{mpsc, oneshot, watch};

use super::events::EventQueue;
use super::options::{PtyError, PtySignal, QuitPlan};
use super::output::Output;
use super::reader::KernelSample;
use super::view::TerminalView;
use super::watcher::{WatcherKind, WatcherQueue};

/// Maximum queued inputs, and requests; further callers wait.
const WAITING_MAX: usize = 64;

/// A request to the thread.
pub(super) enum Ask {
    Resize(WindowSize, oneshot::Sender<Result<(), PtyError>>),
    Signal(PtySignal, oneshot::Sender<Result<(), PtyError>>),
    View(oneshot::Sender<TerminalView>),
    Sample(oneshot::Sender<KernelSample>),
    Watch(WatcherKind, oneshot::Sender<Arc<WatcherQueue>>),
    /// A terminal's replies to the program's queries.
    Reply(Vec<u8>),
    Repaint(Arc<WatcherQueue>),
    End(QuitPlan),
}

/// Decides from the screen whether to type.
pub(super) type Check = Box<dyn FnOnce(&TerminalView) -> bool + Send>;

/// Input to type.
pub(super) enum Keys {
    /// From Provost.
    Input(Vec<u8>),
    /// From the keyboard of an attached person.
    Raw(Vec<u8>),
    Secret(SecretString),
}

pub(super) struct Typed {
    pub(super) keys: Keys,
    /// Called once, before the first byte.
    pub(super) check: Option<Check>,
    /// The caller has given up: the rest isn't typed.
    pub(super) is_dropped: Arc<AtomicBool>,
    /// Whether it was typed, if there was a check.
    pub(super) done: oneshot::Sender<Result<bool, PtyError>>,
}

/// The status of the program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) exit: Option<Exit>,
    /// No process is left below the terminal, or the rest doesn't end.
    pub(super) is_gone: bool,
    /// It was observed that no process is left.
    pub(super) is_all_ended: bool,
}

pub(super) struct Shared {
    running: AtomicBool,
    abandoned: AtomicBool,
    wakes: AtomicBool,
    wake: Box<dyn Fn() + Send + Sync>,
    pub(super) output: Output,
    pub(super) events: EventQueue,
    pub(super) status: watch::Sender<Status>,
    /// The number of settled changes of the screen.
    pub(super) revision: watch::Sender<u64>,
    typed: mpsc::Sender<Typed>,
    asks: mpsc::Sender<Ask>,
}

/// The thread's ends of the queues.
pub(super) struct Inbox {
    pub(super) typed: mpsc::Receiver<Typed>,
    pub(super) asks: mpsc::Receiver<Ask>,
}

impl Shared {
    /// `wake` makes the thread read its inbox; it must not block.
    pub(super) fn new(wake: impl Fn() + Send + Sync + 'static) -> (Arc<Self>, Inbox) {
        let (typed, typed_inbox) = mpsc::channel(WAITING_MAX);
        let (asks, asks_inbox) = mpsc::channel(WAITING_MAX);
        let shared = Self {
            running: AtomicBool::new(true),
            abandoned: AtomicBool::new(false),
            wakes: AtomicBool::new(false),
            wake: Box::new(wake),
            output: Output::default(),
            events: EventQueue::default(),
            status: watch::Sender::new(Status::default()),
            revision: watch::Sender::new(0),
            typed,
            asks,
        };
        (Arc::new(shared), Inbox { typed: typed_inbox, asks: asks_inbox })
    }

    pub(super) fn is_running(&self) -> bool {
        self.running.load(Ordering::Acquire)
    }

    pub(super) fn set_ended(&self) {
        self.running.store(false, Ordering::Release);
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Acquire)
    }

    /// Orders the thread to kill the program and to end.
    pub(super) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Release);
        self.wake();
    }

    /// Makes the thread read its inbox.
    pub(super) fn wake(&self) {
        if !self.wakes.swap(true, Ordering::AcqRel) {
            (self.wake)();
        }
    }

    /// The thread is about to read its inbox: later messages have to wake it again.
    pub(super) fn is_awake(&self) {
        self.wakes.store(false, Ordering::Release);
    }

    pub(super) async fn ask(&self, ask: Ask) -> Result<(), PtyError> {
        self.asks.send(ask).await.map_err(|_| PtyError::Ended)?;
        self.wake();
        Ok(())
    }

    /// Types if `check` agrees; returns when the terminal has taken all of it. If dropped earlier, the rest isn't
    /// typed.
    pub(super) async fn type_keys(
        self: &Arc<Self>,
        keys: Keys,
        check: Option<Check>,
    ) -> Result<bool, PtyError> {
        if !self.is_running() {
            return Err(PtyError::Ended);
        }
        let withdraw = Withdraw { shared: Arc::clone(self), is_dropped: Arc::default() };
        let (done, answer) = oneshot::channel();
        let typed = Typed { keys, check, is_dropped: Arc::clone(&withdraw.is_dropped), done };
        self.typed.send(typed).await.map_err(|_| PtyError::Ended)?;
        self.wake();
        answer.await.unwrap_or(Err(PtyError::Ended))
    }
}

/// Withdraws the input when its caller is dropped.
struct Withdraw {
    shared: Arc<Shared>,
    is_dropped: Arc<AtomicBool>,
}

impl Drop for Withdraw {
    fn drop(&mut self) {
        self.is_dropped.store(true, Ordering::Release);
        self.shared.wake();
    }
}
