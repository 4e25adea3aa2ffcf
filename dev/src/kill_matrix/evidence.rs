//! The evidence of a run: its logs in the store, and its files.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use provost_backend::{OpenEffect, SessionStore as _, StoreReader as _, StoredRun};
use provost_event::{ActorKey, Entry, Record, RunId, Seq, SessionId};
use provost_sqlite::SqliteStore;

use super::files::{Files, FinalState, lines};
use super::scenario::{FORK, RUN};

/// The evidence of a suspended or ended run.
pub(super) struct Evidence {
    pub(super) logs: BTreeMap<ActorKey, Vec<Arc<Record>>>,
    /// Those of its fork; empty if there is none.
    pub(super) fork: BTreeMap<ActorKey, Vec<Arc<Record>>>,
    /// What the store lists.
    pub(super) row: Option<StoredRun>,
    pub(super) open: Vec<OpenEffect>,
    pub(super) rest: FinalState,
    pub(super) kills: usize,
    pub(super) files: Files,
}

impl Evidence {
    pub(super) fn collect(files: &Files, rest: FinalState, kills: usize) -> Result<Self> {
        let mut store = SqliteStore::open(files.database())?;
        let logs = logs_of(&mut store, RUN)?;
        let fork = logs_of(&mut store, FORK)?;
        let row = store.run(RUN)?;
        let open = [store.open_effects(RUN)?, store.open_effects(FORK)?].concat();
        Ok(Self { logs, fork, row, open, rest, kills, files: files.clone() })
    }

    /// The agents that have a log, the root first.
    pub(super) fn sessions(&self) -> impl Iterator<Item = SessionId> {
        self.logs.keys().filter_map(|actor| match actor {
            ActorKey::Session(session) => Some(*session),
            ActorKey::Run(_) => None,
        })
    }

    pub(super) fn session(&self, session: SessionId) -> impl Iterator<Item = (Seq, &Entry)> {
        self.log(session.into())
    }

    pub(super) fn run(&self) -> impl Iterator<Item = (Seq, &Entry)> {
        self.log(RUN.into())
    }

    fn log(&self, actor: ActorKey) -> impl Iterator<Item = (Seq, &Entry)> {
        self.logs.get(&actor).into_iter().flatten().map(|record| (record.seq, &record.entry))
    }

    /// The lines of `file`, each with its count.
    pub(super) fn counted(&self, file: &std::path::Path) -> BTreeMap<String, usize> {
        let mut counted = BTreeMap::new();
        for line in lines(file) {
            *counted.entry(line).or_default() += 1;
        }
        counted
    }
}

fn logs_of(store: &mut SqliteStore, run: RunId) -> Result<BTreeMap<ActorKey, Vec<Arc<Record>>>> {
    let mut logs = BTreeMap::new();
    for actor in store.actors(run)? {
        let mut log: Vec<Arc<Record>> = Vec::new();
        loop {
            let after = log.last().map_or(Seq::START, |record| record.seq);
            let more = store.read(actor, after, 1_000)?;
            if more.is_empty() {
                break;
            }
            log.extend(more);
        }
        logs.insert(actor, log);
    }
    Ok(logs)
}
