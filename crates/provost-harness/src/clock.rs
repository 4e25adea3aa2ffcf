//! Time as a dependency, so that tests cover hours in milliseconds.

use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use provost_event::{Elapsed, Timestamp};
use tokio::sync::watch;

/// Returns the time and waits.
///
/// Two clocks in one: the wall clock, which people read and set, and a monotonic one, which can't be set. All
/// measurements, limits and waits use the monotonic one.
#[async_trait]
pub trait Clock: Send + Sync {
    /// The current time by the wall clock. It may be earlier than at the previous call; differences mean nothing.
    fn now(&self) -> Timestamp;

    /// The current monotonic reading: never less than at the previous call. Comparable with readings of this value
    /// only.
    fn monotonic(&self) -> Elapsed;

    /// Returns once the monotonic clock reads `due`; at once if it does already.
    ///
    /// # Cancellation
    /// Safe: dropping the future only stops the wait.
    async fn sleep_until(&self, due: Elapsed);

    /// Returns after `duration`.
    async fn sleep(&self, duration: Duration) {
        let ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        self.sleep_until(self.monotonic().plus_ms(ms)).await;
    }
}

/// The machine's clocks. The monotonic one is [`Instant`]: on Linux `CLOCK_MONOTONIC`, which stands still while
/// the machine is suspended, so that the time of a closed laptop is no working time and counts towards no limit.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

/// The origin of the process's monotonic readings.
static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    fn monotonic(&self) -> Elapsed {
        Elapsed(u64::try_from(ORIGIN.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    async fn sleep_until(&self, due: Elapsed) {
        // A timer that fires in the middle of a millisecond may leave a rest of it.
        loop {
            let left = due.since_ms(self.monotonic());
            if left == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(left)).await;
        }
    }
}

/// The readings of both clocks of a [`SimulatedClock`].
#[derive(Debug, Clone, Copy)]
struct Readings {
    wall: Timestamp,
    monotonic: Elapsed,
}

impl Readings {
    const fn advance(&mut self, ms: u64) {
        self.wall = self.wall.plus_ms(ms);
        self.monotonic = self.monotonic.plus_ms(ms);
    }
}

/// A clock for tests: stands still until it is advanced, and knows the pending waits.
#[derive(Debug)]
pub struct SimulatedClock {
    now: watch::Sender<Readings>,
    waits: watch::Sender<Vec<Elapsed>>,
    // Serializes moves, so that two advances never overlap.
    moving: Mutex<()>,
}

impl SimulatedClock {
    /// A clock whose wall clock shows `start`.
    #[must_use]
    pub fn at(start: Timestamp) -> Self {
        Self {
            now: watch::Sender::new(Readings { wall: start, monotonic: Elapsed::default() }),
            waits: watch::Sender::new(Vec::new()),
            moving: Mutex::new(()),
        }
    }

    /// Advances both clocks by `ms` milliseconds.
    pub fn advance_ms(&self, ms: u64) {
        let _guard = self.moving.lock();
        self.now.send_modify(|now| now.advance(ms));
    }

    /// Sets the wall clock `ms` milliseconds forward, or back if that is negative, without the monotonic one: as
    /// when a person or the network sets the time, or (forward) after the machine was suspended.
    pub fn set_wall_ms(&self, ms: i64) {
        let _guard = self.moving.lock();
        self.now.send_modify(|now| now.wall = Timestamp(now.wall.0.saturating_add_signed(ms)));
    }

    /// Waits until there is a wait, then advances to the end of the first one; returns the wall clock's time then.
    pub async fn advance_to_next_sleeper(&self) -> Timestamp {
        self.advance_to_sleeper_within(u64::MAX).await
    }

    /// The same, for a wait that ends within `ms` milliseconds; later ones are ignored until then.
    pub async fn advance_to_sleeper_within(&self, ms: u64) -> Timestamp {
        let due = self.sleeper_within(ms).await;
        let _guard = self.moving.lock();
        self.now.send_modify(|now| now.advance(due.since_ms(now.monotonic)));
        self.now()
    }

    /// Waits until there is a wait that ends within `ms` milliseconds, and returns the end of the first one. The clock
    /// stands still.
    pub async fn sleeper_within(&self, ms: u64) -> Elapsed {
        let latest = self.monotonic().plus_ms(ms);
        let mut waits = self.waits.subscribe();
        let found = waits.wait_for(|all| all.iter().any(|due| *due <= latest)).await;
        // The sender lives in `self`: the wait can't fail.
        found.ok().and_then(|all| all.iter().min().copied()).unwrap_or_default()
    }
}

/// Removes a wait from the list however it ends.
struct Waiting<'a>(&'a SimulatedClock, Elapsed);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waits.send_modify(|all| {
            if let Some(at) = all.iter().position(|due| *due == self.1) {
                all.swap_remove(at);
            }
        });
    }
}

#[async_trait]
impl Clock for SimulatedClock {
    fn now(&self) -> Timestamp {
        self.now.borrow().wall
    }

    fn monotonic(&self) -> Elapsed {
        self.now.borrow().monotonic
    }

    async fn sleep_until(&self, due: Elapsed) {
        let mut now = self.now.subscribe();
        if now.borrow().monotonic >= due {
            return;
        }
        self.waits.send_modify(|all| all.push(due));
        let _waiting = Waiting(self, due);
        // The sender lives in `self`, which outlives this borrow: the wait can't fail.
        let _ = now.wait_for(|now| now.monotonic >= due).await;
    }
}
