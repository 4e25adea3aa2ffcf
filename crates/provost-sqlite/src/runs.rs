//! The rows of run lists. They are derived from the runs' logs, and rebuilt from them if they are damaged.

use std::collections::BTreeSet;
use std::path::PathBuf;

use provost_engine::{Actor, Uncertain};
use provost_event::{ActorKey, Elapsed, MicroDollars, RunId, Seq, Timestamp};
use provost_harness::{BackendError, RunCursor};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::error::{Attempt, is_damage, storage};
use super::{int, log, sums, unsigned};
use provost_backend::StoredRun;

const ATTEMPT: &str = "list the runs";
/// Entries read at a time when a row is rebuilt from its log.
const READ_MAX: usize = 1_000;

/// At most `max` runs after `after`, the newest first. Two indexes must agree on which these are.
pub(super) fn newest(
    connection: &Connection,
    after: Option<RunCursor>,
    max: usize,
) -> Result<Vec<StoredRun>, BackendError> {
    match places(connection, after, max) {
        Ok([one, other]) if one == other => one.into_iter().map(|place| at(connection, place)).collect(),
        Err(error) if !is_damage(&error) => Err(storage(ATTEMPT, &error)),
        Ok(_) | Err(_) => {
            tracing::warn!("the list of runs is damaged: it is made of the runs' logs");
            from_logs(connection, after, max)
        }
    }
}

/// The places of these runs by each of the two indexes, in one statement: of one state of the database.
fn places(
    connection: &Connection,
    after: Option<RunCursor>,
    max: usize,
) -> rusqlite::Result<[Vec<RunCursor>; 2]> {
    let by = |number: u32, index: &str| {
        format!(
            "SELECT {number}, started_at, run FROM (SELECT started_at, run FROM runs INDEXED BY {index} \
             WHERE (started_at, run) < (?1, ?2) ORDER BY started_at DESC, run DESC LIMIT ?3)"
        )
    };
    let sql = format!("{} UNION ALL {}", by(0, "runs_by_start"), by(1, "runs_by_start_again"));
    let mut statement = connection.prepare_cached(&sql)?;
    let (start, run) = match after {
        Some(after) => (int(after.started_at.0), after.run.to_string()),
        None => (i64::MAX, String::new()),
    };
    let mut rows = statement.query(params![start, run, i64::try_from(max).unwrap_or(i64::MAX)])?;
    let mut found = [Vec::new(), Vec::new()];
    while let Some(row) = rows.next()? {
        let [one, other] = &mut found;
        let places = if row.get::<_, u32>(0)? == 0 { one } else { other };
        // A name that is damaged in both is found by the run's log.
        if let Ok(run) = row.get_ref(2)?.as_str()?.parse() {
            places.push(RunCursor { started_at: Timestamp(unsigned(row.get(1)?)), run });
        }
    }
    found.iter_mut().for_each(|places| places.sort_unstable_by_key(|place| std::cmp::Reverse(*place)));
    Ok(found)
}

/// The run at this place of the list.
fn at(connection: &Connection, place: RunCursor) -> Result<StoredRun, BackendError> {
    // A log that can't be read doesn't say when it began.
    one(connection, place.run).map(|run| StoredRun { started_at: place.started_at, ..run })
}

/// All runs found anywhere, sorted: the names in the list, and the logs.
fn from_logs(
    connection: &Connection,
    after: Option<RunCursor>,
    max: usize,
) -> Result<Vec<StoredRun>, BackendError> {
    let mut runs = with_logs(connection)?;
    for index in ["NOT INDEXED", "INDEXED BY runs_by_start", "INDEXED BY runs_by_start_again"] {
        let names = names(connection, &format!("SELECT run FROM runs {index}"))?;
        runs.extend(names.iter().filter_map(|name| name.parse::<RunId>().ok()));
    }
    let rows = runs.into_iter().map(|run| one(connection, run));
    let mut rows = rows.collect::<Result<Vec<_>, _>>()?;
    rows.retain(|run| after.is_none_or(|after| run.cursor() < after));
    rows.sort_unstable_by_key(|run| std::cmp::Reverse(run.cursor()));
    rows.truncate(max);
    Ok(rows)
}

/// The names that a statement without parameters reads, up to damage.
fn names(connection: &Connection, sql: &str) -> Result<Vec<String>, BackendError> {
    let mut names = Vec::new();
    let mut read = || {
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            names.extend(row.get_ref(0)?.as_str().ok().map(str::to_owned));
        }
        Ok(())
    };
    match read() {
        Err(error) if !is_damage(&error) => Err(storage(ATTEMPT, &error)),
        Ok(()) | Err(_) => Ok(names),
    }
}

/// The run with this id: its row, or what its log says. `None` if there is neither.
pub(super) fn find(connection: &Connection, run: RunId) -> Result<Option<StoredRun>, BackendError> {
    match row(connection, run) {
        Ok(Some(Some(row))) => Ok(Some(row)),
        Err(error) if !is_damage(&error) => Err(storage(ATTEMPT, &error)),
        Ok(None) if log::find(connection, run.into())?.is_none_or(|log| log.head.is_start()) => Ok(None),
        Ok(_) | Err(_) => from_log(connection, run).map(Some),
    }
}

/// At most `max` runs whose ids begin with `prefix`, in the order of their ids: those with a row, and those with a
/// log.
pub(super) fn with_prefix(
    connection: &Connection,
    prefix: &str,
    max: usize,
) -> Result<Vec<StoredRun>, BackendError> {
    if prefix.is_empty() || !prefix.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Ok(Vec::new());
    }
    let mut runs = BTreeSet::new();
    for sql in [
        "SELECT run FROM runs NOT INDEXED WHERE run >= ?1 AND run < ?2 ORDER BY run LIMIT 1",
        "SELECT key FROM heads WHERE key >= ?1 AND key < ?2 ORDER BY key LIMIT 1",
    ] {
        runs.extend(seek(connection, sql, prefix, max)?);
    }
    let found = runs.into_iter().take(max).map(|run| find(connection, run));
    found.filter_map(Result::transpose).collect()
}

/// The runs whose names begin with `prefix`, at most `max`. `sql` reads the first name between two: one is read of
/// each run, however many logs it has.
fn seek(connection: &Connection, sql: &str, prefix: &str, max: usize) -> Result<Vec<RunId>, BackendError> {
    // Letters and digits come before `{`, and the names of a run's sessions, `RUN.NUMBER`, before `RUN/`.
    let (mut from, end) = (prefix.to_owned(), format!("{prefix}{{"));
    let mut statement = connection.prepare_cached(sql).attempt(ATTEMPT)?;
    let mut runs = Vec::new();
    while runs.len() < max {
        match statement.query_row([&from, &end], |row| row.get::<_, String>(0)).optional() {
            Ok(Some(name)) => {
                let run = name.parse::<ActorKey>().ok().map(ActorKey::run);
                from = run.map_or_else(|| format!("{name}\0"), |run| format!("{run}/"));
                runs.extend(run);
            }
            Ok(None) => break,
            Err(error) if is_damage(&error) => break,
            Err(error) => return Err(storage(ATTEMPT, &error)),
        }
    }
    Ok(runs)
}

/// The runs that have a log, from both tables with logs.
pub(super) fn with_logs(connection: &Connection) -> Result<BTreeSet<RunId>, BackendError> {
    let mut runs = BTreeSet::new();
    for sql in ["SELECT key FROM heads", "SELECT key FROM actors NOT INDEXED"] {
        let names = names(connection, sql)?;
        runs.extend(names.iter().filter_map(|name| name.parse::<ActorKey>().ok()).map(ActorKey::run));
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use provost_backend::{NewEntry, SessionStore as _, StoreReader};
    use provost_event::{ConversationEntry, Entry, Record, SessionId, UserMessage};

    use super::*;
    use crate::SqliteStore;

    fn listed(run: RunId, number: u64) -> StoredRun {
        StoredRun {
            run,
            goal: "a goal".to_owned(),
            workspace: PathBuf::from("/somewhere"),
            model: "a/b".to_owned(),
            outcome: None,
            started_at: Timestamp(number),
            updated_at: Timestamp(number),
            turns: 0,
            tokens: 0,
            cost: MicroDollars(0),
            uncertain: Uncertain::default(),
            elapsed: Elapsed(0),
            damage: None,
        }
    }

    type FindRuns<'a> = &'a dyn Fn(&mut dyn StoreReader) -> Vec<RunId>;

    /// Ids all over the place, the same in every store.
    fn id(number: u64) -> RunId {
        RunId::from_entropy(number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// Each run has a row and the logs of three agents.
    fn store_with(folder: &tempfile::TempDir, runs: u64) -> SqliteStore {
        let mut store = SqliteStore::open(folder.path().join("provost.db")).unwrap();
        store.begin().unwrap();
        for number in 0..runs {
            let run = id(number);
            let sessions = (0..3).map(|agent| SessionId { run, agent }.into());
            for actor in std::iter::once(run.into()).chain(sessions) {
                let entry = Entry::Conversation(ConversationEntry::UserMessage(UserMessage {
                    content: Vec::new(),
                    by: String::new(),
                }));
                let (at, elapsed) = (Timestamp(number), Elapsed(0));
                let record = Record { actor, seq: Seq(1), at, elapsed, entry };
                store.append(actor, Seq::START, &[NewEntry::new(record).unwrap()]).unwrap();
            }
            store.put_run(&listed(run, number)).unwrap();
        }
        store.commit().unwrap();
        store
    }

    /// The steps that the database takes to do something.
    fn steps<T>(store: &mut SqliteStore, act: impl FnOnce(&mut dyn StoreReader) -> T) -> (usize, T) {
        let steps = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&steps);
        let count = move || {
            counted.fetch_add(1, Ordering::Relaxed);
            false
        };
        store.connection.progress_handler(1, Some(count)).unwrap();
        let done = act(store);
        store.connection.progress_handler(1, None::<fn() -> bool>).unwrap();
        (steps.load(Ordering::Relaxed), done)
    }

    #[test]
    fn finding_one_run_takes_as_many_steps_among_10_000_as_among_10() {
        let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let [mut few, mut many] = [(&folders[0], 10), (&folders[1], 10_000)].map(|(f, n)| store_with(f, n));
        let run = id(7);
        let cases: [(&str, FindRuns<'_>); 4] = [
            ("id", &|store| store.run(run).unwrap().into_iter().map(|run| run.run).collect()),
            ("unknown", &|store| store.run(id(1 << 40)).unwrap().into_iter().map(|run| run.run).collect()),
            ("prefix", &|store| {
                let prefix = run.to_string()[..8].to_owned();
                store.runs_with_prefix(&prefix, 6).unwrap().into_iter().map(|run| run.run).collect()
            }),
            ("last", &|store| store.runs(None, 1).unwrap().into_iter().map(|run| run.run).collect()),
        ];
        for (name, find) in cases {
            let [(among_few, found_few), (among_many, found_many)] =
                [&mut few, &mut many].map(|store| steps(store, find));
            eprintln!("{name}: {among_few} steps among 10 runs, {among_many} among 10,000");
            match name {
                "unknown" => assert_eq!((found_few, found_many), (vec![], vec![])),
                "last" => assert_eq!((found_few, found_many), (vec![id(9)], vec![id(9_999)])),
                _ => assert_eq!((found_few, found_many), (vec![run], vec![run])),
            }
            assert!(among_many <= among_few + 20, "{name}: {among_few} and {among_many} steps");
        }
        // One letter fits hundreds of runs; only as many as are wanted are read.
        let prefix = &run.to_string()[..1];
        let (taken, found) = steps(&mut many, |store| store.runs_with_prefix(prefix, 6).unwrap().len());
        eprintln!("a letter: {taken} steps among 10,000");
        assert!(found == 6 && taken < 2_000, "{found} runs, {taken} steps");
        let (all, found) = steps(&mut many, |store| store.runs(None, usize::MAX).unwrap().len());
        assert!(found == 10_000 && all > 100_000, "steps are counted: {all}");
    }
}
