//! The interface to a database: only what [`EmbeddedBackend`](crate::EmbeddedBackend) needs.

use std::path::PathBuf;
use std::sync::Arc;

use provost_engine::{ActorStatus, Effect, Uncertain};
use provost_event::{
    ActorKey, BlobId, EffectId, Elapsed, MicroDollars, Outcome, Record, RunId, Seq, Timestamp,
};
use provost_harness::{BackendError, PlacedEntry, RunCursor, RunPosition};

use crate::{Mailbox, RunLeases, WakeUps};

/// The layout of an unusable snapshot: a store may return one in place of a snapshot that it can't read.
pub const NO_LAYOUT: u32 = 0;

/// A record to be written to a store, serialized once.
#[derive(Debug, Clone)]
pub struct NewEntry {
    /// The record.
    pub record: Arc<Record>,
    /// Its entry's fields as a JSON object.
    pub body: String,
}

/// The entry after which a log begins whose first entries are `entries`: not the start for a fork.
#[must_use]
pub fn log_begins(entries: &[NewEntry]) -> Seq {
    entries.first().map_or(Seq::START, |first| first.record.entry.follows())
}

impl NewEntry {
    /// Serializes the record's entry.
    ///
    /// # Errors
    /// [`BackendError::Storage`] when the entry has no JSON form.
    pub fn new(record: Record) -> Result<Self, BackendError> {
        let body = record.entry.body().map_err(|error| BackendError::Storage {
            attempt: "serialize an entry",
            message: error.to_string(),
            hint: None,
        })?;
        Ok(Self { record: Arc::new(record), body })
    }
}

/// An open effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenEffect {
    /// Its id.
    pub id: EffectId,
    /// The effect.
    pub effect: Effect,
    /// The owner's epoch in which it was started; `None` if it was decided while no process served its run.
    pub epoch: Option<u64>,
    /// Whether a process that doesn't serve its run requested its abort.
    pub abort: bool,
}

/// A run's row for lists, as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRun {
    /// Its id.
    pub run: RunId,
    /// Its goal.
    pub goal: String,
    /// The root agent's workspace.
    pub workspace: PathBuf,
    /// The root agent's model.
    pub model: String,
    /// The outcome of its last segment.
    pub outcome: Option<Outcome>,
    /// When it was started; never changes.
    pub started_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// Turns of all agents.
    pub turns: u32,
    /// Tokens of all kinds.
    pub tokens: u64,
    /// Cost.
    pub cost: MicroDollars,
    /// The share of both that no provider has reported: estimated, or lost to a crash.
    pub uncertain: Uncertain,
    /// How long processes have held the run.
    pub elapsed: Elapsed,
    /// The damage of its log, if the row had to be rebuilt: then it shows the state before the damage. Never
    /// stored.
    pub damage: Option<String>,
}

impl StoredRun {
    /// Its place in the list of runs.
    #[must_use]
    pub const fn cursor(&self) -> RunCursor {
        RunCursor { started_at: self.started_at, run: self.run }
    }

    /// The row of `run` as its actor describes it.
    #[must_use]
    pub fn new(run: RunId, status: ActorStatus) -> Self {
        Self {
            run,
            goal: status.goal,
            workspace: status.workspace,
            model: status.model,
            outcome: status.outcome,
            started_at: status.started_at,
            updated_at: status.updated_at,
            turns: status.turns,
            tokens: status.tokens,
            cost: status.cost,
            uncertain: status.uncertain,
            elapsed: status.elapsed,
            damage: None,
        }
    }
}

/// Reads committed data. Every method fails with [`BackendError::Storage`] when the store does.
pub trait StoreReader: Send + 'static {
    /// Records of `actor` after `after`, at most `max`, in order; empty at the end and for an unknown actor.
    ///
    /// # Errors
    /// [`BackendError::Unreadable`] at the first one that this version can't read, unless others precede it: then
    /// those may come first.
    fn read(&mut self, actor: ActorKey, after: Seq, max: usize) -> Result<Vec<Arc<Record>>, BackendError>;

    /// The last record of `actor`; [`Seq::START`] for an unknown one.
    ///
    /// # Errors
    /// When it can't be read.
    fn head(&mut self, actor: ActorKey) -> Result<Seq, BackendError>;

    /// The newest [`Snapshot`](provost_event::Snapshot) in the log of `actor`; `None` if there is
    /// none, and for an unknown actor. Must be cheap, however long the log is.
    ///
    /// # Errors
    /// [`BackendError::Unreadable`] when it is there and this version can't read it.
    fn newest_snapshot(&mut self, actor: ActorKey) -> Result<Option<Arc<Record>>, BackendError>;

    /// The actors of `run` that have a record, in the order of [`ActorKey`].
    ///
    /// # Errors
    /// When they can't be read.
    fn actors(&mut self, run: RunId) -> Result<Vec<ActorKey>, BackendError>;

    /// The places of the records of `run` after `after`, at most `max`, in the order in which they were appended.
    ///
    /// # Errors
    /// When they can't be read.
    fn order(&mut self, run: RunId, after: RunPosition, max: usize)
    -> Result<Vec<PlacedEntry>, BackendError>;

    /// The place of the last record of `run`; [`RunPosition::START`] for an unknown one. Must be cheap.
    ///
    /// # Errors
    /// When it can't be read.
    fn run_head(&mut self, run: RunId) -> Result<RunPosition, BackendError>;

    /// At most `max` runs that were started before `after`, the latest start first, in the order of [`RunCursor`]:
    /// the newest ones without `after`. Must not read more than these.
    ///
    /// # Errors
    /// When they can't be read.
    fn runs(&mut self, after: Option<RunCursor>, max: usize) -> Result<Vec<StoredRun>, BackendError>;

    /// The run with this id; `None` if there is none. Must be cheap, however many runs there are.
    ///
    /// # Errors
    /// When it can't be read.
    fn run(&mut self, run: RunId) -> Result<Option<StoredRun>, BackendError>;

    /// At most `max` runs whose ids begin with `prefix`, ordered by id; none if `prefix` is empty. Must be as cheap.
    ///
    /// # Errors
    /// When they can't be read.
    fn runs_with_prefix(&mut self, prefix: &str, max: usize) -> Result<Vec<StoredRun>, BackendError>;

    /// The ids of all bodies.
    ///
    /// # Errors
    /// When they can't be read.
    fn blobs(&mut self) -> Result<Vec<BlobId>, BackendError>;

    /// The body with this `id`.
    ///
    /// # Errors
    /// When it can't be read, or doesn't match its id.
    fn get_blob(&mut self, id: &BlobId) -> Result<Option<Vec<u8>>, BackendError>;
}

/// A place for logs, owned by one writer thread.
///
/// Writing methods are called between [`begin`](Self::begin) and [`commit`](Self::commit) only. Between them the
/// reading methods of this value see its writes; other readers see them only after the commit, and never after a
/// [`rollback`](Self::rollback). Several processes, or several values in one, may write to one place in turn.
///
/// Everything fails with [`BackendError::Storage`] when the store does; its hint has the remedy.
/// [`conformance`](crate::conformance) checks an implementation.
pub trait SessionStore: StoreReader {
    /// A reader for another thread, which doesn't wait (or not long) for transactions of this value to end.
    ///
    /// # Errors
    /// When none can be created.
    fn reader(&mut self) -> Result<Box<dyn StoreReader>, BackendError>;

    /// The leases on runs, for all users of this place.
    fn leases(&self) -> Arc<dyn RunLeases>;

    /// The mailboxes of runs.
    fn mailbox(&mut self) -> &mut dyn Mailbox;

    /// Wakes all users of this place.
    fn wake_ups(&self) -> Arc<dyn WakeUps>;

    /// Begins a transaction: no other process writes until it ends.
    ///
    /// # Errors
    /// When another process has been writing for too long.
    fn begin(&mut self) -> Result<(), BackendError>;

    /// Makes all of the transaction durable.
    ///
    /// # Errors
    /// None of it is kept then, as far as the store can tell; [`rollback`](Self::rollback) is still called.
    fn commit(&mut self) -> Result<(), BackendError>;

    /// Undoes all of the transaction; does nothing when there is none.
    fn rollback(&mut self);

    /// Prepares for a while without writes: a copy of the files is then complete. Cheap if there is nothing to do.
    /// Never waits for other processes.
    ///
    /// # Errors
    /// When it can't.
    fn settle(&mut self) -> Result<(), BackendError> {
        Ok(())
    }

    /// A number that changes exactly when another process or value has committed since the last call. Within a
    /// transaction it covers everything before it. Must be cheap.
    ///
    /// # Errors
    /// When it can't be read.
    fn change_marker(&mut self) -> Result<u64, BackendError>;

    /// Appends to the log of `actor`, whose last record is `expected`. The records are numbered from there. A log
    /// without records ends at [`Entry::follows`](provost_event::Entry::follows) of its first one: a fork's log
    /// continues another log's numbers. Returns the place of the last record in the order of the run; those before
    /// it have the numbers before that. A place is greater than those of all records that the run had.
    ///
    /// # Errors
    /// [`BackendError::Conflict`] when `expected` isn't its last record; nothing is appended then.
    fn append(
        &mut self,
        actor: ActorKey,
        expected: Seq,
        entries: &[NewEntry],
    ) -> Result<RunPosition, BackendError>;

    /// Stores an open effect, replacing one with the same id.
    ///
    /// # Errors
    /// When it can't.
    fn put_effect(&mut self, effect: &OpenEffect) -> Result<(), BackendError>;

    /// Removes an effect; does nothing if there is none.
    ///
    /// # Errors
    /// When it can't.
    fn close_effect(&mut self, id: EffectId) -> Result<(), BackendError>;

    /// Requests the abort of an effect; does nothing if there is none.
    ///
    /// # Errors
    /// When it can't.
    fn request_abort(&mut self, id: EffectId) -> Result<(), BackendError>;

    /// The open effects of `run`, ordered by actor and number.
    ///
    /// # Errors
    /// When they can't be read.
    fn open_effects(&mut self, run: RunId) -> Result<Vec<OpenEffect>, BackendError>;

    /// Whether the post `dedup` to `actor` is marked.
    ///
    /// # Errors
    /// When it can't be read.
    fn has_post(&mut self, actor: ActorKey, dedup: &str) -> Result<bool, BackendError>;

    /// Marks the post `dedup` to `actor`.
    ///
    /// # Errors
    /// When it can't.
    fn mark_post(&mut self, actor: ActorKey, dedup: &str) -> Result<(), BackendError>;

    /// Stores a run's row, replacing the previous one.
    ///
    /// # Errors
    /// When it can't.
    fn put_run(&mut self, run: &StoredRun) -> Result<(), BackendError>;

    /// Stores a body under its id; does nothing if it exists.
    ///
    /// # Errors
    /// When it can't.
    fn put_blob(&mut self, id: &BlobId, body: &[u8]) -> Result<(), BackendError>;

    /// Removes all data that belongs to `run` alone: its logs, effects, marks, row, mailbox. Its outputs
    /// stay. Appending to its logs afterwards starts them anew.
    ///
    /// # Errors
    /// When it can't.
    fn remove_run(&mut self, run: RunId) -> Result<(), BackendError>;

    /// Removes the bodies with these ids; ignores missing ones.
    ///
    /// # Errors
    /// When it can't.
    fn remove_blobs(&mut self, names: &[BlobId]) -> Result<(), BackendError>;

    /// Returns the space of removed data to the system, if that is useful. Called outside of transactions.
    ///
    /// # Errors
    /// When it can't; nothing is lost then.
    fn shrink(&mut self) -> Result<(), BackendError> {
        Ok(())
    }

    /// How many times `run` has been taken over; 0 if never.
    ///
    /// # Errors
    /// When it can't be read.
    fn owner_epoch(&mut self, run: RunId) -> Result<u64, BackendError>;

    /// Increments the take-over count of `run` and returns it.
    ///
    /// # Errors
    /// When it can't.
    fn bump_owner_epoch(&mut self, run: RunId) -> Result<u64, BackendError>;
}
