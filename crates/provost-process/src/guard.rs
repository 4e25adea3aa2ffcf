//! The guard: a process between Provost and a child that ends all the child's descendants.
//!
//! ```text
//! Provost ──control──▶ guard (own session, adopts orphans) ──▶ child (own session) ──▶ …
//! ```
//!
//! The guard is a fork of Provost that never executes a program, so an embedder needs no helper program. Before the
//! child's program is executed, it unmaps Provost's memory ([`memory`]). It is
//! made between the fork of `spawn` and its exec: that fork becomes the guard and forks again, and the second fork
//! execs the program. A failing exec reaches `spawn` as usual; the guard sees its child exit with no process left,
//! and ends. Protocol on the control channel: the guard sends the child's process id and later its raw wait status
//! (four bytes each). Provost sends [`Order`]s (a byte each) and signals (a byte and the four of a group's id).
//! When Provost's end closes, that means "kill all"; when the guard's end closes, "all are gone".
//!
//! Everything here runs in a forked copy of a process with many threads: only async-signal-safe calls, no
//! allocation, no locks, no panics.

#![expect(unsafe_code, reason = "what happens between fork and exec has no safe interface")]

#[cfg_attr(
    not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))),
    path = "guard/memory_kept.rs"
)]
mod memory;
#[cfg(target_os = "linux")]
mod namespace;
mod sys;
mod watch;

use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

use memory::Needed;

/// An order to the guard. Each is harder than the one before; there is no way back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Order {
    /// SIGTERM to all.
    Terminate,
    /// SIGHUP, SIGTERM and SIGCONT to all: a program at a terminal may ignore SIGTERM, and a stopped one doesn't
    /// handle it.
    HangUp,
    /// SIGKILL to all, until no process is left.
    Kill,
}

impl Order {
    pub(crate) const fn byte(self) -> u8 {
        match self {
            Self::Terminate => b'T',
            Self::HangUp => b'H',
            Self::Kill => b'K',
        }
    }

    /// The signals that request the end, in order.
    const fn asking(self) -> &'static [libc::c_int] {
        match self {
            Self::Terminate => &[libc::SIGTERM],
            Self::HangUp => &[libc::SIGHUP, libc::SIGTERM, libc::SIGCONT],
            Self::Kill => &[libc::SIGKILL],
        }
    }

    /// An invalid byte counts as the hardest order.
    const fn from_byte(byte: u8) -> Self {
        match byte {
            b'T' => Self::Terminate,
            b'H' => Self::HangUp,
            _ => Self::Kill,
        }
    }
}

/// The byte that stands for a signal on the control channel; the group's id follows.
const SIGNALS: [(u8, libc::c_int); 10] = [
    (b'i', libc::SIGINT),
    (b't', libc::SIGTERM),
    (b'h', libc::SIGHUP),
    (b'k', libc::SIGKILL),
    (b's', libc::SIGSTOP),
    (b'c', libc::SIGCONT),
    (b'w', libc::SIGWINCH),
    (b'q', libc::SIGQUIT),
    (b'1', libc::SIGUSR1),
    (b'2', libc::SIGUSR2),
];

/// The message that signals `group` once, as long as the child isn't reaped; `None` for a signal the guard doesn't
/// send.
pub(crate) fn signal_message(signal: libc::c_int, group: libc::pid_t) -> Option<[u8; 5]> {
    let (byte, _) = SIGNALS.iter().find(|(_, known)| *known == signal)?;
    let [a, b, c, d] = group.to_ne_bytes();
    Some([*byte, a, b, c, d])
}

/// Whether a signal to any group goes to the child's own group too: signals that end or continue it.
const fn is_for_all(signal: libc::c_int) -> bool {
    matches!(signal, libc::SIGTERM | libc::SIGHUP | libc::SIGKILL | libc::SIGCONT)
}

fn signal_of(byte: u8) -> Option<libc::c_int> {
    SIGNALS.iter().find(|(known, _)| *known == byte).map(|(_, signal)| *signal)
}

/// The kind of the child's standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StandardInput {
    /// A pipe, file or device.
    Stream,
    /// The controlling terminal of the child's session.
    Terminal,
}

/// Where the guard and the program are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    /// In the process namespace of this process.
    Shared,
    /// In one of their own. Needs the rights to make it: [`namespaces_are_there`].
    OwnNamespace,
}

/// Puts a guard, which holds `control`, between this process and the program of `command`.
pub(crate) fn install(
    command: &mut Command,
    control: UnixStream,
    input: StandardInput,
    placement: Placement,
) {
    let needed = Needed::by_this_thread();
    // SAFETY: `split` and all it calls use only async-signal-safe system calls and memory of their own stack.
    unsafe { command.pre_exec(move || split(&control, input, placement, &needed)) };
}

/// Puts the program of `command` in a session of its own, without a guard.
pub(crate) fn detach(command: &mut Command) {
    let apart = || {
        sys::block_signals();
        sys::reset_handlers();
        sys::new_session()?;
        sys::close_on_exec();
        sys::unblock_signals();
        Ok(())
    };
    // SAFETY: these use only async-signal-safe system calls and memory of their own stack.
    unsafe { command.pre_exec(apart) };
}

/// Has the program of `command`, which a guard was [installed](install) for, inherit these descriptors. They must stay
/// open until it executes.
pub(crate) fn hand_down(command: &mut Command, descriptors: &[OwnedFd]) {
    let numbers = descriptors.iter().map(AsRawFd::as_raw_fd).collect::<Vec<_>>();
    if numbers.is_empty() {
        return;
    }
    // SAFETY: it only marks descriptors, in memory that was allocated before the fork.
    unsafe {
        command.pre_exec(move || {
            numbers.iter().for_each(|number| sys::keep_on_exec(*number));
            Ok(())
        });
    }
}

/// Makes this process adopt orphans; returns whether the system can do that.
pub(crate) fn adopt_orphans() -> bool {
    sys::ADOPTS_ORPHANS && sys::adopt_orphans().is_ok()
}

/// Whether children get a process namespace of their own, in which they can't reach their guard: this process has
/// the rights to make one (on Linux those of root). Tried once, by making one.
pub fn namespaces_are_there() -> bool {
    static ARE_THERE: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *ARE_THERE.get_or_init(|| {
        let mut command = Command::new("/");
        let _starting = crate::registry::starting();
        // SAFETY: as in `install`. It never execs.
        unsafe { command.pre_exec(|| Err(sys::try_process_namespace())) };
        command.spawn().is_err_and(|error| error.raw_os_error() == Some(sys::POSSIBLE))
    })
}

/// Forks; returns in the child only, which then execs. The guard never returns.
fn split(
    control: &UnixStream,
    input: StandardInput,
    placement: Placement,
    needed: &Needed,
) -> io::Result<()> {
    // Blocked until the child is ready: a handler of Provost's must not run in a copy of it. Blocked for good in
    // the guard: a signal that ends the children must not end their guard first.
    sys::block_signals();
    sys::reset_handlers();
    sys::new_session()?;
    sys::adopt_orphans()?;
    // No process of the same user can trace it, or take its descriptors. An exec resets that for the program.
    crate::be_untraceable();
    #[cfg(target_os = "linux")]
    if placement == Placement::OwnNamespace {
        return namespace::split(control, input, needed);
    }
    let _ = placement;
    let guard = sys::own_pid();
    // The child execs only after the guard is set up and has sent the child's process id.
    let (go, gate) = UnixStream::pair()?;
    // SAFETY: this is the only thread, see `install`.
    match unsafe { sys::fork() }? {
        None => {
            drop(go);
            (&gate).read_exact(&mut [0])?;
            become_child(guard, input)
        }
        Some(child) => watch::watch(control, &go, child, needed),
    }
}

fn become_child(guard: libc::pid_t, input: StandardInput) -> io::Result<()> {
    sys::die_with_parent()?;
    // The guard may have died before the parent-death signal was set.
    if sys::parent_pid() != guard {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    sys::new_session()?;
    if input == StandardInput::Terminal {
        sys::take_terminal()?;
    }
    sys::close_on_exec();
    sys::unblock_signals();
    Ok(())
}
