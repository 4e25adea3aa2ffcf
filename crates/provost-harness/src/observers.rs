//! Observers of runs: each run gets its own observers, and each of them its own queue and thread, so that none of
//! them can affect the run or another observer.

mod chains;
mod cost;
mod events;
mod feed;
mod jsonl;
mod logger;
mod memory;
mod per_run;
mod thread;
mod trace;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use provost_event::{ActorKey, Delta, Record, RunId, Timestamp};

use self::chains::Chains;
pub use self::cost::{CostTotals, CostTracker, Spending};
use self::events::EventHistory;
use self::feed::Feed;
pub use self::jsonl::JsonlTrace;
pub use self::logger::RunLogger;
pub use self::memory::MemoryTrace;
use crate::{ObservedBody, Observer, ObserverEvent, ObserverEventKind, TraceSink};

/// Options of one observer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObserverOptions {
    /// Maximum queued events; above that the oldest is dropped. Default 4,096; 0 counts as 1.
    pub queue_max: usize,
    /// Time after which a single call counts as hung. Default 5 s.
    pub hung_after: Duration,
}

impl Default for ObserverOptions {
    fn default() -> Self {
        Self { queue_max: 4_096, hung_after: Duration::from_secs(5) }
    }
}

/// Default time limit for all observers of a run together at its suspension or end.
const FINISH_WITHIN: Duration = Duration::from_secs(2);

/// Creates the observer of one run.
type Make = dyn Fn(RunId) -> Box<dyn Observer> + Send + Sync;

/// The observers, one factory each, as every run has its own. Immutable once a harness has it; cheap to clone.
#[derive(Clone)]
pub struct Observers {
    registered: Vec<Arc<Registered>>,
    finish_within: Duration,
}

struct Registered {
    name: Arc<str>,
    options: ObserverOptions,
    make: Box<Make>,
}

impl Default for Observers {
    /// No observers.
    fn default() -> Self {
        Self { registered: Vec::new(), finish_within: FINISH_WITHIN }
    }
}

impl Observers {
    /// No observers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the observers that `make` creates, replacing those with the same name. It is called once for each
    /// segment of work on a run, from a start, an opening or a resumption to the next suspension or end, at the
    /// first event and on the observer's own thread. If it panics, the run has no such observer and all its events
    /// count as lost.
    #[must_use]
    pub fn with<F>(mut self, name: impl Into<String>, options: ObserverOptions, make: F) -> Self
    where
        F: Fn(RunId) -> Box<dyn Observer> + Send + Sync + 'static,
    {
        let name = Arc::from(name.into());
        self.registered.retain(|other| other.name != name);
        self.registered.push(Arc::new(Registered { name, options, make: Box::new(make) }));
        self
    }

    /// Adds the sinks that `make` creates: each gets one run's events in sequence, from an observer with that
    /// name. Otherwise as [`Observers::with`].
    #[must_use]
    pub fn with_trace<F>(self, name: impl Into<String>, options: ObserverOptions, make: F) -> Self
    where
        F: Fn(RunId) -> Box<dyn TraceSink> + Send + Sync + 'static,
    {
        self.with(name, options, move |run| trace::observer(run, make(run)))
    }

    /// Sets how long all observers of a run together are waited for when it is suspended or ends. Default 2 s.
    #[must_use]
    pub const fn finish_within(mut self, limit: Duration) -> Self {
        self.finish_within = limit;
        self
    }

    /// Whether there are no observers.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.registered.is_empty()
    }

    /// Their names, in registration order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.registered.iter().map(|one| &*one.name)
    }

    /// The observers of `run`, for a process that serves it. A harness does this by itself.
    #[must_use]
    pub fn of_run(&self, run: RunId) -> RunObservers {
        RunObservers { segment: Mutex::new(self.segment(run)), all: self.clone(), run }
    }

    fn segment(&self, run: RunId) -> ObservedSegment {
        let feeds = self.registered.iter().map(|one| Arc::new(Feed::new(one.clone(), run)));
        ObservedSegment {
            feeds: feeds.collect(),
            history: EventHistory::default(),
            chains: Chains::default(),
            is_over: false,
        }
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

/// The state of an observer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObserverState {
    /// No event yet, and no thread.
    Waiting,
    /// It gets events.
    Working,
    /// It gets the rest of the events, and no new ones.
    Finishing,
    /// It got all events that weren't lost.
    Finished,
    /// It wasn't done within the time limit at the end. The rest of its events is lost.
    LeftBehind,
    /// It couldn't be started: all events are lost. Or its thread failed: all later events are lost.
    Unable,
}

/// The statistics of one observer in the current segment of work on a run, or in the last one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObserverReport {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: ObserverState,
    /// Delivered events, including the one being handled. With those lost and waiting: all events.
    pub delivered: u64,
    /// Events that were dropped.
    pub lost: u64,
    /// Events in its queue.
    pub waiting: u64,
    /// Calls of it that failed.
    pub failed: u64,
    /// Calls of it that panicked, including its creation and its drop.
    pub panicked: u64,
    /// Calls of it that exceeded the time limit, including the current one.
    pub hung: u64,
}

/// The observers of one run. Sending them events never blocks; after a drop they finish by themselves, and no task
/// waits for that.
pub struct RunObservers {
    all: Observers,
    run: RunId,
    segment: Mutex<ObservedSegment>,
}

/// From a start, an opening or a resumption to the next suspension or end.
struct ObservedSegment {
    feeds: Arc<[Arc<Feed>]>,
    history: EventHistory,
    chains: Chains,
    is_over: bool,
}

impl RunObservers {
    fn segment(&self) -> MutexGuard<'_, ObservedSegment> {
        self.segment.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts another segment of work with new observers, if the last has ended.
    pub fn begin(&self) {
        let mut segment = self.segment();
        if segment.is_over {
            let before = std::mem::replace(&mut *segment, self.all.segment(self.run));
            segment.chains = before.chains;
            segment.history = before.history;
        }
    }

    /// Stores the position of the agent whose first entry is `record`, without an event.
    pub fn learn(&self, record: &Record) {
        let mut segment = self.segment();
        segment.chains.learn(record);
        segment.history.learn(record);
    }

    /// Reports that `record` was committed.
    pub fn record(&self, record: &Arc<Record>) {
        if self.all.is_empty() {
            return;
        }
        let mut segment = self.segment();
        let (actor, at) = (record.actor, record.at);
        segment.chains.learn(record);
        let (chain, call) = segment.chains.of(actor);
        for kind in events::kinds(record, &mut segment.history) {
            let body = ObservedBody::Entry(record.clone());
            segment.tell(ObserverEvent { kind: *kind, at, actor, chain: chain.clone(), call, body });
        }
    }

    /// Reports a piece of an answer.
    pub fn delta(&self, at: Timestamp, delta: &Delta) {
        if self.all.is_empty() {
            return;
        }
        let (actor, body) = (ActorKey::Session(delta.session), ObservedBody::Delta(Arc::new(delta.clone())));
        let segment = self.segment();
        let (chain, call) = segment.chains.of(actor);
        segment.tell(ObserverEvent { kind: ObserverEventKind::LlmDelta, at, actor, chain, call, body });
    }

    /// Whether there are no observers.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Ends the segment of work: each observer gets its queued events and then the end. Returns when all have
    /// handled that, or at the time limit; observers that aren't done by then are abandoned. Needs a Tokio runtime
    /// with timers. Later events go to no observer, until [`RunObservers::begin`].
    ///
    /// # Cancellation
    /// Dropping the future only ends the wait.
    pub async fn finish(&self) {
        if self.all.is_empty() {
            return;
        }
        self.close();
        let feeds = self.segment().feeds.clone();
        let all = futures::future::join_all(feeds.iter().map(|feed| feed.ended.cancelled()));
        if tokio::time::timeout(self.all.finish_within, all).await.is_err() {
            feeds.iter().for_each(|feed| feed.leave());
        }
    }

    /// As [`RunObservers::finish`], without waiting.
    pub fn close(&self) {
        let mut segment = self.segment();
        segment.is_over = true;
        segment.feeds.iter().for_each(|feed| feed.close());
    }

    /// The statistics of each observer, in registration order.
    #[must_use]
    pub fn reports(&self) -> Vec<ObserverReport> {
        let feeds = self.segment().feeds.clone();
        feeds.iter().map(|feed| feed.report()).collect()
    }
}

impl Drop for RunObservers {
    fn drop(&mut self) {
        self.close();
    }
}

impl ObservedSegment {
    fn tell(&self, event: ObserverEvent) {
        if self.is_over {
            return;
        }
        let (event, now) = (Arc::new(event), Instant::now());
        for feed in &*self.feeds {
            if feed.push(&event, now)
                && let Err(error) = thread::start(feed.clone())
            {
                feed.fail(&error.to_string());
            }
        }
    }
}
