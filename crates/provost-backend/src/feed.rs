//! The latest commits, for subscribers: the live end of the logs that are served or watched.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use std::sync::Arc;

use foldhash::{HashMap, HashSet};
use provost_event::{ActorKey, Entry, LifecycleEntry, Record, RunId, Seq};
use provost_harness::{PlacedRecord, RunPosition};
use tokio::sync::watch;

use crate::NewEntry;

/// Maximum records kept of one log; a subscriber further behind reads from the store.
const TAIL_RECORDS_MAX: usize = 64;
/// Maximum bytes of them, except that what was written last is kept whatever its size: subscribers read it at once,
/// and reading a snapshot back from the store takes time that grows with the session.
const TAIL_BYTES_MAX: usize = 64 << 10;
/// Approximate maximum of records kept of all logs together; with many logs, each gets less.
const ALL_RECORDS_MAX: usize = 32_768;
/// Records kept of a log in any case: what an agent needs from one model call to the next.
const TAIL_RECORDS_MIN: usize = 12;

/// Maximum records kept of a run's logs in their order, and their approximate size.
const RUN_TAIL_RECORDS_MAX: usize = 512;
const RUN_TAIL_BYTES_MAX: usize = 512 << 10;

/// What was appended to a log at once.
pub(crate) struct Written {
    pub(crate) actor: ActorKey,
    pub(crate) entries: Vec<NewEntry>,
    /// The place of the last entry; those before it have the numbers before that.
    pub(crate) last: RunPosition,
}

impl Written {
    fn places(&self) -> impl Iterator<Item = (RunPosition, &NewEntry)> {
        let first = self.last.0.saturating_sub(self.entries.len() as u64);
        (first + 1..).map(RunPosition).zip(&self.entries)
    }
}

/// The live ends, by log.
#[derive(Default)]
pub(crate) struct Feed {
    live: Mutex<Live>,
    /// Subscriptions and served runs: whether writes of other processes matter.
    interested: AtomicUsize,
    /// Goes up with each commit of any process.
    commits: watch::Sender<u64>,
}

/// Is notified of commits of any process for as long as it lives.
pub(crate) struct Commits {
    feed: Arc<Feed>,
    seen: watch::Receiver<u64>,
}

impl Commits {
    /// Waits for the next one; several may have come at once.
    ///
    /// # Cancellation
    /// Safe.
    pub(crate) async fn next(&mut self) -> Option<()> {
        self.seen.changed().await.ok()
    }
}

impl Drop for Commits {
    fn drop(&mut self) {
        self.feed.interested.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Default)]
struct Live {
    served: HashSet<RunId>,
    ends: HashMap<ActorKey, End>,
    runs: HashMap<RunId, RunEnd>,
}

/// The end of a run's entries in their order. The tail is kept while the run is served here, when no other process
/// writes to it: it has all entries after `tail_after`, and may be ahead of the announced head.
#[derive(Default)]
struct RunEnd {
    head: watch::Sender<RunPosition>,
    tail: VecDeque<(PlacedRecord, usize)>,
    tail_bytes: usize,
    tail_after: RunPosition,
}

impl RunEnd {
    fn push(&mut self, written: &Written) {
        for (position, NewEntry { record, body }) in written.places() {
            if self.tail.is_empty() {
                self.tail_after = RunPosition(position.0.saturating_sub(1));
            }
            self.tail.push_back((PlacedRecord { position, record: Arc::clone(record) }, body.len()));
            self.tail_bytes += body.len();
        }
        let is_full = |end: &Self| {
            end.tail.len() > RUN_TAIL_RECORDS_MAX
                || (end.tail_bytes > RUN_TAIL_BYTES_MAX && end.tail.len() > written.entries.len())
        };
        while is_full(self) {
            let Some((first, bytes)) = self.tail.pop_front() else { break };
            self.tail_after = first.position;
            self.tail_bytes -= bytes;
        }
    }

    fn forget(&mut self) {
        self.tail.clear();
        self.tail_bytes = 0;
    }

    fn after(&self, after: RunPosition, max: usize) -> Vec<PlacedRecord> {
        if self.tail.is_empty() || after < self.tail_after {
            return Vec::new();
        }
        let skip = self.tail.partition_point(|(record, _)| record.position <= after);
        self.tail.iter().skip(skip).take(max).map(|(record, _)| record.clone()).collect()
    }
}

/// A log's end. The tail is a gapless piece of the log, or empty; it may be ahead of the announced head.
#[derive(Default)]
struct End {
    head: watch::Sender<Seq>,
    tail: VecDeque<(Arc<Record>, usize)>,
    tail_bytes: usize,
    /// Nothing follows.
    is_over: bool,
}

impl End {
    fn push(&mut self, entries: &[NewEntry], records_max: usize) {
        for NewEntry { record, body } in entries {
            if self.tail.back().is_some_and(|(last, _)| last.seq.next() != record.seq) {
                self.forget();
            }
            self.tail.push_back((Arc::clone(record), body.len()));
            self.tail_bytes += body.len();
            self.is_over = matches!(record.entry, Entry::Lifecycle(LifecycleEntry::Ended(_)));
        }
        let is_full = |end: &Self| {
            end.tail.len() > records_max
                || (end.tail_bytes > TAIL_BYTES_MAX && end.tail.len() > entries.len())
        };
        while is_full(self) {
            let Some((_, bytes)) = self.tail.pop_front() else { break };
            self.tail_bytes -= bytes;
        }
    }

    fn forget(&mut self) {
        self.tail.clear();
        self.tail_bytes = 0;
    }

    /// The records of the tail after `after`; empty if the tail has a gap before them, or has none.
    fn after(&self, after: Seq, max: usize) -> Vec<Arc<Record>> {
        let Some((first, _)) = self.tail.front() else { return Vec::new() };
        let Some(skip) = after.next().0.checked_sub(first.seq.0) else { return Vec::new() };
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        self.tail.iter().skip(skip).take(max).map(|(record, _)| Arc::clone(record)).collect()
    }
}

impl Feed {
    fn lock(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there are subscribers.
    pub(crate) fn is_followed(&self) -> bool {
        self.interested.load(Ordering::Relaxed) > 0
    }

    /// Is notified of commits from now on.
    pub(crate) fn commits(self: &Arc<Self>) -> Commits {
        self.interested.fetch_add(1, Ordering::Relaxed);
        Commits { feed: Arc::clone(self), seen: self.commits.subscribe() }
    }

    /// Something was committed, by any process.
    pub(crate) fn committed(&self) {
        self.commits.send_modify(|count| *count += 1);
    }

    /// From here on the ends of all logs of `run` are kept.
    pub(crate) fn serve(&self, run: RunId) {
        if self.lock().served.insert(run) {
            self.interested.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Drops the ends of `run` that have no watcher.
    pub(crate) fn give_up(&self, run: RunId) {
        let mut live = self.lock();
        if live.served.remove(&run) {
            self.interested.fetch_sub(1, Ordering::Relaxed);
        }
        live.ends.retain(|key, end| key.run() != run || end.head.receiver_count() > 0);
        if let Some(end) = live.runs.get_mut(&run) {
            end.forget();
            if end.head.receiver_count() == 0 {
                live.runs.remove(&run);
            }
        }
    }

    /// Whether this process serves `run`.
    pub(crate) fn is_served(&self, run: RunId) -> bool {
        self.lock().served.contains(&run)
    }

    /// Stores what was just committed, without announcing it.
    pub(crate) fn keep(&self, written: &[Written]) {
        let mut live = self.lock();
        let logs = live.ends.len().max(1);
        let records_max = (ALL_RECORDS_MAX / logs).clamp(TAIL_RECORDS_MIN, TAIL_RECORDS_MAX);
        for one in written {
            let Written { actor, entries, .. } = one;
            let served = live.served.contains(&actor.run());
            if served {
                live.runs.entry(actor.run()).or_default().push(one);
            }
            match live.ends.get_mut(actor) {
                Some(end) => end.push(entries, records_max),
                None if served => live.ends.entry(*actor).or_default().push(entries, records_max),
                None => {}
            }
        }
    }

    /// Announces to subscribers what was just committed.
    pub(crate) fn announce(&self, written: &[Written]) {
        let live = self.lock();
        for Written { actor, entries, last } in written {
            if let Some(end) = live.runs.get(&actor.run()).filter(|_| !entries.is_empty()) {
                end.head.send_replace(*last);
            }
            if let (Some(end), Some(last)) = (live.ends.get(actor), entries.last()) {
                end.head.send_replace(last.record.seq);
            }
        }
    }

    /// The logs whose ends are kept.
    pub(crate) fn followed(&self) -> Vec<ActorKey> {
        self.lock().ends.keys().copied().collect()
    }

    /// Sets the last record of `actor` to `head`, written by any process.
    pub(crate) fn advance(&self, actor: ActorKey, head: Seq) {
        if let Some(end) = self.lock().ends.get_mut(&actor)
            && *end.head.borrow() < head
        {
            end.forget();
            end.head.send_replace(head);
        }
    }

    /// The runs that have subscribers.
    pub(crate) fn followed_runs(&self) -> Vec<RunId> {
        self.lock().runs.keys().copied().collect()
    }

    /// Sets the last entry of `run` to `head`, written by any process.
    pub(crate) fn advance_run(&self, run: RunId, head: RunPosition) {
        if let Some(end) = self.lock().runs.get_mut(&run) {
            end.head.send_if_modified(|known| {
                let is_new = *known < head;
                *known = head.max(*known);
                is_new
            });
        }
    }

    /// The kept entries of `run` after `after`; may be fewer than in the store.
    pub(crate) fn after_in_run(&self, run: RunId, after: RunPosition, max: usize) -> Vec<PlacedRecord> {
        self.lock().runs.get(&run).map(|end| end.after(after, max)).unwrap_or_default()
    }

    /// A receiver for the last entry of `run` as entries are added, starting with the last known one.
    pub(crate) fn watch_run(&self, run: RunId) -> watch::Receiver<RunPosition> {
        self.interested.fetch_add(1, Ordering::Relaxed);
        self.lock().runs.entry(run).or_default().head.subscribe()
    }

    /// Undoes one [`Feed::watch_run`] of `run`, whose receiver is gone.
    pub(crate) fn unwatch_run(&self, run: RunId) {
        self.interested.fetch_sub(1, Ordering::Relaxed);
        let mut live = self.lock();
        let is_idle = live.runs.get(&run).is_some_and(|end| end.head.receiver_count() == 0);
        if is_idle && !live.served.contains(&run) {
            live.runs.remove(&run);
        }
    }

    /// The kept records of `actor` after `after`; may be fewer than in the store.
    pub(crate) fn after(&self, actor: ActorKey, after: Seq, max: usize) -> Vec<Arc<Record>> {
        self.lock().ends.get(&actor).map(|end| end.after(after, max)).unwrap_or_default()
    }

    /// A receiver for the head of `actor` as it advances, starting with the known head.
    pub(crate) fn watch(&self, actor: ActorKey) -> watch::Receiver<Seq> {
        self.interested.fetch_add(1, Ordering::Relaxed);
        self.lock().ends.entry(actor).or_default().head.subscribe()
    }

    /// Undoes one [`Feed::watch`] of `actor`, whose receiver is gone.
    pub(crate) fn unwatch(&self, actor: ActorKey) {
        self.interested.fetch_sub(1, Ordering::Relaxed);
        let mut live = self.lock();
        let Some(end) = live.ends.get(&actor) else { return };
        let idle = end.head.receiver_count() == 0;
        if idle && (end.is_over || !live.served.contains(&actor.run())) {
            live.ends.remove(&actor);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::RangeInclusive;

    use provost_event::{Elapsed, Ended, Outcome, SessionId, StopRequested, Timestamp};

    use super::*;

    const RUN: RunId = RunId::from_entropy(1);

    fn session(agent: u32) -> ActorKey {
        SessionId { run: RUN, agent }.into()
    }

    fn written(actor: ActorKey, seqs: RangeInclusive<u64>, ends: bool) -> Written {
        let outcome = Outcome::Cancelled { by: "ann".to_owned() };
        let stopped = StopRequested { agent: None, outcome: outcome.clone(), for_child: false };
        let last = *seqs.end();
        let entries = seqs.map(|seq| {
            let ended = Ended { outcome: outcome.clone() };
            let entry = if ends && seq == last { ended.into() } else { stopped.clone().into() };
            NewEntry::new(Record {
                actor,
                seq: Seq(seq),
                at: Timestamp(seq),
                elapsed: Elapsed::default(),
                entry,
            })
            .unwrap()
        });
        Written { actor, entries: entries.collect(), last: RunPosition(last) }
    }

    #[test]
    fn a_log_among_many_keeps_less_than_one_alone() {
        let feed = Feed::default();
        feed.serve(RUN);
        feed.keep(&[written(session(0), 1..=100, false)]);
        assert_eq!(feed.after(session(0), Seq(0), 1_000).len(), 0, "its beginning is gone");
        assert_eq!(feed.after(session(0), Seq(36), 1_000).len(), TAIL_RECORDS_MAX);
        for agent in 1..=10_000 {
            feed.keep(&[written(session(agent), 1..=1, false)]);
        }
        feed.keep(&[written(session(0), 101..=101, false)]);
        assert_eq!(feed.after(session(0), Seq(101 - TAIL_RECORDS_MIN as u64), 1_000).len(), TAIL_RECORDS_MIN);
        assert!(feed.after(session(0), Seq(100 - TAIL_RECORDS_MIN as u64), 1_000).is_empty());
    }

    #[test]
    fn the_end_of_a_log_that_is_over_goes_with_the_last_who_watches() {
        let feed = Feed::default();
        feed.serve(RUN);
        let (goes_on, over) = (feed.watch(session(1)), feed.watch(session(2)));
        feed.keep(&[written(session(1), 1..=2, false), written(session(2), 1..=2, true)]);
        drop((goes_on, over));
        [1, 2].into_iter().for_each(|agent| feed.unwatch(session(agent)));
        assert_eq!(feed.followed(), [session(1)]);
    }
}
