//! Cuts a stream of bytes into text and escape sequences, as the state machine of ECMA-48 terminals does.
//!
//! The emulator gets whole sequences only, and never gets strings (OSC, DCS, APC, PM, SOS): it would hold an
//! unterminated one for ever, and it doesn't use their content. A sequence that is cut by the end of a chunk is
//! held here, up to a limit; one beyond the limit is dropped as a whole.

/// Maximum bytes of a control sequence; a longer one is dropped.
pub(crate) const SEQUENCE_BYTES_MAX: usize = 256;
/// Maximum bytes of a string whose content is kept; a longer one is dropped.
pub(crate) const STRING_BYTES_MAX: usize = 4_096;

const ESC: u8 = 0x1b;
const CAN: u8 = 0x18;
const SUB: u8 = 0x1a;
const BEL: u8 = 0x07;
pub(crate) const BACKSPACE: u8 = 0x08;
const SHIFT_OUT: u8 = 0x0e;
const SHIFT_IN: u8 = 0x0f;

/// The terminator of a string; the reply to it uses the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Terminator {
    Bell,
    Esc,
}

/// A part of the stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// Text with control characters, except those below; a backspace is a piece of its own.
    Text(&'a [u8]),
    /// SO (`true`) or SI.
    Shift(bool),
    /// Any other escape sequence, with its ESC.
    Escape(&'a [u8]),
    /// A control sequence, with its `ESC [`.
    Csi(&'a [u8]),
    /// The content of an operating system command.
    Osc(&'a [u8], Terminator),
    /// The content of a device control string.
    Dcs(&'a [u8]),
    /// Bytes without an effect: the rest of a sequence, a part of one, a string that isn't used.
    Nothing,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    Escape,
    EscapeIntermediate,
    Csi,
    Osc,
    Dcs,
    /// Within APC, PM or SOS.
    Ignored,
}

/// The state between two chunks.
#[derive(Debug, Default)]
pub(crate) struct Scanner {
    state: State,
    held: Vec<u8>,
    is_overlong: bool,
    /// The held sequence was returned.
    is_done: bool,
}

impl Scanner {
    /// The next piece of a nonempty chunk, and how many of its bytes it took (at least one).
    pub(crate) fn next<'a>(&'a mut self, chunk: &'a [u8]) -> (Piece<'a>, usize) {
        self.let_go();
        match self.state {
            State::Ground => self.ground(chunk),
            State::Escape | State::EscapeIntermediate | State::Csi => self.sequence(chunk),
            State::Osc | State::Dcs | State::Ignored => self.string(chunk),
        }
    }

    /// Drops the sequence that was returned last; its terminator may have begun the next one.
    fn let_go(&mut self) {
        if std::mem::take(&mut self.is_done) {
            self.held.clear();
            if self.state == State::Escape {
                self.start_escape();
            }
        }
    }

    fn ground<'a>(&'a mut self, chunk: &'a [u8]) -> (Piece<'a>, usize) {
        let is_plain = |b: &u8| !matches!(*b, ESC | SHIFT_OUT | SHIFT_IN | BACKSPACE);
        let plain = chunk.iter().take_while(|b| is_plain(b)).count();
        if plain > 0 {
            return (Piece::Text(chunk.get(..plain).unwrap_or_default()), plain);
        }
        match chunk.first() {
            Some(&ESC) => {}
            Some(&BACKSPACE) => return (Piece::Text(chunk.get(..1).unwrap_or_default()), 1),
            Some(&shift) => return (Piece::Shift(shift == SHIFT_OUT), 1),
            None => return (Piece::Nothing, 0),
        }
        if let Some(whole) = whole_sequence(chunk) {
            let is_csi = whole.get(1) == Some(&b'[');
            return (if is_csi { Piece::Csi(whole) } else { Piece::Escape(whole) }, whole.len());
        }
        self.start_escape();
        (Piece::Nothing, 1)
    }

    fn start_escape(&mut self) {
        self.state = State::Escape;
        self.is_overlong = false;
        self.held.clear();
        self.held.push(ESC);
    }

    /// Byte by byte: the sequence is cut, or contains control characters, which take effect at once.
    fn sequence<'a>(&'a mut self, chunk: &'a [u8]) -> (Piece<'a>, usize) {
        let Some(&byte) = chunk.first() else { return (Piece::Nothing, 0) };
        match byte {
            ESC => self.start_escape(),
            CAN | SUB => self.state = State::Ground,
            SHIFT_OUT | SHIFT_IN => return (Piece::Shift(byte == SHIFT_OUT), 1),
            0x00..=0x1f => return (Piece::Text(chunk.get(..1).unwrap_or_default()), 1),
            0x7f.. => {}
            0x20..=0x7e => return (self.collect(byte), 1),
        }
        (Piece::Nothing, 1)
    }

    fn collect(&mut self, byte: u8) -> Piece<'_> {
        if self.held.len() < SEQUENCE_BYTES_MAX {
            self.held.push(byte);
        } else {
            self.is_overlong = true;
        }
        match (self.state, byte) {
            (State::Escape, b'[') => self.state = State::Csi,
            (State::Escape, b']') => self.start_string(State::Osc),
            (State::Escape, b'P') => self.start_string(State::Dcs),
            (State::Escape, b'X' | b'^' | b'_') => self.start_string(State::Ignored),
            (State::Escape | State::EscapeIntermediate, 0x20..=0x2f) => {
                self.state = State::EscapeIntermediate
            }
            (State::Escape | State::EscapeIntermediate, _) => return self.finish(Piece::Escape),
            (State::Csi, 0x40..=0x7e) => return self.finish(Piece::Csi),
            _ => {}
        }
        Piece::Nothing
    }

    fn start_string(&mut self, state: State) {
        self.state = state;
        self.is_overlong = false;
        self.held.clear();
    }

    fn string<'a>(&'a mut self, chunk: &'a [u8]) -> (Piece<'a>, usize) {
        let is_osc = self.state == State::Osc;
        let ends = |b: &u8| matches!(*b, ESC | CAN | SUB) || (is_osc && *b == BEL);
        let len = chunk.iter().take_while(|b| !ends(b)).count();
        self.hold(chunk.get(..len).unwrap_or_default());
        let Some(&end) = chunk.get(len) else { return (Piece::Nothing, len) };
        let ended = self.state;
        self.state = if end == ESC { State::Escape } else { State::Ground };
        if matches!(end, CAN | SUB) || self.is_overlong || ended == State::Ignored {
            self.held.clear();
            if end == ESC {
                self.start_escape();
            }
            return (Piece::Nothing, len + 1);
        }
        let terminator = if end == BEL { Terminator::Bell } else { Terminator::Esc };
        self.is_done = true;
        let content = self.held.as_slice();
        (if is_osc { Piece::Osc(content, terminator) } else { Piece::Dcs(content) }, len + 1)
    }

    fn hold(&mut self, bytes: &[u8]) {
        let room = STRING_BYTES_MAX - self.held.len().min(STRING_BYTES_MAX);
        self.is_overlong |= bytes.len() > room;
        if self.state != State::Ignored {
            self.held.extend(bytes.iter().take(room));
        }
    }

    fn finish<'a>(&'a mut self, piece: fn(&'a [u8]) -> Piece<'a>) -> Piece<'a> {
        self.state = State::Ground;
        self.is_done = true;
        if self.is_overlong { Piece::Nothing } else { piece(&self.held) }
    }
}

/// The sequence at the start of this chunk, if it is complete and well-formed.
fn whole_sequence(chunk: &[u8]) -> Option<&[u8]> {
    let is_csi = match *chunk.get(1)? {
        b'[' => true,
        // Strings are never whole.
        b']' | b'P' | b'X' | b'^' | b'_' => return None,
        _ => false,
    };
    let from = if is_csi { 2 } else { 1 };
    let rest = chunk.get(from..)?;
    let parameters = rest.iter().take_while(|b| is_csi && (0x30..=0x3f).contains(*b)).count();
    let between = rest.get(parameters..)?.iter().take_while(|b| (0x20..=0x2f).contains(*b)).count();
    let last = *rest.get(parameters + between)?;
    let is_final = if is_csi { (0x40..=0x7e).contains(&last) } else { (0x30..=0x7e).contains(&last) };
    let len = from + parameters + between + 1;
    // The limit applies to a sequence in one piece as to a held one.
    (is_final && len <= SEQUENCE_BYTES_MAX).then(|| chunk.get(..len)).flatten()
}
