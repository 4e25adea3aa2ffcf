//! Lines from the terminal: read only while a question is open, so that other input stays for the shell.

#[cfg(unix)]
pub(super) use unix::{Terminal, is_there};

#[cfg(not(unix))]
pub(super) use elsewhere::{Terminal, is_there};

#[cfg(unix)]
mod unix {
    use std::io::{self, IsTerminal as _, PipeReader};
    use std::os::fd::AsFd as _;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::io::Errno;
    use rustix::process::getpgrp;
    use rustix::termios::{QueueSelector, tcflush, tcgetpgrp};

    /// No terminal returns a longer line.
    const LINE_BYTES_MAX: usize = 4_096;
    /// How often a process in the background checks whether it is in the foreground again.
    const BACKGROUND_LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

    /// Whether a user can be asked on standard input and error.
    pub(in crate::asking) fn is_there() -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// The terminal on standard input.
    pub(in crate::asking) struct Terminal;

    impl Terminal {
        /// The terminal, with nothing typed yet.
        pub(in crate::asking) fn fresh() -> Self {
            if is_in_front() {
                // If that fails, an old line may be taken for an answer; it must still be one of the few letters.
                let _ = tcflush(io::stdin(), QueueSelector::IFlush);
            }
            Self
        }

        /// The next line, without bytes that are no text; `None` when there is no more.
        ///
        /// # Cancellation
        /// Safe: the waiting thread ends, and an incomplete line stays with the terminal.
        pub(in crate::asking) async fn line(&self) -> Option<String> {
            // The writer is dropped with this future, which wakes the thread.
            let (over, _waits) = io::pipe().ok()?;
            tokio::task::spawn_blocking(move || read_line(&over)).await.ok()?.ok()?
        }
    }

    /// Blocks until there is a line or the other end of `over` is closed.
    fn read_line(over: &PipeReader) -> io::Result<Option<String>> {
        let stdin = io::stdin();
        loop {
            let in_front = is_in_front();
            let (asked, timeout) =
                if in_front { (PollFlags::IN, None) } else { (PollFlags::empty(), Some(&BACKGROUND_LOOK)) };
            let over = PollFd::from_borrowed_fd(over.as_fd(), PollFlags::empty());
            let mut both = [over, PollFd::from_borrowed_fd(stdin.as_fd(), asked)];
            match poll(&mut both, timeout) {
                Err(Errno::INTR) => continue,
                polled => polled?,
            };
            let [over, typed] = &both;
            if !over.revents().is_empty() {
                return Ok(None);
            }
            if typed.revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
                return Ok(None);
            }
            // The system stops a background process that reads.
            if typed.revents().is_empty() || !is_in_front() {
                continue;
            }
            let mut bytes = [0; LINE_BYTES_MAX];
            return match rustix::io::read(&stdin, &mut bytes) {
                Err(Errno::INTR | Errno::AGAIN) => continue,
                Ok(0) => Ok(None),
                Ok(count) => Ok(bytes.get(..count).map(|line| String::from_utf8_lossy(line).into_owned())),
                Err(error) => Err(error.into()),
            };
        }
    }

    fn is_in_front() -> bool {
        tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp())
    }
}

#[cfg(not(unix))]
mod elsewhere {
    /// No user is asked on this platform yet.
    pub(in crate::asking) fn is_there() -> bool {
        false
    }

    /// A terminal without input.
    pub(in crate::asking) struct Terminal;

    impl Terminal {
        pub(in crate::asking) fn fresh() -> Self {
            Self
        }

        pub(in crate::asking) async fn line(&self) -> Option<String> {
            None
        }
    }
}
