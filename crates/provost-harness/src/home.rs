//! The port to a home: where actors live. It keeps what is decided and has its effects performed.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use provost_engine::{Event, Uncertain};
use provost_event::{ActorKey, Elapsed, MicroDollars, Outcome, Record, RunId, Seq, Timestamp};
use tokio_util::sync::CancellationToken;

use crate::{Blobs, Executor};

/// What became of a post.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Posted {
    /// The actor's last entry after it.
    pub head: Seq,
    /// Whether it changed anything; false for an event that was doubled or late.
    pub changed: bool,
}

/// Why a home couldn't do its work.
#[derive(Debug, Clone, thiserror::Error)]
pub enum HomeError {
    /// The store behind it failed; nothing of the attempt is kept.
    #[error("can't {attempt}: {message}{}", hint.map(|h| format!(" ({h})")).unwrap_or_default())]
    Storage {
        /// What was attempted.
        attempt: &'static str,
        /// The store's own message.
        message: String,
        /// What would help, if known.
        hint: Option<&'static str>,
    },
    /// Another writer was there first: this one has lost the log and touches nothing more.
    #[error("another process has taken over {actor}")]
    Conflict {
        /// Whose log.
        actor: ActorKey,
    },
    /// Somebody else works on the run.
    #[error("run {run} is being worked on by {by}")]
    Held {
        /// The run.
        run: RunId,
        /// Who, as far as known (`process 1234 since …`).
        by: String,
    },
    /// A log that is there can't be read.
    #[error("the log of {actor} can't be read at entry {seq}: {message}")]
    Unreadable {
        /// Whose log.
        actor: ActorKey,
        /// Where.
        seq: Seq,
        /// Why.
        message: String,
    },
    /// There is nothing by that name.
    #[error("there is no {what}")]
    Unknown {
        /// What was asked for.
        what: String,
    },
    /// The home has been shut down.
    #[error("the store has been closed")]
    Closed,
}

/// Which runs to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunQuery {
    /// At most so many, the newest first.
    pub max: usize,
}

/// How a run stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunStatus {
    /// Somebody works on it now.
    Running,
    /// Nobody works on it, though it isn't at rest: its process is gone.
    Interrupted,
    /// It rests or has ended.
    Rests(Outcome),
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    /// Its name.
    pub run: RunId,
    /// What it is to reach.
    pub goal: String,
    /// Its root agent's workspace.
    pub workspace: std::path::PathBuf,
    /// Its root agent's model.
    pub model: String,
    /// How it stands.
    pub status: RunStatus,
    /// When it was started.
    pub started_at: Timestamp,
    /// When something last happened to it.
    pub updated_at: Timestamp,
    /// Turns of all its agents.
    pub turns: u32,
    /// Tokens of all kinds.
    pub tokens: u64,
    /// Money, as far as prices are known.
    pub cost: MicroDollars,
    /// What of both no provider has reported: estimated, or lost to a crash.
    pub uncertain: Uncertain,
    /// How long processes have held the run.
    pub elapsed: Elapsed,
    /// What is wrong with its log, where that is known: then the rest says how the run stood before.
    pub damage: Option<String>,
}

/// A run that this process works on; dropping it gives the run up.
#[async_trait]
pub trait Serving: Send + Sync {
    /// The run.
    fn run(&self) -> RunId;

    /// Returns why this process no longer works on the run, once that is so: what happened couldn't be made
    /// durable, or another process took over. Pending for ever while all is well.
    ///
    /// # Cancellation
    /// Safe.
    async fn failed(&self) -> HomeError;

    /// Gives the run up; when it returns, nothing of it runs here any more and another may claim it.
    ///
    /// # Cancellation
    /// Dropping the future is the same as dropping the guard: the run is given up soon.
    async fn release(self: Box<Self>);
}

/// Where actors live.
///
/// Posts to one actor are serial. What a decision comes to is durable before `post` returns and before any of
/// its effects is performed; either all of it is kept or nothing.
#[async_trait]
pub trait Home: Blobs {
    /// Has the actor `key` decide on `event`. A second post with the same `dedup` does nothing.
    ///
    /// # Errors
    /// [`HomeError::Storage`] when it couldn't be made durable: nothing happened then.
    ///
    /// # Cancellation
    /// Dropping the future doesn't take the post back.
    async fn post(&self, key: ActorKey, event: Event, dedup: Option<&str>) -> Result<Posted, HomeError>;

    /// Entries of `key` after `after`, at most `max` of them, in order. Empty when there are none (yet).
    ///
    /// # Errors
    /// When they can't be read.
    async fn read(&self, key: ActorKey, after: Seq, max: usize) -> Result<Vec<Arc<Record>>, HomeError>;

    /// The newest entry of `key` that is a snapshot; `None` where there is none, or where this home can't find it
    /// without reading the log, as by default: then whoever wants to know how the actor stands reads the whole log.
    ///
    /// # Errors
    /// When it can't be read.
    async fn newest_snapshot(&self, key: ActorKey) -> Result<Option<Arc<Record>>, HomeError> {
        let _ = key;
        Ok(None)
    }

    /// Runs, newest first.
    ///
    /// # Errors
    /// When they can't be read.
    async fn list(&self, query: RunQuery) -> Result<Vec<RunSummary>, HomeError>;

    /// The actors of `run` that have a log: the run's own, then its sessions' by number.
    ///
    /// # Errors
    /// When they can't be read.
    async fn actors(&self, run: RunId) -> Result<Vec<ActorKey>, HomeError>;

    /// Entries of `key` after `after` as they come, without a gap or a repeat, for ever; whoever writes them.
    fn subscribe(&self, key: ActorKey, after: Seq) -> BoxStream<'static, Result<Arc<Record>, HomeError>>;

    /// Claims `run` for this process: until the returned guard is dropped, its effects are performed by
    /// `executor` here and nowhere else. Effects that a process which is gone left open are recovered first
    /// (the run's actor gets `Recover`). A run that isn't there yet may be claimed too.
    ///
    /// When `stop` fires, nothing more is started, and what is in flight is dropped.
    ///
    /// # Errors
    /// [`HomeError::Held`] while somebody else works on it.
    async fn serve(
        &self,
        run: RunId,
        executor: Arc<dyn Executor>,
        stop: CancellationToken,
    ) -> Result<Box<dyn Serving>, HomeError>;
}
