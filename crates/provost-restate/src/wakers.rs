//! Tells this process's subscribers that a run may have new entries.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use provost_event::RunId;
use tokio::sync::watch;

/// Channels to subscribers, by run.
#[derive(Default)]
pub(crate) struct Wakers(Mutex<HashMap<RunId, watch::Sender<u64>>>);

impl Wakers {
    fn all(&self) -> MutexGuard<'_, HashMap<RunId, watch::Sender<u64>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn wake(&self, run: RunId) {
        let mut all = self.all();
        match all.get(&run) {
            Some(sender) if sender.receiver_count() > 0 => sender.send_modify(|count| *count += 1),
            Some(_) => {
                all.remove(&run);
            }
            None => {}
        }
    }

    pub(crate) fn subscribe(&self, run: RunId) -> watch::Receiver<u64> {
        self.all().entry(run).or_insert_with(|| watch::Sender::new(0)).subscribe()
    }
}
