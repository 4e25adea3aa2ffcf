//! A store that counts another's commits and the CPU time within them, and can make them slower.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use provost_backend::{DecoratedStore, SessionStore, Transactions};
use provost_harness::BackendError;

use crate::measure::thread_cpu;

/// What the commits of a store have cost so far.
#[derive(Default)]
pub(crate) struct Spent {
    commits: AtomicUsize,
    nanoseconds: AtomicU64,
}

impl Spent {
    /// How many, and their CPU time.
    pub(crate) fn so_far(&self) -> (usize, Duration) {
        let nanoseconds = self.nanoseconds.load(Ordering::Relaxed);
        (self.commits.load(Ordering::Relaxed), Duration::from_nanos(nanoseconds))
    }
}

/// Transactions whose commits are counted and timed.
pub(crate) struct Timed {
    spent: Arc<Spent>,
    wait: Duration,
}

impl Timed {
    /// Waits for `wait` at each commit, as if the disk took that much longer to sync.
    pub(crate) const fn store<S>(store: S, spent: Arc<Spent>, wait: Duration) -> DecoratedStore<S, Self> {
        DecoratedStore::new(store, Self { spent, wait })
    }
}

impl<S: SessionStore> Transactions<S> for Timed {
    fn commit(&mut self, store: &mut S) -> Result<(), BackendError> {
        if !self.wait.is_zero() {
            std::thread::sleep(self.wait);
        }
        let before = thread_cpu();
        let done = store.commit();
        let taken = thread_cpu().saturating_sub(before).as_nanos();
        self.spent.commits.fetch_add(1, Ordering::Relaxed);
        self.spent.nanoseconds.fetch_add(u64::try_from(taken).unwrap_or(u64::MAX), Ordering::Relaxed);
        done
    }
}
