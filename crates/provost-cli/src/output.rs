//! Standard output and error: what can't be written is never a panic, and what of the output was lost is known.
//!
//! Standard error reports progress, and nothing depends on it: where it can't be written the work goes on.
//! Standard output is the requested result: once a part of it couldn't be written, the exit status isn't 0.

use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::locale::{in_ascii, wants_ascii};
use crate::render::safe;

/// Why a part of standard output is lost; the first time.
static LOST: OnceLock<Loss> = OnceLock::new();

/// Whether notes are left out: standard error belongs to a program.
static HOLDS_NOTES: AtomicBool = AtomicBool::new(false);

/// Whether standard output is left out from here on.
static SILENT: AtomicBool = AtomicBool::new(false);

/// Why output is lost.
#[derive(Debug)]
pub(crate) struct Loss {
    kind: ErrorKind,
    why: String,
    is_told: AtomicBool,
}

impl Loss {
    /// Whether the reader of the output closed it.
    pub(crate) fn by_reader(&self) -> bool {
        self.kind == ErrorKind::BrokenPipe
    }

    /// Whether this is the error that it came with.
    pub(crate) fn is(&self, error: &io::Error) -> bool {
        error.kind() == self.kind
    }
}

/// What of standard output is lost, if any is.
pub(crate) fn lost() -> Option<&'static Loss> {
    LOST.get()
}

/// Reports once that output is lost, with a remedy; empty for none.
pub(crate) fn tell_of_loss(what_now: &str) {
    let Some(loss) = lost() else { return };
    if loss.is_told.swap(true, Ordering::Relaxed) {
        return;
    }
    tell(&format!("error: can't write to standard output: {}", loss.why));
    if !what_now.is_empty() {
        tell(&format!("hint: {what_now}"));
    }
}

/// Leaves out what isn't a warning or an error until [`release_notes`].
pub(crate) fn hold_notes() {
    HOLDS_NOTES.store(true, Ordering::Relaxed);
}

/// Writes notes again.
pub(crate) fn release_notes() {
    HOLDS_NOTES.store(false, Ordering::Relaxed);
}

/// Writes lines to standard error without what terminals would take for orders; ignores write errors.
pub(crate) fn tell(lines: &str) {
    let matters = ["warning:", "error:"].iter().any(|word| lines.starts_with(word));
    if HOLDS_NOTES.load(Ordering::Relaxed) && !matters {
        return;
    }
    tell_raw(&format!("{}\n", safe(lines)));
}

/// Writes to standard error, with ASCII marks where its terminal wants them; ignores write errors.
pub(crate) fn tell_raw(text: &str) {
    let mut errors = io::stderr();
    // A failed write doesn't stop the work.
    if errors.is_terminal() && wants_ascii() {
        let _ = errors.write_all(in_ascii(text).as_bytes());
    } else {
        let _ = errors.write_all(text.as_bytes());
    }
}

/// Writes to standard output, all of it at once.
///
/// # Errors
/// When that can't be done, also where it was closed from the start. It is remembered as [`lost`].
pub(crate) fn write(bytes: &[u8]) -> io::Result<()> {
    if is_silent() {
        return Ok(());
    }
    let mut out = Stdout;
    out.write_all(bytes)
}

/// Leaves out what is written to standard output from here on: its reader wants no more.
pub(crate) fn silence() {
    SILENT.store(true, Ordering::Relaxed);
}

/// Leaves out what is written to standard error from here on: that is another process's.
#[cfg(unix)]
pub(crate) fn give_up_errors() {
    // Where there is no null device, what is written there later comes to a terminal.
    if let Ok(null) = std::fs::OpenOptions::new().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stderr(&null);
    }
}

#[cfg(not(unix))]
pub(crate) fn give_up_errors() {}

/// Whether it is left out.
pub(crate) fn is_silent() -> bool {
    SILENT.load(Ordering::Relaxed)
}

/// Standard output. The one of the standard library counts what can't be written to a closed or unwritable
/// descriptor as written, and buffers an incomplete line until the end, where its loss isn't reported.
pub(crate) struct Stdout;

impl io::Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        let written = if was_closed() { Err(closed()) } else { write_some(bytes) };
        written.inspect_err(|error| {
            if error.kind() != ErrorKind::Interrupted {
                LOST.get_or_init(|| Loss {
                    kind: error.kind(),
                    why: words(error),
                    is_told: AtomicBool::new(false),
                });
            }
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Without the number that the system has for it.
fn words(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

fn closed() -> io::Error {
    io::Error::new(ErrorKind::NotConnected, "it is closed")
}

#[cfg(unix)]
fn was_closed() -> bool {
    provost_process::stdout_was_closed()
}

#[cfg(unix)]
fn write_some(bytes: &[u8]) -> io::Result<usize> {
    use rustix::event::{PollFd, PollFlags, poll};
    let out = io::stdout();
    loop {
        match rustix::io::write(&out, bytes) {
            // A process that shares the descriptor may have made it non-blocking; wait all the same.
            Err(rustix::io::Errno::AGAIN) => match poll(&mut [PollFd::new(&out, PollFlags::OUT)], None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            },
            written => return Ok(written?),
        }
    }
}

#[cfg(not(unix))]
fn was_closed() -> bool {
    false
}

#[cfg(not(unix))]
fn write_some(bytes: &[u8]) -> io::Result<usize> {
    let mut out = io::stdout();
    out.write_all(bytes)?;
    out.flush()?;
    Ok(bytes.len())
}
