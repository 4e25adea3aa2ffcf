//! Removing runs.

use provost_event::{BlobId, RunId};
use provost_harness::BackendError;
use rusqlite::params;

use super::SqliteStore;
use super::error::Attempt;

const ATTEMPT: &str = "remove a run";
/// The logs of a run by their names: its own, and those of its sessions, `RUN.NUMBER`.
const OF_RUN: &str = "(key = ?1 OR (key > ?1 || '.' AND key < ?1 || '/'))";

impl SqliteStore {
    pub(super) fn remove_all_of(&mut self, run: RunId) -> Result<(), BackendError> {
        let name = run.to_string();
        // No entry number is reused: otherwise a loss would go unnoticed.
        self.connection
            .execute(
                "UPDATE given SET entries = max(entries, (SELECT coalesce(max(id), 0) FROM entries))",
                [],
            )
            .attempt(ATTEMPT)?;
        let logs = format!("SELECT id FROM actors WHERE {OF_RUN}");
        let tables = [
            format!(
                "DELETE FROM entries WHERE id IN (SELECT entries.id FROM pieces CROSS JOIN entries \
                 WHERE log IN ({logs}) AND entries.id >= start AND entries.id < stop AND actor = log)"
            ),
            format!(
                "DELETE FROM pieces WHERE log IN ({logs} UNION ALL SELECT -id FROM actors WHERE {OF_RUN})"
            ),
            format!("DELETE FROM effects WHERE run IN ({logs})"),
            format!("DELETE FROM posts WHERE actor IN ({logs})"),
            format!("DELETE FROM heads WHERE {OF_RUN}"),
            format!("DELETE FROM actors WHERE {OF_RUN}"),
            "DELETE FROM runs WHERE run = ?1".to_owned(),
            "DELETE FROM owners WHERE run = ?1".to_owned(),
            "DELETE FROM mailbox WHERE run = ?1".to_owned(),
        ];
        for sql in tables {
            self.connection.execute(&sql, params![name]).attempt(ATTEMPT)?;
        }
        self.known.retain(|actor, _| actor.run() != run);
        self.longer.retain(|actor| actor.run() != run);
        self.piece_ends.clear();
        self.next_entry = None;
        Ok(())
    }

    pub(super) fn remove_bodies(&mut self, names: &[BlobId]) -> Result<(), BackendError> {
        let mut statement =
            self.connection.prepare_cached("DELETE FROM blobs WHERE hash = ?1").attempt("remove outputs")?;
        for name in names {
            statement.execute(params![&*name.0]).attempt("remove outputs")?;
        }
        Ok(())
    }

    pub(super) fn give_back(&self) -> Result<(), BackendError> {
        self.connection.execute_batch("VACUUM").attempt("give space back to the system")
    }
}
