//! The ports to a backend, which runs the actors: it stores decisions and has their effects performed.

mod catalog;
mod log;
mod worker;

use provost_event::{ActorKey, RunId, Seq};

pub use catalog::{Catalog, RunCursor, RunFilter, RunQuery, RunStatus, RunStatusFilter, RunSummary};
pub use log::{Log, PlacedEntry, PlacedRecord, Posted, RunPosition};
pub use worker::{Holder, RunLease, Unheld, Worker};

/// Why a backend couldn't do its work.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// The store failed; nothing of the attempt is stored.
    #[error("can't {attempt}: {message}{}", hint.map(|h| format!(" ({h})")).unwrap_or_default())]
    Storage {
        /// What was attempted.
        attempt: &'static str,
        /// The store's own message.
        message: String,
        /// The remedy, if known.
        hint: Option<&'static str>,
    },
    /// Another writer was first: this one has lost the log and writes nothing more.
    #[error("another process has taken over {actor}")]
    Conflict {
        /// The actor of the log.
        actor: ActorKey,
    },
    /// Another process holds the run.
    #[error("run {run} is being worked on by {by}")]
    Held {
        /// The run.
        run: RunId,
        /// The holder, if known (`process 1234 since …`).
        by: String,
    },
    /// The process that holds the run didn't decide in time. The post was withdrawn, and never has an effect.
    #[error(
        "{by} holds run {run} and has not decided within 5 s; the request is withdrawn, and nothing has changed"
    )]
    Undecided {
        /// The run.
        run: RunId,
        /// The holder, if known (`process 1234 since …`).
        by: String,
    },
    /// It isn't known whether the process that holds the run has decided: the post couldn't be withdrawn. It has its
    /// effect once at most, perhaps later.
    #[error("{by} holds run {run}, and it isn't known whether it has decided or still will")]
    Unanswered {
        /// The run.
        run: RunId,
        /// The holder, if known.
        by: String,
    },
    /// An existing log can't be read.
    #[error("the log of {actor} can't be read at entry {seq}: {message}")]
    Unreadable {
        /// The actor of the log.
        actor: ActorKey,
        /// The first unreadable entry.
        seq: Seq,
        /// Why.
        message: String,
    },
    /// There is nothing with this name.
    #[error("there is no {what}")]
    Unknown {
        /// What was asked for.
        what: String,
    },
    /// The backend has been shut down.
    #[error("the store has been closed")]
    Closed,
}

/// All ports of a backend. Implemented by what implements the three.
pub trait Backend: Log + Catalog + Worker {}

impl<B: Log + Catalog + Worker> Backend for B {}
