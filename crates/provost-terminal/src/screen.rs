//! The emulator: what the bytes of a program come to on a screen.

use std::num::NonZeroU16;

use provost_event::WindowSize;

use crate::Signal;

/// Where the cursor is, from 0, and whether it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// The row.
    pub row: u16,
    /// The column; may be one past the last.
    pub col: u16,
    /// Whether it is shown.
    pub visible: bool,
}

/// The modes that whoever types or looks must know of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Modes {
    /// The alternate screen is shown.
    pub alternate: bool,
    /// Pasted text is to be bracketed.
    pub bracketed_paste: bool,
    /// The program is in the middle of painting a frame (synchronized update).
    pub synchronized: bool,
    /// Cursor keys send their application forms.
    pub application_cursor: bool,
}

/// A screen and what came with it.
pub struct Screen {
    parser: vt100::Parser<Heard>,
}

#[derive(Default)]
struct Heard {
    signals: Vec<Signal>,
    replies: Vec<u8>,
    synchronized: bool,
}

impl vt100::Callbacks for Heard {}

impl Screen {
    /// An empty screen.
    #[must_use]
    pub fn new(size: WindowSize) -> Self {
        let (rows, cols) = cells(size);
        Self { parser: vt100::Parser::new_with_callbacks(rows, cols, 0, Heard::default()) }
    }

    /// Takes in what the program wrote. Sequences and characters may be cut anywhere.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.parser.process(bytes);
    }

    /// Gives it another size.
    pub fn resize(&mut self, size: WindowSize) {
        let (rows, cols) = cells(size);
        self.parser.screen_mut().set_size(rows, cols);
    }

    /// What programs reported since the last call.
    pub fn take_signals(&mut self) -> Vec<Signal> {
        std::mem::take(&mut self.parser.callbacks_mut().signals)
    }

    /// What a terminal would have answered to queries since the last call, in their order.
    pub fn take_replies(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.parser.callbacks_mut().replies)
    }

    /// The rows' texts, without trailing blanks.
    #[must_use]
    pub fn rows(&self) -> Vec<String> {
        let screen = self.parser.screen();
        let (_, cols) = screen.size();
        screen.rows(0, cols.get()).map(|row| row.trim_end().to_owned()).collect()
    }

    /// The cursor.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        let screen = self.parser.screen();
        let (row, col) = screen.cursor_position();
        Cursor { row, col, visible: !screen.hide_cursor() }
    }

    /// The modes in force.
    #[must_use]
    pub fn modes(&self) -> Modes {
        let screen = self.parser.screen();
        Modes {
            alternate: screen.alternate_screen(),
            bracketed_paste: screen.bracketed_paste(),
            synchronized: self.parser.callbacks().synchronized,
            application_cursor: screen.application_cursor(),
        }
    }

    /// Bytes that paint this screen, with its modes, on a fresh terminal of the same size.
    #[must_use]
    pub fn snapshot(&self) -> Vec<u8> {
        self.parser.screen().state_formatted().into_bytes()
    }
}

fn cells(size: WindowSize) -> (NonZeroU16, NonZeroU16) {
    let cells = |count| NonZeroU16::new(count).unwrap_or(NonZeroU16::MIN);
    (cells(size.rows), cells(size.cols))
}
