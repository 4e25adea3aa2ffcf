//! A guard out of reach of its child: child and descendants are in a process namespace of their own, in which the
//! guard has no process id. No process in it can stop, kill or trace the guard.
//!
//! ```text
//! Provost ──control──▶ guard ──line──▶ first process (1 in there: adopts orphans) ──▶ child ──▶ …
//! ```
//!
//! The first process is killed with the guard, and the kernel kills all others with the first: so no process is
//! left of a guard that is killed, nor of a first process that was stopped, traced or overwritten. On the line the
//! first process sends a byte when the child exists, and later the child's raw wait status; the guard sends a byte
//! that lets the child start and the first process reap, and orders. The first process ends when no other is left.
//!
//! The namespace has a `/proc` of its own mounted over that of the system. Where that isn't possible (no rights,
//! no namespaces), the attempt fails before the program is started, and the caller continues without a namespace.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;

use libc::{c_int, pid_t};

use super::memory::{Needed, forget_all};
use super::watch::{ControlMessage, heard};
use super::{Order, StandardInput, become_child, sys};

/// The first process has set up its namespace, and the child exists.
const READY: u8 = b'r';
/// The child's process id was read, and the guard has forgotten its caller's memory: the child may start, and be
/// reaped.
const GO: u8 = b'g';

/// Wait status of a process that was killed.
const KILLED: [u8; 4] = 9_i32.to_ne_bytes();

/// Forks twice; returns in the child only, which then execs, or with the reason why there is no namespace.
pub(super) fn split(control: &UnixStream, input: StandardInput, needed: &Needed) -> io::Result<()> {
    let (line, theirs) = UnixStream::pair()?;
    sys::enter_process_namespace()?;
    // SAFETY: this is the only thread, see `install`.
    let first = match unsafe { sys::fork() }? {
        None => {
            drop(line);
            return begin(theirs, input, needed);
        }
        Some(first) => first,
    };
    drop(theirs);
    let mut ready = [0];
    if (&line).read_exact(&mut ready).is_err() {
        sys::kill_one(first, libc::SIGKILL);
        sys::wait_for(first);
        return Err(io::Error::from_raw_os_error(libc::EPERM));
    }
    sys::close_all_but([control.as_raw_fd(), line.as_raw_fd()]);
    sys::take_own_name();
    sys::leave_folder();
    let guarded = Guarded { control: control.as_raw_fd(), line: line.as_raw_fd(), first };
    // SAFETY: this is the only thread, see `install`.
    unsafe { forget_all(needed, guarded, watch) }
}

/// The first process; returns in the child only.
fn begin(line: UnixStream, input: StandardInput, needed: &Needed) -> io::Result<()> {
    // The guard may die before the parent-death signal is set: then the line is closed, which ends this process
    // too.
    if sys::die_with_parent().is_err() || sys::mount_own_proc().is_err() {
        sys::exit();
    }
    let Ok((go, gate)) = UnixStream::pair() else { sys::exit() };
    // SAFETY: this is the only thread, see `install`.
    let child = match unsafe { sys::fork() } {
        Ok(None) => {
            drop((line, go));
            become_child(sys::FIRST_PROCESS, input)?;
            return (&gate).read_exact(&mut [0]);
        }
        Ok(Some(child)) => child,
        Err(_) => sys::exit(),
    };
    sys::close_all_but([line.as_raw_fd(), go.as_raw_fd()]);
    sys::take_own_name();
    sys::leave_folder();
    // Guard and first process forget at the same time.
    let _ = (&line).write_all(&[READY]);
    let tended = Tended { line: line.as_raw_fd(), go: go.as_raw_fd(), child };
    // SAFETY: this is the only thread, see `install`.
    unsafe { forget_all(needed, tended, tend) }
}

/// All that the first process keeps.
#[derive(Clone, Copy)]
struct Tended {
    line: RawFd,
    go: RawFd,
    child: pid_t,
}

/// All that the guard keeps.
#[derive(Clone, Copy)]
struct Guarded {
    control: RawFd,
    line: RawFd,
    first: pid_t,
}

/// The main loop of the first process: it adopts, reaps, reports, and asks all to end.
fn tend(tended: Tended) -> ! {
    // SAFETY: both descriptors are open, and nothing else closes them.
    let (stream, mut go) = unsafe { (sys::stream(tended.line), sys::stream(tended.go)) };
    let mut line = &stream;
    let child = tended.child;
    let child_signals = sys::child_signals();
    let mut may_reap = false;
    loop {
        if may_reap {
            reap_all(line, child);
        }
        if !sys::wait_readable([line.as_raw_fd(), -1], child_signals, -1)[0] {
            continue;
        }
        let mut byte = [0];
        match line.read(&mut byte) {
            Ok(1) if byte == [GO] => {
                may_reap = true;
                let _ = go.write_all(&[GO]);
                sys::close_all_but([line.as_raw_fd(), child_signals.max(0)]);
            }
            Ok(1) => {
                for signal in Order::from_byte(u8::from_ne_bytes(byte)).asking() {
                    sys::kill_all(*signal);
                }
            }
            Ok(_) => sys::exit(),
            Err(_) => {}
        }
    }
}

/// Reaps ended children, and exits when none is left.
fn reap_all(mut line: &UnixStream, child: pid_t) {
    loop {
        match sys::reap() {
            sys::Reaped::One(pid, status) if pid == child => {
                let _ = line.write_all(&status.to_ne_bytes());
            }
            sys::Reaped::One(..) => {}
            sys::Reaped::NoneYet => return,
            sys::Reaped::NoneLeft => sys::exit(),
        }
    }
}

/// The guard's main loop: it forwards messages, and on the kill order kills the first process, and thereby all.
fn watch(guarded: Guarded) -> ! {
    let first = guarded.first;
    // SAFETY: both descriptors are open, and nothing else closes them.
    let (control, line) = unsafe { (sys::stream(guarded.control), sys::stream(guarded.line)) };
    let child_signals = sys::child_signals();
    // The oldest child of the first process, which reaps none before it is told to: its process id can't have been
    // reused.
    let mut child = 0;
    sys::each_child_of(first, |pid| child = if child == 0 { pid } else { child });
    let mut control = &control;
    let mut line = &line;
    let _ = control.write_all(&child.to_ne_bytes());
    let _ = line.write_all(&[GO]);
    let mut is_reaped = false;
    let mut is_killed = false;
    let mut has_line = true;
    while !sys::has_ended(first) {
        let listened =
            [if is_killed { -1 } else { control.as_raw_fd() }, if has_line { line.as_raw_fd() } else { -1 }];
        let [orders, words] = sys::wait_readable(listened, child_signals, -1);
        if words {
            let mut status = [0; 4];
            has_line = line.read_exact(&mut status).is_ok();
            if has_line && !is_reaped {
                is_reaped = true;
                let _ = control.write_all(&status);
            }
        }
        if !orders {
            continue;
        }
        match heard(control) {
            ControlMessage::Nothing => {}
            ControlMessage::Signal(signal, group) if !is_reaped => signal_group(child, signal, group),
            ControlMessage::Signal(..) => {}
            ControlMessage::Order(Order::Kill) => {
                is_killed = true;
                sys::kill_one(first, libc::SIGKILL);
            }
            ControlMessage::Order(order) => {
                let _ = line.write_all(&[order.byte()]);
            }
        }
    }
    if !is_reaped {
        // Sent before the first process was killed, or else lost with it.
        let mut status = [0; 4];
        let is_told = has_line && line.read_exact(&mut status).is_ok();
        let _ = control.write_all(if is_told { &status } else { &KILLED });
    }
    sys::exit()
}

fn signal_group(child: pid_t, signal: c_int, group: pid_t) {
    if group != child && group != sys::own_pid() {
        sys::kill_group(group, signal);
    }
    if super::is_for_all(signal) || group == child {
        sys::kill_group(child, signal);
    }
}
