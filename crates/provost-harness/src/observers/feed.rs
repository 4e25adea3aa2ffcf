//! The state shared between the run's side and an observer's thread: the queue, and the counts.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use provost_event::RunId;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{ObserverReport, ObserverState, Registered};
use crate::ObserverEvent;

/// How long a thread with an empty queue polls before it has to be woken: waking is the run's largest cost of an
/// event, and a stream of events never needs it.
const DOZE: Duration = Duration::from_millis(1);

/// One observer in one segment of work.
pub(super) struct Feed {
    pub(super) registered: Arc<Registered>,
    pub(super) run: RunId,
    /// Fires when the thread has ended, for any reason.
    pub(super) ended: CancellationToken,
    queue: Mutex<Queue>,
    wake: Notify,
    made: Instant,
    /// The start of the observer's current call, in nanoseconds after `made`; 0 if there is none.
    busy_since: AtomicU64,
    /// The start of the call that was last counted as hung.
    hung_since: AtomicU64,
    failed: AtomicU64,
    panicked: AtomicU64,
    hung: AtomicU64,
}

struct Queue {
    events: VecDeque<Arc<ObserverEvent>>,
    state: ObserverState,
    thread: Thread,
    delivered: u64,
    lost: u64,
    /// Lost events that the observer hasn't been informed of.
    untold: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Thread {
    Awake,
    Dozing,
    Asleep,
}

/// The action that a new event needs.
enum Needs {
    Nothing,
    Thread,
    Waking,
}

/// The next item for an observer.
pub(super) enum Next {
    /// An event, after this many lost ones.
    Event { lost: u64, event: Arc<ObserverEvent> },
    /// Nothing yet.
    Nothing,
    /// The end, after this many lost events.
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

    /// Queues `event`, dropping the oldest if the queue is full. Returns whether the observer has no thread yet.
    pub(super) fn push(&self, event: &Arc<ObserverEvent>, now: Instant) -> bool {
        let (needs, oldest) = self.queue().add(event.clone(), self.registered.options.queue_max.max(1));
        // It may be the last reference to a large entry.
        drop(oldest);
        self.notice_hang(now);
        if let Needs::Waking = needs {
            self.wake.notify_one();
        }
        matches!(needs, Needs::Thread)
    }

    /// The next item.
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

    /// Returns when there may be an item.
    pub(super) async fn rest(&self) {
        if self.queue().lie_down(Thread::Dozing) {
            // Timed out or woken: either way the thread checks again.
            let _ = tokio::time::timeout(DOZE, self.wake.notified()).await;
        }
        if self.queue().lie_down(Thread::Asleep) {
            self.wake.notified().await;
        }
    }

    /// Accepts no further events. Queued ones are still delivered.
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

    /// Abandons an observer that isn't done in time: queued events are lost, and its current call counts as hung.
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

    /// The observer failed to start: all events from here on are lost.
    pub(super) fn fail(&self, why: &str) {
        self.queue().give_up(ObserverState::Unable);
        self.ended.cancel();
        tracing::warn!(observer = %self.registered.name, run = %self.run, why, "there is no such observer from here on");
    }

    /// The observer has handled the end.
    pub(super) fn finished(&self) {
        let mut queue = self.queue();
        if queue.state == ObserverState::Finishing {
            queue.state = ObserverState::Finished;
        }
    }

    /// The observer's call starts.
    pub(super) fn begin_call(&self) {
        self.busy_since.store(self.stamp(Instant::now()), Ordering::Relaxed);
    }

    /// The observer's call has ended.
    pub(super) fn end_call(&self) {
        self.notice_hang(Instant::now());
        self.busy_since.store(0, Ordering::Relaxed);
    }

    /// Counts an error; returns the total.
    pub(super) fn count_failure(&self) -> u64 {
        self.failed.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Counts a panic; returns the total.
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

    /// Counts the call that started at `since`, once.
    fn count_hang(&self, since: u64) {
        if self.hung_since.swap(since, Ordering::Relaxed) != since {
            self.hung.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(observer = %self.registered.name, run = %self.run, "an observer hangs");
        }
    }
}

impl Queue {
    fn add(&mut self, event: Arc<ObserverEvent>, max: usize) -> (Needs, Option<Arc<ObserverEvent>>) {
        let needs = match self.state {
            ObserverState::Waiting => Needs::Thread,
            ObserverState::Working if self.thread == Thread::Asleep => Needs::Waking,
            // It would check by itself in time if only few events came until then.
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

    /// Whether the thread may wait; visible to the senders of events.
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
