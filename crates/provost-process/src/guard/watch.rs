//! The guard's main loop: reap, report, follow orders, until no process is left.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;

use libc::{c_int, pid_t};

use super::memory::{Needed, forget_all};
use super::{Order, is_for_all, sys};

/// Milliseconds between two rounds of signals, or of polling where no signal reports a child's end.
const ROUND_MS: c_int = 10;
/// The same while all are killed: a process that forks and exits has little time to repeat that.
const KILL_ROUND_MS: c_int = 1;

/// Maximum groups that are asked to end; further groups are only killed.
const ASKED_MAX: usize = 256;

struct Watch<'a> {
    control: &'a UnixStream,
    /// Readable when a child has ended; negative if the system has no such descriptor, then children are polled.
    child_signals: c_int,
    child: pid_t,
    /// The child was reaped: its process id may be reused.
    is_reaped: bool,
    ordered: Option<Order>,
    asked: SignalledGroups,
}

/// All that the guard keeps.
#[derive(Clone, Copy)]
struct Guarded {
    control: RawFd,
    go: RawFd,
    child: pid_t,
}

/// Guards `child`, which starts after a byte on `go`, until it and all its descendants are gone.
pub(super) fn watch(control: &UnixStream, go: &UnixStream, child: pid_t, needed: &Needed) -> ! {
    // First of all: `spawn` waits for the end of a pipe of which this process has a copy.
    sys::close_all_but([control.as_raw_fd(), go.as_raw_fd()]);
    sys::take_own_name();
    sys::leave_folder();
    let guarded = Guarded { control: control.as_raw_fd(), go: go.as_raw_fd(), child };
    // SAFETY: this is the only thread, see `install`.
    unsafe { forget_all(needed, guarded, watch_on) }
}

fn watch_on(guarded: Guarded) -> ! {
    // SAFETY: both descriptors are open, and nothing else closes them.
    let (control, mut go) = unsafe { (sys::stream(guarded.control), sys::stream(guarded.go)) };
    let asked = SignalledGroups { groups: [0; ASKED_MAX], count: 0 };
    let child_signals = sys::child_signals();
    let child = guarded.child;
    let mut watch = Watch { control: &control, child_signals, child, is_reaped: false, ordered: None, asked };
    // This write and that of the status fail only when the reader is gone.
    let _ = watch.control.write_all(&child.to_ne_bytes());
    let _ = go.write_all(&[0]);
    sys::close_all_but([control.as_raw_fd(), watch.child_signals.max(0)]);
    while watch.reap() {
        watch.carry_out();
        let [orders, _] =
            sys::wait_readable([watch.listening(), -1], watch.child_signals, watch.patience_ms());
        if orders {
            watch.obey();
        }
    }
    sys::exit()
}

/// A message on the control channel.
pub(super) enum ControlMessage {
    Nothing,
    /// A signal for a group.
    Signal(c_int, pid_t),
    Order(Order),
}

/// Reads one message. The end of the channel, or an invalid message, means "kill all".
pub(super) fn heard(mut control: &UnixStream) -> ControlMessage {
    let mut byte = [0];
    match control.read(&mut byte) {
        Ok(0) => ControlMessage::Order(Order::Kill),
        Ok(_) => match super::signal_of(u8::from_ne_bytes(byte)) {
            Some(signal) => {
                let mut group = [0; 4];
                match control.read_exact(&mut group) {
                    Ok(()) => ControlMessage::Signal(signal, pid_t::from_ne_bytes(group)),
                    Err(_) => ControlMessage::Order(Order::Kill),
                }
            }
            None => ControlMessage::Order(Order::from_byte(u8::from_ne_bytes(byte))),
        },
        Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {
            ControlMessage::Nothing
        }
        Err(_) => ControlMessage::Order(Order::Kill),
    }
}

impl Watch<'_> {
    /// The control channel, or a negative number after the last order: a closed channel is always readable.
    fn listening(&self) -> c_int {
        if self.ordered == Some(Order::Kill) { -1 } else { self.control.as_raw_fd() }
    }

    /// Under an order there are rounds: no signal reports that an orphan was adopted.
    fn patience_ms(&self) -> c_int {
        match self.ordered {
            Some(Order::Kill) => KILL_ROUND_MS,
            Some(Order::Terminate | Order::HangUp) => ROUND_MS,
            None if self.child_signals < 0 => ROUND_MS,
            None => -1,
        }
    }

    /// Reaps ended children, and returns whether any process is left.
    fn reap(&mut self) -> bool {
        loop {
            match sys::reap() {
                sys::Reaped::One(pid, status) if pid == self.child && !self.is_reaped => {
                    self.is_reaped = true;
                    let _ = self.control.write_all(&status.to_ne_bytes());
                }
                sys::Reaped::One(..) => {}
                sys::Reaped::NoneYet => return true,
                sys::Reaped::NoneLeft => return !sys::ADOPTS_ORPHANS && sys::group_lives(self.child),
            }
        }
    }

    fn obey(&mut self) {
        match heard(self.control) {
            ControlMessage::Nothing => {}
            ControlMessage::Signal(signal, group) => self.signal(signal, group),
            ControlMessage::Order(order) => self.ordered = self.ordered.max(Some(order)),
        }
    }

    /// Signals this group, and the child's own too if the signal ends or continues it.
    fn signal(&mut self, signal: c_int, group: pid_t) {
        if self.is_reaped {
            return;
        }
        if group != self.child && group != sys::own_pid() {
            sys::kill_group(group, signal);
        }
        if is_for_all(signal) || group == self.child {
            sys::kill_group(self.child, signal);
        }
    }

    fn carry_out(&mut self) {
        match self.ordered {
            None => {}
            Some(order @ (Order::Terminate | Order::HangUp)) => self.ask(order.asking()),
            Some(Order::Kill) => each_group(self.child, |group| sys::kill_group(group, libc::SIGKILL)),
        }
    }

    fn ask(&mut self, signals: &[c_int]) {
        let asked = &mut self.asked;
        each_group(self.child, |group| {
            if asked.is_first_time(group) {
                for signal in signals {
                    sys::kill_group(group, *signal);
                }
            }
        });
    }
}

/// Calls `visit` for the group of each child of this process, once or more.
///
/// A child that wasn't reaped keeps its process id and its group's from being reused. Grandchildren become
/// children when their parents die, so rounds of visits reach all.
fn each_group(child: pid_t, mut visit: impl FnMut(pid_t)) {
    let own_group = sys::own_pid();
    let mut last_group = own_group;
    let listed = sys::each_child(|child| {
        // Still in this process's own group: about to start its own session, which the next round sees.
        let group = sys::group_of(child).unwrap_or(own_group);
        if group != own_group && group != last_group {
            visit(group);
            last_group = group;
        }
    });
    if !listed {
        visit(child);
    }
}

/// The groups that were asked to end: some programs take a second request as "at once".
struct SignalledGroups {
    groups: [pid_t; ASKED_MAX],
    count: usize,
}

impl SignalledGroups {
    fn is_first_time(&mut self, group: pid_t) -> bool {
        if self.groups.iter().take(self.count).any(|asked| *asked == group) {
            return false;
        }
        let Some(slot) = self.groups.get_mut(self.count) else { return false };
        *slot = group;
        self.count = self.count.saturating_add(1);
        true
    }
}
