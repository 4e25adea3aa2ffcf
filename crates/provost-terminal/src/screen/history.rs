//! What has scrolled off the main screen. Keeping rows as cells would cost every terminal much memory, and floods of
//! lines the shortcut that they take. So the output itself is kept, and rows are made of it when a terminal attaches.

use std::collections::VecDeque;

use provost_event::WindowSize;

use super::Screen;

/// Maximum bytes of output that are kept; the oldest are dropped.
const HISTORY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Maximum rows that are made of it.
const ROWS_MAX: usize = 10_000;
/// Output that comes in small pieces is kept in pieces of at least this size.
const PIECE_BYTES: usize = 16 * 1024;

/// The output of a program on the main screen, with the window's sizes.
pub(super) struct History {
    /// The size before the first part.
    size: WindowSize,
    parts: VecDeque<Part>,
    bytes: usize,
    /// The beginning was dropped.
    is_cut: bool,
}

enum Part {
    Output(Vec<u8>),
    Resize(WindowSize),
}

impl History {
    pub(super) const fn new(size: WindowSize) -> Self {
        Self { size, parts: VecDeque::new(), bytes: 0, is_cut: false }
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        match self.parts.back_mut() {
            Some(Part::Output(last)) if last.len() < PIECE_BYTES => last.extend_from_slice(bytes),
            _ => self.parts.push_back(Part::Output(bytes.to_vec())),
        }
        self.bytes += bytes.len();
        while self.bytes > HISTORY_BYTES_MAX {
            match self.parts.pop_front() {
                Some(Part::Output(dropped)) => {
                    self.bytes = self.bytes.saturating_sub(dropped.len());
                    self.is_cut = true;
                }
                Some(Part::Resize(size)) => self.size = size,
                None => break,
            }
        }
    }

    pub(super) fn resize(&mut self, size: WindowSize) {
        match self.parts.back_mut() {
            Some(Part::Resize(last)) => *last = size,
            _ => self.parts.push_back(Part::Resize(size)),
        }
    }

    /// The rows that have scrolled off, a row a line.
    pub(super) fn scrollback(&self) -> String {
        let mut screen = Screen::with_rows(self.size, ROWS_MAX);
        let mut is_cut = self.is_cut;
        for part in &self.parts {
            match part {
                Part::Resize(size) => screen.resize(*size),
                Part::Output(bytes) if is_cut => {
                    // It may begin within a sequence.
                    let first = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
                    screen.paint(bytes.get(first..).unwrap_or_default());
                    is_cut = false;
                }
                Part::Output(bytes) => screen.paint(bytes),
            }
        }
        rows_of(&mut screen)
    }
}

fn rows_of(screen: &mut Screen) -> String {
    if screen.emulator.is_alternate() {
        screen.emulator.parser.process(b"\x1b[?1049l");
    }
    let screen = screen.emulator.parser.screen_mut();
    let (rows, cols) = screen.size();
    let rows = usize::from(rows.get());
    let cols = cols.get();
    let kept = screen.scrollback_len();
    let mut text = String::new();
    for first in (0..kept).step_by(rows) {
        screen.set_scrollback(kept - first);
        for row in screen.rows_formatted(0, cols).take(rows.min(kept - first)) {
            text.push_str("\x1b[m");
            text.push_str(&row);
            text.push_str("\x1b[m\r\n");
        }
    }
    text
}
