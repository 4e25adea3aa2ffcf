//! The rows of run lists. They are derived from the runs' logs, and rebuilt from them if they are damaged.

use std::collections::BTreeSet;
use std::path::PathBuf;

use provost_engine::{Actor, Uncertain};
use provost_event::{ActorKey, Elapsed, MicroDollars, RunId, Seq, Timestamp};
use provost_harness::BackendError;
use rusqlite::{Connection, OptionalExtension as _, Row};

use super::error::{Attempt, is_damage, storage};
use super::{log, sums, unsigned};
use provost_backend::StoredRun;

const ATTEMPT: &str = "list the runs";
/// Entries read at a time when a row is rebuilt from its log.
const READ_MAX: usize = 1_000;

/// A run, and when it was started.
type Start = (i64, String);

/// At most `max` runs, the newest first.
pub(super) fn newest(connection: &Connection, max: usize) -> Result<Vec<StoredRun>, BackendError> {
    let by_table = starts(connection, "SELECT started_at, run FROM runs NOT INDEXED");
    let by_index = starts(connection, "SELECT started_at, run FROM runs INDEXED BY runs_by_start");
    let (by_table, by_index) = (by_table?, by_index?);
    match (by_table, by_index) {
        (Some(by_table), Some(by_index)) if by_table == by_index => {
            let names = by_table.into_iter().rev().take(max).map(|(_, run)| run);
            names.filter_map(|name| name.parse().ok()).map(|run| one(connection, run)).collect()
        }
        (by_table, by_index) => {
            tracing::warn!("the list of runs is damaged: it is made of the runs' logs");
            let names = by_table.into_iter().chain(by_index).flatten().map(|(_, run)| run);
            from_logs(connection, names, max)
        }
    }
}

/// All runs from one of the two indexes, the oldest first; `None` if that is damaged.
fn starts(connection: &Connection, sql: &str) -> Result<Option<Vec<Start>>, BackendError> {
    let read = || {
        let mut statement = connection.prepare_cached(sql)?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect::<Result<Vec<Start>, _>>()
    };
    match read() {
        Ok(mut starts) => {
            starts.sort_unstable();
            Ok(Some(starts))
        }
        Err(error) if is_damage(&error) => Ok(None),
        Err(error) => Err(storage(ATTEMPT, &error)),
    }
}

/// All runs found anywhere: the names in the list, and the logs.
fn from_logs(
    connection: &Connection,
    names: impl Iterator<Item = String>,
    max: usize,
) -> Result<Vec<StoredRun>, BackendError> {
    let listed = names.filter_map(|name| name.parse::<RunId>().ok());
    let runs = listed.chain(with_logs(connection)?).collect::<BTreeSet<_>>();
    let rows = runs.into_iter().map(|run| one(connection, run));
    let mut rows = rows.collect::<Result<Vec<_>, _>>()?;
    rows.sort_unstable_by_key(|run| std::cmp::Reverse((run.started_at, run.run)));
    rows.truncate(max);
    Ok(rows)
}

/// The runs that have a log, from both tables with logs.
pub(super) fn with_logs(connection: &Connection) -> Result<BTreeSet<RunId>, BackendError> {
    let mut runs = BTreeSet::new();
    for sql in ["SELECT key FROM heads", "SELECT key FROM actors NOT INDEXED"] {
        let mut statement = connection.prepare(sql).attempt(ATTEMPT)?;
        let mut rows = statement.query([]).attempt(ATTEMPT)?;
        loop {
            match rows.next() {
                Ok(Some(row)) => {
                    let name = row.get_ref(0).ok().and_then(|name| name.as_str().ok());
                    runs.extend(name.and_then(|name| name.parse::<ActorKey>().ok()).map(ActorKey::run));
                }
                Ok(None) => break,
                Err(error) if is_damage(&error) => break,
                Err(error) => return Err(storage(ATTEMPT, &error)),
            }
        }
    }
    Ok(runs)
}

/// Whether a run has a valid row.
pub(super) fn is_stored(connection: &Connection, run: RunId) -> bool {
    matches!(row(connection, run), Ok(Some(Some(_))))
}

fn row(connection: &Connection, run: RunId) -> rusqlite::Result<Option<Option<StoredRun>>> {
    let sql = "SELECT run, started_at, updated_at, turns, tokens, cost, outcome, model, workspace, goal, \
               uncertain_tokens, uncertain_cost, elapsed, sum \
               FROM runs NOT INDEXED WHERE run = ?1";
    connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.query_row([run.to_string()], stored).optional())
}

/// The row of a run, rebuilt if it is damaged or missing.
pub(super) fn one(connection: &Connection, run: RunId) -> Result<StoredRun, BackendError> {
    match row(connection, run) {
        Ok(Some(Some(row))) => Ok(row),
        Ok(_) => from_log(connection, run),
        Err(error) if is_damage(&error) => from_log(connection, run),
        Err(error) => Err(storage(ATTEMPT, &error)),
    }
}

/// The row of a run from its log, as far as that can be read.
pub(super) fn from_log(connection: &Connection, run: RunId) -> Result<StoredRun, BackendError> {
    let mut actor = Actor::new(run.into());
    let damage = loop {
        match log::records(connection, run.into(), actor.head(), READ_MAX) {
            Ok(records) if records.is_empty() => break None,
            Ok(records) => {
                if let Some(error) = records.iter().find_map(|record| actor.replay(record).err()) {
                    break Some(error.to_string());
                }
            }
            Err(BackendError::Unreadable { seq, message, .. }) => {
                break Some(format!("entry {seq}: {message}"));
            }
            Err(error) => return Err(error),
        }
    };
    match actor.status() {
        Some(status) => Ok(StoredRun { damage, ..StoredRun::new(run, status) }),
        None => Ok(StoredRun {
            run,
            goal: String::new(),
            workspace: PathBuf::new(),
            model: String::new(),
            outcome: None,
            started_at: Timestamp::default(),
            updated_at: Timestamp::default(),
            turns: 0,
            tokens: 0,
            cost: MicroDollars::default(),
            uncertain: Uncertain::default(),
            elapsed: Elapsed::default(),
            damage: Some(damage.unwrap_or_else(|| format!("entry {}: it is missing", Seq::START.next()))),
        }),
    }
}

/// A row; `None` if its sum doesn't match.
fn stored(row: &Row<'_>) -> rusqlite::Result<Option<StoredRun>> {
    let unreadable = |column, error: Box<dyn std::error::Error + Send + Sync>| {
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, error)
    };
    let outcome = row.get_ref(6)?.as_str_or_null()?;
    let parsed = outcome.map(serde_json::from_str).transpose();
    let run = StoredRun {
        run: row.get_ref(0)?.as_str()?.parse().map_err(|error| unreadable(0, Box::new(error)))?,
        started_at: Timestamp(unsigned(row.get(1)?)),
        updated_at: Timestamp(unsigned(row.get(2)?)),
        turns: u32::try_from(row.get::<_, i64>(3)?).unwrap_or(u32::MAX),
        tokens: unsigned(row.get(4)?),
        cost: MicroDollars(unsigned(row.get(5)?)),
        outcome: parsed.map_err(|error| unreadable(6, Box::new(error)))?,
        model: row.get(7)?,
        workspace: PathBuf::from(row.get::<_, String>(8)?),
        goal: row.get(9)?,
        uncertain: Uncertain { tokens: unsigned(row.get(10)?), cost: MicroDollars(unsigned(row.get(11)?)) },
        elapsed: Elapsed(unsigned(row.get(12)?)),
        damage: None,
    };
    let is_whole = sums::of_run(&run, outcome) == row.get::<_, i64>(13)?;
    Ok(is_whole.then_some(run))
}
