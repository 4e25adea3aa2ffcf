//! Wraps the library that keeps the cells, and adds what real programs use and it doesn't support: line drawing,
//! clipped lines, insert mode, cursor saving and tabs of older terminals, a cursor that stays in place when the
//! screen switches. All of that is translated into sequences that the library supports.

use provost_event::WindowSize;
use unicode_width::UnicodeWidthChar as _;

use super::charset::drawn;
use super::csi::Csi;
use super::flood::without_what_scrolls_off;
use super::heard::SignalQueue;
use super::modes::{Grid, Kept};
use super::scan::{BACKSPACE, Piece, Terminator};
use super::state::cursor_style;
use crate::Signal;
use crate::query::{Replies, Reply, answer_dcs, answer_osc};
use crate::signal::Reports;

/// Maximum titles on the stack.
const TITLES_MAX: usize = 10;
const TAB_COLS: u16 = 8;
/// Requests the emoji form of the preceding character, which is wider. At the end of a line the library fails on
/// it, and xterm has no such form.
const WIDENER: char = '\u{fe0f}';

pub(crate) struct Emulator {
    pub(crate) parser: vt100::Parser<SignalQueue>,
    pub(crate) kept: Kept,
    pub(crate) title: String,
    titles: Vec<String>,
    reports: Reports,
    pub(super) replies: Replies,
    /// The first bytes of an incomplete character.
    partial: Vec<u8>,
    /// Whether the program has ever painted a synchronized update.
    pub(crate) has_updates: bool,
    /// Rows are kept that have scrolled off.
    keeps_rows: bool,
}

impl Emulator {
    /// Keeps up to `kept_rows` rows that have scrolled off.
    pub(crate) fn new(size: WindowSize, kept_rows: usize) -> Self {
        let (rows, cols) = super::cells(size);
        Self {
            parser: vt100::Parser::new_with_callbacks(rows, cols, kept_rows, SignalQueue::default()),
            kept: Kept::default(),
            title: String::new(),
            titles: Vec::new(),
            reports: Reports::default(),
            replies: Replies::default(),
            partial: Vec::new(),
            has_updates: false,
            keeps_rows: kept_rows > 0,
        }
    }

    pub(crate) fn resize(&mut self, size: WindowSize) {
        let (rows, cols) = super::cells(size);
        self.parser.screen_mut().set_size(rows, cols);
        self.kept.forget_regions();
    }

    pub(crate) fn take_signals(&mut self) -> Vec<Signal> {
        self.parser.callbacks_mut().take()
    }

    pub(crate) fn take_replies(&mut self) -> Vec<u8> {
        self.replies.take()
    }

    /// Whether the library may get this piece unchanged, without any state to update here.
    pub(crate) fn lets_through(&self, piece: &Piece<'_>) -> bool {
        match piece {
            _ if !self.partial.is_empty() => false,
            Piece::Text([BACKSPACE]) => false,
            Piece::Text(text) => self.is_painted_as_it_is(text),
            Piece::Csi([_, _, first, .., last] | [_, _, first @ last]) => {
                !matches!(first, b'<'..=b'?')
                    && matches!(last, b'C' | b'E'..=b'H' | b'J'..=b'M' | b'm' | b'P' | b'S' | b'T' | b'X' | b'f' | b'@')
            }
            _ => false,
        }
    }

    /// Whether text needs no handling of single characters.
    fn is_painted_as_it_is(&self, text: &[u8]) -> bool {
        let looks = self.kept.clips || self.kept.inserts || self.kept.charsets.is_drawing();
        // Both characters that the library doesn't accept begin with this byte, and few others do.
        !looks && !text.contains(&0xef) && std::str::from_utf8(text).is_ok()
    }

    /// Passes whole characters and sequences to the library.
    pub(crate) fn process(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let grid = self.kept.grid(self.is_alternate());
        let may_skip = grid.region.is_none() && !grid.origin && !self.keeps_rows;
        match without_what_scrolls_off(bytes, self.size().0).filter(|_| may_skip) {
            Some(rest) => {
                self.parser.process(&rest.colours);
                self.parser.process(rest.text);
            }
            None => self.parser.process(bytes),
        }
    }

    pub(crate) fn take(&mut self, piece: &Piece<'_>) {
        if let Piece::Text(text) = piece {
            return self.text(text);
        }
        self.end_partial();
        match *piece {
            Piece::Shift(is_shifted) => self.kept.charsets.shift(is_shifted),
            Piece::Escape(sequence) => self.escape(sequence),
            Piece::Csi(sequence) => self.csi(sequence),
            Piece::Osc(payload, terminator) => self.osc(payload, terminator),
            Piece::Dcs(content) => self.dcs(content),
            Piece::Text(_) | Piece::Nothing => {}
        }
    }

    pub(super) fn screen(&self) -> &vt100::Screen {
        self.parser.screen()
    }

    pub(super) fn is_alternate(&self) -> bool {
        self.screen().alternate_screen()
    }

    pub(crate) fn size(&self) -> (u16, u16) {
        let (rows, cols) = self.screen().size();
        (rows.get(), cols.get())
    }

    fn grid_mut(&mut self) -> &mut Grid {
        let alternate = self.is_alternate();
        self.kept.grid_mut(alternate)
    }

    /// Anything but its remaining bytes ends a character.
    fn end_partial(&mut self) {
        if !std::mem::take(&mut self.partial).is_empty() {
            self.character(char::REPLACEMENT_CHARACTER);
        }
    }

    /// Text that is handled by character. The library loses a cut character, so its first bytes are kept until the
    /// rest arrives.
    fn text(&mut self, text: &[u8]) {
        if text == [BACKSPACE] {
            self.end_partial();
            self.step_back_onto_line();
            return self.process(text);
        }
        let mut bytes = std::mem::take(&mut self.partial);
        bytes.extend_from_slice(text);
        let (whole, start) = bytes.split_at(bytes.len() - start_of_character(&bytes));
        self.partial = start.to_vec();
        if self.is_painted_as_it_is(whole) {
            return self.process(whole);
        }
        for chunk in whole.utf8_chunks() {
            chunk.valid().chars().for_each(|c| self.character(c));
            if !chunk.invalid().is_empty() {
                self.character(char::REPLACEMENT_CHARACTER);
            }
        }
    }

    fn character(&mut self, c: char) {
        let c = match c {
            char::REPLACEMENT_CHARACTER => super::STAND_IN,
            _ if self.kept.charsets.is_drawing() => drawn(c),
            _ => c,
        };
        let width = c.width().and_then(|width| u16::try_from(width).ok()).unwrap_or(0);
        let (_, cols) = self.size();
        if c == WIDENER && self.screen().cursor_position().1 >= cols {
            return;
        }
        if self.kept.clips && width > 0 && self.screen().cursor_position().1 + width > cols {
            self.process(format!("\x1b[{}G", (cols + 1).saturating_sub(width)).as_bytes());
        }
        if self.kept.inserts && width > 0 {
            self.process(format!("\x1b[{width}@").as_bytes());
        }
        self.process(c.encode_utf8(&mut [0; 4]).as_bytes());
    }

    fn escape(&mut self, sequence: &[u8]) {
        match sequence {
            [_, b'7'] => self.save_cursor(),
            [_, b'8'] => self.restore_cursor(),
            [_, b'D'] => self.process(b"\n"),
            [_, b'E'] => self.process(b"\r\n"),
            [_, b'Z'] => self.replies.push(Reply::Attributes),
            [_, b'c'] => {
                self.process(sequence);
                self.kept = Kept::default();
            }
            [_, slot @ (b'(' | b')'), set] => self.kept.charsets.designate(*slot, *set),
            _ => self.process(sequence),
        }
    }

    fn save_cursor(&mut self) {
        self.process(b"\x1b7");
        self.kept.saved_charsets = self.kept.charsets;
        let grid = self.grid_mut();
        grid.saved_origin = grid.origin;
    }

    fn restore_cursor(&mut self) {
        self.process(b"\x1b8");
        self.kept.charsets = self.kept.saved_charsets;
        let grid = self.grid_mut();
        grid.origin = grid.saved_origin;
    }

    /// Moves the cursor to a position in the window, independent of the origin mode.
    fn place(&mut self, (row, col): (u16, u16)) {
        let grid = *self.grid_mut();
        let top = grid.region.filter(|_| grid.origin).map_or(0, |region| region.0);
        let sequence = format!("\x1b[{};{}H", row.saturating_sub(top) + 1, col + 1);
        self.process(sequence.as_bytes());
    }

    /// A cursor past the last column counts as on it for all movements, except those of text.
    fn step_back_onto_line(&mut self) {
        let (_, cols) = self.size();
        if self.screen().cursor_position().1 >= cols {
            self.process(format!("\x1b[{cols}G").as_bytes());
        }
    }

    fn csi(&mut self, sequence: &[u8]) {
        let Some(csi) = sequence.get(2..).and_then(Csi::parse) else { return self.process(sequence) };
        let alternate = self.is_alternate();
        match csi.name.as_str() {
            "?h" => self.private_modes(&csi, true),
            "?l" => self.private_modes(&csi, false),
            "h" => self.ansi_modes(&csi, true),
            "l" => self.ansi_modes(&csi, false),
            "r" => self.scroll_region(&csi, sequence),
            "A" | "B" | "D" | "d" => {
                self.step_back_onto_line();
                self.process(sequence);
            }
            "s" if csi.len() == 0 => self.save_cursor(),
            "u" if csi.len() == 0 => self.restore_cursor(),
            ">u" => self.kept.push_keyboard(alternate, csi.parameter(0)),
            "<u" => self.kept.pop_keyboard(alternate, csi.count(0)),
            "=u" => self.kept.set_keyboard(alternate, csi.parameter(0), csi.parameter(1)),
            ">m" if matches!(csi.parameter(0), 0 | 4) => {
                self.kept.modify_other_keys = u8::try_from(csi.parameter(1).min(2)).unwrap_or(0);
            }
            ">n" if csi.parameter(0) == 4 => self.kept.modify_other_keys = 0,
            "I" => self.process("\t".repeat(usize::from(csi.count(0).min(self.size().1))).as_bytes()),
            "Z" => self.back_tab(csi.count(0)),
            "a" => self.process(format!("\x1b[{}C", csi.count(0)).as_bytes()),
            "e" => {
                self.step_back_onto_line();
                self.process(format!("\x1b[{}B", csi.count(0)).as_bytes());
            }
            "b" => self.repeat(csi.count(0)),
            "!p" => self.soft_reset(),
            "t" if csi.parameter(0) == 22 => self.push_title(),
            "t" if csi.parameter(0) == 23 => self.pop_title(),
            _ => self.answer_or_process(&csi, sequence),
        }
    }

    /// The library takes a region without rows for the whole window, and moves the cursor to the region's top.
    fn scroll_region(&mut self, csi: &Csi, sequence: &[u8]) {
        let (rows, _) = self.size();
        let bottom = if csi.parameter(1) == 0 { rows } else { csi.parameter(1).min(rows) };
        let (top, bottom) = (csi.count(0) - 1, bottom - 1);
        if top >= bottom && rows > 1 {
            return;
        }
        self.process(sequence);
        let grid = self.grid_mut();
        grid.region = ((top, bottom + 1) != (0, rows)).then_some((top, bottom));
        if !grid.origin {
            self.process(b"\x1b[H");
        }
    }

    fn ansi_modes(&mut self, csi: &Csi, on: bool) {
        if csi.parameters().any(|mode| mode == 4) {
            self.kept.inserts = on;
        }
    }

    fn private_modes(&mut self, csi: &Csi, on: bool) {
        csi.parameters().for_each(|mode| self.private_mode(mode, on));
    }

    fn private_mode(&mut self, mode: u16, on: bool) {
        match mode {
            7 => self.kept.clips = !on,
            66 => self.process(if on { b"\x1b=" } else { b"\x1b>" }),
            47 | 1047 | 1049 => self.alternate_screen(mode, on),
            1004 => self.kept.focus_reports = on,
            1048 if on => self.save_cursor(),
            1048 => self.restore_cursor(),
            2026 => {
                self.kept.synchronized = on;
                self.has_updates = true;
            }
            2027 => self.kept.graphemes = on,
            2031 => self.kept.scheme_reports = on,
            _ => {
                if mode == 6 {
                    self.grid_mut().origin = on;
                }
                self.process(format!("\x1b[?{mode}{}", if on { 'h' } else { 'l' }).as_bytes());
            }
        }
    }

    /// xterm has one cursor for both screens; the library has one for each, so it is restored.
    fn alternate_screen(&mut self, mode: u16, on: bool) {
        let was_on = self.is_alternate();
        let cursor = self.screen().cursor_position();
        match (on, mode) {
            (true, 1049) => {
                self.save_cursor();
                self.process(b"\x1b[?1049h");
                *self.kept.grid_mut(true) = Grid::default();
            }
            (true, _) => self.process(b"\x1b[?47h"),
            (false, 1049) => {
                self.process(b"\x1b[?47l");
                return self.restore_cursor();
            }
            (false, _) => {
                let clears = mode == 1047 && was_on;
                self.process(if clears { b"\x1b[2J\x1b[?47l" } else { b"\x1b[?47l" });
            }
        }
        if was_on != on {
            self.place(cursor);
        }
    }

    fn back_tab(&mut self, count: u16) {
        let (_, cols) = self.size();
        let mut col = self.screen().cursor_position().1.min(cols - 1);
        for _ in 0..count.min(cols) {
            col = col.saturating_sub(1) / TAB_COLS * TAB_COLS;
        }
        self.process(format!("\x1b[{}G", col + 1).as_bytes());
    }

    /// A few bytes can request tens of thousands of characters: those beyond a full screen look the same.
    fn repeat(&mut self, count: u16) {
        let (rows, cols) = self.size();
        let full = rows.saturating_mul(cols);
        let count = if count > full { full.saturating_add(count % cols) } else { count };
        self.process(format!("\x1b[{count}b").as_bytes());
    }

    fn soft_reset(&mut self) {
        let cursor = self.screen().cursor_position();
        self.process(b"\x1b[?25h\x1b[?1l\x1b>\x1b[?6l\x1b[r\x1b[m");
        *self.grid_mut() = Grid::default();
        self.kept.charsets = super::charset::Charsets::default();
        self.kept.inserts = false;
        self.kept.clips = false;
        self.place(cursor);
    }

    fn osc(&mut self, payload: &[u8], terminator: Terminator) {
        for reply in answer_osc(payload, terminator) {
            self.replies.push(reply);
        }
        match self.reports.read(payload) {
            Some(Signal::Title(title)) => self.entitle(title),
            Some(signal) => self.parser.callbacks_mut().push(signal),
            None => {}
        }
    }

    fn entitle(&mut self, title: String) {
        self.title.clone_from(&title);
        self.parser.callbacks_mut().push(Signal::Title(title));
    }

    fn push_title(&mut self) {
        if self.titles.len() < TITLES_MAX {
            self.titles.push(self.title.clone());
        }
    }

    fn pop_title(&mut self) {
        if let Some(title) = self.titles.pop() {
            self.entitle(title);
        }
    }

    fn dcs(&mut self, content: &[u8]) {
        match content {
            // The older form of a synchronized update.
            b"=1s" => self.kept.synchronized = true,
            b"=2s" => self.kept.synchronized = false,
            _ => {
                let attributes = self.screen().attributes_formatted();
                let attributes = attributes.trim_start_matches("\x1b[m").trim_start_matches("\x1b[");
                let attributes =
                    attributes.strip_suffix('m').map_or("0".to_owned(), |some| format!("0;{some}"));
                if let Some(reply) =
                    answer_dcs(content, cursor_style(self.screen().cursor_style()), &attributes)
                {
                    self.replies.push(reply);
                }
            }
        }
    }
}

/// The number of bytes at the end that begin an incomplete character.
fn start_of_character(bytes: &[u8]) -> usize {
    let tail = bytes.get(bytes.len().saturating_sub(3)..).unwrap_or_default();
    let Some(lead) = tail.iter().rposition(|b| *b >= 0xc0) else { return 0 };
    let start = tail.get(lead..).unwrap_or_default();
    let is_cut = std::str::from_utf8(start).is_err_and(|error| error.error_len().is_none());
    if is_cut { start.len() } else { 0 }
}
