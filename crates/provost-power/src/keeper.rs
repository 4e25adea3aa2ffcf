//! The thread that takes locks while the machine has to stay awake, and logs the result.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::KeepAwakeOptions;
use crate::lock::Lock;
use crate::shared::{LockState, Shared};

/// A requested lock. Dropping this releases it, or makes the thread release it as soon as the system grants it.
struct RequestedLock {
    _release: Sender<Infallible>,
}

/// Runs until [`Shared::end`]. It logs at level debug.
pub(crate) fn keep(shared: &Arc<Shared>, options: KeepAwakeOptions) {
    let (locks, answer_max) = (Lock::wanted(options.blocks_sleep), options.answer_max);
    let mut told = None;
    while let Some(reason) = shared.wait_until_wanted() {
        let asked = locks.iter().filter_map(|lock| ask(shared, *lock, &reason)).collect::<Vec<_>>();
        let due = Instant::now().checked_add(answer_max);
        let missing = missing(&shared.wait_for_answers(due), answer_max);
        // Without this check the line would mostly be repeated.
        if let Some(missing) = missing.filter(|missing| told.as_ref() != Some(missing)) {
            tell(&missing, locks.len());
            told = Some(missing);
        }
        shared.wait_until_unwanted();
        drop(asked);
    }
}

/// Requests `lock` on a thread of its own: a call to the system can't be ended from outside. At most one such
/// thread per lock waits for an answer.
fn ask(shared: &Arc<Shared>, lock: Lock, reason: &str) -> Option<RequestedLock> {
    if !shared.ask(lock) {
        return None;
    }
    let (release, released) = channel();
    let (reason, answers) = (reason.to_owned(), Arc::clone(shared));
    let thread = thread::Builder::new().name(format!("keep-awake-{lock}"));
    if let Err(error) = thread.spawn(move || hold(lock, &reason, &answers, &released)) {
        shared.answer(lock, LockState::Refused(format!("no thread for it: {error}")));
    }
    Some(RequestedLock { _release: release })
}

fn hold(lock: Lock, reason: &str, answers: &Shared, released: &Receiver<Infallible>) {
    match lock.take(reason) {
        Ok(taken) => {
            answers.answer(lock, LockState::Given);
            // No message is ever sent: it returns when the other side is dropped.
            let _ = released.recv();
            drop(taken);
        }
        Err(why) => answers.answer(lock, LockState::Refused(why)),
    }
}

/// The locks that aren't held, each with the reason; `None` if an answer may still come in time.
fn missing(locks: &[(Lock, LockState)], answer_max: Duration) -> Option<Vec<String>> {
    let mut missing = Vec::new();
    for (lock, standing) in locks {
        match standing {
            LockState::Given => {}
            LockState::Refused(why) => missing.push(format!("{lock}: {why}")),
            LockState::Asked(since) if since.elapsed() >= answer_max => {
                missing.push(format!("{lock}: the system hasn't answered"));
            }
            LockState::Asked(_) => return None,
        }
    }
    // A fixed order, independent of the order of the answers.
    missing.sort();
    Some(missing)
}

fn tell(missing: &[String], wanted: usize) {
    let why = missing.join("; ");
    match missing.len() {
        0 => tracing::debug!("the machine is kept awake"),
        some if some < wanted => tracing::debug!(why, "the machine is kept awake only in part"),
        _ => tracing::debug!(why, "the machine may fall asleep while agents work"),
    }
}
