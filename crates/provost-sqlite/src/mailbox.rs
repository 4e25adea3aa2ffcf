//! The mailboxes of runs.

use provost_event::RunId;
use provost_harness::BackendError;
use rusqlite::{OptionalExtension as _, params};

use super::error::{Attempt, DAMAGED, storage};
use super::{SqliteStore, int, sums, unsigned};
use provost_backend::{ANSWERED_REQUESTS_MAX, Mailbox, MailboxState};

const ATTEMPT: &str = "read a run's mailbox";
const WRITE: &str = "write to a run's mailbox";

impl Mailbox for SqliteStore {
    fn put_request(&mut self, run: RunId, request: &str) -> Result<u64, BackendError> {
        let sum = sums::of_request(&run.to_string(), false, request);
        let sql = "INSERT INTO mailbox (run, answered, body, sum) VALUES (?1, 0, ?2, ?3)";
        self.execute(sql, params![run.to_string(), request, sum], WRITE)?;
        Ok(unsigned(self.connection.last_insert_rowid()))
    }

    fn runs_with_requests(&mut self) -> Result<Vec<RunId>, BackendError> {
        let sql = "SELECT DISTINCT run FROM mailbox WHERE answered = 0";
        let mut statement = self.connection.prepare_cached(sql).attempt(ATTEMPT)?;
        let runs = statement.query_map([], |row| row.get::<_, String>(0)).attempt(ATTEMPT)?;
        let runs = runs.collect::<Result<Vec<_>, _>>().attempt(ATTEMPT)?;
        Ok(runs.iter().filter_map(|run| run.parse().ok()).collect())
    }

    fn waiting_requests(&mut self, run: RunId, max: usize) -> Result<Vec<(u64, String)>, BackendError> {
        let name = run.to_string();
        let sql = "SELECT id, body, sum FROM mailbox WHERE run = ?1 AND answered = 0 ORDER BY id LIMIT ?2";
        let mut statement = self.connection.prepare_cached(sql).attempt(ATTEMPT)?;
        let row =
            |row: &rusqlite::Row<'_>| Ok((unsigned(row.get(0)?), row.get::<_, String>(1)?, row.get(2)?));
        let max = i64::try_from(max).unwrap_or(i64::MAX);
        let rows = statement.query_map(params![name, max], row).attempt(ATTEMPT)?;
        let mut waiting = Vec::new();
        for row in rows {
            let (number, body, sum): (u64, String, i64) = row.attempt(ATTEMPT)?;
            if sums::of_request(&name, false, &body) == sum {
                waiting.push((number, body));
            } else {
                tracing::warn!(%run, number, "a request is damaged: it is passed over");
            }
        }
        Ok(waiting)
    }

    fn answer_request(&mut self, number: u64, reply: &str) -> Result<(), BackendError> {
        let sql = "SELECT run FROM mailbox WHERE id = ?1";
        let run = self
            .connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.query_row([int(number)], |row| row.get::<_, String>(0)))
            .attempt(ATTEMPT)?;
        let sum = sums::of_request(&run, true, reply);
        let sql = "UPDATE mailbox SET answered = 1, body = ?2, sum = ?3 WHERE id = ?1";
        self.execute(sql, params![int(number), reply, sum], WRITE)?;
        let oldest = number.saturating_sub(ANSWERED_REQUESTS_MAX);
        let sql = "DELETE FROM mailbox WHERE id <= ?1 AND answered = 1";
        self.execute(sql, [int(oldest)], WRITE).map(drop)
    }

    fn request_state(&mut self, number: u64) -> Result<Option<MailboxState>, BackendError> {
        let sql = "SELECT run, answered, body, sum FROM mailbox WHERE id = ?1";
        let row = |row: &rusqlite::Row<'_>| {
            let (run, answered, body, sum): (String, bool, String, i64) =
                (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
            let is_whole = sums::of_request(&run, answered, &body) == sum;
            Ok((is_whole, if answered { MailboxState::Answered(body) } else { MailboxState::Waiting }))
        };
        let found = self
            .connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.query_row([int(number)], row).optional())
            .map_err(|error| storage(ATTEMPT, &error))?;
        match found {
            Some((false, _)) => Err(BackendError::Storage {
                attempt: ATTEMPT,
                message: format!("request {number} is damaged"),
                hint: Some(DAMAGED),
            }),
            found => Ok(found.map(|(_, state)| state)),
        }
    }

    fn withdraw_request(&mut self, number: u64) -> Result<bool, BackendError> {
        let sql = "DELETE FROM mailbox WHERE id = ?1 AND answered = 0";
        Ok(self.execute(sql, [int(number)], WRITE)? > 0)
    }
}
