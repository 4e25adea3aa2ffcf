//! A store in one SQLite database.
//!
//! Write-ahead log, and every commit is synced to disk before it counts. Several processes may open one
//! database; SQLite's write lock puts their transactions in a row.

mod backup;
mod count;
mod error;
mod inspect;
mod log;
mod open;
mod presence;
mod read;
mod remove;
mod runs;
mod sums;
mod write;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use provost_event::{ActorKey, Seq};
use provost_harness::{EntryChain, HomeError};
use rusqlite::Connection;

use crate::{Claims, FileClaims};

pub use backup::back_up;
pub use count::Loss;
pub use inspect::{Inspection, StoreProblem, inspect};

/// Actors whose numbers a connection remembers; beyond that it forgets them all and looks them up again. More than the
/// agents of the largest runs: else each of them is looked up again with nearly every entry.
const KNOWN_ACTORS_MAX: usize = 65_536;

/// Keeps everything in one SQLite database, and claims as lock files in the folder `locks` beside it.
pub struct SqliteStore {
    connection: Connection,
    path: PathBuf,
    /// What stood there when it was opened.
    file: presence::Presence,
    /// How its readers open it.
    for_reading: fn(&Path) -> Result<Connection, HomeError>,
    known: HashMap<ActorKey, Known>,
    marker: u64,
    /// How many entries have been committed, in a file beside the database.
    count: count::EntryCount,
    /// The number of the next entry; `None` where others may have written.
    next_entry: Option<i64>,
    /// The last entry of this transaction.
    appended: Option<(ActorKey, Seq)>,
}

/// Reads a database that [`SqliteStore`] writes.
pub(crate) struct SqliteReader {
    connection: Connection,
}

/// What need not be looked up again while nobody else writes.
#[derive(Clone, Copy)]
struct Known {
    id: i64,
    head: Seq,
    chain: EntryChain,
}

impl SqliteStore {
    /// Opens the database at `path`. What is missing is made: folders for their owner only (0700), the file
    /// too (0600).
    ///
    /// # Errors
    /// [`HomeError::Storage`], with a hint: when the place can't be written, isn't a database of Provost's, or
    /// is of another version.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, HomeError> {
        let path = path.as_ref().to_owned();
        let connection = open::for_writing(&path)?;
        Ok(Self::over(connection, path, open::for_reading))
    }

    /// Opens the database at `path` as it is, also where nothing can be written, such as on a read-only file system:
    /// whoever wants to write to it gets [`HomeError::Storage`].
    ///
    /// # Errors
    /// [`HomeError::Storage`], with a hint: when there is no database of Provost's, it is of another version, or it
    /// can't be read as it was left.
    pub fn open_to_read(path: impl AsRef<Path>) -> Result<Self, HomeError> {
        let path = path.as_ref().to_owned();
        let connection = open::as_it_is(&path)?;
        Ok(Self::over(connection, path, open::as_it_is))
    }

    fn over(
        connection: Connection,
        path: PathBuf,
        for_reading: fn(&Path) -> Result<Connection, HomeError>,
    ) -> Self {
        Self {
            connection,
            file: presence::Presence::of(&path),
            count: count::EntryCount::beside(&path),
            path,
            for_reading,
            known: HashMap::new(),
            marker: 0,
            next_entry: None,
            appended: None,
        }
    }

    /// Entries that were acknowledged and are gone, which nobody has taken note of yet; the newest loss.
    ///
    /// # Errors
    /// When the database can't be read.
    pub fn loss(&self) -> Result<Option<Loss>, HomeError> {
        count::loss(&self.connection, &self.path)
    }

    /// Has this connection refuse to let the database grow beyond `pages` pages of 4 KiB, as a full disk would;
    /// with less than there already is, beyond that.
    ///
    /// # Errors
    /// When the database can't be read.
    pub fn limit_pages(&mut self, pages: u32) -> Result<(), HomeError> {
        self.connection
            .pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
            .map_err(|error| error::storage("limit the store's size", &error))
    }

    /// Takes note of all losses, so that [`loss`](Self::loss) speaks of none of them any more. Returns how many there were.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn acknowledge_losses(&mut self) -> Result<usize, HomeError> {
        self.connection
            .execute("UPDATE losses SET acknowledged = 1 WHERE acknowledged = 0", [])
            .map_err(|error| error::storage("take note of a loss", &error))
    }

    fn file_claims(&self) -> Arc<dyn Claims> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        Arc::new(FileClaims::new(folder.join("locks")))
    }
}

/// Numbers beyond what SQLite holds (2^63) don't occur; they would become the greatest it does hold.
fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
