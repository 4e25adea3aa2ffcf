//! The embedded backend of Provost: no service, one process or several on one machine.
//!
//! [`EmbeddedBackend`] is the backend; it stores its data in a [`SessionStore`]: [`SqliteStore`], or [`MemoryStore`] for
//! tests, or your own implementation, which [`conformance`] checks.

mod cache;
pub mod conformance;
mod decide;
mod decorated;
mod embedded;
mod export;
mod feed;
mod folder;
mod import;
mod job;
mod lease;
mod mailbox;
mod memory;
mod prune;
mod queue;
mod reader;
mod serve;
mod sqlite;
mod store;
mod subscribe;
mod transfer;
mod wake;
mod writer;

pub use decorated::{DecoratedStore, Transactions};
pub use embedded::{Damage, EmbeddedBackend};
pub use export::{Exported, export_run};
pub use import::{Salvaged, import_incomplete, import_run};
pub use lease::{FileLeases, HeldLease, Holder, LocalLeases, RunLeases};
pub use mailbox::{Mailbox, MailboxState};
pub use memory::MemoryStore;
pub use prune::{KeptBecause, PrunePlan, PruneRequest, Pruned, plan_prune, prune};
pub use sqlite::{Inspection, Loss, SqliteStore, StoreProblem, back_up, inspect};
pub use store::{NewEntry, OpenEffect, SessionStore, StoreReader, StoredRun};
pub use transfer::{ImportChange, Imported, LineProblem, Lost, TransferError};
pub use wake::{Listening, LocalWakeUps, NoWakeUps, OnWake, WakeUps};

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
