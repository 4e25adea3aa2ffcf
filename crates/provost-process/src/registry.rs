//! The guards of this process, and what of their children this process has adopted because its guard was killed.
//!
//! A process that [adopts orphans](adopt_orphans) becomes the parent of what a killed guard leaves. Whatever is its child and is
//! no guard of its own, nor was there before, was left by one.

use std::collections::HashSet;
use std::io;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError, RwLock};

use crate::guard;
use crate::leftover::Ledger;

static ADOPTS: AtomicBool = AtomicBool::new(false);
/// Children that this process had before it adopted any.
static BEFORE: OnceLock<HashSet<u32>> = OnceLock::new();
static GUARDS: Mutex<Option<HashSet<u32>>> = Mutex::new(None);
/// Held for reading while a guard is started, until its number is known.
static STARTING: RwLock<()> = RwLock::new(());
static LEDGER: OnceLock<PathBuf> = OnceLock::new();

/// How long a guard that was killed may take to be gone.
#[cfg(target_os = "linux")]
const DYING_ROUNDS_MAX: u32 = 1_000;
#[cfg(target_os = "linux")]
const DYING_ROUND: std::time::Duration = std::time::Duration::from_millis(1);

/// Has this process adopt what descends from it and has lost its parent (Linux), so that what a killed guard leaves is found and
/// ended too. It changes what becomes of every descendant of this process, so it is for programs that start processes by this
/// crate only; to be called first thing in `main`. Returns whether that is so now.
pub fn adopt_orphans() -> bool {
    let _ = BEFORE.set(children());
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

    /// What it guards wasn't seen to end: it stays written down.
    pub(crate) fn keep_entry(&mut self) {
        self.entry = None;
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
        if let Some(entry) = self.entry.take() {
            entry.close();
        }
    }
}

/// Starts a guard.
pub(crate) fn spawn<C>(
    spawn: impl FnOnce() -> io::Result<C>,
    pid: impl Fn(&C) -> u32,
) -> io::Result<Registered<C>> {
    let starting = STARTING.read().unwrap_or_else(PoisonError::into_inner);
    let child = spawn()?;
    let pid = pid(&child);
    GUARDS.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().insert(pid);
    drop(starting);
    let folder = LEDGER.get().filter(|_| !guard::namespaces_are_there());
    let entry = folder.and_then(|folder| Ledger::begin(folder, pid));
    Ok(Registered { child, pid, entry })
}

/// Ends what this process has adopted from `guard`, which was killed, and from any other; whether nothing was seen to be left.
/// `false` where it adopts nothing. Blocks for some seconds at most.
#[cfg(target_os = "linux")]
pub(crate) fn end_adopted(guard: u32) -> bool {
    use rustix::process::{Pid, WaitOptions, waitpid};

    use crate::leftover::{end_trees, trees_of};
    use crate::pty::kernel::stat;

    if !ADOPTS.load(Ordering::Acquire) {
        return false;
    }
    // Its channel is closed before its children have another parent; once it is nothing but its status they have.
    let is_dying = || stat(&format!("/proc/{guard}/stat")).is_some_and(|stat| stat.lives());
    for _ in 0..DYING_ROUNDS_MAX {
        if !is_dying() {
            break;
        }
        std::thread::sleep(DYING_ROUND);
    }
    let mut seen = HashSet::new();
    let is_all_gone = {
        // Whoever is being started has no number yet.
        let _nobody_starts = STARTING.write().unwrap_or_else(PoisonError::into_inner);
        let roots = adopted();
        seen.extend(roots.iter().copied());
        end_trees(|| trees_of(&adopted()))
    };
    seen.extend(adopted());
    for pid in seen {
        if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
            // Nobody else waits for it.
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
    is_all_gone
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn end_adopted(_guard: u32) -> bool {
    false
}

#[cfg(target_os = "linux")]
fn adopted() -> Vec<u32> {
    let guards = GUARDS.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default();
    let before = BEFORE.get();
    let is_own = |pid: &u32| guards.contains(pid) || before.is_some_and(|before| before.contains(pid));
    children().into_iter().filter(|pid| !is_own(pid)).collect()
}

/// The children of all threads of this process.
fn children() -> HashSet<u32> {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return HashSet::new() };
    let lists = tasks.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}
