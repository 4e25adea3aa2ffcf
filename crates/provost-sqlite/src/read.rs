//! Reading, the same for the writer's connection and for readers.

use std::sync::Arc;

use provost_event::{ActorKey, BlobId, Record, RunId, Seq};
use provost_harness::{BackendError, PlacedEntry, RunCursor, RunPosition};
use rusqlite::{Connection, OptionalExtension as _};

use super::error::Attempt;
use super::{SqliteReader, SqliteStore, int, log, pieces, runs, unsigned};
use provost_backend::blob_id;
use provost_backend::{StoreReader, StoredRun};

impl SqliteReader {
    pub(super) const fn over(connection: Connection) -> Self {
        Self { connection }
    }
}

impl StoreReader for SqliteReader {
    fn read(&mut self, actor: ActorKey, after: Seq, max: usize) -> Result<Vec<Arc<Record>>, BackendError> {
        log::records(&self.connection, actor, after, max)
    }

    fn head(&mut self, actor: ActorKey) -> Result<Seq, BackendError> {
        Ok(log::find(&self.connection, actor)?.map_or(Seq::START, |log| log.head))
    }

    fn newest_snapshot(&mut self, actor: ActorKey) -> Result<Option<Arc<Record>>, BackendError> {
        log::newest_snapshot(&self.connection, actor)
    }

    fn actors(&mut self, run: RunId) -> Result<Vec<ActorKey>, BackendError> {
        actors(&self.connection, run)
    }

    fn order(
        &mut self,
        run: RunId,
        after: RunPosition,
        max: usize,
    ) -> Result<Vec<PlacedEntry>, BackendError> {
        order(&self.connection, run, after, max)
    }

    fn run_head(&mut self, run: RunId) -> Result<RunPosition, BackendError> {
        run_head(&self.connection, run)
    }

    fn runs(&mut self, after: Option<RunCursor>, max: usize) -> Result<Vec<StoredRun>, BackendError> {
        runs::newest(&self.connection, after, max)
    }

    fn run(&mut self, run: RunId) -> Result<Option<StoredRun>, BackendError> {
        runs::find(&self.connection, run)
    }

    fn runs_with_prefix(&mut self, prefix: &str, max: usize) -> Result<Vec<StoredRun>, BackendError> {
        runs::with_prefix(&self.connection, prefix, max)
    }

    fn blobs(&mut self) -> Result<Vec<BlobId>, BackendError> {
        blobs(&self.connection)
    }

    fn get_blob(&mut self, id: &BlobId) -> Result<Option<Vec<u8>>, BackendError> {
        blob(&self.connection, id)
    }
}

impl StoreReader for SqliteStore {
    fn read(&mut self, actor: ActorKey, after: Seq, max: usize) -> Result<Vec<Arc<Record>>, BackendError> {
        log::records(&self.connection, actor, after, max)
    }

    fn head(&mut self, actor: ActorKey) -> Result<Seq, BackendError> {
        Ok(self.find(actor)?.map_or(Seq::START, |known| known.head))
    }

    fn newest_snapshot(&mut self, actor: ActorKey) -> Result<Option<Arc<Record>>, BackendError> {
        log::newest_snapshot(&self.connection, actor)
    }

    fn actors(&mut self, run: RunId) -> Result<Vec<ActorKey>, BackendError> {
        actors(&self.connection, run)
    }

    fn order(
        &mut self,
        run: RunId,
        after: RunPosition,
        max: usize,
    ) -> Result<Vec<PlacedEntry>, BackendError> {
        order(&self.connection, run, after, max)
    }

    fn run_head(&mut self, run: RunId) -> Result<RunPosition, BackendError> {
        run_head(&self.connection, run)
    }

    fn runs(&mut self, after: Option<RunCursor>, max: usize) -> Result<Vec<StoredRun>, BackendError> {
        runs::newest(&self.connection, after, max)
    }

    fn run(&mut self, run: RunId) -> Result<Option<StoredRun>, BackendError> {
        runs::find(&self.connection, run)
    }

    fn runs_with_prefix(&mut self, prefix: &str, max: usize) -> Result<Vec<StoredRun>, BackendError> {
        runs::with_prefix(&self.connection, prefix, max)
    }

    fn blobs(&mut self) -> Result<Vec<BlobId>, BackendError> {
        blobs(&self.connection)
    }

    fn get_blob(&mut self, id: &BlobId) -> Result<Option<Vec<u8>>, BackendError> {
        blob(&self.connection, id)
    }
}

/// The logs of a run that have an entry, from both tables with logs.
pub(super) fn actors(connection: &Connection, run: RunId) -> Result<Vec<ActorKey>, BackendError> {
    const ATTEMPT: &str = "read a run's logs";
    // Sessions are named `RUN.NUMBER`; `/` follows `.` in character order.
    let sql = "SELECT key FROM heads WHERE (key = ?1 OR (key > ?1 || '.' AND key < ?1 || '/')) \
               UNION SELECT key FROM actors WHERE (key = ?1 OR (key > ?1 || '.' AND key < ?1 || '/')) \
               AND EXISTS (SELECT 1 FROM pieces WHERE pieces.log = actors.id)";
    let mut statement = connection.prepare_cached(sql).attempt(ATTEMPT)?;
    let keys = statement.query_map([run.to_string()], |row| row.get::<_, String>(0)).attempt(ATTEMPT)?;
    let keys = keys.collect::<Result<Vec<_>, _>>().attempt(ATTEMPT)?;
    let mut actors = keys.iter().filter_map(|key| key.parse().ok()).collect::<Vec<_>>();
    actors.sort_unstable();
    Ok(actors)
}

/// The numbers of the entries count those of all runs; within a run they are its order.
pub(super) fn order(
    connection: &Connection,
    run: RunId,
    after: RunPosition,
    max: usize,
) -> Result<Vec<PlacedEntry>, BackendError> {
    const ATTEMPT: &str = "read the order of a run's entries";
    let Some(number) = number(connection, run).attempt(ATTEMPT)? else { return Ok(Vec::new()) };
    let sql = "SELECT entries.id, actors.key, entries.seq FROM pieces CROSS JOIN entries \
               CROSS JOIN actors ON actors.id = entries.actor \
               WHERE log = ?1 AND pieces.seq >= coalesce((SELECT max(seq) FROM pieces WHERE log = ?1 AND seq <= ?3), 0) \
               AND entries.id >= start AND entries.id < stop AND run = ?2 AND entries.id > ?3 \
               ORDER BY pieces.seq, entries.id LIMIT ?4";
    let mut statement = connection.prepare_cached(sql).attempt(ATTEMPT)?;
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let of = (pieces::of_run(number), number, int(after.0), max);
    let mut rows = statement.query(of).attempt(ATTEMPT)?;
    let mut places = Vec::new();
    while let Some(row) = rows.next().attempt(ATTEMPT)? {
        let read = || {
            let actor = row.get_ref(1)?.as_str()?.parse::<ActorKey>();
            Ok((unsigned(row.get(0)?), actor, unsigned(row.get(2)?)))
        };
        let (position, actor, seq) = read().attempt(ATTEMPT)?;
        // A log whose name is damaged isn't among the run's logs either, and a damaged index leads to another run's.
        let Some(actor) = actor.ok().filter(|actor| actor.run() == run) else { continue };
        places.push(PlacedEntry { position: RunPosition(position), actor, seq: Seq(seq) });
    }
    Ok(places)
}

fn run_head(connection: &Connection, run: RunId) -> Result<RunPosition, BackendError> {
    const ATTEMPT: &str = "find the end of a run's entries";
    let Some(number) = number(connection, run).attempt(ATTEMPT)? else { return Ok(RunPosition::START) };
    let sql = "SELECT id FROM (SELECT start, stop FROM pieces WHERE log = ?1 ORDER BY seq DESC LIMIT 1) \
               CROSS JOIN entries WHERE id >= start AND id < stop AND run = ?2 ORDER BY id DESC LIMIT 1";
    connection
        .prepare_cached(sql)
        .and_then(|mut statement| {
            statement.query_row([pieces::of_run(number), number], |row| row.get(0)).optional()
        })
        .map(|id| id.map_or(RunPosition::START, |id| RunPosition(unsigned(id))))
        .attempt(ATTEMPT)
}

/// The number of a run's own log.
fn number(connection: &Connection, run: RunId) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT id FROM actors WHERE key = ?1")?
        .query_row([run.to_string()], |row| row.get(0))
        .optional()
}

fn blob(connection: &Connection, id: &BlobId) -> Result<Option<Vec<u8>>, BackendError> {
    const ATTEMPT: &str = "read a kept output";
    let body = connection
        .prepare_cached("SELECT body FROM blobs WHERE hash = ?1")
        .and_then(|mut statement| statement.query_row([&*id.0], |row| row.get::<_, Vec<u8>>(0)).optional())
        .attempt(ATTEMPT)?;
    match body {
        Some(body) if blob_id(&body) != *id => Err(BackendError::Storage {
            attempt: ATTEMPT,
            message: format!("output {} is damaged: its hash is another", id.0),
            hint: Some(super::error::DAMAGED),
        }),
        body => Ok(body),
    }
}

fn blobs(connection: &Connection) -> Result<Vec<BlobId>, BackendError> {
    const ATTEMPT: &str = "list the kept outputs";
    let mut statement = connection.prepare_cached("SELECT hash FROM blobs").attempt(ATTEMPT)?;
    let names = statement.query_map([], |row| row.get::<_, String>(0)).attempt(ATTEMPT)?;
    names.map(|name| Ok(BlobId(name.attempt(ATTEMPT)?.as_str().into()))).collect()
}
