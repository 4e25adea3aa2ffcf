//! The processes of a cluster.

use std::ffi::OsStr;
use std::time::Duration;

use provost_process::ProcessIdentity;
use tokio::time::{Instant, sleep};

const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The living process with this argument.
pub(crate) fn running(argument: &OsStr) -> Option<ProcessIdentity> {
    ProcessIdentity::with_argument(argument).into_iter().next()
}

/// A process that is to end.
pub(crate) struct Leaving {
    pub(crate) member: String,
    pub(crate) process: ProcessIdentity,
}

/// Asks the processes to end, waits for that, and ends with force those that haven't after `grace`. Returns the names of
/// those that are still there.
pub(crate) async fn end(leaving: Vec<Leaving>, grace: Duration) -> Vec<String> {
    for one in &leaving {
        // One that has ended meanwhile needn't be asked.
        let _ = one.process.ask_to_end();
    }
    let until = Instant::now() + grace;
    let mut left = leaving;
    loop {
        left.retain(|one| one.process.exists());
        if left.is_empty() || Instant::now() >= until {
            break;
        }
        sleep(LOOK_EVERY).await;
    }
    let mut stubborn = Vec::new();
    for one in left {
        let process = one.process;
        let ended = tokio::task::spawn_blocking(move || process.end_tree()).await.unwrap_or_default();
        if !ended && process.exists() {
            stubborn.push(format!("{} (process {})", one.member, process.pid));
        }
    }
    stubborn
}
