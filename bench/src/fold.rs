//! (e) A long log read and folded: all of it, and as when a run is opened again.

use std::path::Path;
use std::sync::Arc;

use anyhow::ensure;
use provost_backend::{EmbeddedBackend, MemoryStore, NewEntry, SessionStore};
use provost_engine::Actor;
use provost_event::{ActorKey, Record, Seq, SessionId};
use provost_harness::{Backend, SystemClock};
use provost_sqlite::SqliteStore;
use serde::{Deserialize, Serialize};

use crate::Options;
use crate::case::Case;
use crate::log;
use crate::measure::Start;
use crate::sample::{Sample, repeated};
use crate::snapshots;
use crate::table::{self, Target};

/// Milliseconds that `TARGET_ENTRIES` may take.
const TARGET_MS: f64 = 150.0;
const TARGET_ENTRIES: usize = 100_000;
/// Entries written, and read, at a time.
const AT_ONCE: usize = 1000;

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Work {
    /// Opened from the database, by the newest snapshot.
    OpenSqlite,
    /// Read from the database and folded, all of it.
    FoldSqlite,
    /// Only read from the database.
    ReadSqlite,
    /// Read from a store in memory and folded.
    FoldMemory,
    /// Folded, without any store.
    FoldRecords,
}

/// Measures and prints.
pub(crate) fn report(options: &Options) -> anyhow::Result<()> {
    table::head("A log folded");
    for entries in options.sized(&[TARGET_ENTRIES, 200_000][..], &[TARGET_ENTRIES, 200_000, 1_000_000]) {
        let dir = tempfile::tempdir_in(options.dir())?;
        let path = dir.path().join("log.db");
        write(&mut SqliteStore::open(&path)?, &log::records(*entries, dir.path())?)?;
        let target = if *entries == TARGET_ENTRIES { Target::AtMost(TARGET_MS) } else { Target::None };
        let print = |what: &str, work, target| -> anyhow::Result<()> {
            let case = Case::Fold { work, entries: *entries, log: path.clone() };
            let samples = repeated(&case, options.dir(), options.runs)?;
            let walls = samples.iter().map(|sample| sample.wall.as_secs_f64() * 1e3).collect::<Vec<_>>();
            let size = format!("{entries} entries");
            table::row(what, &size, "ms", &walls, target);
            let cpus = samples.iter().map(Sample::cpu_us).collect::<Vec<_>>();
            table::row(&format!("{what}: CPU"), &size, "µs/entry", &cpus, Target::None);
            Ok(())
        };
        print("opened from SQLite, by its newest snapshot", Work::OpenSqlite, Target::None)?;
        print("read from SQLite and folded", Work::FoldSqlite, target)?;
        print("read from SQLite only", Work::ReadSqlite, Target::None)?;
        print("read from memory and folded", Work::FoldMemory, target)?;
        print("folded only", Work::FoldRecords, Target::None)?;
    }
    snapshots::report(options)
}

/// One run, over the database at `path`.
pub(crate) async fn case(work: Work, entries: usize, path: &Path) -> anyhow::Result<Sample> {
    let key = ActorKey::Session(SessionId::root(log::RUN));
    let (sample, head) = match work {
        Work::OpenSqlite => open(&sqlite(path)?, key, entries).await?,
        Work::FoldSqlite => fold(&sqlite(path)?, key, entries).await?,
        Work::ReadSqlite => read(&sqlite(path)?, key, entries).await?,
        Work::FoldMemory => {
            let mut store = MemoryStore::new();
            write(&mut store, &log::records(entries, path)?)?;
            fold(&EmbeddedBackend::new(store, Arc::new(SystemClock))?, key, entries).await?
        }
        Work::FoldRecords => {
            let records = log::records(entries, path)?;
            let start = Start::now()?;
            let mut actor = Actor::new(key);
            records.iter().try_for_each(|record| actor.replay(record))?;
            (start.sample(entries)?, actor.head())
        }
    };
    ensure!(usize::try_from(head.0)? == entries, "{head} entries were read");
    Ok(sample)
}

fn sqlite(path: &Path) -> anyhow::Result<EmbeddedBackend> {
    Ok(EmbeddedBackend::new(SqliteStore::open(path)?, Arc::new(SystemClock))?)
}

async fn open(backend: &dyn Backend, key: ActorKey, entries: usize) -> anyhow::Result<(Sample, Seq)> {
    let start = Start::now()?;
    let actor = backend.state(key).await?;
    Ok((start.sample(entries)?, actor.head()))
}

async fn fold(backend: &dyn Backend, key: ActorKey, entries: usize) -> anyhow::Result<(Sample, Seq)> {
    let start = Start::now()?;
    let mut actor = Actor::new(key);
    loop {
        let records = backend.read(key, actor.head(), AT_ONCE).await?;
        if records.is_empty() {
            return Ok((start.sample(entries)?, actor.head()));
        }
        records.iter().try_for_each(|record| actor.replay(record))?;
    }
}

async fn read(backend: &dyn Backend, key: ActorKey, entries: usize) -> anyhow::Result<(Sample, Seq)> {
    let start = Start::now()?;
    let mut head = Seq::START;
    while let Some(last) = backend.read(key, head, AT_ONCE).await?.last() {
        head = last.seq;
    }
    Ok((start.sample(entries)?, head))
}

fn write(store: &mut dyn SessionStore, records: &[Record]) -> anyhow::Result<()> {
    let mut head = Seq::START;
    for records in records.chunks(AT_ONCE) {
        let entries = records.iter().cloned().map(NewEntry::new).collect::<Result<Vec<_>, _>>()?;
        let Some(last) = entries.last() else { continue };
        store.begin()?;
        store.append(last.record.actor, head, &entries)?;
        store.commit()?;
        head = last.record.seq;
    }
    Ok(())
}
