//! Files that list the processes below a guard, for the case that the guard is stopped or killed, and Provost is
//! killed.
//!
//! One file per terminal or guard, named after its first process, and locked for as long as Provost supervises it.
//! Its first line is the boot id; each further line is a process: its process id and start time (together unique
//! per boot), and its session. The first is the program, the others have left its session.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::pty::kernel::Process;

const SUFFIX: &str = "terminal";

/// Maximum processes listed for one terminal.
const NOTED_MAX: usize = 4096;

/// An open entry.
pub(crate) struct Ledger {
    file: File,
    path: PathBuf,
    noted: HashSet<(u32, u64)>,
}

impl Ledger {
    /// `None`, with a warning, if the file can't be written; also where processes have no start times.
    pub(crate) fn begin(folder: &Path, pid: u32) -> Option<Self> {
        let program = process(pid)?;
        match Self::write_first(folder, program) {
            Ok(ledger) => Some(ledger),
            Err(error) => {
                tracing::warn!(%error, ?folder, "what runs at a terminal could not be written down");
                None
            }
        }
    }

    fn write_first(folder: &Path, program: Process) -> io::Result<Self> {
        let mut folders = fs::DirBuilder::new();
        folders.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut folders, 0o700);
        folders.create(folder)?;
        let name = format!("{}-{}", program.pid, program.started);
        let new = folder.join(format!("{name}.new"));
        let path = folder.join(format!("{name}.{SUFFIX}"));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&new)?;
        // Locked before it gets its name: an unlocked file counts as a leftover.
        file.lock()?;
        file.write_all(format!("{}\n{}", boot()?, line(program)).as_bytes())?;
        fs::rename(&new, &path)?;
        Ok(Self { file, path, noted: HashSet::new() })
    }

    /// Adds processes outside of the program's session.
    pub(crate) fn note(&mut self, others: &[Process]) {
        for other in others {
            if self.noted.len() < NOTED_MAX
                && self.noted.insert((other.pid, other.started))
                && let Err(error) = self.file.write_all(line(*other).as_bytes())
            {
                tracing::warn!(%error, "a process at a terminal could not be written down");
            }
        }
    }

    /// Removes the file: no process is left.
    pub(crate) fn close(self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::debug!(%error, "a terminal's entry could not be removed");
        }
    }
}

fn line(process: Process) -> String {
    format!("{} {} {}\n", process.pid, process.started, process.session)
}

/// Ends the processes that a killed Provost has listed in `folder`
/// ([`PtyOptions::ledger`](crate::PtyOptions::ledger)), and removes its files; returns the number of killed
/// processes. Processes of a living Provost aren't touched, nor a process that has reused a listed process id, nor
/// any after a reboot. Without the folder, and off Linux, it does nothing.
///
/// Blocks for up to two seconds per file: not to be called on an async worker.
///
/// # Errors
/// When the folder can't be read.
pub fn end_leftovers(folder: &Path) -> io::Result<usize> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let paths = entries.flatten().map(|entry| entry.path());
    Ok(paths
        .filter(|path| path.extension().is_some_and(|suffix| suffix == SUFFIX))
        .map(|path| end_one(&path))
        .sum())
}

fn end_one(path: &Path) -> usize {
    let Ok(file) = File::open(path) else { return 0 };
    if file.try_lock().is_err() {
        return 0;
    }
    let text = io::read_to_string(&file).unwrap_or_default();
    let Some((boot_then, lines)) = text.split_once('\n') else { return 0 };
    let mut killed = 0;
    if boot().is_ok_and(|boot_now| boot_now == boot_then) {
        let noted: Vec<Process> = lines.lines().filter_map(parsed).collect();
        killed = end_processes(&noted);
    }
    if let Err(error) = fs::remove_file(path) {
        tracing::warn!(%error, ?path, "a terminal's entry could not be removed");
    }
    killed
}

fn parsed(line: &str) -> Option<Process> {
    let mut words = line.split(' ');
    let (pid, started, session) = (words.next()?, words.next()?, words.next()?);
    Some(Process { pid: pid.parse().ok()?, started: started.parse().ok()?, session: session.parse().ok()? })
}

/// The id of this boot of the machine: process ids and start times are unique only within it. `None` off Linux.
#[must_use]
pub fn boot_id() -> Option<String> {
    boot().ok()
}

fn boot() -> io::Result<String> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|boot| boot.trim().to_owned())
}

#[cfg(not(target_os = "linux"))]
fn process(_pid: u32) -> Option<Process> {
    None
}

#[cfg(not(target_os = "linux"))]
fn end_processes(_noted: &[Process]) -> usize {
    0
}

#[cfg(target_os = "linux")]
use linux::end_processes;
#[cfg(target_os = "linux")]
pub(crate) use linux::{
    all, end_tree, kill, living_process as living, process, signal, started_of, with_argument,
};

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashSet;
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;
    use std::thread;
    use std::time::Duration;

    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    use crate::ProcessIdentity;
    use crate::pty::kernel::{Process, Stat, stat, tasks};

    /// Rounds until no process is left: a process forked meanwhile is found in the next round.
    const ROUNDS_MAX: usize = 200;
    const ROUND: Duration = Duration::from_millis(10);

    pub(crate) fn process(pid: u32) -> Option<Process> {
        stat(&format!("/proc/{pid}/stat")).map(|stat| stat.process)
    }

    /// The same, unless it has ended and was not waited for.
    pub(crate) fn living_process(pid: u32) -> Option<Process> {
        stat(&format!("/proc/{pid}/stat")).filter(Stat::lives).map(|stat| stat.process)
    }

    pub(crate) fn started_of(pid: u32) -> Option<u64> {
        process(pid).map(|process| process.started)
    }

    /// Ends these processes and those that belong to them. The first is ended last: it may be a guard, which
    /// adopts orphans.
    pub(super) fn end_processes(noted: &[Process]) -> usize {
        let (mut noted, first) = (noted.to_vec(), noted.first().copied());
        let mut killed = HashSet::new();
        for round in 0..ROUNDS_MAX {
            let mut left = left_of(&noted);
            if left.is_empty() {
                break;
            }
            if left.len() > 1 && round < ROUNDS_MAX / 2 {
                left.retain(|process| Some(*process) != first);
            }
            for process in left {
                if kill(process) {
                    killed.insert((process.pid, process.started));
                }
                // A process started at this moment is known by its session.
                if !noted.contains(&process) {
                    noted.push(process);
                }
            }
            thread::sleep(ROUND);
        }
        killed.len()
    }

    /// Ends a process that may be stopped, with all its descendants; it is ended last, so that orphans that it adopts
    /// are found below it. Returns whether none is left.
    pub(crate) fn end_tree(top: Process) -> bool {
        signal(top, Signal::STOP);
        for _ in 0..ROUNDS_MAX {
            let living = living();
            let below = below(top.pid, &living);
            if below.is_empty() {
                kill(top);
                return (0..ROUNDS_MAX).any(|_| {
                    thread::sleep(ROUND / 10);
                    !self::living().iter().any(|other| other.process == top)
                });
            }
            for process in below {
                kill(process);
            }
            thread::sleep(ROUND);
        }
        false
    }

    /// The descendants of a process.
    fn below(top: u32, living: &[Stat]) -> Vec<Process> {
        let mut pids = HashSet::from([top]);
        let mut found = Vec::new();
        loop {
            let before = found.len();
            for other in living {
                if pids.contains(&other.parent) && pids.insert(other.process.pid) {
                    found.push(other.process);
                }
            }
            if found.len() == before {
                return found;
            }
        }
    }

    /// The listed processes, those of their sessions, and all their descendants.
    fn left_of(noted: &[Process]) -> Vec<Process> {
        let living = living();
        let is_noted = |process: &Process| {
            noted.iter().any(|noted| (noted.pid, noted.started) == (process.pid, process.started))
        };
        // A session is named after its first process; if that process id now has another start time, it was
        // reused.
        let is_in_session = |process: &Process| {
            noted.iter().any(|noted| {
                let leader = living.iter().find(|other| other.process.pid == noted.session);
                process.session == noted.session
                    && process.started >= noted.started
                    && leader.is_none_or(|leader| is_noted(&leader.process))
            })
        };
        let mut found: Vec<Process> = Vec::new();
        let mut pids = HashSet::new();
        loop {
            let before = found.len();
            for other in &living {
                let process = other.process;
                let is_left = is_noted(&process) || is_in_session(&process) || pids.contains(&other.parent);
                if is_left && process.pid != std::process::id() && pids.insert(process.pid) {
                    found.push(process);
                }
            }
            if found.len() == before {
                return found;
            }
        }
    }

    fn living() -> Vec<Stat> {
        all().filter(Stat::lives).collect()
    }

    /// All processes, read one by one, in the order of their ids.
    pub(crate) fn all() -> impl Iterator<Item = Stat> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        numbers.filter_map(|pid| stat(&format!("/proc/{pid}/stat")))
    }

    /// The living processes that were started with `argument`.
    pub(crate) fn with_argument(argument: &OsStr) -> impl Iterator<Item = ProcessIdentity> {
        let living = all().filter(Stat::lives);
        let with_it = living.filter(move |stat| {
            command_line(stat).split(|byte| *byte == 0).skip(1).any(|word| word == argument.as_bytes())
        });
        with_it.map(|stat| ProcessIdentity { pid: stat.process.pid, started: stat.process.started })
    }

    /// The program and its arguments, each with a zero byte; empty if they can't be read.
    fn command_line(stat: &Stat) -> Vec<u8> {
        let pid = stat.process.pid;
        if !stat.has_no_first_thread() {
            return fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        }
        // A thread that has ended shows none.
        let lines = tasks(pid)
            .into_iter()
            .filter_map(|task| fs::read(format!("/proc/{pid}/task/{task}/cmdline")).ok());
        lines.into_iter().find(|line| !line.is_empty()).unwrap_or_default()
    }

    pub(crate) fn kill(process: Process) -> bool {
        signal(process, Signal::KILL)
    }

    /// Signals by a descriptor, which keeps denoting this process even if its id is reused.
    pub(crate) fn signal(process: Process, signal: Signal) -> bool {
        let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw);
        let Some(descriptor) = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else {
            return false;
        };
        self::process(process.pid).is_some_and(|now| now.started == process.started)
            && pidfd_send_signal(&descriptor, signal).is_ok()
    }
}
