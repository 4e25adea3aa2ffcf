//! The guards of this process, and what of their children this process has adopted because its guard was killed.
//!
//! A process that [adopts orphans](adopt_orphans) becomes the parent of what a killed guard leaves. Whatever is its child and is
//! no guard of its own, nor was there before, was left by one.

use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard};

use crate::guard;
use crate::leftover::Ledger;

static ADOPTS: AtomicBool = AtomicBool::new(false);
/// Children that this process had before it adopted any, and when each was started.
static BEFORE: OnceLock<HashMap<u32, u64>> = OnceLock::new();
/// When each was started: the number of one that has ended may be given out anew.
static GUARDS: Mutex<Option<HashMap<u32, u64>>> = Mutex::new(None);
/// Held for reading while a guard is started, until its number is known.
static STARTING: RwLock<()> = RwLock::new(());
/// Guards that were to end all, and of which that wasn't seen; with when each was started.
static UNSEEN: Mutex<Vec<(u32, u64)>> = Mutex::new(Vec::new());
static LEDGER: OnceLock<PathBuf> = OnceLock::new();

/// How long a guard that was killed may take to be gone.
const DYING_MAX: std::time::Duration = std::time::Duration::from_secs(1);

/// Has this process adopt what descends from it and has lost its parent (Linux), so that what a killed guard leaves is found and
/// ended too. It changes what becomes of every descendant of this process, so it is for programs that start processes by this
/// crate only; to be called first thing in `main`. Returns whether that is so now.
pub fn adopt_orphans() -> bool {
    let _ = BEFORE.set(children().into_iter().map(|pid| (pid, started_of(pid))).collect());
    let adopts = guard::adopt_orphans();
    ADOPTS.store(adopts, Ordering::Release);
    adopts
}

/// Has every guard that its children can reach written down in `folder`, for [`end_leftovers`](crate::end_leftovers) after this
/// process was killed while the guard was stopped. The first call counts.
pub fn keep_ledger(folder: PathBuf) {
    let _ = LEDGER.set(folder);
}

/// A guard that was started.
pub(crate) struct Registered<C> {
    child: C,
    pid: u32,
    entry: Option<Ledger>,
}

impl<C> Registered<C> {
    pub(crate) const fn pid(&self) -> u32 {
        self.pid
    }

    /// What it guards was seen to have ended: it needn't be written down any more.
    pub(crate) fn strike_out(&mut self) {
        if let Some(entry) = self.entry.take() {
            entry.close();
        }
    }
}

impl<C> Deref for Registered<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.child
    }
}

impl<C> DerefMut for Registered<C> {
    fn deref_mut(&mut self) -> &mut C {
        &mut self.child
    }
}

impl<C> Drop for Registered<C> {
    fn drop(&mut self) {
        if let Some(guards) = GUARDS.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            guards.remove(&self.pid);
        }
    }
}

/// To be held while a process is started that isn't known as a guard yet: it isn't taken for adopted.
pub(crate) fn starting() -> RwLockReadGuard<'static, ()> {
    STARTING.read().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a guard.
pub(crate) fn spawn<C>(
    spawn: impl FnOnce() -> io::Result<C>,
    pid: impl Fn(&C) -> u32,
) -> io::Result<Registered<C>> {
    let starting = starting();
    let child = spawn()?;
    let pid = pid(&child);
    GUARDS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get_or_insert_default()
        .insert(pid, started_of(pid));
    drop(starting);
    let folder = LEDGER.get().filter(|_| !guard::namespaces_are_there());
    let entry = folder.and_then(|folder| Ledger::begin(folder, pid));
    Ok(Registered { child, pid, entry })
}

/// Ends what this process has adopted from `guard`, which has ended or was killed, and from any other; whether it was seen that
/// nothing is left. `false` where it adopts nothing, and while the guard is there. Blocks for some seconds at most.
#[cfg(target_os = "linux")]
pub(crate) fn end_adopted(guard: u32) -> bool {
    // Its channel is closed before its children have another parent; once it has ended they have.
    let known = GUARDS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .as_ref()
        .and_then(|guards| guards.get(&guard).copied());
    let is_itself =
        crate::leftover::process(guard).is_some_and(|now| known.is_none_or(|started| now.started == started));
    let is_gone = !is_itself || crate::sweep::until_dead(guard, DYING_MAX);
    let is_all_ended = sweep_adopted() == Some(true) && is_gone;
    if !is_all_ended {
        note_unseen(guard);
    }
    is_all_ended
}

/// Ends all that is below a guard that doesn't answer, as far as that can be done, and the guard, if it still doesn't. Blocks for
/// some seconds at most.
pub(crate) fn end_guard(guard: u32) {
    crate::sweep::end_guard(guard);
    note_unseen(guard);
}

/// Nobody has seen that all below this guard has ended.
fn note_unseen(guard: u32) {
    UNSEEN.lock().unwrap_or_else(PoisonError::into_inner).push((guard, started_of(guard)));
}

/// Ends whatever this process has adopted, but for what runs below its guards; whether it was seen that nothing is left. `None`
/// where it adopts nothing.
#[cfg(target_os = "linux")]
fn sweep_adopted() -> Option<bool> {
    if !ADOPTS.load(Ordering::Acquire) {
        return None;
    }
    // A child that is being started has no number yet. One at a time: waiting for a child hides what it left from another sweep.
    let _alone = STARTING.write().unwrap_or_else(PoisonError::into_inner);
    let guards = GUARDS.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default();
    Some(crate::sweep::sweep(|pid| {
        let known = [Some(&guards), BEFORE.get()].into_iter().flatten();
        known.filter_map(|known| known.get(&pid)).any(|started| started_of(pid) == *started)
    }))
}

#[cfg(not(target_os = "linux"))]
fn sweep_adopted() -> Option<bool> {
    None
}

/// Ends what guards have left to this process that were killed; whether some of what was to end could not be ended and may still
/// run. What runs below a guard that nobody has asked to end stays as it is. `false` also where this process adopts nothing ([`adopt_orphans`]): there nobody can tell.
///
/// Blocks for up to five seconds: not to be called on an async worker.
pub fn end_adopted_leftovers() -> bool {
    let unseen = UNSEEN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let is_left = sweep_adopted() == Some(false);
    // A guard that is still there still tries.
    let is_there = |(pid, started): &(u32, u64)| {
        started_of(*pid) == *started && !crate::sweep::until_dead(*pid, std::time::Duration::ZERO)
    };
    is_left || unseen.iter().any(is_there)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn end_adopted(_guard: u32) -> bool {
    false
}

/// When a process was started; 0 where that isn't told.
fn started_of(pid: u32) -> u64 {
    #[cfg(target_os = "linux")]
    return crate::leftover::started_of(pid).unwrap_or_default();
    #[cfg(not(target_os = "linux"))]
    {
        let _ = pid;
        0
    }
}

/// The children of all threads of this process.
fn children() -> HashSet<u32> {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return HashSet::new() };
    let lists = tasks.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}
