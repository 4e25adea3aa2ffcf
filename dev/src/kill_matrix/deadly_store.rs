//! The real store, with transactions at which the process may be killed.

use std::sync::{Arc, Mutex, PoisonError};

use provost_backend::{DecoratedStore, NewEntry, SessionStore as _, Transactions};
use provost_event::{ActorKey, Seq};
use provost_harness::{BackendError, RunPosition};
use provost_sqlite::SqliteStore;

use super::fault::Fault;

/// The kinds of the entries that each transaction has kept, in order.
pub(super) type Kept = Arc<Mutex<Vec<Vec<String>>>>;

/// The kind of entry that a snapshot is.
pub(super) const SNAPSHOT: &str = "snapshot";

/// The transactions.
pub(super) struct Deadly {
    fault: Arc<Fault>,
    kept: Kept,
    now: Vec<String>,
}

impl Deadly {
    pub(super) const fn store(
        store: SqliteStore,
        fault: Arc<Fault>,
        kept: Kept,
    ) -> DecoratedStore<SqliteStore, Self> {
        DecoratedStore::new(store, Self { fault, kept, now: Vec::new() })
    }
}

impl Transactions<SqliteStore> for Deadly {
    fn commit(&mut self, store: &mut SqliteStore) -> Result<(), BackendError> {
        let fault = Arc::clone(&self.fault);
        let has_snapshot = self.now.iter().any(|kind| kind == SNAPSHOT);
        let done = fault.commit(|| match has_snapshot {
            true => fault.snapshot(|| store.commit()),
            false => store.commit(),
        });
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).push(std::mem::take(&mut self.now));
        done
    }

    fn append(
        &mut self,
        store: &mut SqliteStore,
        actor: ActorKey,
        expected: Seq,
        entries: &[NewEntry],
    ) -> Result<RunPosition, BackendError> {
        self.now.extend(entries.iter().map(|entry| entry.record.entry.kind().to_owned()));
        store.append(actor, expected, entries)
    }

    fn rollback(&mut self, store: &mut SqliteStore) {
        self.now.clear();
        store.rollback();
    }
}
