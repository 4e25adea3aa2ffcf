//! Where in the table of entries those of a log are.
//!
//! The entries of all logs are in one table, in the order in which they were written: what many logs get at once
//! shares pages. A *piece* is a short range of that table, noted with the first entry that a log has in it. A log is
//! read piece by piece; it costs a few rows of others in between, and saves each entry a place in an index.

use std::ops::Range;

use provost_harness::BackendError;
use rusqlite::{Connection, OptionalExtension as _};

use super::SqliteStore;
use super::error::Attempt;

/// The rows of a piece. Twice as many halve the pieces that one log alone needs, and double what is read in vain of a
/// log among many.
const ROWS: i64 = 32;

/// The key of the pieces with entries of any log of a run, where `run` is the number of the run's own log. Their
/// entries are named by their rows.
pub(super) const fn of_run(run: i64) -> i64 {
    -run
}

impl SqliteStore {
    /// Notes that these rows are entries of the log, the first of them its entry `seq`.
    pub(super) fn note_pieces(&mut self, log: i64, seq: i64, rows: Range<i64>) -> Result<(), BackendError> {
        let mut end = match self.piece_ends.get(&log) {
            Some(end) => *end,
            None => last_end(&self.connection, log)?,
        };
        while end < rows.end {
            let start = end.max(rows.start);
            end = start.saturating_add(ROWS);
            let seq = seq.saturating_add(start.saturating_sub(rows.start));
            let sql = "INSERT INTO pieces (log, seq, start, stop) VALUES (?1, ?2, ?3, ?4)";
            self.execute(sql, [log, seq, start, end], "append to a log")?;
        }
        self.piece_ends.insert(log, end);
        Ok(())
    }
}

/// The first row after the last piece of a log.
fn last_end(connection: &Connection, log: i64) -> Result<i64, BackendError> {
    connection
        .prepare_cached("SELECT stop FROM pieces WHERE log = ?1 ORDER BY seq DESC LIMIT 1")
        .and_then(|mut statement| statement.query_row([log], |row| row.get(0)).optional())
        .map(Option::unwrap_or_default)
        .attempt("find the end of a log")
}
