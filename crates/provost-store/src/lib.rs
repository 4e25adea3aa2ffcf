//! The embedded backend of Provost: no service, one process or several on one machine.
//!
//! [`LocalHome`] is the backend; it stores its data in a [`SessionStore`]: [`SqliteStore`], or [`MemoryStore`] for
//! tests, or your own implementation, which [`conformance`] checks.

mod cache;
mod claim;
pub mod conformance;
mod decide;
mod export;
mod feed;
mod folder;
mod home;
mod import;
mod job;
mod memory;
mod prune;
mod queue;
mod reader;
mod serve;
mod sqlite;
mod store;
mod subscribe;
mod transfer;
mod writer;

pub use claim::{Claim, Claims, FileClaims, LocalClaims};
pub use export::{Exported, export_run};
pub use home::{Damage, LocalHome};
pub use import::{Salvaged, import_incomplete, import_run};
pub use memory::MemoryStore;
pub use prune::{KeptBecause, PrunePlan, PruneRequest, Pruned, plan_prune, prune};
pub use sqlite::{Inspection, Loss, SqliteStore, StoreProblem, back_up, inspect};
pub use store::{NewEntry, OpenEffect, SessionStore, StoreReader, StoredRun};
pub use transfer::{ImportChange, Imported, LineProblem, Lost, TransferError};

use provost_harness::HomeError;

/// Starts a thread that is not joined: it ends when its queue is closed.
fn start_thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), HomeError> {
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    started.map(drop).map_err(|error| HomeError::Storage {
        attempt: "start a thread",
        message: error.to_string(),
        hint: None,
    })
}
