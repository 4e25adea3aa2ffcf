//! The evidence of a run: its logs in the store, and its files.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use provost_backend::{OpenEffect, SessionStore as _, StoreReader as _, StoredRun};
use provost_event::{ActorKey, Entry, MicroDollars, Outcome, Record, RunId, Seq, SessionId};
use provost_harness::{Catalog as _, Log as _, RunStatus, RunSummary};
use provost_sqlite::SqliteStore;

use super::files::{Files, FinalState, lines};
use super::on_engine::RunEngine;
use super::scenario::{FORK, RUN};

/// What a backend has of the run.
struct Seen {
    logs: Logs,
    fork: Logs,
    listed: Option<Listed>,
    open: Vec<OpenEffect>,
}

/// The evidence of a suspended or ended run.
pub(super) struct Evidence {
    pub(super) logs: Logs,
    /// Those of its fork; empty if there is none.
    pub(super) fork: Logs,
    pub(super) listed: Option<Listed>,
    /// The effects that a store still has; an engine shows none.
    pub(super) open: Vec<OpenEffect>,
    pub(super) rest: FinalState,
    pub(super) kills: usize,
    pub(super) files: Files,
}

impl Evidence {
    pub(super) fn collect(files: &Files, rest: FinalState, kills: usize) -> Result<Self> {
        let Seen { logs, fork, listed, open } = match files.engine()? {
            Some(engine) => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                runtime.block_on(on_engine(&engine, files))?
            }
            None => in_store(files)?,
        };
        Ok(Self { logs, fork, listed, open, rest, kills, files: files.clone() })
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

type Logs = BTreeMap<ActorKey, Vec<Arc<Record>>>;

/// The run in the list of runs.
pub(super) struct Listed {
    pub(super) outcome: Option<Outcome>,
    pub(super) tokens: u64,
    pub(super) cost: MicroDollars,
}

fn in_store(files: &Files) -> Result<Seen> {
    let mut store = SqliteStore::open(files.database())?;
    let row = store.run(RUN)?;
    Ok(Seen {
        logs: logs_of(&mut store, RUN)?,
        fork: logs_of(&mut store, FORK)?,
        listed: row.map(|StoredRun { outcome, tokens, cost, .. }| Listed { outcome, tokens, cost }),
        open: [store.open_effects(RUN)?, store.open_effects(FORK)?].concat(),
    })
}

async fn on_engine(engine: &RunEngine, files: &Files) -> Result<Seen> {
    let backend = engine.connect(files).await?;
    let listed = backend.get(RUN).await?.map(|RunSummary { status, tokens, cost, .. }| {
        let outcome = match status {
            RunStatus::Stopped(outcome) => Some(outcome),
            RunStatus::Running | RunStatus::Interrupted => None,
        };
        Listed { outcome, tokens, cost }
    });
    let (mut logs, mut fork) = (Logs::new(), Logs::new());
    for (run, logs) in [(RUN, &mut logs), (FORK, &mut fork)] {
        for actor in backend.actors(run).await? {
            logs.insert(actor, backend.read(actor, Seq::START, usize::MAX).await?);
        }
    }
    Ok(Seen { logs, fork, listed, open: Vec::new() })
}

fn logs_of(store: &mut SqliteStore, run: RunId) -> Result<Logs> {
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
