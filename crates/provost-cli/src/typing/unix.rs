//! The keyboard of a terminal on standard input.

use std::io::{self, IsTerminal as _, PipeReader, PipeWriter, Write as _};
use std::os::fd::AsFd as _;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, getpgrp, kill_current_process_group};
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr, tcgetpgrp,
    tcsetattr,
};

/// How often it is checked whether the process is in the foreground, and the terminal as it must be: the user may have
/// stopped the process meanwhile, and a shell sets the terminal back.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 300_000_000 };
const READ_BYTES: usize = 4_096;
/// How long it may take until all threads have stopped.
const STOPS_WITHIN: Duration = Duration::from_millis(200);
/// The code of a key that means nothing to the terminal (`_POSIX_VDISABLE`).
const DISABLED: u8 = if cfg!(target_os = "linux") { 0 } else { 0xff };
/// What Ctrl-Z sends where it is no signal.
const SUSPEND: u8 = 0x1a;
/// Has the terminal mark what is pasted (xterm's bracketed paste), and no longer.
const MARKS_PASTES: &str = "\u{1b}[?2004h";
const MARKS_NO_PASTES: &str = "\u{1b}[?2004l";

/// A thread that reads the keyboard. The terminal is as it was before once this is dropped.
pub(super) struct Reading {
    over: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
    before: Termios,
}

impl Reading {
    /// Begins to read, if standard input and error are terminals.
    pub(super) fn begin(take: impl Fn(&[u8]) + Send + 'static) -> Option<Self> {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return None;
        }
        let before = tcgetattr(io::stdin()).ok()?;
        let (over, writer) = io::pipe().ok()?;
        if is_in_front() {
            // What was typed for a shell is no message to an agent.
            let _ = tcflush(io::stdin(), QueueSelector::IFlush);
            key_by_key();
        }
        let at_first = before.clone();
        let thread = std::thread::spawn(move || read(&over, &at_first, &take));
        Some(Self { over: Some(writer), thread: Some(thread), before })
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        drop(self.over.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        if is_in_front() {
            give_back(&self.before);
        }
    }
}

/// Sets the terminal as it was before.
fn give_back(before: &Termios) {
    let _ = io::stderr().write_all(MARKS_NO_PASTES.as_bytes());
    let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
}

/// Reads until the other end of `over` is closed, or the terminal is gone.
fn read(over: &PipeReader, before: &Termios, take: &impl Fn(&[u8])) {
    let stdin = io::stdin();
    let mut bytes = [0; READ_BYTES];
    loop {
        let asked = if is_in_front() {
            key_by_key();
            PollFlags::IN
        } else {
            // The system stops a background process that reads.
            PollFlags::empty()
        };
        let over = PollFd::from_borrowed_fd(over.as_fd(), PollFlags::empty());
        let mut both = [over, PollFd::from_borrowed_fd(stdin.as_fd(), asked)];
        match poll(&mut both, Some(&LOOK)) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return take(&[]),
        }
        let [over, typed] = &both;
        if !over.revents().is_empty() {
            return;
        }
        if typed.revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            return take(&[]);
        }
        if typed.revents().is_empty() || !is_in_front() {
            continue;
        }
        match rustix::io::read(&stdin, &mut bytes) {
            Err(Errno::INTR | Errno::AGAIN) => {}
            Ok(0) | Err(_) => return take(&[]),
            Ok(count) => {
                let typed = bytes.get(..count).unwrap_or_default();
                for (number, part) in typed.split(|byte| *byte == SUSPEND).enumerate() {
                    if number > 0 {
                        suspend(before);
                    }
                    if !part.is_empty() {
                        take(part);
                    }
                }
            }
        }
    }
}

/// Stops this process and those beside it, as the terminal does at Ctrl-Z; the shell finds the terminal as it was.
fn suspend(before: &Termios) {
    give_back(before);
    let _ = kill_current_process_group(Signal::TSTP);
    // The signal may reach another thread first; this one must not take the terminal again before.
    std::thread::sleep(STOPS_WITHIN);
}

/// Has the terminal give each key at once and show none, and mark what is pasted. Ctrl-C stays a signal; before Ctrl-Z
/// the terminal is given back, so it is none.
fn key_by_key() {
    let Ok(mut modes) = tcgetattr(io::stdin()) else { return };
    let lines = LocalModes::ICANON | LocalModes::ECHO;
    if modes.local_modes.intersects(lines) {
        modes.local_modes.remove(lines);
        modes.special_codes[SpecialCodeIndex::VMIN] = 1;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        modes.special_codes[SpecialCodeIndex::VSUSP] = DISABLED;
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &modes);
        let _ = io::stderr().write_all(MARKS_PASTES.as_bytes());
    }
}

fn is_in_front() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp())
}
