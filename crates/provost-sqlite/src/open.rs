//! Opening a database: its settings, its version, and its file permissions.

use std::fs::OpenOptions;
use std::path::Path;
use std::time::{Duration, Instant};

use provost_harness::BackendError;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::count;
use super::error::{Attempt, storage};
use provost_backend::folder;

const ATTEMPT: &str = "open the store";
/// The version of the tables, stored in the database's `user_version`; 0 is a database without tables.
const SCHEMA_VERSION: i64 = 10;
const SCHEMA: &str = include_str!("schema.sql");
/// How long a statement waits for another process's transaction.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// SQLite's number for "synced at every commit".
const SYNCHRONOUS_FULL: i64 = 2;
/// Pages of 4 KiB in the write-ahead log at which it is copied to the database and reused from its start. Until it
/// is that long each sync must also allocate disk space, which costs half as much again.
const LOG_PAGES: i64 = 1000;
/// Above this size the write-ahead log is truncated after that.
const LOG_BYTES_KEPT: i64 = 32 << 20;
/// The page cache, in KiB, allocated on demand: the ends of some ten thousand logs.
const CACHE_KIB: i64 = 48 << 10;
const STATEMENTS_CACHED: usize = 48;

pub(super) fn for_writing(path: &Path) -> Result<Connection, BackendError> {
    make_file(path).map_err(|error| cant_make(path, &error))?;
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    set_up(&connection).attempt(ATTEMPT)?;
    make_tables(&mut connection)?;
    compare_tables(&connection)?;
    count::note_loss(&mut connection, path)?;
    Ok(connection)
}

pub(super) fn for_reading(path: &Path) -> Result<Connection, BackendError> {
    connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

/// Unchanged: nothing is created, switched or migrated.
pub(super) fn as_it_is(path: &Path) -> Result<Connection, BackendError> {
    let connection =
        match for_reading(path).and_then(|connection| known_version(&connection).map(|_| connection)) {
            Ok(connection) => connection,
            // SQLite needs write access even to read, except for a file declared immutable. A file without a
            // write-ahead log contains everything.
            Err(_) if !has_log(path) => unchanging(path)?,
            Err(error) => return Err(error),
        };
    if known_version(&connection)? == SCHEMA_VERSION {
        compare_tables(&connection)?;
        return Ok(connection);
    }
    Err(BackendError::Storage {
        attempt: ATTEMPT,
        message: "there is nothing in it yet".to_owned(),
        hint: None,
    })
}

fn has_log(path: &Path) -> bool {
    let mut log = std::ffi::OsString::from(path);
    log.push("-wal");
    std::fs::metadata(log).is_ok_and(|facts| facts.len() > 0)
}

fn unchanging(path: &Path) -> Result<Connection, BackendError> {
    let encoded = path.display().to_string().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let uri = format!("file:{encoded}?immutable=1");
    connect(Path::new(&uri), OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI)
}

fn cant_make(path: &Path, error: &std::io::Error) -> BackendError {
    let path = path.display();
    let (message, hint) = match error.kind() {
        std::io::ErrorKind::ReadOnlyFilesystem => (
            format!("{path} is on a read-only file system"),
            "remount it for writing, or name another state folder; ps, show, logs, cost and export read it as it is",
        ),
        _ => (format!("{path}: {error}"), "check that the state folder is yours and can be written"),
    };
    BackendError::Storage { attempt: ATTEMPT, message, hint: Some(hint) }
}

fn make_file(path: &Path) -> std::io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        folder::create(folder)?;
    }
    // Created here and not by SQLite, which ignores our mode and gives its side files the mode of this file.
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    folder::only_for_the_owner(&mut options);
    options.open(path).map(drop)
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, BackendError> {
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).attempt(ATTEMPT)?;
    connection.busy_timeout(BUSY_TIMEOUT).attempt(ATTEMPT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
    Ok(connection)
}

fn set_up(connection: &Connection) -> rusqlite::Result<()> {
    let mode = write_ahead(connection)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    let synchronous = connection.pragma_query_value(None, "synchronous", |row| row.get::<_, i64>(0))?;
    if mode != "wal" || synchronous != SYNCHRONOUS_FULL {
        let message =
            format!("journal_mode is {mode}, synchronous is {synchronous}: commits wouldn't be durable");
        return Err(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(1), Some(message)));
    }
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES_KEPT)
}

/// Two processes that switch a new database at the same time don't wait for each other by themselves.
fn write_ahead(connection: &Connection) -> rusqlite::Result<String> {
    let deadline = Instant::now() + BUSY_TIMEOUT;
    loop {
        let mode = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0));
        match mode {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && Instant::now() < deadline =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            other => return other,
        }
    }
}

fn make_tables(connection: &mut Connection) -> Result<(), BackendError> {
    if known_version(connection)? == SCHEMA_VERSION {
        return Ok(());
    }
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).attempt(ATTEMPT)?;
    // Another process may have been first.
    if known_version(&transaction)? == SCHEMA_VERSION {
        return Ok(());
    }
    transaction.execute_batch(SCHEMA).attempt(ATTEMPT)?;
    transaction.pragma_update(None, "user_version", SCHEMA_VERSION).attempt(ATTEMPT)?;
    transaction.commit().attempt(ATTEMPT)
}

/// Checks that the database's table definitions match this program's: otherwise it would be read by other rules.
fn compare_tables(connection: &Connection) -> Result<(), BackendError> {
    let expected = Connection::open_in_memory()
        .and_then(|fresh| {
            fresh.execute_batch(SCHEMA)?;
            tables(&fresh)
        })
        .attempt(ATTEMPT)?;
    if tables(connection).attempt(ATTEMPT)? == expected {
        return Ok(());
    }
    Err(BackendError::Storage {
        attempt: ATTEMPT,
        message: "what it says of its own tables is damaged".to_owned(),
        hint: Some(super::error::DAMAGED),
    })
}

fn tables(connection: &Connection) -> rusqlite::Result<Vec<[Option<String>; 4]>> {
    let sql = "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%' ORDER BY name";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]))?;
    rows.collect()
}

fn known_version(connection: &Connection) -> Result<i64, BackendError> {
    let version = connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0));
    match version.map_err(|error| storage(ATTEMPT, &error))? {
        version @ (0 | SCHEMA_VERSION) => Ok(version),
        newer if newer > SCHEMA_VERSION => Err(BackendError::Storage {
            attempt: ATTEMPT,
            message: format!("its version is {newer}; this Provost knows version {SCHEMA_VERSION}"),
            hint: Some("use a newer Provost"),
        }),
        older => Err(BackendError::Storage {
            attempt: ATTEMPT,
            message: format!("its version is {older}; this Provost knows version {SCHEMA_VERSION}"),
            hint: Some("move it away: a new one is made, and the Provost that made it still reads it"),
        }),
    }
}
