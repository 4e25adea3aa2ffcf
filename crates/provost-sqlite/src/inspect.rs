//! Checks all of a database: its structure, every log from its first entry on, and all data derived from logs.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use provost_event::{ActorKey, BlobId, Record, RunId, Seq};
use provost_harness::{BackendError, RunPosition};
use rusqlite::Connection;

use super::error::{Attempt, is_damage, storage};
use super::{Loss, count, log, open, read, runs, sums, unsigned};
use provost_backend::blob_id;
use provost_backend::outputs_of;

const ATTEMPT: &str = "check the store";
/// Entries read at a time.
const READ_MAX: usize = 1_000;
/// Maximum problems requested from SQLite's own check.
const STRUCTURE_PROBLEMS_MAX: u32 = 100;

/// A problem of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreProblem {
    /// The database's own structure, in SQLite's words.
    Structure(String),
    /// A log can't be read from this entry on.
    Entries {
        /// The actor of the log.
        actor: ActorKey,
        /// The first entry that can't be read.
        seq: Seq,
        /// Why.
        why: String,
    },
    /// An output or picture is damaged, or missing though a log refers to it.
    Output {
        /// Its id.
        output: BlobId,
        /// The problem.
        why: &'static str,
    },
    /// Derived data. It is rebuilt from logs, and nothing is lost.
    Derived {
        /// The actor.
        actor: ActorKey,
        /// The kind of data.
        what: &'static str,
    },
}

impl StoreProblem {
    /// Whether data is lost.
    #[must_use]
    pub const fn is_loss(&self) -> bool {
        !matches!(self, Self::Derived { .. })
    }
}

impl fmt::Display for StoreProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Structure(what) => write!(f, "the database: {what}"),
            Self::Entries { actor, seq, why } => write!(f, "the log of {actor} from entry {seq} on: {why}"),
            Self::Output { output, why } => write!(f, "output {}: {why}", output.0),
            Self::Derived { actor, what } => {
                write!(f, "{what} of {actor}: made anew from the log, nothing is lost")
            }
        }
    }
}

/// The content of a store, and its damage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// Bytes of the database and its write-ahead log.
    pub bytes: u64,
    /// Free bytes among them, which later writes use.
    pub free_bytes: u64,
    /// The runs.
    pub runs: Vec<RunId>,
    /// Number of entries read, of all logs.
    pub entries: u64,
    /// Number of outputs and pictures beside the logs.
    pub outputs: u64,
    /// The problems.
    pub problems: Vec<StoreProblem>,
    /// Entries that were acknowledged and were missing when the database was opened, if that hasn't been
    /// acknowledged.
    pub loss: Option<Loss>,
}

impl Inspection {
    /// Whether nothing is lost.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.loss.is_none() && !self.problems.iter().any(StoreProblem::is_loss)
    }

    /// The runs with damaged logs.
    pub fn damaged_runs(&self) -> BTreeSet<RunId> {
        let of = |problem: &StoreProblem| match problem {
            StoreProblem::Entries { actor, .. } => Some(actor.run()),
            _ => None,
        };
        self.problems.iter().filter_map(of).collect()
    }
}

/// Checks all of the database at `path`, even while other processes use it. Reads everything once or twice.
///
/// # Errors
/// [`BackendError::Storage`] if it can't be opened: then nothing of it can be read.
pub fn inspect(path: &Path) -> Result<Inspection, BackendError> {
    let connection = open::as_it_is(path)?;
    let loss = count::loss(&connection, path)?;
    // All reads see the same state.
    let connection = connection.unchecked_transaction().attempt(ATTEMPT)?;
    let mut inspecting =
        Inspecting { connection: &connection, problems: Vec::new(), entries: 0, outputs: BTreeSet::new() };
    inspecting.structure()?;
    let runs = inspecting.runs()?;
    for run in &runs {
        inspecting.run(*run)?;
    }
    let outputs = inspecting.blobs()?;
    let Inspecting { problems, entries, .. } = inspecting;
    Ok(Inspection {
        bytes: bytes(path),
        free_bytes: free_bytes(&connection).unwrap_or_default(),
        runs,
        entries,
        outputs,
        problems,
        loss,
    })
}

/// Bytes of the database and the files beside it.
pub(super) fn bytes(path: &Path) -> u64 {
    let mut log = std::ffi::OsString::from(path);
    log.push("-wal");
    let of = |path: &Path| std::fs::metadata(path).map_or(0, |facts| facts.len());
    of(path).saturating_add(of(Path::new(&log)))
}

fn free_bytes(connection: &Connection) -> rusqlite::Result<u64> {
    let ask = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    Ok(unsigned(ask("freelist_count")?).saturating_mul(unsigned(ask("page_size")?)))
}

struct Inspecting<'a> {
    connection: &'a Connection,
    problems: Vec<StoreProblem>,
    entries: u64,
    /// The outputs that logs refer to.
    outputs: BTreeSet<BlobId>,
}

impl Inspecting<'_> {
    fn structure(&mut self) -> Result<(), BackendError> {
        let ask = || {
            let mut statement =
                self.connection.prepare(&format!("PRAGMA integrity_check({STRUCTURE_PROBLEMS_MAX})"))?;
            let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
            rows.collect::<Result<Vec<_>, _>>()
        };
        let found = match ask() {
            Ok(found) => found,
            Err(error) if is_damage(&error) => vec![error.to_string()],
            Err(error) => return Err(storage(ATTEMPT, &error)),
        };
        let wrong = found.into_iter().filter(|line| line != "ok");
        self.problems.extend(wrong.map(StoreProblem::Structure));
        Ok(())
    }

    fn runs(&mut self) -> Result<Vec<RunId>, BackendError> {
        let mut all = runs::with_logs(self.connection)?;
        all.extend(runs::newest(self.connection, None, usize::MAX)?.into_iter().map(|run| run.run));
        Ok(all.into_iter().collect())
    }

    fn run(&mut self, run: RunId) -> Result<(), BackendError> {
        let actors = match read::actors(self.connection, run) {
            Ok(actors) => actors,
            Err(BackendError::Storage { message, .. }) => {
                self.problems.push(StoreProblem::Entries { actor: run.into(), seq: Seq(1), why: message });
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let before = self.entries;
        for actor in actors {
            self.log(actor)?;
        }
        self.order(run, self.entries.saturating_sub(before))?;
        self.row(run)
    }

    /// Whether the order of a run's entries has as many as were read of its logs.
    fn order(&mut self, run: RunId, entries: u64) -> Result<(), BackendError> {
        let count = || {
            let mut after = RunPosition::START;
            let mut count = 0;
            loop {
                let places = read::order(self.connection, run, after, READ_MAX)?;
                let Some(last) = places.last() else { return Ok(count) };
                after = last.position;
                count += places.len() as u64;
            }
        };
        let problem = match count() {
            Ok(count) if count >= entries => return Ok(()),
            Ok(_) => "it lacks some of them".to_owned(),
            Err(BackendError::Storage { message, .. }) => message,
            Err(error) => return Err(error),
        };
        let problem = format!("the order of the entries of {run}: {problem}");
        self.problems.push(StoreProblem::Structure(problem));
        Ok(())
    }

    /// A log from its first entry on.
    fn log(&mut self, actor: ActorKey) -> Result<(), BackendError> {
        let Some(found) = log::find(self.connection, actor)? else { return Ok(()) };
        let mut after = Seq::START;
        let problem = loop {
            let page = log::page(self.connection, actor, found.id, (after, READ_MAX))?;
            page.records.iter().for_each(|record| self.record(record));
            let passed_over = page.passed_over.iter();
            let what = "a snapshot";
            self.problems.extend(passed_over.map(|_| StoreProblem::Derived { actor, what }));
            if page.problem.is_some() || page.records.is_empty() {
                break page.problem;
            }
            after = page.last;
        };
        match problem {
            Some(problem) => {
                let (seq, why) = (problem.seq, problem.message);
                self.problems.push(StoreProblem::Entries { actor, seq, why });
            }
            None if found.is_recorded && after < found.head => {
                let why = format!("it is missing: the log has {} entries", found.head);
                self.problems.push(StoreProblem::Entries { actor, seq: after.next(), why });
            }
            None if !found.is_recorded => {
                self.problems.push(StoreProblem::Derived { actor, what: "where the log ends" });
            }
            None => {}
        }
        Ok(())
    }

    fn record(&mut self, record: &Record) {
        self.entries = self.entries.saturating_add(1);
        self.outputs.extend(outputs_of(&record.entry));
    }

    /// Whether the row of a run matches its log.
    fn row(&mut self, run: RunId) -> Result<(), BackendError> {
        let row = runs::one(self.connection, run)?;
        let made = runs::from_log(self.connection, run)?;
        // Reservations change the time of the last entry, and don't update the row.
        let made = provost_backend::StoredRun { updated_at: row.updated_at, elapsed: row.elapsed, ..made };
        if made.damage.is_none() && (row != made || !runs::is_stored(self.connection, run)) {
            self.problems.push(StoreProblem::Derived { actor: run.into(), what: "the row in the list" });
        }
        if !self.effects(run)? {
            self.problems.push(StoreProblem::Derived { actor: run.into(), what: "what is to be done" });
        }
        Ok(())
    }

    /// Whether the open effects of a run are as stored.
    fn effects(&self, run: RunId) -> Result<bool, BackendError> {
        let Some(found) = log::find(self.connection, run.into())? else { return Ok(true) };
        let sql = "SELECT actors.key, effects.seq, effects.kind, effects.sum \
                   FROM effects LEFT JOIN actors ON actors.id = effects.actor WHERE effects.run = ?1";
        let mut statement = self.connection.prepare_cached(sql).attempt(ATTEMPT)?;
        let is_whole = |row: &rusqlite::Row<'_>| {
            let actor = row.get_ref(0)?.as_str()?.parse::<ActorKey>().ok();
            let seq = Seq(unsigned(row.get(1)?));
            let kind = row.get_ref(2)?.as_str()?;
            let sum = row.get::<_, i64>(3)?;
            Ok(actor.is_some_and(|actor| sums::of_effect(actor, seq, kind) == sum))
        };
        let mut rows = statement.query_map([found.id], is_whole).attempt(ATTEMPT)?;
        Ok(rows.all(|row| row.unwrap_or(false)))
    }

    /// The outputs beside the logs: the existing ones, and the referenced ones. Returns the number of existing
    /// ones.
    fn blobs(&mut self) -> Result<u64, BackendError> {
        let mut missing = std::mem::take(&mut self.outputs);
        let mut there = 0_u64;
        let mut statement = self.connection.prepare("SELECT hash, body FROM blobs").attempt(ATTEMPT)?;
        let mut rows = statement.query([]).attempt(ATTEMPT)?;
        loop {
            match rows.next() {
                Ok(Some(row)) => {
                    there = there.saturating_add(1);
                    let name = row.get_ref(0).ok().and_then(|name| name.as_str().ok()).unwrap_or_default();
                    let output = BlobId(name.into());
                    missing.remove(&output);
                    if row.get_ref(1).ok().and_then(|body| body.as_blob().ok()).map(blob_id).as_ref()
                        != Some(&output)
                    {
                        self.problems.push(StoreProblem::Output { output, why: "it is damaged" });
                    }
                }
                Ok(None) => break,
                // SQLite's own check has reported the place.
                Err(error) if is_damage(&error) => break,
                Err(error) => return Err(storage(ATTEMPT, &error)),
            }
        }
        let gone = missing.into_iter().map(|output| StoreProblem::Output { output, why: "it is missing" });
        self.problems.extend(gone);
        Ok(there)
    }
}
