//! Records what happens at a terminal: in order, durable before any component acts on it, and without repeats.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use provost_event::{CallId, TerminalAsk, TerminalEvent, TerminalNoted, TerminalState};
use provost_harness::{Redactor, TerminalLog};
use provost_process::PtySupervisor;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::masked::masked;
use super::terminal_status::TerminalStatus;

/// A state counts once it has lasted this long, or another event follows it; a shorter one says nothing.
const STATE_STANDS: Duration = Duration::from_millis(150);
/// Frequent events that may be recorded in one burst; from then on one each [`TRIFLE_PAUSE`].
const TRIFLES_MAX: u32 = 40;
const TRIFLE_PAUSE: Duration = Duration::from_secs(1);
/// Events of other components that may be queued.
const NOTES_MAX: usize = 16;
/// The interval at which a withdrawn question is reported again.
const WITHDRAW_PAUSE: Duration = Duration::from_millis(500);

/// Records events of other components among those of the terminal.
#[derive(Clone)]
pub(crate) struct Notes(mpsc::Sender<(TerminalEvent, oneshot::Sender<()>)>);

impl Notes {
    /// Records the event. On return the entry is durable, or nothing can be recorded any more.
    pub(crate) async fn note(&self, event: TerminalEvent) {
        let (noted, done) = oneshot::channel();
        if self.0.send((event, noted)).await.is_ok() {
            // No reply means that nothing is recorded any more.
            let _ = done.await;
        }
    }
}

/// The task that records one terminal; stops when dropped.
pub(crate) struct RecorderHandle {
    standing: watch::Receiver<TerminalStatus>,
    notes: Notes,
    handed: Arc<Handed>,
    _recorder: JoinSet<()>,
}

impl RecorderHandle {
    /// Records what happens at `pty` from now on.
    pub(crate) fn open(
        pty: Arc<PtySupervisor>,
        log: TerminalLog,
        redactor: Arc<Redactor>,
        waits: WaitEvidence,
    ) -> Self {
        let (sender, standing) = watch::channel(TerminalStatus::new(Instant::now()));
        let (notes, inbox) = mpsc::channel(NOTES_MAX);
        let handed = Arc::<Handed>::default();
        let recorder = EventRecorder {
            handed: handed.clone(),
            withdraws_at: None,
            log,
            redactor,
            waits,
            pty: pty.clone(),
            standing: sender,
            held: None,
            last: None,
            trifles: Trifles { left: TRIFLES_MAX, filled: Instant::now() },
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(recorder.run(pty, inbox));
        Self { standing, notes: Notes(notes), handed, _recorder: tasks }
    }

    /// The terminal's status, to read and to wait on.
    pub(crate) fn standing(&self) -> watch::Receiver<TerminalStatus> {
        self.standing.clone()
    }

    /// The terminal's present status.
    pub(crate) fn look(&self) -> TerminalStatus {
        self.standing.borrow().clone()
    }

    pub(crate) fn notes(&self) -> Notes {
        self.notes.clone()
    }

    /// Passes `ask` on as `call`, and reports a withdrawal of the question. Returns whether it is still asked.
    pub(crate) fn hand_on(&self, ask: &TerminalAsk, call: &CallId) -> bool {
        self.handed.set(Some((call.clone(), ask.fingerprint.clone())));
        let stands = self.standing.borrow().asks(&ask.fingerprint);
        if !stands {
            self.handed.set(None);
        }
        stands
    }

    /// The question is decided; its withdrawal isn't reported any more.
    pub(crate) fn take_back(&self) {
        self.handed.set(None);
    }
}

/// The question that waits for a decision.
#[derive(Default)]
struct Handed(Mutex<Option<(CallId, String)>>);

impl Handed {
    fn set(&self, handed: Option<(CallId, String)>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = handed;
    }

    fn get(&self) -> Option<(CallId, String)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Whether a program that reads input waits for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitEvidence {
    /// It does.
    Enough,
    /// Not if it paints frames: it has a goal and no profile, and may read keys while it works.
    OfLinesOnly,
}

struct EventRecorder {
    handed: Arc<Handed>,
    /// When the withdrawal of the question is reported (again).
    withdraws_at: Option<Instant>,
    log: TerminalLog,
    redactor: Arc<Redactor>,
    waits: WaitEvidence,
    pty: Arc<PtySupervisor>,
    standing: watch::Sender<TerminalStatus>,
    /// A state that may pass, and when it is recorded.
    held: Option<(TerminalNoted, Instant)>,
    /// The last recorded event.
    last: Option<TerminalEvent>,
    trifles: Trifles,
}

impl EventRecorder {
    async fn run(
        mut self,
        pty: Arc<PtySupervisor>,
        mut inbox: mpsc::Receiver<(TerminalEvent, oneshot::Sender<()>)>,
    ) {
        loop {
            let due = self.held.as_ref().map(|(_, due)| *due);
            tokio::select! {
                biased;
                () = at(due), if due.is_some() => self.release().await,
                () = at(self.withdraws_at), if self.withdraws_at.is_some() => self.withdraw().await,
                detected = pty.next_event() => match detected {
                    Some(detected) => self.take(detected.noted).await,
                    None => break,
                },
                Some((event, done)) = inbox.recv() => {
                    self.release().await;
                    self.note(TerminalNoted::certain(event)).await;
                    // The caller may be gone.
                    let _ = done.send(());
                }
            }
        }
        self.release().await;
        let exit = pty.wait().await;
        self.standing.send_modify(|standing| standing.exit = Some(exit));
        while let Some((event, done)) = inbox.recv().await {
            self.note(TerminalNoted::certain(event)).await;
            let _ = done.send(());
        }
    }

    /// Handles an event of the detector.
    async fn take(&mut self, noted: TerminalNoted) {
        self.standing.send_if_modified(|standing| {
            let before = standing.works;
            standing.count_work(&noted);
            standing.works != before
        });
        match &noted.event {
            // The task that ends the program's processes records its end.
            TerminalEvent::Exited { .. } | TerminalEvent::State(TerminalState::Exited) => {}
            // Its states while it is being ended don't matter.
            TerminalEvent::State(_) if self.last_state() == TerminalState::Exiting => {}
            TerminalEvent::State(_) => {
                let due = match &self.held {
                    Some((_, due)) => *due,
                    None => Instant::now() + self.trifles.pause(Instant::now()),
                };
                self.held = Some((noted, due));
            }
            event if is_trifle(event) && !self.trifles.take(Instant::now()) => {
                // The event isn't recorded, but it happened: the status must be true.
                self.fold(&noted);
            }
            _ => {
                self.release().await;
                self.note(noted).await;
            }
        }
    }

    fn last_state(&self) -> TerminalState {
        self.standing.borrow().state
    }

    async fn release(&mut self) {
        if let Some((noted, _)) = self.held.take() {
            self.note(noted).await;
        }
    }

    async fn note(&mut self, noted: TerminalNoted) {
        let known = self.known(&noted).await;
        let failed = self.standing.borrow().failure.is_some();
        if let Some(known) = known.filter(|known| !failed && self.last.as_ref() != Some(&known.event)) {
            let shown = masked(&known, &self.redactor);
            if let Err(error) = self.log.note(shown).await {
                tracing::warn!(%error, "what happened at a terminal couldn't be noted");
                self.standing.send_modify(|standing| standing.failure = Some(error.to_string()));
            }
            self.last = Some(known.event);
        }
        // An event that isn't recorded, because it is nothing new, may still be acted on.
        self.fold(&noted);
    }

    /// What is known of an event: of a program's wait it may be that its state is unknown, or nothing.
    async fn known(&self, noted: &TerminalNoted) -> Option<TerminalNoted> {
        let is_wait = matches!(
            noted.event,
            TerminalEvent::State(TerminalState::WaitingForInput) | TerminalEvent::WaitingForInput { .. }
        );
        let is_doubtful = is_wait && self.waits == WaitEvidence::OfLinesOnly;
        if !is_doubtful || !self.pty.view().await.is_ok_and(|view| view.paints) {
            return Some(noted.clone());
        }
        let is_state = matches!(noted.event, TerminalEvent::State(_));
        let event = TerminalEvent::State(TerminalState::Unknown);
        is_state.then(|| TerminalNoted { event, ..noted.clone() })
    }

    fn fold(&mut self, noted: &TerminalNoted) {
        self.standing.send_modify(|standing| standing.fold(noted, Instant::now()));
        self.withdraws_at = self.withdraws_at.or_else(|| self.gone().map(|_| Instant::now()));
    }

    /// The call whose question is no longer asked while its decision is pending.
    fn gone(&self) -> Option<CallId> {
        let (call, fingerprint) = self.handed.get()?;
        (!self.standing.borrow().asks(&fingerprint)).then_some(call)
    }

    /// Reports the withdrawal, and repeats it until no decision is pending: the receiver may not have asked yet.
    async fn withdraw(&mut self) {
        let Some(call) = self.gone() else {
            self.withdraws_at = None;
            return;
        };
        if let Err(error) = self.log.withdraw(call).await {
            tracing::warn!(%error, "that a question is no longer asked couldn't be said");
        }
        self.withdraws_at = Some(Instant::now() + WITHDRAW_PAUSE);
    }
}

async fn at(time: Option<Instant>) {
    sleep_until(time.unwrap_or_else(Instant::now)).await;
}

/// Whether a program could fill the log with it.
fn is_trifle(event: &TerminalEvent) -> bool {
    match event {
        TerminalEvent::Error { .. }
        | TerminalEvent::Idle
        | TerminalEvent::WaitingForInput { .. }
        | TerminalEvent::Completion { .. }
        | TerminalEvent::Notification { .. } => true,
        TerminalEvent::State(_)
        | TerminalEvent::Started { .. }
        | TerminalEvent::ApprovalRequest(_)
        | TerminalEvent::PasswordPrompt { .. }
        | TerminalEvent::Submitted { .. }
        | TerminalEvent::Answered { .. }
        | TerminalEvent::Attached { .. }
        | TerminalEvent::Detached { .. }
        | TerminalEvent::Activity(_)
        | TerminalEvent::Exited { .. } => false,
    }
}

/// How many frequent events may be recorded.
struct Trifles {
    left: u32,
    filled: Instant,
}

impl Trifles {
    fn take(&mut self, now: Instant) -> bool {
        while self.left < TRIFLES_MAX && now.duration_since(self.filled) >= TRIFLE_PAUSE {
            self.left += 1;
            self.filled += TRIFLE_PAUSE;
        }
        if self.left == TRIFLES_MAX {
            self.filled = now;
        }
        let has_some = self.left > 0;
        self.left = self.left.saturating_sub(1);
        has_some
    }

    /// How long a state has to last: longer where states change all the time.
    fn pause(&mut self, now: Instant) -> Duration {
        if self.take(now) { STATE_STANDS } else { TRIFLE_PAUSE }
    }
}
