//! Types input at a terminal, in order and in pieces that it takes whole.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::Ordering;

use secrecy::ExposeSecret;
use secrecy::zeroize::Zeroizing;

use super::device::{Device, LineModes};
use super::options::PtyError;
use super::shared::{Keys, Typed};
use super::view::TerminalView;

/// Inputs taken from the inbox before they are typed.
const QUEUED_MAX: usize = 64;

/// Bytes typed between two checks of the terminal's modes.
const PIECE_BYTES_MAX: usize = 1024;

/// Bytes of a line that a terminal keeps in line mode, without the line end.
const LINE_BYTES_MAX: usize = 4095;

/// Bytes of a secret; a return follows.
pub(super) const SECRET_BYTES_MAX: usize = LINE_BYTES_MAX;

/// Maximum bytes of queued replies for a program that asks and doesn't read. More are dropped.
const REPLIES_BYTES_MAX: usize = 64 * 1024;

const RETURN: u8 = b'\r';

/// The terminal's owner, as the typing needs it.
pub(super) trait TypingObserver {
    /// Input begins: the label for the recording.
    fn begun(&mut self, label: &'static str);

    /// These bytes were taken; of a secret only the return at its end.
    fn typed(&mut self, bytes: &[u8]);

    /// The argument of a check.
    fn view(&self) -> TerminalView;
}

#[derive(Default)]
pub(super) struct Typing {
    queue: VecDeque<Typed>,
    /// Bytes typed of the first input in the queue.
    sent_bytes: usize,
    replies: VecDeque<u8>,
    /// Bytes since the last line end.
    line_bytes: usize,
    is_blocked: bool,
}

/// The result of one attempt.
enum TypingStep {
    Sent,
    Blocked,
    Idle,
}

impl Typing {
    pub(super) fn has_room(&self) -> bool {
        self.queue.len() < QUEUED_MAX
    }

    pub(super) fn add(&mut self, typed: Typed) {
        self.queue.push_back(typed);
    }

    /// Replies to queries go before all input that hasn't begun.
    pub(super) fn reply(&mut self, bytes: &[u8]) {
        if self.replies.len() + bytes.len() <= REPLIES_BYTES_MAX {
            self.replies.extend(bytes);
        }
    }

    /// Whether to continue as soon as the terminal has room.
    pub(super) fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    /// Types as much as the terminal takes.
    pub(super) fn go_on(&mut self, device: &mut impl Device, observer: &mut impl TypingObserver) {
        loop {
            match self.step(device, observer) {
                TypingStep::Sent => {}
                TypingStep::Blocked => {
                    self.is_blocked = true;
                    return;
                }
                TypingStep::Idle => {
                    self.is_blocked = false;
                    return;
                }
            }
        }
    }

    /// The program no longer reads.
    pub(super) fn fail_all(&mut self) {
        for typed in self.queue.drain(..) {
            let _ = typed.done.send(Err(PtyError::Ended));
        }
        self.replies.clear();
        self.sent_bytes = 0;
        self.is_blocked = false;
    }

    fn step(&mut self, device: &mut impl Device, observer: &mut impl TypingObserver) -> TypingStep {
        if self.sent_bytes == 0 && !self.replies.is_empty() {
            return self.send_reply(device);
        }
        let Some(first) = self.queue.front_mut() else { return TypingStep::Idle };
        let is_dropped = first.is_dropped.load(Ordering::Acquire);
        if is_dropped || first.check.take().is_some_and(|check| !check(&observer.view())) {
            self.finish(Ok(false));
            return TypingStep::Sent;
        }
        let length = first.keys.len();
        let sent = if self.sent_bytes >= length {
            Ok(0)
        } else if let Keys::Secret(_) = first.keys {
            self.send_secret(device, observer)
        } else {
            self.send_piece(device, observer)
        };
        match sent {
            Ok(count) => {
                self.sent_bytes += count;
                if self.sent_bytes >= length {
                    self.finish(Ok(true));
                }
                TypingStep::Sent
            }
            Err(Refusal::NoRoom) => TypingStep::Blocked,
            Err(Refusal::Error(error)) => {
                self.finish(Err(error));
                TypingStep::Sent
            }
        }
    }

    fn finish(&mut self, result: Result<bool, PtyError>) {
        if let Some(typed) = self.queue.pop_front() {
            // The caller may be gone.
            let _ = typed.done.send(result);
        }
        self.sent_bytes = 0;
    }

    fn send_reply(&mut self, device: &mut impl Device) -> TypingStep {
        let (piece, _) = self.replies.as_slices();
        match device.write(piece) {
            Ok(count) => {
                self.line_bytes += count;
                self.replies.drain(..count.min(self.replies.len()));
                TypingStep::Sent
            }
            Err(error) if is_no_room(&error) => TypingStep::Blocked,
            Err(error) => {
                tracing::debug!(%error, "a terminal's answers were not taken");
                self.replies.clear();
                TypingStep::Sent
            }
        }
    }

    fn send_piece(
        &mut self,
        device: &mut impl Device,
        observer: &mut impl TypingObserver,
    ) -> Result<usize, Refusal> {
        let Some(Typed { keys: Keys::Input(bytes) | Keys::Raw(bytes), .. }) = self.queue.front() else {
            return Ok(0);
        };
        let rest = bytes.get(self.sent_bytes..).unwrap_or_default();
        let modes = device.line_modes().filter(|modes| modes.canonical);
        let room = if modes.is_some() { LINE_BYTES_MAX.saturating_sub(self.line_bytes) } else { usize::MAX };
        let piece = piece_of(rest, room, modes.and_then(|modes| modes.end_of_input));
        if piece.is_empty() {
            self.line_bytes = hand_on_line(device, modes)?;
            return Ok(0);
        }
        let count = device.write(piece)?;
        let taken = piece.get(..count).unwrap_or(piece).to_vec();
        let ends = |byte: &u8| is_line_end(*byte, modes.and_then(|modes| modes.end_of_input));
        self.line_bytes = match taken.iter().rposition(ends) {
            Some(place) => taken.len() - place - 1,
            None => self.line_bytes + taken.len(),
        };
        if modes.is_none() {
            self.line_bytes = 0;
        }
        if self.sent_bytes == 0 {
            observer.begun(self.queue.front().map_or("input", |typed| typed.keys.label()));
        }
        observer.typed(&taken);
        Ok(count)
    }

    /// In one piece with the return, right after a check of the echo.
    fn send_secret(
        &mut self,
        device: &mut impl Device,
        observer: &mut impl TypingObserver,
    ) -> Result<usize, Refusal> {
        let Some(Typed { keys: Keys::Secret(secret), .. }) = self.queue.front() else { return Ok(0) };
        let secret = secret.expose_secret().as_bytes();
        if secret.len() > SECRET_BYTES_MAX {
            return Err(Refusal::Error(PtyError::TooLong { bytes_max: SECRET_BYTES_MAX }));
        }
        let mut line = Zeroizing::new(Vec::with_capacity(secret.len() + 1));
        line.extend_from_slice(secret);
        line.push(RETURN);
        if device.line_modes().is_none_or(|modes| modes.echo) {
            return Err(Refusal::Error(PtyError::EchoNotOff));
        }
        let count = device.write(line.get(self.sent_bytes..).unwrap_or_default())?;
        self.line_bytes = 0;
        if self.sent_bytes == 0 {
            observer.begun("secret");
        }
        if self.sent_bytes + count > secret.len() {
            observer.typed(&[RETURN]);
        }
        Ok(count)
    }
}

enum Refusal {
    NoRoom,
    Error(PtyError),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        if is_no_room(&error) {
            Self::NoRoom
        } else {
            Self::Error(PtyError::Refused { attempt: "take what was typed", source: error })
        }
    }
}

impl Keys {
    fn len(&self) -> usize {
        match self {
            Self::Input(bytes) | Self::Raw(bytes) => bytes.len(),
            Self::Secret(secret) => secret.expose_secret().len() + 1,
        }
    }

    fn label(&self) -> &'static str {
        match self {
            Self::Input(_) => "input",
            Self::Raw(_) => "keys",
            Self::Secret(_) => "secret",
        }
    }
}

/// The next bytes, with at most `room` of them before a line end; none if there is no room.
fn piece_of(bytes: &[u8], room: usize, end_of_input: Option<u8>) -> &[u8] {
    let piece = bytes.get(..bytes.len().min(PIECE_BYTES_MAX)).unwrap_or_default();
    let in_line = piece.iter().position(|byte| is_line_end(*byte, end_of_input)).unwrap_or(piece.len());
    // The end of the first line always fits, and begins a line that has all the room a piece needs.
    if in_line <= room { piece } else { piece.get(..room).unwrap_or_default() }
}

fn is_line_end(byte: u8, end_of_input: Option<u8>) -> bool {
    matches!(byte, b'\n' | RETURN) || Some(byte) == end_of_input
}

/// Delivers a line that is longer than the terminal's, in parts: the key that ends input on an empty line delivers
/// any other line as it is, unseen by the program. Returns the bytes of the line that are left: none.
fn hand_on_line(device: &mut impl Device, modes: Option<LineModes>) -> Result<usize, Refusal> {
    let Some(key) = modes.and_then(|modes| modes.end_of_input) else {
        return Err(Refusal::Error(PtyError::LineTooLong { bytes_max: LINE_BYTES_MAX }));
    };
    device.write(&[key])?;
    Ok(0)
}

fn is_no_room(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
