//! The store of the embedded backend: one SQLite database.
//!
//! Write-ahead log, and every commit is synced to disk before it counts. Several processes may open one database;
//! SQLite's write lock serializes their transactions.

mod backup;
mod count;
mod error;
mod inspect;
mod log;
mod mailbox;
mod open;
mod pieces;
mod presence;
mod read;
mod remove;
mod runs;
mod sums;
mod write;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use foldhash::HashMap;
use provost_event::{ActorKey, Seq};
use provost_harness::{BackendError, EntryChain};
use rusqlite::Connection;

use provost_backend::{FileLeases, RunLeases, WakeUps, wake_ups_in};

pub use backup::back_up;
pub use count::Loss;
pub use inspect::{Inspection, StoreProblem, inspect};

/// Maximum actors whose numbers a connection caches from one transaction to the next; above that it drops all of them.
/// More than the agents of the largest runs: otherwise nearly every entry would need a lookup.
const KNOWN_ACTORS_MAX: usize = 65_536;

/// Stores everything in one SQLite database, leases as lock files in the folder `locks` beside it, and sockets for
/// wake-ups in the folder `wake`.
pub struct SqliteStore {
    connection: Connection,
    path: PathBuf,
    /// The file's identity when it was opened.
    file: presence::Presence,
    /// How its readers open it.
    for_reading: fn(&Path) -> Result<Connection, BackendError>,
    known: HashMap<ActorKey, CachedHead>,
    /// The row after the last piece of a log, by the log's number.
    piece_ends: HashMap<i64, i64>,
    marker: u64,
    /// How many entries have been committed, in a file beside the database.
    count: count::EntryCount,
    /// The number of the next entry; `None` if other processes may have written.
    next_entry: Option<i64>,
    /// The last entry of this transaction.
    appended: Option<(ActorKey, Seq)>,
    /// The logs that this transaction appended to: where they end is written with it, once for each.
    longer: Vec<ActorKey>,
}

/// Reads a database that [`SqliteStore`] writes.
pub(crate) struct SqliteReader {
    connection: Connection,
}

/// Data that stays valid while no other process writes.
#[derive(Clone, Copy)]
struct CachedHead {
    id: i64,
    head: Seq,
    chain: EntryChain,
    /// Whether this transaction has appended to it.
    is_longer: bool,
}

impl SqliteStore {
    /// Opens the database at `path`. Creates what is missing: folders for their owner only (0700), the file too
    /// (0600).
    ///
    /// # Errors
    /// [`BackendError::Storage`], with a hint: when the place can't be written, isn't a database of Provost's, or is
    /// of another version.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, BackendError> {
        let path = path.as_ref().to_owned();
        let connection = open::for_writing(&path)?;
        Ok(Self::over(connection, path, open::for_reading))
    }

    /// Opens the database at `path` unchanged, also if nothing can be written, such as on a read-only file system:
    /// writes then fail with [`BackendError::Storage`].
    ///
    /// # Errors
    /// [`BackendError::Storage`], with a hint: when there is no database of Provost's, it is of another version, or
    /// it can't be read in its current state.
    pub fn open_to_read(path: impl AsRef<Path>) -> Result<Self, BackendError> {
        let path = path.as_ref().to_owned();
        let connection = open::as_it_is(&path)?;
        Ok(Self::over(connection, path, open::as_it_is))
    }

    fn over(
        connection: Connection,
        path: PathBuf,
        for_reading: fn(&Path) -> Result<Connection, BackendError>,
    ) -> Self {
        Self {
            connection,
            file: presence::Presence::of(&path),
            count: count::EntryCount::beside(&path),
            path,
            for_reading,
            known: HashMap::default(),
            piece_ends: HashMap::default(),
            marker: 0,
            next_entry: None,
            appended: None,
            longer: Vec::new(),
        }
    }

    /// The newest unacknowledged loss: entries that were committed and are gone.
    ///
    /// # Errors
    /// When the database can't be read.
    pub fn loss(&self) -> Result<Option<Loss>, BackendError> {
        count::loss(&self.connection, &self.path)
    }

    /// Limits the database to `pages` pages of 4 KiB on this connection, as a full disk would; if it is larger
    /// already, to its current size.
    ///
    /// # Errors
    /// When the database can't be read.
    pub fn limit_pages(&mut self, pages: u32) -> Result<(), BackendError> {
        self.connection
            .pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
            .map_err(|error| error::storage("limit the store's size", &error))
    }

    /// Acknowledges all losses, so that [`loss`](Self::loss) no longer returns them. Returns their number.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn acknowledge_losses(&mut self) -> Result<usize, BackendError> {
        self.connection
            .execute("UPDATE losses SET acknowledged = 1 WHERE acknowledged = 0", [])
            .map_err(|error| error::storage("take note of a loss", &error))
    }

    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    fn file_leases(&self) -> Arc<dyn RunLeases> {
        Arc::new(FileLeases::new(self.folder().join("locks")))
    }

    fn socket_wake_ups(&self) -> Arc<dyn WakeUps> {
        wake_ups_in(self.folder().join("wake"))
    }
}

/// Numbers above SQLite's maximum (2^63) don't occur; they would become that maximum.
fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
