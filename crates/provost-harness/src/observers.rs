//! Those who watch runs: each run gets observers of its own, and each of them a queue and a thread of its own, so
//! that none of them can hurt the run or another observer.

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
use self::events::Turns;
use self::feed::Feed;
pub use self::jsonl::JsonlTrace;
pub use self::logger::RunLogger;
pub use self::memory::MemoryTrace;
use crate::{Observed, ObservedBody, ObservedKind, Observer, TraceSink};

/// How one observer is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObserverOptions {
    /// Events that may wait for it; when another comes, the oldest is lost. Default 4,096; 0 counts as 1.
    pub queue_max: usize,
    /// A single call of it that takes longer counts as hung. Default 5 s.
    pub hung_after: Duration,
}

impl Default for ObserverOptions {
    fn default() -> Self {
        Self { queue_max: 4_096, hung_after: Duration::from_secs(5) }
    }
}

/// How long all observers of a run together are waited for at its rest or end, unless somebody chose.
const FINISH_WITHIN: Duration = Duration::from_secs(2);

/// Makes the observer of one run.
type Make = dyn Fn(RunId) -> Box<dyn Observer> + Send + Sync;

/// Who watches: a factory each, as every run has observers of its own. Frozen once a harness has it; cheap to clone.
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
    /// Nobody.
    fn default() -> Self {
        Self { registered: Vec::new(), finish_within: FINISH_WITHIN }
    }
}

impl Observers {
    /// Nobody.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With the observers that `make` makes, in place of those that had the name. It is called once for each
    /// stretch of work on a run, from a start, an opening or a resumption to the next rest or end, at the first
    /// event and on the observer's own thread. If it panics, the run has no such observer and all events count as
    /// lost.
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

    /// With the sinks that `make` makes: each is told of one run's events, one after the other, by an observer of
    /// that name. Otherwise as [`Observers::with`].
    #[must_use]
    pub fn with_trace<F>(self, name: impl Into<String>, options: ObserverOptions, make: F) -> Self
    where
        F: Fn(RunId) -> Box<dyn TraceSink> + Send + Sync + 'static,
    {
        self.with(name, options, move |run| trace::observer(run, make(run)))
    }

    /// Waits at most so long for all observers of a run together when it rests or ends. Default 2 s.
    #[must_use]
    pub const fn finish_within(mut self, limit: Duration) -> Self {
        self.finish_within = limit;
        self
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.registered.is_empty()
    }

    /// Their names, in the order in which they are told.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.registered.iter().map(|one| &*one.name)
    }

    /// The observers of `run`, for whoever works on it. A harness does this by itself.
    #[must_use]
    pub fn of_run(&self, run: RunId) -> RunObservers {
        RunObservers { stretch: Mutex::new(self.stretch(run)), all: self.clone(), run }
    }

    fn stretch(&self, run: RunId) -> Stretch {
        let feeds = self.registered.iter().map(|one| Arc::new(Feed::new(one.clone(), run)));
        let (turns, chains) = (Turns::default(), Chains::default());
        Stretch { feeds: feeds.collect(), turns, chains, is_over: false }
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

/// How an observer stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObserverState {
    /// Nothing has happened yet, and it has no thread.
    Waiting,
    /// It is being told.
    Working,
    /// Nothing more comes; it is being told the last.
    Finishing,
    /// It has been told all that wasn't lost.
    Finished,
    /// It wasn't done in time at the end. What it hasn't seen is lost.
    LeftBehind,
    /// It couldn't be started: everything is lost. Or its thread broke: everything since.
    Unable,
}

/// What one observer has been told in the present stretch of work on a run, or in the last one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObserverReport {
    /// Its name.
    pub name: String,
    /// How it stands.
    pub state: ObserverState,
    /// Events it was told, the one it is in included. With those lost and waiting: all there were.
    pub delivered: u64,
    /// Events it wasn't told and won't be.
    pub lost: u64,
    /// Events in its queue.
    pub waiting: u64,
    /// Calls of it that failed.
    pub failed: u64,
    /// Calls of it that panicked, its making and its dropping included.
    pub panicked: u64,
    /// Calls of it that took longer than they may, the one it is in included.
    pub hung: u64,
}

/// The observers of one run. Telling them never waits for them; dropping this lets them finish by themselves, and
/// nobody waits for that.
pub struct RunObservers {
    all: Observers,
    run: RunId,
    stretch: Mutex<Stretch>,
}

/// From a start, an opening or a resumption to the next rest or end.
struct Stretch {
    feeds: Arc<[Arc<Feed>]>,
    turns: Turns,
    chains: Chains,
    is_over: bool,
}

impl RunObservers {
    fn stretch(&self) -> MutexGuard<'_, Stretch> {
        self.stretch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another stretch of work begins, if the last is over: with observers that are new.
    pub fn begin(&self) {
        let mut stretch = self.stretch();
        if stretch.is_over {
            let chains = std::mem::take(&mut stretch.chains);
            *stretch = Stretch { chains, ..self.all.stretch(self.run) };
        }
    }

    /// Takes in where the agent stands whose first entry `record` is, and tells nobody.
    pub fn learn(&self, record: &Record) {
        self.stretch().chains.learn(record);
    }

    /// Tells that `record` was committed.
    pub fn record(&self, record: &Arc<Record>) {
        if self.all.is_empty() {
            return;
        }
        let mut stretch = self.stretch();
        let (actor, at) = (record.actor, record.at);
        stretch.chains.learn(record);
        let (chain, call) = stretch.chains.of(actor);
        for kind in events::kinds(record, &mut stretch.turns) {
            let body = ObservedBody::Entry(record.clone());
            stretch.tell(Observed { kind: *kind, at, actor, chain, call, body });
        }
    }

    /// Tells of a piece of an answer.
    pub fn delta(&self, at: Timestamp, delta: &Delta) {
        if self.all.is_empty() {
            return;
        }
        let (actor, body) = (ActorKey::Session(delta.session), ObservedBody::Delta(Arc::new(delta.clone())));
        let stretch = self.stretch();
        let (chain, call) = stretch.chains.of(actor);
        stretch.tell(Observed { kind: ObservedKind::LlmDelta, at, actor, chain, call, body });
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Ends the stretch of work: each observer is told what waits for it and then that this was all. Returns when
    /// all have taken that in, or when the time for it is over; those who aren't done then are left behind. Needs
    /// a Tokio runtime with timers. Whatever happens from here on is told to nobody, until [`RunObservers::begin`].
    ///
    /// # Cancellation
    /// Dropping the future only ends the wait.
    pub async fn finish(&self) {
        if self.all.is_empty() {
            return;
        }
        self.close();
        let feeds = self.stretch().feeds.clone();
        let all = futures::future::join_all(feeds.iter().map(|feed| feed.ended.cancelled()));
        if tokio::time::timeout(self.all.finish_within, all).await.is_err() {
            feeds.iter().for_each(|feed| feed.leave());
        }
    }

    /// As [`RunObservers::finish`], for whoever doesn't wait.
    pub fn close(&self) {
        let mut stretch = self.stretch();
        stretch.is_over = true;
        stretch.feeds.iter().for_each(|feed| feed.close());
    }

    /// What each has been told, in the order of their registration.
    #[must_use]
    pub fn reports(&self) -> Vec<ObserverReport> {
        let feeds = self.stretch().feeds.clone();
        feeds.iter().map(|feed| feed.report()).collect()
    }
}

impl Drop for RunObservers {
    fn drop(&mut self) {
        self.close();
    }
}

impl Stretch {
    fn tell(&self, event: Observed) {
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
