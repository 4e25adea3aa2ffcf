//! How many entries have been committed, in a small file beside the database.
//!
//! It is written after each commit and never synced. It reveals what the write-ahead log loses (SQLite silently
//! drops everything after a damaged place): the database then has fewer entries than were acknowledged.

use std::ffi::OsString;
use std::fmt::{self, Write as _};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use provost_event::{ActorKey, Seq};
use provost_harness::BackendError;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::error::Attempt;
use super::{int, unsigned};
use provost_backend::folder;

/// The size of the file: a number, a log's name and an entry's number, and a hash of those.
const LINE_BYTES: usize = 128;
const HASH_DIGITS: usize = 16;
const ATTEMPT: &str = "count the store's entries";

/// Entries that were acknowledged and are not in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// How many entries were committed.
    pub expected: u64,
    /// How many of them are present.
    pub found: u64,
    /// The entry that was acknowledged last, as `RUN.0/12`.
    pub last: String,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { expected, found, last } = self;
        let lost = expected.saturating_sub(*found);
        let entries = if lost == 1 { "entry that was" } else { "entries that were" };
        write!(
            f,
            "{lost} {entries} acknowledged are gone from the end of the store, the last of them entry {last}"
        )
    }
}

/// The file.
pub(super) struct EntryCount {
    path: PathBuf,
    file: Option<File>,
}

impl EntryCount {
    pub(super) fn beside(database: &Path) -> Self {
        Self { path: path(database), file: None }
    }

    /// Writes the number of entries. If that fails, the only effect is that a loss may go unnoticed.
    pub(super) fn write(&mut self, entries: i64, last: (ActorKey, Seq)) {
        let counted = Counted { entries: unsigned(entries), last: format!("{}/{}", last.0, last.1) };
        if let Err(error) = self.try_write(&counted) {
            self.file = None;
            tracing::debug!(%error, path = %self.path.display(), "the entries' count isn't written");
        }
    }

    fn try_write(&mut self, counted: &Counted) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(open(&self.path)?),
        };
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&counted.line())
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    folder::only_for_the_owner(&mut options);
    options.open(path)
}

fn path(database: &Path) -> PathBuf {
    let mut path = OsString::from(database);
    path.push("-count");
    path.into()
}

struct Counted {
    entries: u64,
    last: String,
}

impl Counted {
    fn line(&self) -> Vec<u8> {
        let mut line = String::with_capacity(LINE_BYTES);
        // Writing to a string never fails.
        let _ = write!(line, "{} {}", self.entries, self.last);
        let hash = blake3::hash(line.as_bytes()).to_hex();
        line.push(' ');
        line.push_str(digits_of(&hash));
        let mut line = line.into_bytes();
        line.resize(LINE_BYTES - 1, b' ');
        line.push(b'\n');
        line
    }

    /// `None` for an invalid line.
    fn from_line(line: &str) -> Option<Self> {
        let (what, hash) = line.trim_end().rsplit_once(' ')?;
        let (entries, last) = what.split_once(' ')?;
        (digits_of(&blake3::hash(what.as_bytes()).to_hex()) == hash).then_some(())?;
        Some(Self { entries: entries.parse().ok()?, last: last.to_owned() })
    }

    fn read(database: &Path) -> Option<Self> {
        let mut line = String::new();
        let file = File::open(path(database)).ok()?;
        file.take(LINE_BYTES as u64).read_to_string(&mut line).ok()?;
        Self::from_line(&line)
    }
}

fn digits_of(hash: &str) -> &str {
    hash.get(..HASH_DIGITS).unwrap_or(hash)
}

/// The greatest number ever given to an entry.
pub(super) fn given(connection: &Connection) -> rusqlite::Result<i64> {
    let sql =
        "SELECT max(coalesce((SELECT max(id) FROM entries), 0), coalesce((SELECT entries FROM given), 0))";
    connection.prepare_cached(sql)?.query_row([], |row| row.get(0))
}

/// An unacknowledged loss: one found earlier, or a new one.
pub(super) fn loss(connection: &Connection, database: &Path) -> Result<Option<Loss>, BackendError> {
    if let Some(loss) = missing(connection, database)? {
        return Ok(Some(loss));
    }
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Loss { expected: unsigned(row.get(0)?), found: unsigned(row.get(1)?), last: row.get(2)? })
    };
    let sql = "SELECT expected, found, last FROM losses WHERE acknowledged = 0 ORDER BY id DESC LIMIT 1";
    connection.query_row(sql, [], read).optional().attempt(ATTEMPT)
}

/// The entries that were counted and are missing from the database.
fn missing(connection: &Connection, database: &Path) -> Result<Option<Loss>, BackendError> {
    // The counter first: a commit in between gives the database more entries than that, and never fewer.
    let Some(counted) = Counted::read(database) else { return Ok(None) };
    let found = unsigned(given(connection).attempt(ATTEMPT)?);
    let is_loss = found < counted.entries;
    Ok(is_loss.then_some(Loss { expected: counted.entries, found, last: counted.last }))
}

/// Records the loss, so that it stays known when other entries are written in its place.
pub(super) fn note_loss(connection: &mut Connection, database: &Path) -> Result<(), BackendError> {
    if missing(connection, database)?.is_none() {
        return Ok(());
    }
    let transaction =
        connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).attempt(ATTEMPT)?;
    // Another process may have been first.
    let Some(loss) = missing(&transaction, database)? else { return Ok(()) };
    let now = jiff::Timestamp::now().as_millisecond();
    transaction
        .execute(
            "INSERT INTO losses (found_at, expected, found, last) VALUES (?1, ?2, ?3, ?4)",
            params![now, int(loss.expected), int(loss.found), loss.last],
        )
        .attempt(ATTEMPT)?;
    transaction.execute("UPDATE given SET entries = ?1", [int(loss.expected)]).attempt(ATTEMPT)?;
    transaction.commit().attempt(ATTEMPT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_and_what_is_damaged_is_not() {
        let line = Counted { entries: 4711, last: "r1234.0/12".to_owned() }.line();
        let line = String::from_utf8(line).unwrap();
        assert_eq!(line.len(), LINE_BYTES);
        let read = Counted::from_line(&line).unwrap();
        assert_eq!((read.entries, read.last.as_str()), (4711, "r1234.0/12"));
        assert!(Counted::from_line(&line.replace("4711", "4710")).is_none());
        assert!(Counted::from_line(&line[..20]).is_none() && Counted::from_line("").is_none());
    }
}
