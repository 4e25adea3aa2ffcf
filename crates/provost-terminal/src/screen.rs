//! The emulator: turns a program's output into a screen.

mod charset;
pub(crate) mod csi;
mod emulator;
mod flood;
mod heard;
mod history;
mod modes;
pub(crate) mod scan;
mod snapshot;
mod state;
mod style;

use std::num::NonZeroU16;

use provost_event::WindowSize;
use provost_process::{Cursor, Modes};

pub use style::{Colour, Run, Style};

use crate::Signal;
use emulator::Emulator;
use history::History;
use scan::{Piece, Scanner};

/// A screen with its reports and replies.
///
/// Its memory is bounded for any output: cells by the window, unfinished sequences by 4 KiB, reports by 256,
/// replies by 32 KiB, the history by 4 MiB. It has no clock; see [`Modes::synchronized`]. It differs from xterm in that tabs are every
/// eight columns, a window of one column is kept as one of two, and erasing the rest of a full line leaves its
/// last character.
pub struct Screen {
    scanner: Scanner,
    emulator: Emulator,
    size: WindowSize,
    /// Absent where none is kept.
    history: Option<History>,
}

impl Screen {
    /// An empty screen.
    #[must_use]
    pub fn new(size: WindowSize) -> Self {
        Self { scanner: Scanner::default(), emulator: Emulator::new(size, 0), size, history: None }
    }

    /// An empty screen that keeps what it needs for [`scrollback`](Self::scrollback).
    #[must_use]
    pub fn with_history(size: WindowSize) -> Self {
        Self { history: Some(History::new(size)), ..Self::new(size) }
    }

    /// An empty screen that keeps up to `rows` rows that have scrolled off.
    fn with_rows(size: WindowSize, rows: usize) -> Self {
        Self { emulator: Emulator::new(size, rows), ..Self::new(size) }
    }

    /// Handles output of the program. Sequences and characters may be cut anywhere.
    pub fn feed(&mut self, bytes: &[u8]) {
        let was_alternate = self.emulator.is_alternate();
        self.paint(bytes);
        // What is painted on the alternate screen never scrolls off the main one.
        if !(was_alternate && self.emulator.is_alternate())
            && let Some(history) = &mut self.history
        {
            history.add(bytes);
        }
    }

    fn paint(&mut self, bytes: &[u8]) {
        let (mut run_start, mut at) = (0, 0);
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let (piece, len) = self.scanner.next(rest);
            // Pieces that are whole in this chunk and need no special handling go to the library together with
            // their neighbours.
            if !(is_in_chunk(&piece, len) && self.emulator.lets_through(&piece)) {
                self.emulator.process(bytes.get(run_start..at).unwrap_or_default());
                self.emulator.take(&piece);
                run_start = at + len;
            }
            at += len;
        }
        self.emulator.process(bytes.get(run_start..at).unwrap_or_default());
    }

    /// Sets the window size.
    pub fn resize(&mut self, size: WindowSize) {
        self.size = size;
        self.emulator.resize(size);
        if let Some(history) = &mut self.history {
            history.resize(size);
        }
    }

    /// The rows that have scrolled off the main screen, painted, a row a line, the oldest first: the last 10,000 as far
    /// as they are in the last 4 MiB of output. Empty for a screen without [history](Self::with_history).
    #[must_use]
    pub fn scrollback(&self) -> Vec<u8> {
        self.history.as_ref().map_or_else(Vec::new, |history| told(history.scrollback()).into_bytes())
    }

    /// Its size.
    #[must_use]
    pub const fn size(&self) -> WindowSize {
        self.size
    }

    /// The reports since the last call, in order; at most the last 256. Adjacent bells count as one.
    pub fn take_signals(&mut self) -> Vec<Signal> {
        self.emulator.take_signals()
    }

    /// The replies to queries since the last call, in order, but device attributes after all others; at most 32
    /// KiB, further replies are dropped.
    pub fn take_replies(&mut self) -> Vec<u8> {
        self.emulator.take_replies()
    }

    /// The rows' texts, without trailing blanks.
    #[must_use]
    pub fn rows(&self) -> Vec<String> {
        let screen = self.emulator.parser.screen();
        screen.rows(0, self.size.cols.max(1)).map(|row| told(row).trim_end_matches(' ').to_owned()).collect()
    }

    /// The text of one row's cells from column `from` up to `to` (from 0, exclusive), including blanks; empty
    /// beyond the window.
    #[must_use]
    pub fn row_text(&self, row: u16, from: u16, to: u16) -> String {
        let screen = self.emulator.parser.screen();
        screen.rows(from, to.saturating_sub(from)).nth(usize::from(row)).map(told).unwrap_or_default()
    }

    /// Whether a row's text continues in the next because the line was full.
    #[must_use]
    pub fn row_wraps(&self, row: u16) -> bool {
        self.emulator.parser.screen().row_wrapped(row)
    }

    /// The parts of a row with the same style, from the left, including blanks; none beyond the window.
    #[must_use]
    pub fn runs(&self, row: u16) -> Vec<Run> {
        style::runs(self.emulator.parser.screen(), row)
    }

    /// A cell's style; `None` beyond the window.
    #[must_use]
    pub fn style(&self, row: u16, col: u16) -> Option<Style> {
        self.emulator.parser.screen().cell(row, col).map(style::style)
    }

    /// Whether a cell's colours are inverted; `false` beyond the window.
    #[must_use]
    pub fn is_inverse(&self, row: u16, col: u16) -> bool {
        self.style(row, col).is_some_and(|style| style.inverse)
    }

    /// Whether a cell is dim; `false` beyond the window.
    #[must_use]
    pub fn is_dim(&self, row: u16, col: u16) -> bool {
        self.style(row, col).is_some_and(|style| style.dim)
    }

    /// The cursor.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        let screen = self.emulator.parser.screen();
        let (row, col) = screen.cursor_position();
        Cursor { row, col, visible: !screen.hide_cursor() }
    }

    /// The window's title; empty if none was set. At most 1,024 characters, without control characters.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.emulator.title
    }

    /// The modes in force.
    #[must_use]
    pub fn modes(&self) -> Modes {
        self.emulator.modes()
    }

    /// Whether the program paints frames rather than writing lines: on the alternate screen, with a hidden cursor,
    /// or in synchronized updates.
    #[must_use]
    pub fn paints_frames(&self) -> bool {
        self.modes().alternate || !self.cursor().visible || self.emulator.has_updates
    }

    /// Identifies the readable content: the rows' texts (without trailing blanks), which screen it is, the
    /// cursor's position and visibility. Colours, title and modes don't count. It is stable within one version of
    /// Provost; don't store it.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let cursor = self.cursor();
        let rows = self.rows();
        let place = [
            u8::from(cursor.visible),
            u8::from(self.modes().alternate),
            cursor.row.to_le_bytes()[0],
            cursor.row.to_le_bytes()[1],
            cursor.col.to_le_bytes()[0],
            cursor.col.to_le_bytes()[1],
        ];
        rows.iter()
            .flat_map(|row| row.bytes().chain([b'\n']))
            .chain(place)
            .fold(FNV_BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME))
    }

    /// Bytes that paint this screen, with its modes, on a reset terminal of the same size. Below an alternate
    /// screen the main one is painted too. State that only later sequences would show (saved cursors, stacked
    /// titles) is left out.
    #[must_use]
    pub fn snapshot(&self) -> Vec<u8> {
        told(snapshot::snapshot(&self.emulator)).into_bytes()
    }
}

/// FNV-1a, 64 bits.
const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

fn is_in_chunk(piece: &Piece<'_>, taken: usize) -> bool {
    matches!(piece, Piece::Text(bytes) | Piece::Csi(bytes) if bytes.len() == taken)
}

/// The cells' placeholder for U+FFFD, which the library doesn't accept. Programs don't write it otherwise.
pub(crate) const STAND_IN: char = '\u{fffc}';

/// A text of the library, with placeholders restored.
pub(crate) fn told(text: String) -> String {
    if text.contains(STAND_IN) { text.replace(STAND_IN, "\u{fffd}") } else { text }
}

/// A window of one column has no room for a wide character, and the library fails on it.
const COLS_MIN: u16 = 2;

fn cells(size: WindowSize) -> (NonZeroU16, NonZeroU16) {
    let cells = |count| NonZeroU16::new(count).unwrap_or(NonZeroU16::MIN);
    (cells(size.rows), cells(size.cols.max(COLS_MIN)))
}
