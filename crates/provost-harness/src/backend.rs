//! The port to a backend, which runs the actors: it stores decisions and has their effects performed.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use provost_engine::{Event, Uncertain};
use provost_event::{ActorKey, Elapsed, MicroDollars, Outcome, Record, RunId, Seq, Timestamp};
use tokio_util::sync::CancellationToken;

use crate::{Blobs, Executor};

/// The result of a post.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Posted {
    /// The actor's last entry after it.
    pub head: Seq,
    /// Whether it changed anything; false for a duplicate or late event.
    pub changed: bool,
}

/// Why a backend couldn't do its work.
#[derive(Debug, Clone, thiserror::Error)]
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

/// A place in the order in which a run's entries were committed, those of all its logs together. Places of different
/// runs or stores can't be compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunPosition(pub u64);

impl RunPosition {
    /// Before the first entry.
    pub const START: Self = Self(0);
}

/// The place of an entry among those of its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlacedEntry {
    /// Its place.
    pub position: RunPosition,
    /// The actor of its log.
    pub actor: ActorKey,
    /// Its number in that log.
    pub seq: Seq,
}

/// An entry and its place among those of its run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedRecord {
    /// Its place.
    pub position: RunPosition,
    /// The entry.
    pub record: Arc<Record>,
}

/// Which runs to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunQuery {
    /// Maximum number of runs, the newest first.
    pub max: usize,
}

/// The status of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunStatus {
    /// A process serves it.
    Running,
    /// No process serves it, though it isn't suspended or ended: its process is gone.
    Interrupted,
    /// It is suspended or has ended.
    Stopped(Outcome),
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    /// Its id.
    pub run: RunId,
    /// Its goal.
    pub goal: String,
    /// Its root agent's workspace.
    pub workspace: std::path::PathBuf,
    /// Its root agent's model.
    pub model: String,
    /// Its status.
    pub status: RunStatus,
    /// When it was started.
    pub started_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// Turns of all its agents.
    pub turns: u32,
    /// Tokens of all kinds.
    pub tokens: u64,
    /// The cost, as far as prices are known.
    pub cost: MicroDollars,
    /// The share of both that no provider has reported: estimated, or lost to a crash.
    pub uncertain: Uncertain,
    /// How long processes have held the run: of a run without an outcome until now, as far as its process has noted it.
    pub elapsed: Elapsed,
    /// The damage of its log, if known: then the other fields show the state before it.
    pub damage: Option<String>,
}

/// A run served by this process; dropping it releases the run.
#[async_trait]
pub trait RunLease: Send + Sync {
    /// The run.
    fn run(&self) -> RunId;

    /// Returns why this process no longer serves the run, once that is so: an event couldn't be made durable, or
    /// another process took over. Pending forever otherwise.
    ///
    /// # Cancellation
    /// Safe.
    async fn failed(&self) -> BackendError;

    /// Releases the run; when it returns, none of its effects run here any more and another process may acquire
    /// the lease.
    ///
    /// # Cancellation
    /// Dropping the future is the same as dropping the guard: the run is released soon.
    async fn release(self: Box<Self>);
}

/// Runs actors.
///
/// Posts to one actor are serial. The result of a decision is durable before `post` returns and before any of its
/// effects is performed; it is stored completely or not at all.
#[async_trait]
pub trait Backend: Blobs {
    /// Has the actor `key` decide on `event`: in the process that holds its run, or here if no process does. A
    /// second post with the same `dedup` has no effect.
    ///
    /// # Errors
    /// [`BackendError::Storage`] when it couldn't be made durable: nothing happened then.
    /// [`BackendError::Undecided`] when another process holds the run and doesn't decide within 5 s: nothing happened
    /// and nothing will. [`BackendError::Unanswered`] when that isn't known.
    ///
    /// # Cancellation
    /// Dropping the future doesn't revoke the post.
    async fn post(&self, key: ActorKey, event: Event, dedup: Option<&str>) -> Result<Posted, BackendError>;

    /// Entries of `key` after `after`, at most `max` of them, in order. Empty when there are none (yet).
    ///
    /// # Errors
    /// When they can't be read.
    async fn read(&self, key: ActorKey, after: Seq, max: usize) -> Result<Vec<Arc<Record>>, BackendError>;

    /// The newest snapshot entry of `key`; `None` if there is none, or if this backend can't find it without
    /// reading the log, as by default: the caller then reads the whole log.
    ///
    /// # Errors
    /// When it can't be read.
    async fn newest_snapshot(&self, key: ActorKey) -> Result<Option<Arc<Record>>, BackendError> {
        let _ = key;
        Ok(None)
    }

    /// Runs, newest first.
    ///
    /// # Errors
    /// When they can't be read.
    async fn list(&self, query: RunQuery) -> Result<Vec<RunSummary>, BackendError>;

    /// The actors of `run` that have a log: the run's own, then its sessions' by number.
    ///
    /// # Errors
    /// When they can't be read.
    async fn actors(&self, run: RunId) -> Result<Vec<ActorKey>, BackendError>;

    /// Entries of `key` after `after` as they are written by any process, without a gap or a repeat, without end.
    fn subscribe(&self, key: ActorKey, after: Seq) -> BoxStream<'static, Result<Arc<Record>, BackendError>>;

    /// The places of the entries of `run` after `after`, at most `max` of them, in the order in which they were
    /// committed: an entry follows all that it depends on, whichever logs they are in, and the order never changes.
    /// Empty at the end.
    ///
    /// # Errors
    /// When they can't be read.
    async fn order(
        &self,
        run: RunId,
        after: RunPosition,
        max: usize,
    ) -> Result<Vec<PlacedEntry>, BackendError>;

    /// The place of the last entry of `run`; [`RunPosition::START`] if it has none.
    ///
    /// # Errors
    /// When it can't be read.
    async fn run_head(&self, run: RunId) -> Result<RunPosition, BackendError>;

    /// The entries of all logs of `run` after `after` in that order, as they are written by any process, also of
    /// agents that begin later, without a gap or a repeat, without end.
    fn subscribe_run(
        &self,
        run: RunId,
        after: RunPosition,
    ) -> BoxStream<'static, Result<PlacedRecord, BackendError>>;

    /// Acquires the lease on `run` for this process: until the returned guard is dropped, its effects are
    /// performed by `executor` here and nowhere else. Effects left open by a process that is gone are recovered
    /// first (the run's actor gets `Recover`). The run needn't exist yet.
    ///
    /// When `stop` fires, nothing more is started, and what is in flight is dropped.
    ///
    /// # Errors
    /// [`BackendError::Held`] while another process holds it.
    async fn serve(
        &self,
        run: RunId,
        executor: Arc<dyn Executor>,
        stop: CancellationToken,
    ) -> Result<Box<dyn RunLease>, BackendError>;
}
