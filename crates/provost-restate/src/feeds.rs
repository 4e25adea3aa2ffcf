//! The newest entries of runs, as this process learns of them by its own posts. Entries never change, so a subscriber
//! here doesn't ask the engine for them; a holder is also told when others have posted, and asks only then.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use provost_event::{ActorKey, Record, RunId, Seq};
use provost_harness::{PlacedRecord, RunPosition};
use tokio::sync::watch;

use crate::pages::Item;

/// Bytes of one run's entries, as text; beyond that the oldest are dropped.
const BYTES_MAX: usize = 2 << 20;

/// The runs that have subscribers in this process.
#[derive(Default)]
pub(crate) struct Feeds(Mutex<HashMap<RunId, Feed>>);

#[derive(Default)]
struct Feed {
    news: watch::Sender<News>,
    subscriptions: usize,
    order: BTreeMap<RunPosition, Kept>,
    logs: BTreeMap<(ActorKey, Seq), Arc<Record>>,
    bytes: usize,
}

struct Kept {
    record: Arc<Record>,
    bytes: usize,
}

/// What has become known of a run, counted.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct News {
    added: u64,
    /// Changes of which the entries aren't known here.
    pub(crate) unknown: u64,
}

/// Tells of changes of a run. Its entries are kept while there is one.
pub(crate) struct Subscription {
    pub(crate) news: watch::Receiver<News>,
    run: RunId,
    feeds: Arc<Feeds>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut all = self.feeds.all();
        let Some(feed) = all.get_mut(&self.run) else { return };
        feed.subscriptions -= 1;
        if feed.subscriptions == 0 {
            all.remove(&self.run);
        }
    }
}

/// The entries of a run or a log that follow a place.
pub(crate) struct Following<T> {
    /// Without a gap, from the next one on.
    pub(crate) found: Vec<T>,
    /// Whether there are later ones, and the next one isn't known here.
    pub(crate) has_gap: bool,
}

impl<T> Following<T> {
    const NOTHING: Self = Self { found: Vec::new(), has_gap: false };
}

impl Feeds {
    fn all(&self) -> MutexGuard<'_, HashMap<RunId, Feed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn subscribe(self: &Arc<Self>, run: RunId) -> Subscription {
        let mut all = self.all();
        let feed = all.entry(run).or_default();
        feed.subscriptions += 1;
        Subscription { news: feed.news.subscribe(), run, feeds: Arc::clone(self) }
    }

    /// The run may have entries that aren't known here.
    pub(crate) fn wake(&self, run: RunId) {
        if let Some(feed) = self.all().get(&run) {
            feed.news.send_modify(|news| news.unknown += 1);
        }
    }

    /// Takes in the entries that a post has led to, by their places; `None` if it isn't known which.
    pub(crate) fn learn(&self, run: RunId, entries: Option<Vec<Item>>) {
        let Some(entries) = entries else { return self.wake(run) };
        if entries.is_empty() {
            return;
        }
        let mut all = self.all();
        let Some(feed) = all.get_mut(&run) else { return };
        let is_known = entries.into_iter().all(|entry| feed.take_in(entry));
        feed.news.send_modify(|news| {
            news.added += 1;
            news.unknown += u64::from(!is_known);
        });
    }

    /// At most `max` entries of the run after a place.
    pub(crate) fn of_run(&self, run: RunId, after: RunPosition, max: usize) -> Following<PlacedRecord> {
        let all = self.all();
        let Some(feed) = all.get(&run) else { return Following::NOTHING };
        let (mut found, mut next) = (Vec::new(), RunPosition(after.0 + 1));
        for (position, kept) in feed.order.range(next..) {
            if *position != next || found.len() == max {
                return Following { has_gap: found.is_empty(), found };
            }
            found.push(PlacedRecord { position: *position, record: Arc::clone(&kept.record) });
            next = RunPosition(next.0 + 1);
        }
        Following { found, has_gap: false }
    }

    /// At most `max` entries of a log after `after`.
    pub(crate) fn of_log(&self, key: ActorKey, after: Seq, max: usize) -> Following<Arc<Record>> {
        let all = self.all();
        let Some(feed) = all.get(&key.run()) else { return Following::NOTHING };
        let (mut found, mut next) = (Vec::new(), after.next());
        for ((_, seq), record) in feed.logs.range((key, next)..=(key, Seq(u64::MAX))) {
            if *seq != next || found.len() == max {
                return Following { has_gap: found.is_empty(), found };
            }
            found.push(Arc::clone(record));
            next = next.next();
        }
        Following { found, has_gap: false }
    }
}

impl Feed {
    /// Returns whether the entry can be read.
    fn take_in(&mut self, Item(position, line): Item) -> bool {
        let Ok(record) = Record::from_line(line.get()) else { return false };
        let record = Arc::new(record);
        let bytes = line.get().len();
        self.logs.insert((record.actor, record.seq), Arc::clone(&record));
        self.bytes += bytes;
        // An answer of the engine may come twice.
        if let Some(same) = self.order.insert(RunPosition(position), Kept { record, bytes }) {
            self.bytes -= same.bytes;
        }
        while self.bytes > BYTES_MAX {
            let Some((_, Kept { record, bytes })) = self.order.pop_first() else { break };
            self.logs.remove(&(record.actor, record.seq));
            self.bytes -= bytes;
        }
        true
    }
}
