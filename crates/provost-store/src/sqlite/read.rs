//! Reading, the same for the writer's connection and for readers.

use std::path::PathBuf;
use std::sync::Arc;

use provost_event::{
    ActorKey, BlobId, Elapsed, FORMAT_VERSION, MicroDollars, Record, RecordHead, RunId, Seq, Timestamp,
};
use provost_harness::HomeError;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::error::Attempt;
use super::{KNOWN_ACTORS_MAX, SqliteReader, SqliteStore, int, unsigned};
use crate::{StoreReader, StoredRun};

impl SqliteReader {
    pub(super) fn over(connection: Connection) -> Self {
        Self { connection, ids: std::collections::HashMap::new() }
    }

    fn id(&mut self, actor: ActorKey) -> Result<Option<i64>, HomeError> {
        if let Some(id) = self.ids.get(&actor) {
            return Ok(Some(*id));
        }
        let id = id_of(&self.connection, actor)?;
        if self.ids.len() >= KNOWN_ACTORS_MAX {
            self.ids.clear();
        }
        self.ids.extend(id.map(|id| (actor, id)));
        Ok(id)
    }
}

impl StoreReader for SqliteReader {
    fn read(&mut self, actor: ActorKey, after: Seq, max: usize) -> Result<Vec<Arc<Record>>, HomeError> {
        match self.id(actor)? {
            Some(id) => records(&self.connection, (actor, id), after, max),
            None => Ok(Vec::new()),
        }
    }

    fn head(&mut self, actor: ActorKey) -> Result<Seq, HomeError> {
        self.id(actor)?.map_or(Ok(Seq::START), |id| head(&self.connection, id))
    }

    fn newest_snapshot(&mut self, actor: ActorKey) -> Result<Option<Arc<Record>>, HomeError> {
        self.id(actor)?.map_or(Ok(None), |id| newest_snapshot(&self.connection, (actor, id)))
    }

    fn actors(&mut self, run: RunId) -> Result<Vec<ActorKey>, HomeError> {
        actors(&self.connection, run)
    }

    fn runs(&mut self, max: usize) -> Result<Vec<StoredRun>, HomeError> {
        runs(&self.connection, max)
    }

    fn get_blob(&mut self, id: &BlobId) -> Result<Option<Vec<u8>>, HomeError> {
        blob(&self.connection, id)
    }
}

impl StoreReader for SqliteStore {
    fn read(&mut self, actor: ActorKey, after: Seq, max: usize) -> Result<Vec<Arc<Record>>, HomeError> {
        match self.find(actor)? {
            Some(known) => records(&self.connection, (actor, known.id), after, max),
            None => Ok(Vec::new()),
        }
    }

    fn head(&mut self, actor: ActorKey) -> Result<Seq, HomeError> {
        self.find(actor)?.map_or(Ok(Seq::START), |known| head(&self.connection, known.id))
    }

    fn newest_snapshot(&mut self, actor: ActorKey) -> Result<Option<Arc<Record>>, HomeError> {
        self.find(actor)?.map_or(Ok(None), |known| newest_snapshot(&self.connection, (actor, known.id)))
    }

    fn actors(&mut self, run: RunId) -> Result<Vec<ActorKey>, HomeError> {
        actors(&self.connection, run)
    }

    fn runs(&mut self, max: usize) -> Result<Vec<StoredRun>, HomeError> {
        runs(&self.connection, max)
    }

    fn get_blob(&mut self, id: &BlobId) -> Result<Option<Vec<u8>>, HomeError> {
        blob(&self.connection, id)
    }
}

pub(super) fn id_of(connection: &Connection, actor: ActorKey) -> Result<Option<i64>, HomeError> {
    connection
        .prepare_cached("SELECT id FROM actors WHERE key = ?1")
        .and_then(|mut statement| statement.query_row([actor.to_string()], |row| row.get(0)).optional())
        .attempt("find a log")
}

pub(super) fn head(connection: &Connection, id: i64) -> Result<Seq, HomeError> {
    connection
        .prepare_cached("SELECT max(seq) FROM entries WHERE actor = ?1")
        .and_then(|mut statement| statement.query_row([id], |row| row.get::<_, Option<i64>>(0)))
        .map(|seq| seq.map_or(Seq::START, |seq| Seq(unsigned(seq))))
        .attempt("read the end of a log")
}

fn newest_snapshot(
    connection: &Connection,
    (actor, id): (ActorKey, i64),
) -> Result<Option<Arc<Record>>, HomeError> {
    // By its own index in any case: where there are no snapshots, the logs' would be searched to its beginning.
    let sql = "SELECT seq, v, at, elapsed, kind, body FROM entries INDEXED BY snapshots \
               WHERE actor = ?1 AND kind = 'snapshot' ORDER BY seq DESC LIMIT 1";
    let found = connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.query_row([id], |row| record(actor, row)).optional())
        .attempt("look for a snapshot")?;
    match found {
        Some(Read::Record(record)) => Ok(Some(record)),
        Some(Read::Unreadable(seq, message)) => Err(HomeError::Unreadable { actor, seq, message }),
        None => Ok(None),
    }
}

/// A row that SQLite gave, or what is wrong with what it says.
enum Read {
    Record(Arc<Record>),
    Unreadable(Seq, String),
}

fn records(
    connection: &Connection,
    (actor, id): (ActorKey, i64),
    after: Seq,
    max: usize,
) -> Result<Vec<Arc<Record>>, HomeError> {
    const ATTEMPT: &str = "read a log";
    let mut statement = connection
        .prepare_cached(
            "SELECT seq, v, at, elapsed, kind, body FROM entries WHERE actor = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
        )
        .attempt(ATTEMPT)?;
    let limit = i64::try_from(max).unwrap_or(i64::MAX);
    let mut rows = statement.query(params![id, int(after.0), limit]).attempt(ATTEMPT)?;
    let mut records = Vec::new();
    while let Some(row) = rows.next().attempt(ATTEMPT)? {
        match record(actor, row).attempt(ATTEMPT)? {
            Read::Record(record) => records.push(record),
            Read::Unreadable(..) if !records.is_empty() => break,
            Read::Unreadable(seq, message) => return Err(HomeError::Unreadable { actor, seq, message }),
        }
    }
    Ok(records)
}

fn record(actor: ActorKey, row: &Row<'_>) -> rusqlite::Result<Read> {
    let seq = Seq(unsigned(row.get(0)?));
    let v = u32::try_from(row.get::<_, i64>(1)?).unwrap_or(FORMAT_VERSION.saturating_add(1));
    let at = Timestamp(unsigned(row.get(2)?));
    let head = RecordHead { v, actor, seq, at, elapsed: Elapsed(unsigned(row.get(3)?)) };
    let kind = row.get_ref(4)?.as_str();
    let body = row.get_ref(5)?.as_str();
    let read = match (kind, body) {
        (Ok(kind), Ok(body)) => Record::from_parts(head, kind, body).map_err(|error| chain(&error)),
        (Err(error), _) | (_, Err(error)) => Err(error.to_string()),
    };
    Ok(read.map_or_else(|message| Read::Unreadable(seq, message), |record| Read::Record(Arc::new(record))))
}

fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

fn actors(connection: &Connection, run: RunId) -> Result<Vec<ActorKey>, HomeError> {
    const ATTEMPT: &str = "read a run's logs";
    // Sessions are named `RUN.NUMBER`; `/` is what follows `.` in the order of characters.
    let sql = "SELECT key FROM actors WHERE (key = ?1 OR (key > ?1 || '.' AND key < ?1 || '/')) \
               AND EXISTS (SELECT 1 FROM entries WHERE entries.actor = actors.id)";
    let mut statement = connection.prepare_cached(sql).attempt(ATTEMPT)?;
    let keys = statement.query_map([run.to_string()], |row| row.get::<_, String>(0)).attempt(ATTEMPT)?;
    let keys = keys.collect::<Result<Vec<_>, _>>().attempt(ATTEMPT)?;
    let mut actors = keys.iter().filter_map(|key| key.parse().ok()).collect::<Vec<_>>();
    actors.sort_unstable();
    Ok(actors)
}

fn runs(connection: &Connection, max: usize) -> Result<Vec<StoredRun>, HomeError> {
    const ATTEMPT: &str = "list the runs";
    let sql = "SELECT run, started_at, updated_at, turns, tokens, cost, outcome, model, workspace, goal \
               FROM runs ORDER BY started_at DESC, run DESC LIMIT ?1";
    let mut statement = connection.prepare_cached(sql).attempt(ATTEMPT)?;
    let limit = i64::try_from(max).unwrap_or(i64::MAX);
    let rows = statement.query_map([limit], run).attempt(ATTEMPT)?;
    rows.collect::<Result<Vec<_>, _>>().attempt(ATTEMPT)
}

fn run(row: &Row<'_>) -> rusqlite::Result<StoredRun> {
    let unreadable = |column, error: Box<dyn std::error::Error + Send + Sync>| {
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, error)
    };
    let outcome = row.get_ref(6)?.as_str_or_null()?.map(serde_json::from_str).transpose();
    Ok(StoredRun {
        run: row.get_ref(0)?.as_str()?.parse().map_err(|error| unreadable(0, Box::new(error)))?,
        started_at: Timestamp(unsigned(row.get(1)?)),
        updated_at: Timestamp(unsigned(row.get(2)?)),
        turns: u32::try_from(row.get::<_, i64>(3)?).unwrap_or(u32::MAX),
        tokens: unsigned(row.get(4)?),
        cost: MicroDollars(unsigned(row.get(5)?)),
        outcome: outcome.map_err(|error| unreadable(6, Box::new(error)))?,
        model: row.get(7)?,
        workspace: PathBuf::from(row.get::<_, String>(8)?),
        goal: row.get(9)?,
    })
}

fn blob(connection: &Connection, id: &BlobId) -> Result<Option<Vec<u8>>, HomeError> {
    connection
        .prepare_cached("SELECT body FROM blobs WHERE hash = ?1")
        .and_then(|mut statement| statement.query_row([&*id.0], |row| row.get(0)).optional())
        .attempt("read a kept output")
}
