//! This process's terminal in raw mode, its keyboard, and its size.

use std::io::{self, IsTerminal as _, PipeReader, PipeWriter, Write as _};
use std::os::fd::AsFd as _;

use provost_event::WindowSize;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// Bytes that are read at once.
const READ_BYTES: usize = 4_096;
/// Reads that may wait for the program.
const READS_WAITING: usize = 16;

/// Resets what a program may have changed in the terminal: synchronized output, mouse, focus, bracketed paste, the
/// keyboard's protocols, the alternate screen, margins, character sets, colours, the cursor's shape and keys.
const RESET: &str = "\u{1b}[?2026l\u{1b}[?1000;1002;1003;1004;1005;1006;1015;2004l\u{1b}[=0u\u{1b}[>4;0m\
                     \u{1b}[?1049l\u{1b}[r\u{1b}(B\u{f}\u{1b}[m\u{1b}[?1;6l\u{1b}[?7;25h\u{1b}>\u{1b}[0 q";

/// Whether standard input and output are terminals.
pub(super) fn is_there() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// The window's size, if it is known.
pub(crate) fn size() -> Option<WindowSize> {
    let size = tcgetwinsize(io::stdout()).ok()?;
    (size.ws_row > 0 && size.ws_col > 0).then(|| WindowSize::new(size.ws_row, size.ws_col))
}

/// Resets what a program changed, and moves below what it painted.
pub(crate) fn reset() {
    let bottom = size().map_or(1, |size| size.rows);
    let mut out = io::stdout();
    let _ = write!(out, "{RESET}\u{1b}[{bottom};1H\r\n").and_then(|()| out.flush());
}

/// The terminal in raw mode. Dropping it restores the previous mode.
pub(super) struct RawTerminal {
    before: Termios,
}

impl RawTerminal {
    /// Delivers every key to the reader at once from now on.
    pub(super) fn enter() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Drain, &raw)?;
        Ok(Self { before })
    }

    /// Moves what is on the screen into the scrollback, where it isn't painted over.
    pub(super) fn cleared(&self) -> String {
        let rows = usize::from(size().map_or(1, |size| size.rows));
        format!("{}\u{1b}[H", "\r\n".repeat(rows))
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        reset();
        // A terminal that is gone needs no reset.
        let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &self.before);
    }
}

/// What is typed.
pub(super) struct Keyboard {
    keys: mpsc::Receiver<Vec<u8>>,
    /// Dropped with the keyboard, which wakes its thread.
    _over: PipeWriter,
}

impl Keyboard {
    /// Reads from standard input until dropped.
    pub(super) fn listen() -> io::Result<Self> {
        let (over, _over) = io::pipe()?;
        let (to, keys) = mpsc::channel(READS_WAITING);
        let read = move || while read(&over).is_some_and(|typed| to.blocking_send(typed).is_ok()) {};
        std::thread::Builder::new().name("keyboard".to_owned()).spawn(read)?;
        Ok(Self { keys, _over })
    }

    /// What was typed next; `None` when nothing more can come.
    ///
    /// # Cancellation
    /// Nothing is lost.
    pub(super) async fn next(&mut self) -> Option<Vec<u8>> {
        self.keys.recv().await
    }
}

/// Blocks until something is typed; `None` when the terminal or the keyboard is gone.
fn read(over: &PipeReader) -> Option<Vec<u8>> {
    let stdin = io::stdin();
    loop {
        let mut both = [
            PollFd::from_borrowed_fd(over.as_fd(), PollFlags::empty()),
            PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN),
        ];
        match poll(&mut both, None) {
            Err(Errno::INTR) => continue,
            polled => polled.ok()?,
        };
        let [over, typed] = &both;
        if !over.revents().is_empty() {
            return None;
        }
        if !typed.revents().contains(PollFlags::IN) {
            return None;
        }
        let mut bytes = [0; READ_BYTES];
        return match rustix::io::read(&stdin, &mut bytes) {
            Err(Errno::INTR | Errno::AGAIN) => continue,
            Ok(0) | Err(_) => None,
            Ok(count) => bytes.get(..count).map(<[u8]>::to_vec),
        };
    }
}

/// Reports a new size of the window.
pub(super) struct Resizes(Signal);

impl Resizes {
    /// From now on.
    pub(super) fn listen() -> io::Result<Self> {
        signal(SignalKind::window_change()).map(Self)
    }

    /// Waits for the next.
    ///
    /// # Cancellation
    /// None is lost.
    pub(super) async fn next(&mut self) {
        self.0.recv().await;
    }
}
