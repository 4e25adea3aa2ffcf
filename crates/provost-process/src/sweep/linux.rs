//! The Linux implementation of [`sweep`](super).

use std::collections::HashSet;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, pidfd_open, waitid, waitpid,
};

use crate::leftover::{all, kill, process, signal};

/// How long killed processes may take to end: only those that the system doesn't release take that long.
const SWEEP_MAX: Duration = Duration::from_secs(5);
/// How long a guard that was continued, with no process left below it, may take to notice that and end.
const GUARD_ENDS_MAX: Duration = Duration::from_millis(500);
/// The interval of checks for killed processes.
const ROUND: Duration = Duration::from_millis(1);

/// Ends all processes below a guard that doesn't answer: kills them, continues the guard, and kills the guard if
/// it still doesn't answer. Doesn't report whether all have ended: the guard's status does, or
/// [`end_adopted`](crate::registry::end_adopted). Blocks for up to [`SWEEP_MAX`].
pub(crate) fn end_guard(pid: u32) {
    let Some(guard) = process(pid) else { return };
    let until = Instant::now() + SWEEP_MAX;
    let mut alone_since = None;
    while Instant::now() < until && !until_dead(pid, ROUND) {
        let is_any_alive = match kill_below(pid, |_| false, until) {
            Some(children) => children.into_iter().any(lives),
            None => look(pid, |_| false, until).is_none_or(|found| found.is_any_alive),
        };
        // A stopped guard continues, and notices that no process is left.
        signal(guard, Signal::CONT);
        if is_any_alive {
            alone_since = None;
            continue;
        }
        if alone_since.get_or_insert_with(Instant::now).elapsed() >= GUARD_ENDS_MAX {
            signal(guard, Signal::KILL);
        }
    }
}

/// Ends the children of this process that aren't its `own`, with all their descendants; returns whether none is
/// left. No other code may wait for these children meanwhile. Blocks for up to [`SWEEP_MAX`].
///
/// `true` is certain: if a process to end is alive, then its topmost ancestor below this process is a child of
/// this process, which adopts orphans, and stays one until this function waits for it. So none is left when the
/// system reports that this process has no child at all, or when a scan of all processes, which sees those that
/// exist from its beginning to its end, finds no such child, alive or ended.
pub(crate) fn sweep(is_own: impl Fn(u32) -> bool) -> bool {
    let top = std::process::id();
    let until = Instant::now() + SWEEP_MAX;
    loop {
        let mut children = kill_below(top, &is_own, until).unwrap_or_default();
        if children.is_empty() {
            if has_no_child() {
                return true;
            }
            match look(top, &is_own, until) {
                Some(found) if found.children.is_empty() => return true,
                Some(found) => children = found.children,
                None => {}
            }
        }
        let ended = children.iter().filter(|pid| is_reaped(**pid)).count();
        if Instant::now() >= until {
            return false;
        }
        if ended == 0 {
            thread::sleep(ROUND);
        }
    }
}

/// Waits until a child of this process has ended, reaped or not; returns whether it has. Blocks for up to
/// `patience`.
pub(crate) fn until_dead(pid: u32, patience: Duration) -> bool {
    let Some(pid) = pid_of(pid) else { return true };
    let Ok(descriptor) = pidfd_open(pid, PidfdFlags::empty()) else { return true };
    let mut fds = [PollFd::new(&descriptor, PollFlags::IN)];
    let until = Instant::now() + patience;
    loop {
        let rest = Timespec::try_from(until.saturating_duration_since(Instant::now())).ok();
        match poll(&mut fds, rest.as_ref()) {
            Ok(count) => return count > 0,
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Kills the children of `top` that aren't its `own`, each as soon as it is seen, and then their descendants;
/// returns these children, including zombies. `None` if the system doesn't list children. Processes forked during
/// the listing may be missed, as in every list of processes.
fn kill_below(top: u32, is_own: impl Fn(u32) -> bool, until: Instant) -> Option<Vec<u32>> {
    let mut children = children_of(top)?;
    children.retain(|pid| !is_own(*pid));
    // Only `top` waits for them: their ids aren't reused, unless it continues and waits.
    let is_this = top == std::process::id();
    for pid in &children {
        if is_this { kill_child(*pid) } else { kill_one(*pid, top) }
    }
    let mut below = children.clone();
    let mut seen = children.iter().copied().collect::<HashSet<_>>();
    while let Some(parent) = below.pop().filter(|_| Instant::now() < until) {
        for pid in children_of(parent).unwrap_or_default() {
            if seen.insert(pid) {
                kill_one(pid, parent);
                below.push(pid);
            }
        }
    }
    Some(children)
}

fn kill_child(pid: u32) {
    if let Some(pid) = pid_of(pid)
        && let Err(error) = kill_process(pid, Signal::KILL)
    {
        tracing::trace!(%error, "a process that was left could not be killed");
    }
}

/// Kills the process if its parent is still this one, or this program, which adopts it.
fn kill_one(pid: u32, parent: u32) {
    let found = crate::pty::kernel::stat(&format!("/proc/{pid}/stat"));
    if let Some(found) = found.filter(|found| [parent, std::process::id()].contains(&found.parent)) {
        kill(found.process);
    }
}

fn lives(pid: u32) -> bool {
    crate::pty::kernel::stat(&format!("/proc/{pid}/stat")).is_some_and(|stat| stat.lives())
}

/// The children of all threads of a process; `None` if the system doesn't list them.
fn children_of(pid: u32) -> Option<Vec<u32>> {
    let mut children = Vec::new();
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        match fs::read_to_string(task.path().join("children")) {
            Ok(list) => {
                children.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()))
            }
            // A thread that has ended has left its children to another thread.
            Err(_) if task.path().exists() => return None,
            Err(_) => {}
        }
    }
    Some(children)
}

/// The result of one scan.
struct Look {
    /// The children of the top process that are to be ended, including zombies.
    children: Vec<u32>,
    /// Whether one of them, or of their descendants, is alive.
    is_any_alive: bool,
}

/// Scans all processes once, and kills descendants of `top` as soon as they are seen; `None` if the time is over
/// before all were seen.
fn look(top: u32, is_own: impl Fn(u32) -> bool, until: Instant) -> Option<Look> {
    let mut found = Look { children: Vec::new(), is_any_alive: false };
    let mut pids = HashSet::new();
    for stat in all() {
        if Instant::now() >= until {
            return None;
        }
        let is_child = stat.parent == top;
        if is_child && is_own(stat.process.pid) || !is_child && !pids.contains(&stat.parent) {
            continue;
        }
        // Also a process that seems to have ended: perhaps only its first thread has.
        kill(stat.process);
        found.is_any_alive |= stat.lives();
        pids.insert(stat.process.pid);
        if is_child {
            found.children.push(stat.process.pid);
        }
    }
    Some(found)
}

/// Whether this process has no children, alive or ended.
fn has_no_child() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(waitid(WaitId::All, options), Err(Errno::CHILD))
}

/// Waits for a child that has ended; returns whether it had.
fn is_reaped(pid: u32) -> bool {
    pid_of(pid).is_some_and(|pid| !matches!(waitpid(Some(pid), WaitOptions::NOHANG), Ok(None)))
}

fn pid_of(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}
