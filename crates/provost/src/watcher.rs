//! What a view is shown of a run, and in which order.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use provost_event::{ActorKey, Delta, Entry, Record, Seq};
use provost_harness::HarnessCallback;

use crate::render::View;

/// Hands the records of a run to a view: each once, the run's beginning first, its rest or end last. The logs of a
/// run and of its sessions come on their own ways; what lies between is shown as it comes.
pub(crate) struct Watcher {
    view: Box<dyn View>,
    seen: Mutex<Seen>,
}

struct Seen {
    heads: HashMap<ActorKey, Seq>,
    /// What of sessions came before the run's first entry.
    early: Vec<Arc<Record>>,
    /// The run's rest or end, held back until its sessions' last words are shown.
    last: Option<Arc<Record>>,
}

impl Seen {
    /// What is to be shown, now that `record` has come.
    fn take(&mut self, record: &Arc<Record>) -> Vec<Arc<Record>> {
        let head = self.heads.entry(record.actor).or_default();
        if record.seq <= *head {
            return Vec::new();
        }
        *head = record.seq;
        match (record.actor, &record.entry) {
            (ActorKey::Run(_), Entry::Paused(_) | Entry::Ended(_)) => {
                self.last.replace(Arc::clone(record)).into_iter().collect()
            }
            // The rest wasn't the last, then.
            (ActorKey::Run(_), _) => {
                self.last.take().into_iter().chain([Arc::clone(record)]).chain(self.early.drain(..)).collect()
            }
            (ActorKey::Session(session), _) if !self.heads.contains_key(&session.run.into()) => {
                self.early.push(Arc::clone(record));
                Vec::new()
            }
            (ActorKey::Session(_), _) => vec![Arc::clone(record)],
        }
    }
}

impl Watcher {
    /// Shows what comes after these heads.
    pub(crate) fn new(view: Box<dyn View>, heads: HashMap<ActorKey, Seq>) -> Self {
        Self { view, seen: Mutex::new(Seen { heads, early: Vec::new(), last: None }) }
    }

    /// Shows that a rest was asked for by this signal.
    pub(crate) fn stopping(&self, signal: &str) {
        self.view.stopping(signal);
    }

    /// Takes away what the view only shows meanwhile.
    pub(crate) fn close(&self) {
        self.view.close();
    }

    /// Shows the run's rest or end, now that everything else is shown.
    pub(crate) fn finish(&self) {
        let last = self.seen.lock().unwrap_or_else(PoisonError::into_inner).last.take();
        if let Some(record) = last {
            self.view.record(&record);
        }
        self.view.close();
    }
}

impl HarnessCallback for Watcher {
    fn on_delta(&self, delta: &Delta) {
        self.view.delta(delta);
    }

    fn on_record(&self, record: &Arc<Record>) {
        let shown = self.seen.lock().unwrap_or_else(PoisonError::into_inner).take(record);
        shown.iter().for_each(|record| self.view.record(record));
    }
}
