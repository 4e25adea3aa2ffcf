//! The seam to a database: what [`LocalHome`](crate::LocalHome) needs of one, and nothing more.

use std::path::PathBuf;
use std::sync::Arc;

use provost_engine::{ActorStatus, Effect, Uncertain};
use provost_event::{
    ActorKey, BlobId, EffectId, Elapsed, MicroDollars, Outcome, Record, RunId, Seq, Timestamp,
};
use provost_harness::HomeError;

use crate::Claims;

/// The layout of a snapshot that nobody can use.
pub(crate) const NO_LAYOUT: u32 = 0;

/// A record on its way into a store, serialized once.
#[derive(Debug, Clone)]
pub struct NewEntry {
    /// The record.
    pub record: Arc<Record>,
    /// Its entry's fields as a JSON object.
    pub body: String,
}

/// Where a log's first record stands: behind this entry.
pub(crate) fn log_begins(entries: &[NewEntry]) -> Seq {
    entries.first().map_or(Seq::START, |first| first.record.entry.follows())
}

impl NewEntry {
    /// Serializes the record's entry.
    ///
    /// # Errors
    /// [`HomeError::Storage`] when the entry has no JSON form.
    pub fn new(record: Record) -> Result<Self, HomeError> {
        let body = record.entry.body().map_err(|error| HomeError::Storage {
            attempt: "serialize an entry",
            message: error.to_string(),
            hint: None,
        })?;
        Ok(Self { record: Arc::new(record), body })
    }
}

/// An effect that isn't over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenEffect {
    /// Its name.
    pub id: EffectId,
    /// What to do.
    pub effect: Effect,
    /// The owner's epoch in which it was handed out; `None` if it was decided where nobody serves its run.
    pub epoch: Option<u64>,
    /// Whether somebody who doesn't serve its run wants it stopped.
    pub abort: bool,
}

/// What a list shows of a run, as the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRun {
    /// Its name.
    pub run: RunId,
    /// What it is to reach.
    pub goal: String,
    /// The root agent's workspace.
    pub workspace: PathBuf,
    /// The root agent's model.
    pub model: String,
    /// How it rests or ended.
    pub outcome: Option<Outcome>,
    /// When it was started; never changes.
    pub started_at: Timestamp,
    /// When something last happened to it.
    pub updated_at: Timestamp,
    /// Turns of all agents.
    pub turns: u32,
    /// Tokens of all kinds.
    pub tokens: u64,
    /// Money.
    pub cost: MicroDollars,
    /// What of both no provider has reported: estimated, or lost to a crash.
    pub uncertain: Uncertain,
    /// How long processes have held the run.
    pub elapsed: Elapsed,
    /// What is wrong with its log, where the row had to be made of that: then it says what came before. Never stored.
    pub damage: Option<String>,
}

impl StoredRun {
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

/// Reads what is committed. Every method fails with [`HomeError::Storage`] when the store does.
pub trait StoreReader: Send + 'static {
    /// Records of `actor` after `after`, at most `max`, in order; empty at the end and for an unknown actor.
    ///
    /// # Errors
    /// [`HomeError::Unreadable`] at the first one that this version can't read, unless others precede it:
    /// then those may come first.
    fn read(&mut self, actor: ActorKey, after: Seq, max: usize) -> Result<Vec<Arc<Record>>, HomeError>;

    /// The last record of `actor`; [`Seq::START`] for an unknown one.
    ///
    /// # Errors
    /// When it can't be read.
    fn head(&mut self, actor: ActorKey) -> Result<Seq, HomeError>;

    /// The newest [`Entry::Snapshot`](provost_event::Entry::Snapshot) in the log of `actor`; `None` where there is
    /// none, and for an unknown actor. Must be cheap, however long the log is.
    ///
    /// # Errors
    /// [`HomeError::Unreadable`] when it is there and this version can't read it.
    fn newest_snapshot(&mut self, actor: ActorKey) -> Result<Option<Arc<Record>>, HomeError>;

    /// The actors of `run` that have a record, in the order of [`ActorKey`].
    ///
    /// # Errors
    /// When they can't be read.
    fn actors(&mut self, run: RunId) -> Result<Vec<ActorKey>, HomeError>;

    /// At most `max` runs: the one started last comes first; of two started at once, that with the greater id.
    ///
    /// # Errors
    /// When they can't be read.
    fn runs(&mut self, max: usize) -> Result<Vec<StoredRun>, HomeError>;

    /// The names of all bodies.
    ///
    /// # Errors
    /// When they can't be read.
    fn blobs(&mut self) -> Result<Vec<BlobId>, HomeError>;

    /// The body named `id`.
    ///
    /// # Errors
    /// When it can't be read, or isn't what its name says.
    fn get_blob(&mut self, id: &BlobId) -> Result<Option<Vec<u8>>, HomeError>;
}

/// A place for logs, owned by one thread that writes.
///
/// Writing methods are called between [`begin`](Self::begin) and [`commit`](Self::commit) only. Between them the
/// reading methods see what was written since; nobody else does before the commit, and nobody ever does after a
/// [`rollback`](Self::rollback). Several processes, or several values in one, may write to one place in turn.
///
/// Everything fails with [`HomeError::Storage`] when the store does; its hint says what would help.
/// [`conformance`](crate::conformance) tells whether an implementation is right.
pub trait SessionStore: StoreReader {
    /// A reader for another thread, which doesn't wait for transactions of this value to end (or not for long).
    ///
    /// # Errors
    /// When there can't be one.
    fn reader(&mut self) -> Result<Box<dyn StoreReader>, HomeError>;

    /// Who works on which run, for all that share this place.
    fn claims(&self) -> Arc<dyn Claims>;

    /// Begins a transaction: from here to its end nobody else writes.
    ///
    /// # Errors
    /// When somebody else has been writing for too long.
    fn begin(&mut self) -> Result<(), HomeError>;

    /// Makes all of the transaction durable.
    ///
    /// # Errors
    /// None of it is kept then, as far as the store can tell; [`rollback`](Self::rollback) is still called.
    fn commit(&mut self) -> Result<(), HomeError>;

    /// Undoes all of the transaction; does nothing when there is none.
    fn rollback(&mut self);

    /// Puts everything in order for a while without writes: what is copied then, is whole. Cheap where there is nothing to do.
    /// Never waits for others.
    ///
    /// # Errors
    /// When it can't.
    fn settle(&mut self) -> Result<(), HomeError> {
        Ok(())
    }

    /// A number that changes when somebody else has committed since the last call, and else doesn't. Within a
    /// transaction it covers everything before it. Must be cheap.
    ///
    /// # Errors
    /// When it can't be read.
    fn change_marker(&mut self) -> Result<u64, HomeError>;

    /// Appends to the log of `actor`, whose last record is `expected`. The records are numbered on from there. A log
    /// without records ends at [`Entry::follows`](provost_event::Entry::follows) of its first one: that of a fork goes
    /// on with another's numbers.
    ///
    /// # Errors
    /// [`HomeError::Conflict`] when `expected` isn't its last record; nothing is appended then.
    fn append(&mut self, actor: ActorKey, expected: Seq, entries: &[NewEntry]) -> Result<(), HomeError>;

    /// Keeps an open effect, in place of one of the same name.
    ///
    /// # Errors
    /// When it can't.
    fn put_effect(&mut self, effect: &OpenEffect) -> Result<(), HomeError>;

    /// Takes an effect away; nothing happens if there is none.
    ///
    /// # Errors
    /// When it can't.
    fn close_effect(&mut self, id: EffectId) -> Result<(), HomeError>;

    /// Marks an effect as to be stopped; nothing happens if there is none.
    ///
    /// # Errors
    /// When it can't.
    fn request_abort(&mut self, id: EffectId) -> Result<(), HomeError>;

    /// The open effects of `run`, ordered by actor and number.
    ///
    /// # Errors
    /// When they can't be read.
    fn open_effects(&mut self, run: RunId) -> Result<Vec<OpenEffect>, HomeError>;

    /// Whether the post `dedup` to `actor` is marked.
    ///
    /// # Errors
    /// When it can't be read.
    fn has_post(&mut self, actor: ActorKey, dedup: &str) -> Result<bool, HomeError>;

    /// Marks the post `dedup` to `actor`.
    ///
    /// # Errors
    /// When it can't.
    fn mark_post(&mut self, actor: ActorKey, dedup: &str) -> Result<(), HomeError>;

    /// Keeps a run's row, in place of the one it had.
    ///
    /// # Errors
    /// When it can't.
    fn put_run(&mut self, run: &StoredRun) -> Result<(), HomeError>;

    /// Keeps a body under its name; does nothing when it is there.
    ///
    /// # Errors
    /// When it can't.
    fn put_blob(&mut self, id: &BlobId, body: &[u8]) -> Result<(), HomeError>;

    /// Takes away all that belongs to `run` alone: its logs, what is to be done, marks, its row. Its outputs stay. What is appended
    /// to its logs afterwards begins them anew.
    ///
    /// # Errors
    /// When it can't.
    fn remove_run(&mut self, run: RunId) -> Result<(), HomeError>;

    /// Takes away the bodies of these names; nothing happens where there is none.
    ///
    /// # Errors
    /// When it can't.
    fn remove_blobs(&mut self, names: &[BlobId]) -> Result<(), HomeError>;

    /// Gives the space of what was taken away back to the system, where that is of use. Called outside of transactions.
    ///
    /// # Errors
    /// When it can't; nothing is lost then.
    fn shrink(&mut self) -> Result<(), HomeError> {
        Ok(())
    }

    /// How often `run` has been taken over; 0 if never.
    ///
    /// # Errors
    /// When it can't be read.
    fn owner_epoch(&mut self, run: RunId) -> Result<u64, HomeError>;

    /// Counts one more take-over of `run` and returns the new count.
    ///
    /// # Errors
    /// When it can't.
    fn bump_owner_epoch(&mut self, run: RunId) -> Result<u64, HomeError>;
}
