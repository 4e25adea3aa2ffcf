//! Writing.

use std::sync::Arc;
use std::time::Duration;

use provost_engine::Effect;
use provost_event::{ActorKey, BlobId, EffectId, Entry, FORMAT_VERSION, LifecycleEntry, RunId, Seq};
use provost_harness::{BackendError, ChainLink, EntryChain, RunPosition};
use rusqlite::{ErrorCode, OptionalExtension as _, Params, Row, Statement, params};

use super::error::{Attempt, is_damage, storage};
use super::open::BUSY_TIMEOUT;
use super::{
    CachedHead, KNOWN_ACTORS_MAX, SqliteReader, SqliteStore, count, int, log, pieces, sums, unsigned,
};
use provost_backend::log_begins;
use provost_backend::{
    Mailbox, NewEntry, OpenEffect, RunLeases, SessionStore, StoreReader, StoredRun, WakeUps,
};

impl SqliteStore {
    /// The data of an actor that has a number.
    pub(super) fn find(&mut self, actor: ActorKey) -> Result<Option<CachedHead>, BackendError> {
        if let Some(known) = self.known.get(&actor) {
            return Ok(Some(*known));
        }
        let Some(log::Log { id, head, chain, .. }) = log::find(&self.connection, actor)? else {
            return Ok(None);
        };
        let known = CachedHead { id, head, chain, is_longer: false };
        self.known.insert(actor, known);
        Ok(Some(known))
    }

    /// The data of an actor; one without a number gets one.
    fn find_or_add(&mut self, actor: ActorKey) -> Result<CachedHead, BackendError> {
        if let Some(known) = self.find(actor)? {
            return Ok(known);
        }
        self.execute("INSERT INTO actors (key) VALUES (?1)", [actor.to_string()], "add a log")?;
        let id = self.connection.last_insert_rowid();
        let known = CachedHead { id, head: Seq::START, chain: EntryChain::new(), is_longer: false };
        self.known.insert(actor, known);
        Ok(known)
    }

    fn read_marker(&mut self) -> Result<u64, BackendError> {
        let marker = self
            .connection
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut statement| statement.query_row([], |row| row.get::<_, i64>(0)))
            .map(unsigned)
            .attempt("look for changes")?;
        if std::mem::replace(&mut self.marker, marker) != marker {
            self.forget();
        }
        Ok(marker)
    }

    /// Drops what may have changed.
    fn forget(&mut self) {
        self.known.clear();
        self.piece_ends.clear();
        self.next_entry = None;
    }

    pub(super) fn execute(
        &self,
        sql: &str,
        params: impl Params,
        attempt: &'static str,
    ) -> Result<usize, BackendError> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(params))
            .attempt(attempt)
    }

    /// The key of an effect's row: the numbers of its run, its actor and itself.
    fn place(&mut self, id: EffectId) -> Result<(i64, i64, i64), BackendError> {
        let run = self.find_or_add(ActorKey::Run(id.actor.run()))?.id;
        Ok((run, self.find_or_add(id.actor)?.id, int(id.seq.0)))
    }

    /// The number of the next entry, never used before.
    fn next_entry(&self) -> rusqlite::Result<i64> {
        match self.next_entry {
            Some(next) => Ok(next),
            None => count::given(&self.connection).map(|given| given.saturating_add(1)),
        }
    }

    fn put_head(&self, actor: &str, known: CachedHead) -> Result<(), BackendError> {
        const ATTEMPT: &str = "append to a log";
        let CachedHead { id, head, chain, .. } = known;
        let sum = sums::of_head(actor, id, head, &chain);
        let row = params![actor, id, int(head.0), chain.as_bytes(), sum];
        let sql = "UPDATE heads SET actor = ?2, head = ?3, chain = ?4, sum = ?5 WHERE key = ?1";
        if self.execute(sql, row, ATTEMPT)? > 0 {
            return Ok(());
        }
        let sql = "INSERT INTO heads (key, actor, head, chain, sum) VALUES (?1, ?2, ?3, ?4, ?5)";
        self.execute(sql, row, ATTEMPT).map(drop)
    }

    fn update_run(&self, run: &StoredRun, outcome: Option<&str>, sum: i64) -> Result<bool, BackendError> {
        let changed = self.execute(
            "UPDATE runs SET updated_at = ?2, turns = ?3, tokens = ?4, cost = ?5, outcome = ?6, model = ?7, goal = ?8, \
             uncertain_tokens = ?9, uncertain_cost = ?10, elapsed = ?11, sum = ?12 WHERE run = ?1",
            params![
                run.run.to_string(),
                int(run.updated_at.0),
                run.turns,
                int(run.tokens),
                int(run.cost.0),
                outcome,
                run.model,
                run.goal,
                int(run.uncertain.tokens),
                int(run.uncertain.cost.0),
                int(run.elapsed.0),
                sum
            ],
            PUT_RUN,
        )?;
        Ok(changed > 0)
    }
}

/// An entry to be written.
struct NumberedEntry<'a> {
    /// Its row.
    id: i64,
    /// The number of the run's own log.
    run: i64,
    /// The log's number.
    log: i64,
    entry: &'a NewEntry,
    link: ChainLink<'a>,
    /// The hash of the log up to it.
    chain: EntryChain,
}

impl NumberedEntry<'_> {
    const INSERT: &'static str = "INSERT INTO entries (id, run, actor, seq, v, at, elapsed, kind, body, chain, state) \
                                  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";

    fn insert(&self, statement: &mut Statement<'_>) -> rusqlite::Result<usize> {
        let Self { id, run, log, entry, link, chain } = self;
        let record = &entry.record;
        let state = matches!(record.entry, Entry::Lifecycle(LifecycleEntry::Snapshot(_)))
            .then(|| chain.hash_of_state(link));
        statement.execute(params![
            id,
            run,
            log,
            int(record.seq.0),
            FORMAT_VERSION,
            int(record.at.0),
            int(record.elapsed.0),
            link.kind,
            link.body,
            chain.as_bytes(),
            state
        ])
    }
}

const PUT_RUN: &str = "update the list of runs";
const OPEN_EFFECTS: &str = "read what is to be done";

impl SessionStore for SqliteStore {
    fn reader(&mut self) -> Result<Box<dyn StoreReader>, BackendError> {
        Ok(Box::new(SqliteReader::over((self.for_reading)(&self.path)?)))
    }

    fn leases(&self) -> Arc<dyn RunLeases> {
        self.file_leases()
    }

    fn mailbox(&mut self) -> &mut dyn Mailbox {
        self
    }

    fn wake_ups(&self) -> Arc<dyn WakeUps> {
        self.socket_wake_ups()
    }

    fn begin(&mut self) -> Result<(), BackendError> {
        self.execute("BEGIN IMMEDIATE", [], "begin to write")?;
        self.read_marker()?;
        if self.known.len() > KNOWN_ACTORS_MAX {
            self.forget();
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), BackendError> {
        for actor in std::mem::take(&mut self.longer) {
            if let Some(known) = self.known.get_mut(&actor) {
                known.is_longer = false;
                let known = *known;
                self.put_head(&actor.to_string(), known)?;
            }
        }
        self.execute("COMMIT", [], "write to the log")?;
        if let (Some(last), Some(next)) = (self.appended.take(), self.next_entry) {
            self.count.write(next.saturating_sub(1), last);
        }
        self.file.check()
    }

    fn rollback(&mut self) {
        self.forget();
        self.appended = None;
        self.longer.clear();
        // After some failures SQLite has rolled back by itself.
        if !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::warn!(%error, "rolling back failed");
        }
    }

    /// Copies the write-ahead log to the database file, which is then a complete backup by itself.
    fn settle(&mut self) -> Result<(), BackendError> {
        const ATTEMPT: &str = "carry the log of writes over to the database";
        // If another process reads or writes at this moment, it is done later.
        self.connection.busy_timeout(Duration::ZERO).attempt(ATTEMPT)?;
        let done = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        self.connection.busy_timeout(BUSY_TIMEOUT).attempt(ATTEMPT)?;
        match done {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(()),
            done => done.attempt(ATTEMPT),
        }
    }

    fn change_marker(&mut self) -> Result<u64, BackendError> {
        // During a transaction no other process writes.
        if self.connection.is_autocommit() { self.read_marker() } else { Ok(self.marker) }
    }

    fn append(
        &mut self,
        actor: ActorKey,
        expected: Seq,
        entries: &[NewEntry],
    ) -> Result<RunPosition, BackendError> {
        const ATTEMPT: &str = "append to a log";
        let run = self.find_or_add(ActorKey::Run(actor.run()))?.id;
        let known = self.find_or_add(actor)?;
        let before = if known.head.is_start() { log_begins(entries) } else { known.head };
        if before != expected {
            return Err(BackendError::Conflict { actor });
        }
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
            return Ok(RunPosition::START);
        };
        let start = self.next_entry().attempt(ATTEMPT)?;
        let mut next = start;
        let name = actor.to_string();
        let mut statement = self.connection.prepare_cached(NumberedEntry::INSERT).attempt(ATTEMPT)?;
        let mut chain =
            if known.head.is_start() { EntryChain::before(&first.record.entry) } else { known.chain };
        for entry in entries {
            let record = &entry.record;
            let link = ChainLink {
                actor: &name,
                seq: record.seq,
                at: record.at,
                elapsed: record.elapsed,
                kind: record.entry.kind(),
                body: &entry.body,
            };
            chain.link(&link);
            let numbered = NumberedEntry { id: next, run, log: known.id, entry, link, chain };
            numbered.insert(&mut statement).attempt(ATTEMPT)?;
            next = next.saturating_add(1);
        }
        drop(statement);
        self.next_entry = Some(next);
        self.note_pieces(known.id, int(first.record.seq.0), start..next)?;
        self.note_pieces(pieces::of_run(run), start, start..next)?;
        if !known.is_longer {
            self.longer.push(actor);
        }
        self.known.insert(actor, CachedHead { head: last.record.seq, chain, is_longer: true, ..known });
        self.appended = Some((actor, last.record.seq));
        Ok(RunPosition(unsigned(next.saturating_sub(1))))
    }

    fn put_effect(&mut self, open: &OpenEffect) -> Result<(), BackendError> {
        const ATTEMPT: &str = "write down what is to be done";
        let (run, actor, seq) = self.place(open.id)?;
        let kind = to_json(ATTEMPT, &open.effect)?;
        let sum = sums::of_effect(open.id.actor, open.id.seq, &kind);
        let due = match open.effect {
            Effect::Timer { due, .. } => Some(int(due.0)),
            _ => None,
        };
        self.execute(
            "INSERT OR REPLACE INTO effects (run, actor, seq, epoch, abort, due_at, kind, sum) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![run, actor, seq, open.epoch.map(int), open.abort, due, kind, sum],
            ATTEMPT,
        )
        .map(drop)
    }

    fn close_effect(&mut self, id: EffectId) -> Result<(), BackendError> {
        let place = self.place(id)?;
        let sql = "DELETE FROM effects WHERE run = ?1 AND actor = ?2 AND seq = ?3";
        self.execute(sql, place, "write down what is done").map(drop)
    }

    fn request_abort(&mut self, id: EffectId) -> Result<(), BackendError> {
        let place = self.place(id)?;
        let sql = "UPDATE effects SET abort = 1 WHERE run = ?1 AND actor = ?2 AND seq = ?3";
        self.execute(sql, place, "write down what is to stop").map(drop)
    }

    fn open_effects(&mut self, run: RunId) -> Result<Vec<OpenEffect>, BackendError> {
        let Some(CachedHead { id, .. }) = self.find(ActorKey::Run(run))? else { return Ok(Vec::new()) };
        let sql = "SELECT actors.key, effects.seq, effects.epoch, effects.abort, effects.kind, effects.sum \
                   FROM effects JOIN actors ON actors.id = effects.actor WHERE effects.run = ?1";
        let mut statement = self.connection.prepare_cached(sql).attempt(OPEN_EFFECTS)?;
        let rows = statement.query_map([id], open_effect).attempt(OPEN_EFFECTS)?;
        let mut effects = Vec::new();
        for row in rows {
            match row {
                Ok(Some(open)) => effects.push(open),
                Ok(None) => {
                    tracing::warn!(%run, "what is to be done is damaged: the actor is asked for it again")
                }
                Err(error) if is_damage(&error) => {
                    tracing::warn!(%run, %error, "what is to be done is damaged: the actor is asked for it again");
                }
                Err(error) => return Err(storage(OPEN_EFFECTS, &error)),
            }
        }
        effects.sort_unstable_by_key(|open| open.id);
        Ok(effects)
    }

    fn has_post(&mut self, actor: ActorKey, dedup: &str) -> Result<bool, BackendError> {
        let Some(CachedHead { id, .. }) = self.find(actor)? else { return Ok(false) };
        self.connection
            .prepare_cached("SELECT 1 FROM posts WHERE actor = ?1 AND dedup = ?2")
            .and_then(|mut statement| statement.exists(params![id, dedup]))
            .attempt("look for a doubled post")
    }

    fn mark_post(&mut self, actor: ActorKey, dedup: &str) -> Result<(), BackendError> {
        let CachedHead { id, .. } = self.find_or_add(actor)?;
        let sql = "INSERT OR IGNORE INTO posts (actor, dedup) VALUES (?1, ?2)";
        self.execute(sql, params![id, dedup], "mark a post").map(drop)
    }

    fn put_run(&mut self, run: &StoredRun) -> Result<(), BackendError> {
        let outcome = run.outcome.as_ref().map(|outcome| to_json(PUT_RUN, outcome)).transpose()?;
        let sum = sums::of_run(run, outcome.as_deref());
        if self.update_run(run, outcome.as_deref(), sum)? {
            return Ok(());
        }
        self.execute(
            "INSERT INTO runs (run, started_at, updated_at, turns, tokens, cost, outcome, model, workspace, goal, \
             uncertain_tokens, uncertain_cost, elapsed, sum) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
            params![
                run.run.to_string(),
                int(run.started_at.0),
                int(run.updated_at.0),
                run.turns,
                int(run.tokens),
                int(run.cost.0),
                outcome,
                run.model,
                run.workspace.to_string_lossy(),
                run.goal,
                int(run.uncertain.tokens),
                int(run.uncertain.cost.0),
                int(run.elapsed.0),
                sum
            ],
            PUT_RUN,
        )
        .map(drop)
    }

    fn put_blob(&mut self, id: &BlobId, body: &[u8]) -> Result<(), BackendError> {
        let sql = "INSERT OR IGNORE INTO blobs (hash, body) VALUES (?1, ?2)";
        self.execute(sql, params![&*id.0, body], "keep an output").map(drop)
    }

    fn remove_run(&mut self, run: RunId) -> Result<(), BackendError> {
        self.remove_all_of(run)
    }

    fn remove_blobs(&mut self, names: &[BlobId]) -> Result<(), BackendError> {
        self.remove_bodies(names)
    }

    fn shrink(&mut self) -> Result<(), BackendError> {
        self.give_back()
    }

    fn owner_epoch(&mut self, run: RunId) -> Result<u64, BackendError> {
        self.connection
            .prepare_cached("SELECT epoch FROM owners WHERE run = ?1")
            .and_then(|mut statement| statement.query_row([run.to_string()], |row| row.get(0)).optional())
            .map(|epoch| epoch.map_or(0, unsigned))
            .attempt("read a run's owner")
    }

    fn bump_owner_epoch(&mut self, run: RunId) -> Result<u64, BackendError> {
        let sql = "INSERT INTO owners (run, epoch) VALUES (?1, 1) \
                   ON CONFLICT (run) DO UPDATE SET epoch = epoch + 1";
        self.execute(sql, [run.to_string()], "take a run over")?;
        self.owner_epoch(run)
    }
}

/// `None` if it isn't as stored. The recovery of the run then treats it as an effect of a process that is gone.
fn open_effect(row: &Row<'_>) -> rusqlite::Result<Option<OpenEffect>> {
    let unreadable = |column, error: Box<dyn std::error::Error + Send + Sync>| {
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, error)
    };
    let actor = row.get_ref(0)?.as_str()?.parse().map_err(|error| unreadable(0, Box::new(error)))?;
    let seq = Seq(unsigned(row.get(1)?));
    let kind = row.get_ref(4)?.as_str()?;
    if sums::of_effect(actor, seq, kind) != row.get::<_, i64>(5)? {
        return Ok(None);
    }
    let effect = serde_json::from_str(kind);
    Ok(Some(OpenEffect {
        id: EffectId { actor, seq },
        effect: effect.map_err(|error| unreadable(4, Box::new(error)))?,
        epoch: row.get::<_, Option<i64>>(2)?.map(unsigned),
        abort: row.get(3)?,
    }))
}

fn to_json(attempt: &'static str, value: &impl serde::Serialize) -> Result<String, BackendError> {
    serde_json::to_string(value).map_err(|error| BackendError::Storage {
        attempt,
        message: error.to_string(),
        hint: None,
    })
}
