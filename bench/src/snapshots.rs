//! (e) What snapshots cost the sessions that take them.

use std::path::Path;

use provost_backend::{NewEntry, SessionStore};
use provost_event::{ConversationEntry, Entry, LifecycleEntry, Record, Seq};
use provost_sqlite::SqliteStore;

use crate::Options;
use crate::log::{self, Decided};
use crate::measure::thread_cpu;
use crate::sample::count;
use crate::table::{self, Target};

/// Sessions by their window, in tokens, and by their length.
const SESSIONS: [(Option<u64>, usize); 4] =
    [(Some(32_000), 20_000), (Some(200_000), 40_000), (None, 10_000), (None, 40_000)];

/// Measures and prints: a snapshot's size and CPU time, and that time for each turn since the snapshot before.
pub(crate) fn report(options: &Options) -> anyhow::Result<()> {
    table::head("What snapshots cost, in CPU time");
    for (window, entries) in SESSIONS {
        let dir = tempfile::tempdir_in(options.dir())?;
        let costs = Costs::of(window, entries, dir.path())?;
        let window = window.map_or_else(|| "no window".to_owned(), |window| format!("window of {window}"));
        let size = format!("{entries} entries, {window}");
        let row = |what, unit, values: &[f64]| table::row(what, &size, unit, values, Target::None);
        row("a snapshot's size", "KiB", &costs.with.kib);
        row("a step with one: deciding", "µs", &costs.with.deciding);
        row("a step with one: making it durable", "µs", &costs.with.keeping);
        row("a step without: deciding", "µs", &costs.without.deciding);
        row("a step without: making it durable", "µs", &costs.without.keeping);
        row("snapshots, for each turn", "µs", &[costs.more_for_a_turn()]);
    }
    Ok(())
}

#[derive(Default)]
struct Costs {
    with: Steps,
    without: Steps,
    turns: usize,
}

/// What steps cost, one by one: the size of their last entry, and microseconds of CPU time.
#[derive(Default)]
struct Steps {
    kib: Vec<f64>,
    deciding: Vec<f64>,
    keeping: Vec<f64>,
}

impl Costs {
    fn of(window: Option<u64>, entries: usize, dir: &Path) -> anyhow::Result<Self> {
        let mut store = SqliteStore::open(dir.join("log.db"))?;
        let (mut costs, mut written) = (Self::default(), 0);
        log::each_decision(window, dir, |decided| {
            written += decided.records.len();
            costs.add(decided, &mut store)?;
            Ok(written < entries)
        })?;
        Ok(costs)
    }

    fn add(&mut self, decided: Decided, store: &mut dyn SessionStore) -> anyhow::Result<()> {
        let is_turn =
            |record: &&Record| matches!(record.entry, Entry::Conversation(ConversationEntry::TurnEnded(_)));
        self.turns += decided.records.iter().filter(is_turn).count();
        let is_snapshot =
            |record: &Record| matches!(record.entry, Entry::Lifecycle(LifecycleEntry::Snapshot(_)));
        let has_one = decided.records.last().is_some_and(is_snapshot);
        let steps = if has_one { &mut self.with } else { &mut self.without };
        steps.add(decided, store)
    }

    /// By means: a few expensive ones count as much as many cheap ones.
    fn more_for_a_turn(&self) -> f64 {
        let more = self.with.mean() - self.without.mean();
        more * count(self.with.kib.len()) / count(self.turns)
    }
}

impl Steps {
    fn add(&mut self, decided: Decided, store: &mut dyn SessionStore) -> anyhow::Result<()> {
        let before = thread_cpu();
        let entries = decided.records.into_iter().map(NewEntry::new).collect::<Result<Vec<_>, _>>()?;
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return Ok(()) };
        store.begin()?;
        store.append(first.record.actor, Seq(first.record.seq.0.saturating_sub(1)), &entries)?;
        store.commit()?;
        self.keeping.push(thread_cpu().saturating_sub(before).as_secs_f64() * 1e6);
        self.deciding.push(decided.took.as_secs_f64() * 1e6);
        self.kib.push(count(last.body.len()) / 1024.0);
        Ok(())
    }

    fn mean(&self) -> f64 {
        let all = self.deciding.iter().chain(&self.keeping).sum::<f64>();
        all / count(self.kib.len())
    }
}
