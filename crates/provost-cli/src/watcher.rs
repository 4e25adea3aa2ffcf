//! What a view is shown of a run, in which order, and which of its questions are open.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use provost_event::{ActorKey, Delta, EffectId, Entry, GateEntry, LifecycleEntry, Record, Seq};
use provost_harness::{HarnessCallback, LivePieces};
use tokio::sync::Notify;

use crate::names::Names;
use crate::render::View;
use provost_view::ApprovalQuestion;

/// Hands the records of a run to a view, each once, in the order in which they were committed.
pub(crate) struct Watcher {
    view: Box<dyn View>,
    /// What was shown of each log.
    seen: Mutex<HashMap<ActorKey, Seq>>,
    asks: Asks,
    open: Mutex<Vec<ApprovalQuestion>>,
    /// Those of suspended agents: they are asked again when their agents go on.
    aside: Mutex<Vec<ApprovalQuestion>>,
    names: Mutex<Names>,
    /// Notified when a question opens or closes.
    changed: Notify,
    /// What other processes are told of answers that aren't committed.
    live: LivePieces,
}

/// Where a question is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    /// This process, on its terminal: the view leaves questions alone.
    HereOnTerminal,
    /// In any other process; the view says how to answer.
    Elsewhere,
}

impl Watcher {
    /// Shows what comes after these heads.
    pub(crate) fn new(view: Box<dyn View>, asks: Asks, heads: HashMap<ActorKey, Seq>) -> Self {
        let seen = Mutex::new(heads);
        let (open, aside, names) = Default::default();
        Self { view, seen, asks, open, aside, names, changed: Notify::new(), live: LivePieces::default() }
    }

    /// Takes in the names of agents that existed before the first record that is shown.
    pub(crate) fn knows(&self, names: Names) {
        locked(&self.names).add(names);
    }

    /// Shows that a suspension was requested by this signal.
    pub(crate) fn stopping(&self, signal: &str) {
        self.view.stopping(signal);
    }

    /// Removes what the view shows only meanwhile.
    pub(crate) fn close(&self) {
        self.view.close();
    }

    /// What other processes are told.
    pub(crate) const fn live(&self) -> &LivePieces {
        &self.live
    }

    /// The view that asks questions.
    pub(crate) fn view(&self) -> &dyn View {
        &*self.view
    }

    /// Takes in a question that was open before the first record that is shown, or that a record asks; each once.
    pub(crate) fn opened(&self, question: ApprovalQuestion) {
        if self.questions().iter().any(|known| known.id() == question.id()) {
            return;
        }
        if self.asks == Asks::Elsewhere {
            self.view.waits(&question);
        }
        self.questions().push(question);
        self.changed.notify_one();
    }

    /// The oldest open question that `but` doesn't name. The log says when its time is over: the wall clock may be
    /// set.
    pub(crate) fn next_question(&self, but: &[EffectId]) -> Option<ApprovalQuestion> {
        self.questions().iter().find(|question| !but.contains(&question.id())).cloned()
    }

    /// Returns once the question has its answer, or is no longer asked.
    ///
    /// # Cancellation
    /// Safe.
    pub(crate) async fn closed(&self, id: EffectId) {
        while self.questions().iter().any(|question| question.id() == id) {
            self.changed.notified().await;
        }
    }

    /// Returns once a question opened or closed since the last call; at most one may wait.
    ///
    /// # Cancellation
    /// Safe.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    fn questions(&self) -> MutexGuard<'_, Vec<ApprovalQuestion>> {
        locked(&self.open)
    }

    fn note(&self, record: &Record) {
        let mut names = locked(&self.names);
        names.learn(record);
        if let Some(question) = ApprovalQuestion::of(record) {
            let name = names.name(question.session).to_owned();
            let question = question.by(&name);
            drop(names);
            return self.opened(question);
        }
        drop(names);
        let is_of_it = |question: &mut ApprovalQuestion| ActorKey::from(question.session) == record.actor;
        match &record.entry {
            Entry::Gate(GateEntry::ApprovalResolved(entry)) => {
                let id = EffectId { actor: record.actor, seq: entry.asked };
                self.questions().retain(|question| question.id() != id);
                locked(&self.aside).retain(|question| question.id() != id);
            }
            // They stay open in the log, but their agent is about to be suspended: they are not asked before it
            // goes on.
            Entry::Lifecycle(LifecycleEntry::StopRequested(_) | LifecycleEntry::Paused(_)) => {
                let rest = self.questions().extract_if(.., is_of_it).collect::<Vec<_>>();
                locked(&self.aside).extend(rest);
            }
            Entry::Lifecycle(LifecycleEntry::Ended(_)) => {
                self.questions().retain_mut(|question| !is_of_it(question));
                locked(&self.aside).retain_mut(|question| !is_of_it(question));
            }
            Entry::Lifecycle(LifecycleEntry::Resumed(_)) => {
                let back = locked(&self.aside).extract_if(.., is_of_it).collect::<Vec<_>>();
                back.into_iter().for_each(|question| self.opened(question.anew(record.at)));
            }
            _ => return,
        }
        self.changed.notify_one();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HarnessCallback for Watcher {
    fn on_delta(&self, delta: &Delta) {
        self.view.delta(delta);
        self.live.delta(delta);
    }

    fn on_record(&self, record: &Arc<Record>) {
        {
            let mut seen = locked(&self.seen);
            let head = seen.entry(record.actor).or_default();
            if record.seq <= *head {
                return;
            }
            *head = record.seq;
        }
        self.view.record(record);
        self.live.record(record);
        self.note(record);
    }
}
