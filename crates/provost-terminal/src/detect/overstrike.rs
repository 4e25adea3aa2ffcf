//! Rows whose text was written over: a name with a return or backspaces in it can show another name.
//!
//! Programs repaint their rows from frame to frame. They come to a row by moving to it, so that only text that is
//! replaced without leaving its row counts.

use std::collections::VecDeque;

use crate::Screen;
use crate::profile::bare;

/// How many such rows are remembered.
const ROWS_MAX: usize = 64;
/// Maximum rows of one line that was wrapped.
const WRAPPED_ROWS_MAX: u16 = 6;

/// Watches the row that is being written.
#[derive(Debug, Default)]
pub(super) struct Overstrike {
    rows: VecDeque<String>,
    at: At,
    parameters: Vec<u8>,
    /// The columns that were written since the cursor came to the row.
    cols: usize,
    /// The cursor has gone back in the row.
    is_back: bool,
    /// Text of the row was replaced.
    is_struck: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum At {
    #[default]
    Text,
    Escape,
    Control,
    /// A title, a link: not shown.
    Unshown,
    UnshownEscape,
}

/// Maximum parameters of a sequence that are read.
const PARAMETERS_MAX: usize = 16;

impl Overstrike {
    /// Feeds `bytes` to the screen, and remembers the rows in which text was replaced.
    pub(super) fn feed(&mut self, screen: &mut Screen, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(end) = self.end_of_struck_row(rest) {
            let (row, after) = rest.split_at(end);
            screen.feed(row);
            self.note(screen);
            self.is_struck = false;
            rest = after;
        }
        screen.feed(rest);
    }

    /// The rows so far, with the present one.
    pub(super) fn rows(&mut self, screen: &Screen) -> Vec<String> {
        if self.is_struck {
            self.note(screen);
        }
        self.rows.iter().cloned().collect()
    }

    fn note(&mut self, screen: &Screen) {
        let mut row = screen.cursor().row;
        for _ in 0..WRAPPED_ROWS_MAX {
            let text = screen.row_text(row, 0, u16::MAX);
            let text = bare(&text);
            if !text.is_empty() && !self.rows.iter().any(|known| known == text) {
                self.rows.push_back(text.to_owned());
            }
            match row.checked_sub(1).filter(|above| screen.row_wraps(*above)) {
                Some(above) => row = above,
                None => break,
            }
        }
        while self.rows.len() > ROWS_MAX {
            self.rows.pop_front();
        }
    }

    /// Where a row with replaced text is left, if that is within `bytes`.
    fn end_of_struck_row(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut sequence = 0;
        for (at, byte) in bytes.iter().enumerate() {
            if *byte == 0x1b {
                sequence = at;
            }
            if !self.leaves_row(*byte) {
                continue;
            }
            (self.cols, self.is_back) = (0, false);
            if self.is_struck {
                // What leaves the row is taken once more after it.
                let end = if *byte == b'\n' { at } else { sequence };
                self.at = At::Text;
                return Some(end);
            }
        }
        None
    }

    fn leaves_row(&mut self, byte: u8) -> bool {
        match (self.at, byte) {
            (At::Unshown, 0x07) | (At::UnshownEscape, _) => self.at = At::Text,
            (At::Unshown, 0x1b) => self.at = At::UnshownEscape,
            (At::Unshown, _) => {}
            (_, 0x1b) => self.at = At::Escape,
            (At::Escape, b'[') => {
                self.at = At::Control;
                self.parameters.clear();
            }
            (At::Escape, b']' | b'P' | b'_' | b'^' | b'X') => self.at = At::Unshown,
            (At::Escape, _) => {
                self.at = At::Text;
                return matches!(byte, b'8' | b'D' | b'E' | b'M' | b'c');
            }
            (At::Control, 0x20..=0x3f) => {
                if self.parameters.len() < PARAMETERS_MAX {
                    self.parameters.push(byte);
                }
            }
            (At::Control, _) => {
                self.at = At::Text;
                return self.moves(byte);
            }
            (At::Text, b'\n') => return true,
            (At::Text, b'\r') => self.is_back |= self.cols > 0,
            (At::Text, 0x08) => self.is_back |= self.cols > 0,
            // The later bytes of a character.
            (At::Text, 0x80..=0xbf) => {}
            (At::Text, 0x20..) => {
                self.is_struck |= self.is_back;
                self.cols += 1;
            }
            (At::Text, _) => {}
        }
        false
    }

    /// What a control sequence with this last byte does. Returns whether the cursor leaves its row.
    fn moves(&mut self, last: u8) -> bool {
        let number = || std::str::from_utf8(&self.parameters).ok()?.parse::<usize>().ok();
        match last {
            b'D' => self.is_back |= self.cols > 0,
            // To a column: to the right of the text it is no way back.
            b'G' | b'`' => self.is_back |= number().unwrap_or(1) <= self.cols,
            b'A' | b'B' | b'E' | b'F' | b'H' | b'd' | b'e' | b'f' | b'r' | b'u' => return true,
            _ => {}
        }
        false
    }
}
