//! An observer's thread: passes events from the queue to the observer, whether or not it fails.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures::FutureExt as _;

use super::feed::{Feed, Next};
use crate::{Observer, ObserverError};

/// Starts the thread of `feed`'s observer. It ends when the feed is closed and empty; if its observer never
/// returns, it stays until the process ends, as a thread can't be ended from outside.
///
/// # Errors
/// When the system can't create a thread.
pub(super) fn start(feed: Arc<Feed>) -> io::Result<()> {
    // A thread's name can't contain a NUL byte.
    let name = format!("observer {}", feed.registered.name.replace('\0', ""));
    std::thread::Builder::new().name(name).spawn(move || work(&feed)).map(drop)
}

fn work(feed: &Feed) {
    let _ended = feed.ended.clone().drop_guard();
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => {
            if catch_unwind(AssertUnwindSafe(|| runtime.block_on(live(feed)))).is_err() {
                // Only the drop of a panic's payload can cause this, when it panics too.
                panicked(feed, "the end of a panic");
                feed.fail("its thread broke");
            }
            // Its work on blocking threads isn't waited for.
            runtime.shutdown_background();
        }
        Err(error) => feed.fail(&error.to_string()),
    }
}

async fn live(feed: &Feed) {
    let registered = &feed.registered;
    match catch_unwind(AssertUnwindSafe(|| (registered.make)(feed.run))) {
        Ok(mut observer) => {
            show(feed, &mut *observer).await;
            if catch_unwind(AssertUnwindSafe(|| drop(observer))).is_err() {
                panicked(feed, "being dropped");
            }
            feed.finished();
        }
        Err(_) => {
            panicked(feed, "being made");
            feed.fail("it panicked while it was made");
        }
    }
}

async fn show(feed: &Feed, observer: &mut dyn Observer) {
    let mut holds_back = false;
    loop {
        match feed.next() {
            Next::Event { lost, event } => {
                tell_lost(feed, observer, lost).await;
                call(feed, "an event", observer.observe(&event)).await;
                holds_back = true;
                // Lets the observer's spawned tasks run, even while events keep coming.
                tokio::task::consume_budget().await;
            }
            Next::Nothing if holds_back => {
                call(feed, "a pause between events", observer.idle()).await;
                holds_back = false;
            }
            Next::Nothing => feed.rest().await,
            Next::End { lost } => {
                tell_lost(feed, observer, lost).await;
                call(feed, "the end", observer.finish()).await;
                return;
            }
        }
    }
}

async fn tell_lost(feed: &Feed, observer: &mut dyn Observer, count: u64) {
    if count > 0 {
        let told = async {
            observer.lost(count).await;
            Ok(())
        };
        call(feed, "a loss", told).await;
    }
}

/// Makes one call of the observer, which may fail, panic or hang. Logs the first, second, fourth, eighth … failure
/// of a kind, as there may be one per event.
async fn call(feed: &Feed, at: &'static str, told: impl Future<Output = Result<(), ObserverError>>) {
    feed.begin_call();
    let told = AssertUnwindSafe(told).catch_unwind().await;
    feed.end_call();
    match told {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            let times = feed.count_failure();
            if times.is_power_of_two() {
                let (observer, run) = (&feed.registered.name, feed.run);
                tracing::warn!(%observer, %run, error, times, "an observer failed at {at}");
            }
        }
        Err(_) => panicked(feed, at),
    }
}

fn panicked(feed: &Feed, at: &'static str) {
    let times = feed.count_panic();
    if times.is_power_of_two() {
        tracing::warn!(observer = %feed.registered.name, run = %feed.run, times, "an observer panicked at {at}");
    }
}
