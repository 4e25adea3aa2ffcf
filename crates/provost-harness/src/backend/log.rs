//! The port to the logs of actors.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use provost_engine::{Actor, Event};
use provost_event::{ActorKey, Record, RunId, Seq};

use super::BackendError;
use crate::{Blobs, read_back};

/// The result of a post.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Posted {
    /// The actor's last entry after it.
    pub head: Seq,
    /// Whether it changed anything; false for a duplicate or late event.
    pub changed: bool,
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

/// The logs of actors, and their decisions.
///
/// Posts to one actor are serial. The result of a decision is durable before `post` returns and before any of its
/// effects is performed; it is stored completely or not at all.
#[async_trait]
pub trait Log: Blobs {
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

    /// The state of `key` by its log; that before its first entry if the log is empty. By default it is made from
    /// [`newest_snapshot`](Self::newest_snapshot) and the entries after it; a backend for which each read is a
    /// request may do so at once.
    ///
    /// # Errors
    /// When the log can't be read or is invalid.
    async fn state(&self, key: ActorKey) -> Result<Actor, BackendError> {
        read_back::state(self, key).await
    }

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
}
