//! Reports pieces of answers and of running calls, each after the entry that began its call.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use provost_event::{Delta, DeltaKind, Seq, SessionId, Timestamp};

use crate::{HarnessDeps, RunObservers};

/// Maximum pieces of all sessions that wait for their entry to be reported. Above it the oldest of the session are
/// dropped, or a new one if none of its session waits: the answer has their text.
const HELD_MAX: usize = 4_096;

/// The way of pieces to callback and observers. Entries are reported by another task than the one that calls the
/// model, and some time after they are committed; a piece waits for the entry.
pub(crate) struct Deltas {
    deps: Arc<HarnessDeps>,
    observers: Arc<RunObservers>,
    held: Mutex<HeldDeltas>,
}

#[derive(Default)]
struct HeldDeltas {
    sessions: HashMap<SessionId, SessionDeltas>,
    /// The number of waiting pieces of all sessions.
    waiting: usize,
}

#[derive(Default)]
struct SessionDeltas {
    /// The last reported entry; zero before the first.
    reported: Seq,
    waiting: VecDeque<HeldDelta>,
}

struct HeldDelta {
    call: Seq,
    at: Timestamp,
    delta: Delta,
}

impl Deltas {
    pub(super) fn new(deps: Arc<HarnessDeps>, observers: Arc<RunObservers>) -> Self {
        Self { deps, observers, held: Mutex::default() }
    }

    /// Reports a piece of the answer to the model call, or of the output of the tool call, that the session's entry
    /// `call` began.
    pub(crate) fn delta(&self, call: Seq, delta: Delta) {
        let held = HeldDelta { call, at: self.deps.clock.now(), delta };
        if let Some(held) = self.held().hold(held) {
            self.tell(&held);
        }
    }

    /// The entries of `session` up to `seq` were reported.
    pub(super) fn reported(&self, session: SessionId, seq: Seq) {
        loop {
            // Those that come while these are told wait, too.
            let due = self.held().take_due(session, seq);
            if due.is_empty() {
                return;
            }
            due.iter().for_each(|held| self.tell(held));
        }
    }

    /// Nothing more comes of `session` in this segment.
    pub(super) fn forget(&self, session: SessionId) {
        self.held().forget(session);
    }

    fn held(&self) -> MutexGuard<'_, HeldDeltas> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, held: &HeldDelta) {
        let HeldDelta { at, delta, .. } = held;
        if catch_unwind(AssertUnwindSafe(|| self.deps.callback.on_delta(delta))).is_err() {
            tracing::warn!(session = %delta.session, "the callback panicked at a delta");
        }
        match delta.kind {
            DeltaKind::Text | DeltaKind::Thinking => self.observers.delta(*at, delta),
            // They get the call's result.
            DeltaKind::Output => {}
        }
    }
}

impl HeldDeltas {
    /// Returns it if it needn't wait.
    fn hold(&mut self, held: HeldDelta) -> Option<HeldDelta> {
        let session = self.sessions.entry(held.delta.session).or_default();
        if session.reported >= held.call {
            return Some(held);
        }
        if self.waiting >= HELD_MAX {
            session.waiting.pop_front()?;
            self.waiting -= 1;
        }
        session.waiting.push_back(held);
        self.waiting += 1;
        None
    }

    /// The waiting pieces of the session's calls up to the entry `seq`. If there are none, later ones needn't wait.
    fn take_due(&mut self, session: SessionId, seq: Seq) -> Vec<HeldDelta> {
        let session = self.sessions.entry(session).or_default();
        if session.waiting.is_empty() {
            session.reported = seq;
            return Vec::new();
        }
        let (due, waiting) = session.waiting.drain(..).partition::<Vec<_>, _>(|held| held.call <= seq);
        session.waiting = waiting.into();
        if due.is_empty() {
            session.reported = seq;
        }
        self.waiting -= due.len();
        due
    }

    fn forget(&mut self, session: SessionId) {
        if let Some(forgotten) = self.sessions.remove(&session) {
            self.waiting -= forgotten.waiting.len();
        }
    }
}
