//! Reading logs; each entry is compared with its stored hash.

use std::sync::Arc;

use provost_event::{
    ActorKey, Elapsed, Entry, FORMAT_VERSION, Json, LifecycleEntry, Record, RecordHead, Seq, Snapshot,
    Timestamp,
};
use provost_harness::{BackendError, ChainLink, EntryChain};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::error::{Attempt, is_damage, storage};
use super::{int, sums, unsigned};
use provost_backend::NO_LAYOUT;

const ATTEMPT: &str = "read a log";
/// Entries read at a time in the search for the first damaged one.
const LOOKED_AT_ONCE: usize = 1_000;

/// A log's number, and where it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Log {
    pub(super) id: i64,
    pub(super) head: Seq,
    /// The hash of all of it.
    pub(super) chain: EntryChain,
    /// Whether the row with this data exists and is valid. Otherwise the data is from the entries found.
    pub(super) is_recorded: bool,
}

/// The log of `actor`; `None` if there is none. A known log without entries ends at [`Seq::START`].
pub(super) fn find(connection: &Connection, actor: ActorKey) -> Result<Option<Log>, BackendError> {
    let key = actor.to_string();
    if let Some(log) = recorded(connection, &key)? {
        return Ok(Some(log));
    }
    let id = connection
        .prepare_cached("SELECT id FROM actors WHERE key = ?1")
        .and_then(|mut statement| statement.query_row([&key], |row| row.get::<_, i64>(0)).optional())
        .attempt("find a log")?;
    let Some(id) = id else { return Ok(None) };
    let none = Log { id, head: Seq::START, chain: EntryChain::new(), is_recorded: true };
    let last = connection
        .prepare_cached(
            "SELECT entries.seq, entries.chain \
             FROM (SELECT start, stop FROM pieces WHERE log = ?1 ORDER BY seq DESC LIMIT 1) CROSS JOIN entries \
             WHERE entries.id >= start AND entries.id < stop AND entries.actor = ?1 ORDER BY entries.id DESC LIMIT 1",
        )
        .and_then(|mut statement| {
            let read = |row: &Row<'_>| Ok((unsigned(row.get(0)?), chain(row, 1)?));
            statement.query_row([id], read).optional()
        })
        .attempt("read the end of a log")?;
    let Some((head, chain)) = last else { return Ok(Some(none)) };
    tracing::warn!(%actor, "where this log ends isn't recorded, or damaged: its last entry is taken for the end");
    Ok(Some(Log { head: Seq(head), chain: chain.unwrap_or_default(), is_recorded: false, ..none }))
}

/// The recorded end of a log; `None` if that is missing or damaged.
fn recorded(connection: &Connection, key: &str) -> Result<Option<Log>, BackendError> {
    let read = |row: &Row<'_>| {
        let (id, head) = (row.get::<_, i64>(0)?, Seq(unsigned(row.get(1)?)));
        let Some(chain) = chain(row, 2)? else { return Ok(None) };
        let is_whole = sums::of_head(key, id, head, &chain) == row.get::<_, i64>(3)?;
        Ok(is_whole.then_some(Log { id, head, chain, is_recorded: true }))
    };
    let found = connection
        .prepare_cached("SELECT actor, head, chain, sum FROM heads WHERE key = ?1")
        .and_then(|mut statement| statement.query_row([key], read).optional());
    match found {
        Ok(found) => Ok(found.flatten()),
        Err(error) if is_damage(&error) => Ok(None),
        Err(error) => Err(storage("find a log", &error)),
    }
}

fn chain(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<EntryChain>> {
    Ok(row.get_ref(column)?.as_blob().ok().and_then(EntryChain::from_bytes))
}

/// At most `max` entries of `actor` after `after`, each compared with its hash; entries before a damaged one come
/// first.
///
/// # Errors
/// [`BackendError::Unreadable`] if the next entry is damaged or missing.
pub(super) fn records(
    connection: &Connection,
    actor: ActorKey,
    after: Seq,
    max: usize,
) -> Result<Vec<Arc<Record>>, BackendError> {
    // The end first: a concurrent append makes the log longer than that, and never shorter.
    let Some(log) = find(connection, actor)? else { return Ok(Vec::new()) };
    let page = page(connection, actor, log.id, (after, max))?;
    if !page.records.is_empty() {
        return Ok(page.records);
    }
    let problem = match page.problem {
        Some(problem) => problem,
        None if max > 0 && log.is_recorded && page.last < log.head => {
            // Unless the whole log has been removed in the meantime.
            if find(connection, actor)? != Some(log) {
                return Ok(Vec::new());
            }
            let message = format!("it is missing: the log has {} entries", log.head);
            Problem { seq: page.last.next(), message }
        }
        None => return Ok(Vec::new()),
    };
    // The entry before it, whose hash was trusted, may be the damaged one.
    let first = if after.is_start() { None } else { first_problem(connection, actor, log.id)? };
    let Problem { seq, message } = first.unwrap_or(problem);
    Err(BackendError::Unreadable { actor, seq, message })
}

/// The first damaged entry of a log.
fn first_problem(connection: &Connection, actor: ActorKey, id: i64) -> Result<Option<Problem>, BackendError> {
    let mut after = Seq::START;
    loop {
        let page = page(connection, actor, id, (after, LOOKED_AT_ONCE))?;
        if page.problem.is_some() || page.records.is_empty() {
            return Ok(page.problem);
        }
        after = page.last;
    }
}

/// A problem of an entry.
pub(super) struct Problem {
    pub(super) seq: Seq,
    pub(super) message: String,
}

/// Consecutive entries.
pub(super) struct Page {
    pub(super) records: Vec<Arc<Record>>,
    /// The last of them; if there is none, the entry that precedes the page.
    pub(super) last: Seq,
    /// The hash up to there; `None` if there is no entry.
    pub(super) chain: Option<EntryChain>,
    /// Why the page ends early.
    pub(super) problem: Option<Problem>,
    /// The snapshots among them whose state is damaged.
    pub(super) passed_over: Vec<Seq>,
}

/// At most this many entries of the log `id` after an entry, up to the first damaged one.
pub(super) fn page(
    connection: &Connection,
    actor: ActorKey,
    id: i64,
    (after, max): (Seq, usize),
) -> Result<Page, BackendError> {
    let mut statement = connection
        .prepare_cached(
            "SELECT entries.seq, v, at, elapsed, kind, body, chain, state FROM pieces CROSS JOIN entries \
             WHERE log = ?1 AND pieces.seq >= coalesce((SELECT max(seq) FROM pieces WHERE log = ?1 AND seq <= ?2), 0) \
             AND entries.id >= start AND entries.id < stop AND actor = ?1 AND entries.seq >= ?2 \
             ORDER BY pieces.seq, entries.id LIMIT ?3",
        )
        .attempt(ATTEMPT)?;
    let limit = i64::try_from(max).unwrap_or(i64::MAX).saturating_add(1);
    let mut rows = statement.query(params![id, int(after.0), limit]).attempt(ATTEMPT)?;
    let mut reading = LogPageReader {
        actor,
        name: actor.to_string(),
        page: Page { records: Vec::new(), last: after, chain: None, problem: None, passed_over: Vec::new() },
    };
    while reading.page.records.len() < max {
        let read = match rows.next() {
            Ok(Some(row)) => reading.row(row),
            Ok(None) => break,
            Err(error) => Err(error),
        };
        match read {
            Ok(None) => {}
            Ok(Some(problem)) => {
                reading.page.problem = Some(problem);
                break;
            }
            Err(error) if is_damage(&error) => {
                let message = format!("the database is damaged there: {error}");
                reading.page.problem = Some(Problem { seq: reading.page.last.next(), message });
                break;
            }
            Err(error) => return Err(storage(ATTEMPT, &error)),
        }
    }
    Ok(reading.page)
}

struct LogPageReader {
    actor: ActorKey,
    name: String,
    page: Page,
}

impl LogPageReader {
    /// Adds a row; returns its problem, if any.
    fn row(&mut self, row: &Row<'_>) -> rusqlite::Result<Option<Problem>> {
        let seq = Seq(unsigned(row.get(0)?));
        let Some(stored) = chain(row, 6)? else {
            return Ok(Some(Problem { seq, message: "its hash is damaged".to_owned() }));
        };
        let page = &mut self.page;
        if page.chain.is_none() && seq == page.last && !seq.is_start() {
            // The preceding entry: only its hash is used.
            page.chain = Some(stored);
            return Ok(None);
        }
        let kind = row.get_ref(4)?.as_str()?;
        let body = row.get_ref(5)?.as_str()?;
        let at = Timestamp(unsigned(row.get(2)?));
        let elapsed = Elapsed(unsigned(row.get(3)?));
        let v = u32::try_from(row.get::<_, i64>(1)?).unwrap_or(FORMAT_VERSION.saturating_add(1));
        let head = RecordHead { v, actor: self.actor, seq, at, elapsed };
        let read = || Record::from_parts(head, kind, body);
        let mut link_chain = match page.chain {
            Some(_) if seq != page.last.next() => return Ok(Some(missing(page.last.next()))),
            Some(chain) => chain,
            None => match read() {
                Ok(first) if first.entry.follows().next() != seq => {
                    let expected = if page.last.is_start() { page.last.next() } else { page.last };
                    return Ok(Some(missing(expected)));
                }
                Ok(first) => EntryChain::before(&first.entry),
                Err(error) => return Ok(Some(Problem { seq, message: in_words(&error) })),
            },
        };
        let link = ChainLink { actor: &self.name, seq, at, elapsed, kind, body };
        link_chain.link(&link);
        if link_chain != stored {
            let message = "it is damaged: its hash isn't that of what it says".to_owned();
            return Ok(Some(Problem { seq, message }));
        }
        match read() {
            Ok(record) => {
                let is_snapshot = matches!(record.entry, Entry::Lifecycle(LifecycleEntry::Snapshot(_)));
                if is_snapshot && !is_whole(row, &stored, &link)? {
                    page.passed_over.push(seq);
                    page.records.push(Arc::new(emptied(record)));
                } else {
                    page.records.push(Arc::new(record));
                }
                page.last = seq;
                page.chain = Some(stored);
                Ok(None)
            }
            Err(error) => Ok(Some(Problem { seq, message: in_words(&error) })),
        }
    }
}

fn missing(seq: Seq) -> Problem {
    Problem { seq, message: "it is missing".to_owned() }
}

/// A snapshot whose state is damaged; it is ignored, as the entries contain the same.
fn emptied(record: Record) -> Record {
    tracing::warn!(actor = %record.actor, seq = %record.seq, "a snapshot is damaged: it is passed over");
    let entry = Entry::Lifecycle(LifecycleEntry::Snapshot(Snapshot {
        layout: NO_LAYOUT,
        state: Json::empty_object(),
    }));
    Record { entry, ..record }
}

/// Whether a snapshot's state is as stored.
fn is_whole(row: &Row<'_>, chain: &EntryChain, link: &ChainLink<'_>) -> rusqlite::Result<bool> {
    let state = row.get_ref(7)?.as_blob().ok();
    Ok(state.is_some_and(|state| state == chain.hash_of_state(link)))
}

/// The newest snapshot of `actor`, if it is valid.
pub(super) fn newest_snapshot(
    connection: &Connection,
    actor: ActorKey,
) -> Result<Option<Arc<Record>>, BackendError> {
    const ATTEMPT: &str = "look for a snapshot";
    let Some(log) = find(connection, actor)? else { return Ok(None) };
    // Always by its own index: without snapshots, the logs' index would be searched to its beginning.
    let sql = "SELECT seq, v, at, elapsed, kind, body, chain, state FROM entries INDEXED BY snapshots \
               WHERE actor = ?1 AND kind = 'snapshot' ORDER BY seq DESC LIMIT 1";
    let found = connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.query_row([log.id], |row| snapshot(actor, row)).optional());
    match found {
        Ok(Some(Ok(record))) => Ok(Some(Arc::new(record))),
        Ok(Some(Err((seq, message)))) => Err(BackendError::Unreadable { actor, seq, message }),
        Ok(None) => Ok(None),
        // The caller reads the whole log instead, and finds the damage there.
        Err(error) if is_damage(&error) => Ok(None),
        Err(error) => Err(storage(ATTEMPT, &error)),
    }
}

type Snapshotted = Result<Record, (Seq, String)>;

fn snapshot(actor: ActorKey, row: &Row<'_>) -> rusqlite::Result<Snapshotted> {
    let seq = Seq(unsigned(row.get(0)?));
    let v = u32::try_from(row.get::<_, i64>(1)?).unwrap_or(FORMAT_VERSION.saturating_add(1));
    let at = Timestamp(unsigned(row.get(2)?));
    let elapsed = Elapsed(unsigned(row.get(3)?));
    let body = row.get_ref(5)?.as_str()?;
    let head = RecordHead { v, actor, seq, at, elapsed };
    let chain = chain(row, 6)?.unwrap_or_default();
    let kind = row.get_ref(4)?.as_str()?;
    let name = actor.to_string();
    if !is_whole(row, &chain, &ChainLink { actor: &name, seq, at, elapsed, kind, body })? {
        let state = Json::empty_object();
        let entry = Entry::Lifecycle(LifecycleEntry::Snapshot(Snapshot { layout: NO_LAYOUT, state }));
        return Ok(Ok(Record { actor, seq, at, elapsed, entry }));
    }
    Ok(Record::from_parts(head, kind, body).map_err(|error| (seq, in_words(&error))))
}

fn in_words(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
