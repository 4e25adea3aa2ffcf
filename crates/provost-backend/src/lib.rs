//! What backends of Provost share: deciding, committing, performing effects and subscribing, on top of a store.
//!
//! [`EmbeddedBackend`] needs no service: it works in one process or several on one machine. It stores its data in a
//! [`SessionStore`]: the SQLite database of `provost-sqlite`, [`MemoryStore`] for tests, or your own implementation.
//! [`conformance`] checks stores and whole backends. There is no SQL and no HTTP here.

mod cache;
pub mod conformance;
mod decide;
mod decorated;
mod embedded;
mod export;
mod feed;
pub mod folder;
mod import;
mod job;
mod lease;
mod mailbox;
mod memory;
mod prune;
mod queue;
mod reader;
mod serve;
mod store;
mod subscribe;
mod transfer;
mod wake;
mod writer;

pub use decorated::{DecoratedStore, Transactions};
pub use embedded::{Damage, EmbeddedBackend, blob_id};
pub use export::{Exported, export_run};
pub use import::{Salvaged, import_incomplete, import_run};
pub use lease::{FileLeases, HeldLease, LocalLeases, RunLeases};
pub use mailbox::{ANSWERED_REQUESTS_MAX, Mailbox, MailboxState};
pub use memory::MemoryStore;
pub use prune::{KeptBecause, PrunePlan, PruneRequest, Pruned, outputs_of, plan_prune, prune};
pub use store::{NO_LAYOUT, NewEntry, OpenEffect, SessionStore, StoreReader, StoredRun, log_begins};
pub use transfer::{ImportChange, Imported, LineProblem, Lost, TransferError};
pub use wake::{Listening, LocalWakeUps, NoWakeUps, OnWake, WakeUps, wake_ups_in};

use provost_harness::BackendError;

/// Starts a thread that is not joined: it ends when its queue is closed.
fn start_thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), BackendError> {
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    started.map(drop).map_err(|error| BackendError::Storage {
        attempt: "start a thread",
        message: error.to_string(),
        hint: None,
    })
}
