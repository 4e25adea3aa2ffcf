//! Time as a dependency, so that hours are tested in milliseconds.

use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use provost_event::Timestamp;
use tokio::sync::watch;

/// Tells the time and waits.
#[async_trait]
pub trait Clock: Send + Sync {
    /// The time now.
    fn now(&self) -> Timestamp;

    /// Returns once `due` has come; at once if it lies in the past.
    ///
    /// # Cancellation
    /// Safe: dropping the future only stops the wait.
    async fn sleep_until(&self, due: Timestamp);

    /// Returns after `duration`.
    async fn sleep(&self, duration: Duration) {
        let ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        self.sleep_until(self.now().plus_ms(ms)).await;
    }
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

/// A wait is done in pieces of this length, so that a machine that slept or a clock that was set is noticed.
const NAP: Duration = Duration::from_secs(30);

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    async fn sleep_until(&self, due: Timestamp) {
        loop {
            let left = Duration::from_millis(due.since_ms(self.now()));
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(NAP)).await;
        }
    }
}

/// A clock for tests: stands still until it is moved, and can tell who waits for it.
#[derive(Debug)]
pub struct SimulatedClock {
    now: watch::Sender<Timestamp>,
    sleepers: watch::Sender<Vec<Timestamp>>,
    // Serializes moves, so that two advances never overlap.
    moving: Mutex<()>,
}

impl SimulatedClock {
    /// A clock that shows `start`.
    #[must_use]
    pub fn at(start: Timestamp) -> Self {
        Self {
            now: watch::Sender::new(start),
            sleepers: watch::Sender::new(Vec::new()),
            moving: Mutex::new(()),
        }
    }

    /// Moves the clock by `ms` milliseconds.
    pub fn advance_ms(&self, ms: u64) {
        let _guard = self.moving.lock();
        self.now.send_modify(|now| *now = now.plus_ms(ms));
    }

    /// Waits until somebody sleeps, then moves the clock to where the first of them wakes; returns that moment.
    pub async fn advance_to_next_sleeper(&self) -> Timestamp {
        let mut sleepers = self.sleepers.subscribe();
        let due = match sleepers.wait_for(|all| !all.is_empty()).await {
            Ok(all) => all.iter().min().copied().unwrap_or_default(),
            Err(_) => return self.now(),
        };
        let _guard = self.moving.lock();
        self.now.send_modify(|now| *now = (*now).max(due));
        due
    }
}

/// Takes a sleeper off the list however its wait ends.
struct Asleep<'a>(&'a SimulatedClock, Timestamp);

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        self.0.sleepers.send_modify(|all| {
            if let Some(at) = all.iter().position(|due| *due == self.1) {
                all.swap_remove(at);
            }
        });
    }
}

#[async_trait]
impl Clock for SimulatedClock {
    fn now(&self) -> Timestamp {
        *self.now.borrow()
    }

    async fn sleep_until(&self, due: Timestamp) {
        let mut now = self.now.subscribe();
        if *now.borrow() >= due {
            return;
        }
        self.sleepers.send_modify(|all| all.push(due));
        let _asleep = Asleep(self, due);
        // The sender lives in `self`, which outlives this borrow: the wait can't fail.
        let _ = now.wait_for(|now| *now >= due).await;
    }
}
