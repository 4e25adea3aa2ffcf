//! The guards of this process, and the processes it adopted because their guard was killed.
//!
//! A process that [adopts orphans](adopt_orphans) becomes the parent of what a killed guard leaves. A child of
//! this process that is neither a guard nor older than the adoption was left by a guard.

use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard};

use crate::guard;
use crate::leftover::Ledger;

static ADOPTS: AtomicBool = AtomicBool::new(false);
/// Children that this process had before the adoption, with their start times.
static BEFORE: OnceLock<HashMap<u32, u64>> = OnceLock::new();
/// The guards with their start times: the id of an ended process may be reused.
static GUARDS: Mutex<Option<HashMap<u32, u64>>> = Mutex::new(None);
/// Programs that are to outlive this process, with their start times.
static DETACHED: Mutex<Vec<(u32, u64)>> = Mutex::new(Vec::new());
/// Held for reading while a guard is started, until its process id is known.
static STARTING: RwLock<()> = RwLock::new(());
/// Guards whose processes weren't all observed to end, with the guards' start times.
static UNSEEN: Mutex<Vec<(u32, u64)>> = Mutex::new(Vec::new());
static LEDGER: OnceLock<PathBuf> = OnceLock::new();

/// How long a killed guard may take to end.
const DYING_MAX: std::time::Duration = std::time::Duration::from_secs(1);

/// Makes this process adopt its orphaned descendants (Linux), so that what a killed guard leaves is found and
/// ended too. It affects every descendant of this process, so it is for programs that start processes only by this
/// crate; call it first thing in `main`. Returns whether the adoption is in effect.
pub fn adopt_orphans() -> bool {
    let _ = BEFORE.set(children().into_iter().map(|pid| (pid, started_of(pid))).collect());
    let adopts = guard::adopt_orphans();
    ADOPTS.store(adopts, Ordering::Release);
    adopts
}

/// Lists every guard that its children can reach in `folder`, for [`end_leftovers`](crate::end_leftovers) in case
/// this process is killed while the guard is stopped. Only the first call counts.
pub fn keep_ledger(folder: PathBuf) {
    let _ = LEDGER.set(folder);
}

/// A started guard.
pub(crate) struct Registered<C> {
    child: C,
    pid: u32,
    entry: Option<Ledger>,
}

impl<C> Registered<C> {
    pub(crate) const fn pid(&self) -> u32 {
        self.pid
    }

    /// All its processes were observed to end: removes it from the list.
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

/// Held while a process is started that isn't registered as a guard yet, so that it doesn't count as adopted.
pub(crate) fn starting() -> RwLockReadGuard<'static, ()> {
    STARTING.read().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a guard.
pub(crate) fn spawn<C>(
    spawn: impl FnOnce() -> io::Result<C>,
    pid: impl Fn(&C) -> u32,
    placement: guard::Placement,
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
    let folder = LEDGER.get().filter(|_| placement == guard::Placement::Shared);
    let entry = folder.and_then(|folder| Ledger::begin(folder, pid));
    Ok(Registered { child, pid, entry })
}

/// Starts a program that is to outlive this process, and so is none of its leftovers.
pub(crate) fn spawn_detached(
    spawn: impl FnOnce() -> io::Result<tokio::process::Child>,
) -> io::Result<tokio::process::Child> {
    let _starting = starting();
    let child = spawn()?;
    let pid = child.id().unwrap_or_default();
    let mut detached = DETACHED.lock().unwrap_or_else(PoisonError::into_inner);
    // Those that have ended are no longer needed.
    detached.retain(|(pid, started)| started_of(*pid) == *started);
    detached.push((pid, started_of(pid)));
    drop(detached);
    Ok(child)
}

/// Ends what this process has adopted from `guard`, which has ended or was killed, and from any other guard;
/// returns whether no process was observed to be left. `false` where it adopts no processes, and while the guard
/// exists. Blocks for some seconds at most.
#[cfg(target_os = "linux")]
pub(crate) fn end_adopted(guard: u32) -> bool {
    // A guard's channel is closed before its children get another parent; once it has ended they have one.
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

/// Ends all processes below a guard that doesn't answer, as far as possible, and the guard, if it still doesn't.
/// Blocks for some seconds at most.
pub(crate) fn end_guard(guard: u32) {
    crate::sweep::end_guard(guard);
    note_unseen(guard);
}

/// Not all processes below this guard were observed to end.
fn note_unseen(guard: u32) {
    UNSEEN.lock().unwrap_or_else(PoisonError::into_inner).push((guard, started_of(guard)));
}

/// Ends all that this process has adopted, except what runs below its guards; returns whether no process was
/// observed to be left. `None` where it adopts no processes.
#[cfg(target_os = "linux")]
fn sweep_adopted() -> Option<bool> {
    if !ADOPTS.load(Ordering::Acquire) {
        return None;
    }
    // A child that is being started has no id yet. One sweep at a time: waiting for a child hides what it left
    // from another sweep.
    let _alone = STARTING.write().unwrap_or_else(PoisonError::into_inner);
    let guards = GUARDS.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default();
    let detached = DETACHED.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
    Some(crate::sweep::sweep(|pid| {
        let known = [Some(&guards), Some(&detached), BEFORE.get()].into_iter().flatten();
        known.filter_map(|known| known.get(&pid)).any(|started| started_of(pid) == *started)
    }))
}

#[cfg(not(target_os = "linux"))]
fn sweep_adopted() -> Option<bool> {
    None
}

/// Ends what killed guards have left to this process; returns whether some of that could not be ended and may
/// still run. Processes below a guard without an order to end stay. Also `false` where this process adopts no
/// processes ([`adopt_orphans`]): there this is unknown.
///
/// Blocks for up to five seconds: not to be called on an async worker.
pub fn end_adopted_leftovers() -> bool {
    let unseen = UNSEEN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let is_left = sweep_adopted() == Some(false);
    // A guard that still exists still tries.
    let is_there = |(pid, started): &(u32, u64)| {
        started_of(*pid) == *started && !crate::sweep::until_dead(*pid, std::time::Duration::ZERO)
    };
    is_left || unseen.iter().any(is_there)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn end_adopted(_guard: u32) -> bool {
    false
}

/// The start time of a process; 0 if unknown.
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
