//! The emulator's state: its modes, and replies to queries about it.

use provost_event::WindowSize;

use super::csi::Csi;
use super::emulator::Emulator;
use crate::query::{Dec, QueryState, answer_csi};
use provost_process::{Modes, Mouse};

impl Emulator {
    /// Replies to a query; passes any other sequence to the library.
    pub(super) fn answer_or_process(&mut self, csi: &Csi, sequence: &[u8]) {
        let (rows, cols) = self.size();
        let (row, col) = self.screen().cursor_position();
        let grid = self.kept.grid(self.is_alternate());
        let top = grid.region.filter(|_| grid.origin).map_or(0, |region| region.0);
        let asked = QueryState {
            size: WindowSize::new(rows, cols),
            cursor: (row.saturating_sub(top) + 1, (col + 1).min(cols)),
            keyboard_flags: self.kept.keyboard_flags(self.is_alternate()),
            modify_other_keys: self.kept.modify_other_keys,
            mode: &|number, dec| self.mode(number, dec),
        };
        match answer_csi(csi, &asked) {
            Some(reply) => self.replies.push(reply),
            None => self.process(sequence),
        }
    }

    /// Whether a mode is set; `None` for an unsupported mode.
    fn mode(&self, number: u16, dec: Dec) -> Option<bool> {
        let (screen, kept, modes) = (self.screen(), &self.kept, self.modes());
        match (dec, number) {
            (Dec::Ansi, 4) => Some(kept.inserts),
            (Dec::Ansi, 20) => Some(false),
            (Dec::Ansi, _) => None,
            (Dec::Private, 1) => Some(modes.application_cursor),
            (Dec::Private, 6) => Some(kept.grid(modes.alternate).origin),
            (Dec::Private, 7) => Some(!kept.clips),
            (Dec::Private, 9) => Some(modes.mouse == Mouse::Press),
            (Dec::Private, 25) => Some(!screen.hide_cursor()),
            (Dec::Private, 47 | 1047 | 1049) => Some(modes.alternate),
            (Dec::Private, 66) => Some(modes.application_keypad),
            (Dec::Private, 1000) => Some(modes.mouse == Mouse::PressRelease),
            (Dec::Private, 1002) => Some(modes.mouse == Mouse::Drag),
            (Dec::Private, 1003) => Some(modes.mouse == Mouse::Motion),
            (Dec::Private, 1004) => Some(modes.focus_reports),
            (Dec::Private, 1005) => {
                Some(screen.mouse_protocol_encoding() == vt100::MouseProtocolEncoding::Utf8)
            }
            (Dec::Private, 1006) => Some(modes.mouse_sgr),
            (Dec::Private, 2004) => Some(modes.bracketed_paste),
            (Dec::Private, 2026) => Some(modes.synchronized),
            (Dec::Private, 2027) => Some(kept.graphemes),
            (Dec::Private, 2031) => Some(kept.scheme_reports),
            (Dec::Private, _) => None,
        }
    }

    pub(crate) fn modes(&self) -> Modes {
        let screen = self.screen();
        Modes {
            alternate: screen.alternate_screen(),
            bracketed_paste: screen.bracketed_paste(),
            synchronized: self.kept.synchronized,
            application_cursor: screen.application_cursor(),
            application_keypad: screen.application_keypad(),
            focus_reports: self.kept.focus_reports,
            mouse: match screen.mouse_protocol_mode() {
                vt100::MouseProtocolMode::None => Mouse::Off,
                vt100::MouseProtocolMode::Press => Mouse::Press,
                vt100::MouseProtocolMode::PressRelease => Mouse::PressRelease,
                vt100::MouseProtocolMode::ButtonMotion => Mouse::Drag,
                vt100::MouseProtocolMode::AnyMotion => Mouse::Motion,
            },
            mouse_sgr: screen.mouse_protocol_encoding() == vt100::MouseProtocolEncoding::Sgr,
            keyboard_flags: self.kept.keyboard_flags(screen.alternate_screen()),
            modify_other_keys: self.kept.modify_other_keys,
        }
    }
}

/// The number that sets a shape of the cursor.
pub(super) const fn cursor_style(style: vt100::CursorStyle) -> u8 {
    match style {
        vt100::CursorStyle::Default | vt100::CursorStyle::BlinkBlock => 1,
        vt100::CursorStyle::SteadyBlock => 2,
        vt100::CursorStyle::BlinkUnderline => 3,
        vt100::CursorStyle::SteadyUnderline => 4,
        vt100::CursorStyle::BlinkVerticalBar => 5,
        vt100::CursorStyle::SteadyVerticalBar => 6,
    }
}
