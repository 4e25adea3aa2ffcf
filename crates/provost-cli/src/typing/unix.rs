//! The keyboard of a terminal on standard input.

use std::io::{self, IsTerminal as _, PipeReader, PipeWriter};
use std::os::fd::AsFd as _;
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::getpgrp;
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr, tcgetpgrp,
    tcsetattr,
};

/// How often it is checked whether the process is in the foreground, and the terminal as it must be: the user may have
/// stopped the process meanwhile, and a shell sets the terminal back.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 300_000_000 };
const READ_BYTES: usize = 4_096;

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
        let thread = std::thread::spawn(move || read(&over, &take));
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
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
        }
    }
}

/// Reads until the other end of `over` is closed, or the terminal is gone.
fn read(over: &PipeReader, take: &impl Fn(&[u8])) {
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
            Ok(count) => take(bytes.get(..count).unwrap_or_default()),
        }
    }
}

/// Has the terminal give each key at once and show none; keys that are signals stay so.
fn key_by_key() {
    let Ok(mut modes) = tcgetattr(io::stdin()) else { return };
    let lines = LocalModes::ICANON | LocalModes::ECHO;
    if modes.local_modes.intersects(lines) {
        modes.local_modes.remove(lines);
        modes.special_codes[SpecialCodeIndex::VMIN] = 1;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &modes);
    }
}

fn is_in_front() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp())
}
