//! The guard: a process between Provost and a child that sees to it that nothing of the child is left.
//!
//! ```text
//! Provost ──control──▶ guard (own session, adopts orphans) ──▶ child (own session) ──▶ …
//! ```
//!
//! The guard is a fork of Provost that never executes anything, so an embedder needs no helper program. It is made
//! between the fork of `spawn` and its exec: that fork becomes the guard and forks again, and the second one goes
//! on to exec the program. A failing exec reaches `spawn` as ever; the guard sees its child exit with nothing
//! left, and ends. Protocol on the control channel: the child's number and later its raw wait status (four bytes each)
//! come up; [`Order`]s (a byte each) and signals (a byte and the four of a group's number) go down; the end of the
//! channel going down means "kill all", coming up "all are gone".
//!
//! Everything here runs in a forked copy of a process with many threads: only async-signal-safe calls, no
//! allocation, no locks, no panics.

#![expect(unsafe_code, reason = "what happens between fork and exec has no safe interface")]

#[cfg(target_os = "linux")]
mod namespace;
mod sys;
mod watch;

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// What the guard can be told. Each is harder than the one before; there is no way back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Order {
    /// SIGTERM to all.
    Terminate,
    /// SIGHUP, SIGTERM and SIGCONT to all: what sits at a terminal may ignore SIGTERM, and what is stopped hears
    /// nothing.
    HangUp,
    /// SIGKILL to all, until nothing is left.
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

    /// The signals with which all are asked to end, one after the other.
    const fn asking(self) -> &'static [libc::c_int] {
        match self {
            Self::Terminate => &[libc::SIGTERM],
            Self::HangUp => &[libc::SIGHUP, libc::SIGTERM, libc::SIGCONT],
            Self::Kill => &[libc::SIGKILL],
        }
    }

    /// A byte that can't be read is taken for the harder order.
    const fn from_byte(byte: u8) -> Self {
        match byte {
            b'T' => Self::Terminate,
            b'H' => Self::HangUp,
            _ => Self::Kill,
        }
    }
}

/// The byte that stands for a signal on the control channel; the group's number follows.
const SIGNALS: [(u8, libc::c_int); 7] = [
    (b'i', libc::SIGINT),
    (b't', libc::SIGTERM),
    (b'h', libc::SIGHUP),
    (b'k', libc::SIGKILL),
    (b's', libc::SIGSTOP),
    (b'c', libc::SIGCONT),
    (b'w', libc::SIGWINCH),
];

/// What has the guard signal `group` once, while the child wasn't reaped; `None` for a signal it doesn't send.
pub(crate) fn signal_message(signal: libc::c_int, group: libc::pid_t) -> Option<[u8; 5]> {
    let (byte, _) = SIGNALS.iter().find(|(_, known)| *known == signal)?;
    let [a, b, c, d] = group.to_ne_bytes();
    Some([*byte, a, b, c, d])
}

/// Whether a signal that is sent to any group goes to the child's own too: it ends or continues.
const fn is_for_all(signal: libc::c_int) -> bool {
    matches!(signal, libc::SIGTERM | libc::SIGHUP | libc::SIGKILL | libc::SIGCONT)
}

fn signal_of(byte: u8) -> Option<libc::c_int> {
    SIGNALS.iter().find(|(known, _)| *known == byte).map(|(_, signal)| *signal)
}

/// What the child's standard input is to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StandardInput {
    /// A stream like any other.
    Stream,
    /// The terminal that is to control the child's session.
    Terminal,
}

/// Puts a guard, which holds `control`, between this process and the program `command` starts.
pub(crate) fn install(command: &mut Command, control: UnixStream, input: StandardInput) {
    let is_apart = namespaces_are_there();
    // SAFETY: `split` and all it calls use only async-signal-safe system calls and memory of their own stack.
    unsafe { command.pre_exec(move || split(&control, input, is_apart)) };
}

/// Has this process adopt orphans; whether the system can do that.
pub(crate) fn adopt_orphans() -> bool {
    sys::ADOPTS_ORPHANS && sys::adopt_orphans().is_ok()
}

/// Whether children get a process namespace of their own, in which they can't reach their guard: this process has the rights to
/// make one (on Linux those of root). Tried once, by making one.
pub fn namespaces_are_there() -> bool {
    static ARE_THERE: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *ARE_THERE.get_or_init(|| {
        let mut command = Command::new("/");
        let _starting = crate::registry::starting();
        // SAFETY: as in `install`. It never comes to executing anything.
        unsafe { command.pre_exec(|| Err(sys::try_process_namespace())) };
        command.spawn().is_err_and(|error| error.raw_os_error() == Some(sys::POSSIBLE))
    })
}

/// Forks; returns in the child only, which is then to exec. The guard never returns.
fn split(control: &UnixStream, input: StandardInput, is_apart: bool) -> io::Result<()> {
    // Blocked until the child is ready: a handler of Provost's must not run in a copy of it. Blocked for ever in
    // the guard: what ends the children by a signal must not end their guard before.
    sys::block_signals();
    sys::reset_handlers();
    sys::new_session()?;
    sys::adopt_orphans()?;
    // Nobody of the same user can trace it, or take its descriptors. A program that is executed is as any other.
    sys::be_untraceable();
    #[cfg(target_os = "linux")]
    if is_apart {
        return namespace::split(control, input);
    }
    let _ = is_apart;
    let guard = sys::own_pid();
    // What the child does to its guard it does to one that is set up, and has told the child's number.
    let (go, gate) = UnixStream::pair()?;
    // SAFETY: this is the only thread, see `install`.
    match unsafe { sys::fork() }? {
        None => {
            drop(go);
            (&gate).read_exact(&mut [0])?;
            become_child(guard, input)
        }
        Some(child) => watch::watch(control, &go, child),
    }
}

fn become_child(guard: libc::pid_t, input: StandardInput) -> io::Result<()> {
    sys::die_with_parent()?;
    // The guard may have died before it was asked for its death.
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
