//! What the run's side and an observer's thread share: the queue between them, and the counts.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use provost_event::RunId;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{ObserverReport, ObserverState, Registered};
use crate::Observed;

/// How long a thread that has emptied its queue looks again by itself before it has to be woken: waking costs the
/// run more than all the rest, and in a stream of events it never has to.
const DOZE: Duration = Duration::from_millis(1);

/// One observer of one stretch of work.
pub(super) struct Feed {
    pub(super) registered: Arc<Registered>,
    pub(super) run: RunId,
    /// Fires when the thread is done, whatever became of it.
    pub(super) ended: CancellationToken,
    queue: Mutex<Queue>,
    wake: Notify,
    made: Instant,
    /// Since when the observer is in a call, in nanoseconds after `made`; 0 when it is in none.
    busy_since: AtomicU64,
    /// The call that was last counted as hung, by its beginning.
    hung_since: AtomicU64,
    failed: AtomicU64,
    panicked: AtomicU64,
    hung: AtomicU64,
}

struct Queue {
    events: VecDeque<Arc<Observed>>,
    state: ObserverState,
    thread: Thread,
    delivered: u64,
    lost: u64,
    /// Of the lost ones, those that the observer hasn't been told of.
    untold: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Thread {
    Awake,
    Dozing,
    Asleep,
}

/// What a new event needs.
enum Needs {
    Nothing,
    Thread,
    Waking,
}

/// What there is for an observer.
pub(super) enum Next {
    /// This, after so many that were lost.
    Event { lost: u64, event: Arc<Observed> },
    /// Nothing for now.
    Nothing,
    /// Nothing ever, after so many that were lost.
    End { lost: u64 },
}

impl Feed {
    pub(super) fn new(registered: Arc<Registered>, run: RunId) -> Self {
        let queue = Queue {
            events: VecDeque::new(),
            state: ObserverState::Waiting,
            thread: Thread::Awake,
            delivered: 0,
            lost: 0,
            untold: 0,
        };
        Self {
            registered,
            run,
            ended: CancellationToken::new(),
            queue: Mutex::new(queue),
            wake: Notify::new(),
            made: Instant::now(),
            busy_since: AtomicU64::new(0),
            hung_since: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            panicked: AtomicU64::new(0),
            hung: AtomicU64::new(0),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts `event` behind the others, in the place of the oldest if the queue is full. Returns whether the
    /// observer has no thread yet.
    pub(super) fn push(&self, event: &Arc<Observed>, now: Instant) -> bool {
        let (needs, oldest) = self.queue().add(event.clone(), self.registered.options.queue_max.max(1));
        // It may be the last that held a large entry.
        drop(oldest);
        self.notice_hang(now);
        if let Needs::Waking = needs {
            self.wake.notify_one();
        }
        matches!(needs, Needs::Thread)
    }

    /// What comes next.
    pub(super) fn next(&self) -> Next {
        let mut queue = self.queue();
        queue.thread = Thread::Awake;
        if let Some(event) = queue.events.pop_front() {
            queue.delivered += 1;
            return Next::Event { lost: std::mem::take(&mut queue.untold), event };
        }
        match queue.state {
            ObserverState::Waiting | ObserverState::Working => Next::Nothing,
            _ => Next::End { lost: std::mem::take(&mut queue.untold) },
        }
    }

    /// Returns when there may be something.
    pub(super) async fn rest(&self) {
        if self.queue().lie_down(Thread::Dozing) {
            // Over or woken: either way it looks again.
            let _ = tokio::time::timeout(DOZE, self.wake.notified()).await;
        }
        if self.queue().lie_down(Thread::Asleep) {
            self.wake.notified().await;
        }
    }

    /// Lets nothing more in. What waits is still taken.
    pub(super) fn close(&self) {
        let mut queue = self.queue();
        match queue.state {
            ObserverState::Waiting => {
                queue.state = ObserverState::Finished;
                self.ended.cancel();
            }
            ObserverState::Working => {
                queue.state = ObserverState::Finishing;
                self.wake.notify_one();
            }
            _ => {}
        }
    }

    /// Gives up on an observer that isn't done in time: what waits is lost, and a call it is in counts as hung.
    pub(super) fn leave(&self) {
        let since = self.busy_since.load(Ordering::Relaxed);
        let mut queue = self.queue();
        if queue.state != ObserverState::Finishing {
            return;
        }
        queue.give_up(ObserverState::LeftBehind);
        drop(queue);
        if since != 0 {
            self.count_hang(since);
        }
        tracing::warn!(observer = %self.registered.name, run = %self.run, "an observer was not done in time and is left behind");
    }

    /// There is no observer: everything from here on is lost.
    pub(super) fn fail(&self, why: &str) {
        self.queue().give_up(ObserverState::Unable);
        self.ended.cancel();
        tracing::warn!(observer = %self.registered.name, run = %self.run, why, "there is no such observer from here on");
    }

    /// The observer has been told that nothing more comes.
    pub(super) fn finished(&self) {
        let mut queue = self.queue();
        if queue.state == ObserverState::Finishing {
            queue.state = ObserverState::Finished;
        }
    }

    /// The observer is in a call from now on.
    pub(super) fn begin_call(&self) {
        self.busy_since.store(self.stamp(Instant::now()), Ordering::Relaxed);
    }

    /// The call is over.
    pub(super) fn end_call(&self) {
        self.notice_hang(Instant::now());
        self.busy_since.store(0, Ordering::Relaxed);
    }

    /// Counts an error; returns how many there were.
    pub(super) fn count_failure(&self) -> u64 {
        self.failed.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Counts a panic; returns how many there were.
    pub(super) fn count_panic(&self) -> u64 {
        self.panicked.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(super) fn report(&self) -> ObserverReport {
        self.notice_hang(Instant::now());
        let queue = self.queue();
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        ObserverReport {
            name: self.registered.name.to_string(),
            state: queue.state,
            delivered: queue.delivered,
            lost: queue.lost,
            waiting: u64::try_from(queue.events.len()).unwrap_or(u64::MAX),
            failed: count(&self.failed),
            panicked: count(&self.panicked),
            hung: count(&self.hung),
        }
    }

    fn stamp(&self, now: Instant) -> u64 {
        let since = now.saturating_duration_since(self.made);
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX).max(1)
    }

    fn notice_hang(&self, now: Instant) {
        let since = self.busy_since.load(Ordering::Relaxed);
        if since != 0 {
            let busy = Duration::from_nanos(self.stamp(now).saturating_sub(since));
            if busy > self.registered.options.hung_after {
                self.count_hang(since);
            }
        }
    }

    /// Counts the call that began at `since`, once.
    fn count_hang(&self, since: u64) {
        if self.hung_since.swap(since, Ordering::Relaxed) != since {
            self.hung.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(observer = %self.registered.name, run = %self.run, "an observer hangs");
        }
    }
}

impl Queue {
    fn add(&mut self, event: Arc<Observed>, max: usize) -> (Needs, Option<Arc<Observed>>) {
        let needs = match self.state {
            ObserverState::Waiting => Needs::Thread,
            ObserverState::Working if self.thread == Thread::Asleep => Needs::Waking,
            // It would look in time by itself, if nothing much came until then.
            ObserverState::Working if self.thread == Thread::Dozing && self.events.len() >= max / 2 => {
                Needs::Waking
            }
            ObserverState::Working => Needs::Nothing,
            ObserverState::Unable => {
                self.lost += 1;
                return (Needs::Nothing, Some(event));
            }
            ObserverState::Finishing | ObserverState::Finished | ObserverState::LeftBehind => {
                return (Needs::Nothing, Some(event));
            }
        };
        match needs {
            Needs::Nothing => {}
            Needs::Thread => self.state = ObserverState::Working,
            Needs::Waking => self.thread = Thread::Awake,
        }
        let oldest = if self.events.len() >= max { self.events.pop_front() } else { None };
        if oldest.is_some() {
            self.lost += 1;
            self.untold += 1;
        }
        self.events.push_back(event);
        (needs, oldest)
    }

    /// Whether the thread may rest; says so to those who bring events.
    fn lie_down(&mut self, thread: Thread) -> bool {
        let may = self.events.is_empty() && self.state == ObserverState::Working;
        if may {
            self.thread = thread;
        }
        may
    }

    fn give_up(&mut self, state: ObserverState) {
        let waiting = u64::try_from(self.events.len()).unwrap_or(u64::MAX);
        self.lost += waiting;
        self.untold += waiting;
        self.events.clear();
        self.state = state;
    }
}
