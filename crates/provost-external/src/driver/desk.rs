//! Who notes what happens at a terminal: in order, durable before anybody acts upon it, and no more of it than is new.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use provost_event::{CallId, TerminalAsk, TerminalEvent, TerminalNoted, TerminalState};
use provost_harness::{Redactor, TerminalLog};
use provost_process::PtySupervisor;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::masked::masked;
use super::standing::{Standing, shows_work};

/// A state counts once it has stood for so long, or something else happens after it: one that passes sooner says
/// nothing.
const STATE_STANDS: Duration = Duration::from_millis(150);
/// What may come often is noted so often at once, and from then on once in [`TRIFLE_PAUSE`].
const TRIFLES_MAX: u32 = 40;
const TRIFLE_PAUSE: Duration = Duration::from_secs(1);
/// Notes of others that may wait.
const NOTES_MAX: usize = 16;
/// Between two times of saying that a question is no longer asked.
const WITHDRAW_PAUSE: Duration = Duration::from_millis(500);

/// Where others have something noted among what the terminal shows.
#[derive(Clone)]
pub(crate) struct Notes(mpsc::Sender<(TerminalEvent, oneshot::Sender<()>)>);

impl Notes {
    /// Has it noted; when it returns the entry is durable, or nothing can be noted any more.
    pub(crate) async fn note(&self, event: TerminalEvent) {
        let (noted, done) = oneshot::channel();
        if self.0.send((event, noted)).await.is_ok() {
            // Without an answer nothing is noted any more.
            let _ = done.await;
        }
    }
}

/// The clerk of one terminal; stops when dropped.
pub(crate) struct Desk {
    standing: watch::Receiver<Standing>,
    notes: Notes,
    handed: Arc<Handed>,
    _clerk: JoinSet<()>,
}

impl Desk {
    /// Notes what happens at `pty` from now on.
    pub(crate) fn open(pty: Arc<PtySupervisor>, log: TerminalLog, redactor: Arc<Redactor>) -> Self {
        let (sender, standing) = watch::channel(Standing::new(Instant::now()));
        let (notes, inbox) = mpsc::channel(NOTES_MAX);
        let handed = Arc::<Handed>::default();
        let clerk = Clerk {
            handed: handed.clone(),
            withdraws_at: None,
            log,
            redactor,
            standing: sender,
            held: None,
            last: None,
            trifles: Trifles { left: TRIFLES_MAX, filled: Instant::now() },
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(clerk.run(pty, inbox));
        Self { standing, notes: Notes(notes), handed, _clerk: tasks }
    }

    /// How it stands, to be looked at and waited for.
    pub(crate) fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.clone()
    }

    /// How it stands now.
    pub(crate) fn look(&self) -> Standing {
        self.standing.borrow().clone()
    }

    pub(crate) fn notes(&self) -> Notes {
        self.notes.clone()
    }

    /// From here on somebody else decides on `ask` by the name of `call`, and is told if it is no longer asked. Returns whether it still is.
    pub(crate) fn hand_on(&self, ask: &TerminalAsk, call: &CallId) -> bool {
        self.handed.set(Some((call.clone(), ask.fingerprint.clone())));
        let stands = self.standing.borrow().asks(&ask.fingerprint);
        if !stands {
            self.handed.set(None);
        }
        stands
    }

    /// Nobody else decides any more.
    pub(crate) fn take_back(&self) {
        self.handed.set(None);
    }
}

/// The question that somebody else decides on.
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

struct Clerk {
    handed: Arc<Handed>,
    /// When it is said (again) that what was handed on is no longer asked.
    withdraws_at: Option<Instant>,
    log: TerminalLog,
    redactor: Arc<Redactor>,
    standing: watch::Sender<Standing>,
    /// A state that may pass, and when it is noted.
    held: Option<(TerminalNoted, Instant)>,
    /// What was noted last.
    last: Option<TerminalEvent>,
    trifles: Trifles,
}

impl Clerk {
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
                    // Whoever asked may be gone.
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

    /// The detector noticed this.
    async fn take(&mut self, noted: TerminalNoted) {
        if shows_work(&noted) {
            self.standing.send_modify(|standing| standing.works += 1);
        }
        match &noted.event {
            // Its end is noted by whoever sees to it that nothing is left.
            TerminalEvent::Exited { .. } | TerminalEvent::State(TerminalState::Exited) => {}
            // What it does while it is being ended is to end.
            TerminalEvent::State(_) if self.last_state() == TerminalState::Exiting => {}
            TerminalEvent::State(_) => {
                let due = match &self.held {
                    Some((_, due)) => *due,
                    None => Instant::now() + self.trifles.pause(Instant::now()),
                };
                self.held = Some((noted, due));
            }
            event if is_trifle(event) && !self.trifles.take(Instant::now()) => {
                // It isn't kept, but it was: how it stands must be true.
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
        let is_news = self.last.as_ref() != Some(&noted.event);
        let failed = self.standing.borrow().failure.is_some();
        if is_news && !failed {
            let shown = masked(&noted, &self.redactor);
            if let Err(error) = self.log.note(shown).await {
                tracing::warn!(%error, "what happened at a terminal couldn't be noted");
                self.standing.send_modify(|standing| standing.failure = Some(error.to_string()));
            }
            self.last = Some(noted.event.clone());
        }
        // What isn't noted because it says nothing new may be acted upon all the same.
        self.fold(&noted);
    }

    fn fold(&mut self, noted: &TerminalNoted) {
        self.standing.send_modify(|standing| standing.fold(noted, Instant::now()));
        self.withdraws_at = self.withdraws_at.or_else(|| self.gone().map(|_| Instant::now()));
    }

    /// The call for a question that is no longer asked, though somebody decides on it.
    fn gone(&self) -> Option<CallId> {
        let (call, fingerprint) = self.handed.get()?;
        (!self.standing.borrow().asks(&fingerprint)).then_some(call)
    }

    /// Says that it is no longer asked, and says it again until nobody decides on it any more: whoever is to hear it may
    /// only be about to ask.
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
        | TerminalEvent::Exited { .. } => false,
    }
}

/// How much may be noted of what may come often.
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

    /// How long a state has to stand: longer where states change all the time.
    fn pause(&mut self, now: Instant) -> Duration {
        if self.take(now) { STATE_STANDS } else { TRIFLE_PAUSE }
    }
}
