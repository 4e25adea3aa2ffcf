//! What the kernel reports about the processes at a terminal, from `/proc`; empty on other systems.

use std::ffi::CString;
#[cfg(target_os = "linux")]
use std::path::Path;
use std::time::Duration;

#[cfg(target_os = "linux")]
use super::reader::is_shell;

/// Maximum processes and threads to check; beyond that, what isn't found is unknown.
#[cfg(target_os = "linux")]
const TASKS_MAX: usize = 2048;

/// Inspects the processes below a guard.
pub(super) struct Looker {
    guard: u32,
    terminal: Option<CString>,
}

/// The result of an inspection.
#[derive(Default)]
pub(super) struct Looked {
    pub(super) reads_terminal: Option<bool>,
    pub(super) polls: Option<bool>,
    pub(super) is_busy: Option<bool>,
    /// When the youngest running tool of the program was started, since the program's start.
    pub(super) tool_started: Option<Duration>,
    /// Processes that have left the program's session.
    pub(super) others: Vec<Process>,
    /// The program and its descendants.
    pub(super) processes: Vec<u32>,
}

/// A process, distinguished from others that reuse its id later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) session: u32,
    /// In ticks since the system's start.
    pub(crate) started: u64,
}

impl Looker {
    pub(super) fn new(guard: u32, terminal: Option<CString>) -> Self {
        Self { guard, terminal }
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "only Linux has something to look at")]
    pub(super) fn look(&mut self, _foreground: Option<u32>, _session: u32, _is_by_line: bool) -> Looked {
        let _ = (self.guard, &self.terminal);
        Looked::default()
    }

    /// Inspects every process below the guard; those of the group `foreground`, and those that have left the
    /// session `session`, may read the terminal.
    #[cfg(target_os = "linux")]
    pub(super) fn look(&mut self, foreground: Option<u32>, session: u32, is_by_line: bool) -> Looked {
        let mut looked = Looked { is_busy: Some(false), ..Looked::default() };
        let mut is_unsure = false;
        let mut tasks_seen = 0;
        let mut family = Family::of(session, self.terminal.as_ref().and_then(|path| path.to_str().ok()));
        let mut waiting = children_of(self.guard, self.guard);
        if waiting.is_none() {
            looked.is_busy = None;
        }
        while let Some(pid) = waiting.as_mut().and_then(Vec::pop) {
            let Some(stat) = stat(&format!("/proc/{pid}/stat")) else { continue };
            family.add(pid, &stat);
            if stat.process.session != session && stat.process.session != self.guard {
                looked.others.push(Process { pid, ..stat.process });
            }
            for task in tasks(pid) {
                tasks_seen += 1;
                if let (Some(waiting), Some(children)) = (waiting.as_mut(), children_of(pid, task)) {
                    waiting.extend(children);
                }
                let is_foreground = Some(stat.group) == foreground;
                // A program that has left the session (as su does) may read the terminal from the background.
                if !is_foreground && stat.process.session == session {
                    continue;
                }
                match self.sleep_of(pid, task) {
                    Some(Sleep::ReadsTerminal { by_its_name: false }) if !is_foreground => {}
                    Some(Sleep::ReadsTerminal { .. }) => looked.reads_terminal = Some(true),
                    _ if !is_foreground => {}
                    // Of the first thread only: in any program with more threads, these wait for one another.
                    Some(Sleep::Polls) if pid == task && stat.state == b'S' => {
                        looked.polls = Some(true);
                        // In line mode a shell polls only to read with a time limit.
                        if is_by_line && is_shell(&stat.name) {
                            looked.reads_terminal = Some(true);
                        }
                    }
                    Some(Sleep::Polls | Sleep::Elsewhere) => {}
                    None => is_unsure = true,
                }
            }
            if matches!(stat.state, b'R' | b'D') {
                looked.is_busy = Some(true);
            }
            if tasks_seen > TASKS_MAX {
                is_unsure = true;
                looked.is_busy = looked.is_busy.filter(|is_busy| *is_busy);
                break;
            }
        }
        looked.tool_started = family.tool_started();
        looked.processes = family.members;
        if waiting.is_some() && !is_unsure {
            looked.reads_terminal = looked.reads_terminal.or(Some(false));
            looked.polls = looked.polls.or(Some(false));
        }
        looked
    }

    /// The call that this thread sleeps in; `None` if the system doesn't show it.
    #[cfg(target_os = "linux")]
    fn sleep_of(&self, pid: u32, task: u32) -> Option<Sleep> {
        let Ok(call) = std::fs::read_to_string(format!("/proc/{pid}/task/{task}/syscall")) else {
            return sleep_by_place(&std::fs::read_to_string(format!("/proc/{pid}/task/{task}/wchan")).ok()?);
        };
        let mut words = call.split_ascii_whitespace();
        // A word instead of a number means that the thread runs.
        let number = words.next().and_then(|word| word.parse::<libc::c_long>().ok());
        match number {
            Some(libc::SYS_read | libc::SYS_readv) => {}
            Some(number) if POLLS.contains(&number) => return Some(Sleep::Polls),
            _ => return Some(Sleep::Elsewhere),
        }
        let descriptor =
            words.next().and_then(|word| u32::from_str_radix(word.strip_prefix("0x")?, 16).ok())?;
        let file = std::fs::read_link(format!("/proc/{pid}/fd/{descriptor}")).ok()?;
        let own = self.terminal.as_ref().and_then(|path| path.to_str().ok());
        let by_its_name = own.is_some_and(|own| file == Path::new(own));
        let is_own = by_its_name || file == Path::new("/dev/tty");
        Some(if is_own { Sleep::ReadsTerminal { by_its_name } } else { Sleep::Elsewhere })
    }
}

#[cfg(target_os = "linux")]
enum Sleep {
    /// By this terminal's own path, or by the alias that every session has for its own.
    ReadsTerminal {
        by_its_name: bool,
    },
    Polls,
    Elsewhere,
}

/// The calls that wait for several descriptors, perhaps including the terminal.
#[cfg(target_os = "linux")]
const POLLS: &[libc::c_long] = &[
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_futex,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_select,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
];

/// Ticks a second in `/proc`, on every architecture of Linux.
#[cfg(target_os = "linux")]
const TICK_MS: u64 = 10;

/// The program and its descendants, met from the program down. What has lost its parent (a background job whose
/// shell has ended) is no longer one of them.
#[cfg(target_os = "linux")]
struct Family<'a> {
    program: u32,
    terminal: Option<&'a str>,
    started: u64,
    members: Vec<u32>,
    /// Servers that the program talks to through their standard input, and what they have started.
    helpers: Vec<u32>,
    youngest_tool: Option<u64>,
}

#[cfg(target_os = "linux")]
impl<'a> Family<'a> {
    fn of(program: u32, terminal: Option<&'a str>) -> Self {
        Self { program, terminal, started: 0, members: Vec::new(), helpers: Vec::new(), youngest_tool: None }
    }

    fn add(&mut self, pid: u32, stat: &Stat) {
        if pid == self.program {
            self.started = stat.process.started;
            return self.members.push(pid);
        }
        if !self.members.contains(&stat.parent) {
            return;
        }
        self.members.push(pid);
        if self.helpers.contains(&stat.parent) || self.is_helper(pid, stat) {
            self.helpers.push(pid);
        } else if stat.lives() && !self.is_kept_shell(pid, stat) {
            self.youngest_tool = self.youngest_tool.max(Some(stat.process.started));
        }
    }

    /// Whether a process is a server of the program (of a language, of tools) or a daemon rather than a tool that
    /// it runs: its standard input is a pipe or a socket, or the program's terminal though it has left that. A
    /// command gets nothing to read, or a terminal of its own.
    fn is_helper(&self, pid: u32, stat: &Stat) -> bool {
        let input = std::fs::read_link(format!("/proc/{pid}/fd/0")).ok();
        let input = input.as_ref().and_then(|path| path.to_str()).unwrap_or_default();
        let has_left = stat.process.session != self.program && Some(input) == self.terminal;
        input.starts_with("pipe:") || input.starts_with("socket:") || has_left
    }

    /// Whether a process is a shell that the program keeps for its commands, between two of them: it leads a session at
    /// a terminal of its own, and waits for what is typed there.
    fn is_kept_shell(&self, pid: u32, stat: &Stat) -> bool {
        let leads = stat.process.session == pid && stat.state == b'S' && is_shell(&stat.name);
        let input = std::fs::read_link(format!("/proc/{pid}/fd/0")).ok();
        let input = input.as_ref().and_then(|path| path.to_str()).unwrap_or_default();
        leads && input.starts_with("/dev/pts/") && Some(input) != self.terminal && waits_for_keys(pid)
    }

    fn tool_started(&self) -> Option<Duration> {
        let ticks = self.youngest_tool?.saturating_sub(self.started);
        Some(Duration::from_millis(ticks.saturating_mul(TICK_MS)))
    }
}

/// Whether a process sleeps in a read of its standard input, or in a wait for descriptors.
#[cfg(target_os = "linux")]
fn waits_for_keys(pid: u32) -> bool {
    let Ok(call) = std::fs::read_to_string(format!("/proc/{pid}/syscall")) else {
        let place = std::fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
        return matches!(sleep_by_place(&place), Some(Sleep::ReadsTerminal { .. } | Sleep::Polls));
    };
    let mut words = call.split_ascii_whitespace();
    match words.next().and_then(|word| word.parse::<libc::c_long>().ok()) {
        Some(libc::SYS_read) => words.next() == Some("0x0"),
        Some(number) => POLLS.contains(&number),
        // A word instead of a number means that it runs.
        None => false,
    }
}

/// From the kernel function, which is visible for more processes than the call.
#[cfg(target_os = "linux")]
fn sleep_by_place(place: &str) -> Option<Sleep> {
    match place {
        // Not visible either.
        "0" | "" => None,
        "n_tty_read" | "wait_woken" => Some(Sleep::ReadsTerminal { by_its_name: false }),
        place if ["poll", "select", "futex"].iter().any(|part| place.contains(part)) => Some(Sleep::Polls),
        _ => Some(Sleep::Elsewhere),
    }
}

#[cfg(target_os = "linux")]
pub(crate) struct Stat {
    pub(crate) process: Process,
    pub(crate) parent: u32,
    name: String,
    group: u32,
    state: u8,
    threads: u32,
}

#[cfg(target_os = "linux")]
impl Stat {
    /// Whether the process hasn't ended. A zombie has, unless only its first thread is one: the others go on, and keep
    /// its files and ports.
    pub(crate) fn lives(&self) -> bool {
        !self.has_no_first_thread() || self.threads > 1
    }

    pub(crate) fn has_no_first_thread(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }
}

/// The fields of a `stat` file; the program's name in parentheses may hold anything, parentheses too.
#[cfg(target_os = "linux")]
pub(crate) fn stat(path: &str) -> Option<Stat> {
    let text = std::fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&text);
    let (before, after) = text.rsplit_once(')')?;
    let (pid, name) = before.split_once('(')?;
    let (pid, name) = (pid.trim().parse().ok()?, name.to_owned());
    let mut fields = after.split_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let session = fields.next()?.parse().ok()?;
    // The session is the 6th field, the number of threads the 20th, the start time the 22nd.
    let threads = fields.nth(13)?.parse().ok()?;
    let started = fields.nth(1)?.parse().ok()?;
    Some(Stat { process: Process { pid, session, started }, parent, name, group, state, threads })
}

#[cfg(target_os = "linux")]
pub(crate) fn tasks(pid: u32) -> Vec<u32> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    tasks.flatten().filter_map(|task| task.file_name().to_str()?.parse().ok()).collect()
}

/// `None` if the system doesn't list them.
#[cfg(target_os = "linux")]
fn children_of(pid: u32, task: u32) -> Option<Vec<u32>> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{task}/children")).ok()?;
    Some(list.split_ascii_whitespace().filter_map(|number| number.parse().ok()).collect())
}
