//! The bytes that restore the present state on a reset terminal.

use super::emulator::Emulator;

/// Both screens if the alternate one is shown, so that the main one is there when the program leaves it; then the
/// scroll region, the cursor, and the modes in force. A synchronized update is left out: it would freeze the view.
pub(crate) fn snapshot(emulator: &Emulator) -> String {
    let screen = emulator.parser.screen();
    let (kept, alternate) = (&emulator.kept, screen.alternate_screen());
    let mut bytes = String::new();
    if alternate {
        bytes.push_str(&main_screen(emulator));
        bytes.push_str(&kept.keyboard_painted(false));
        bytes.push_str("\x1b[?1049h");
    }
    bytes.push_str(&screen.state_formatted());
    let grid = kept.grid(alternate);
    if let Some((top, bottom)) = grid.region {
        bytes.push_str(&format!("\x1b[{};{}r\x1b[m", top + 1, bottom + 1));
        bytes.push_str(&screen.cursor_state_formatted());
        bytes.push_str(&screen.attributes_formatted());
    }
    if grid.origin {
        // A cursor past the last column is put on the last one here: rows are counted from another origin.
        let (row, col) = screen.cursor_position();
        let top = grid.region.map_or(0, |region| region.0);
        bytes.push_str(&format!("\x1b[?6h\x1b[{};{}H", row.saturating_sub(top) + 1, col + 1));
    }
    for (is_set, sequence) in [
        (kept.clips, "\x1b[?7l"),
        (kept.inserts, "\x1b[4h"),
        (kept.focus_reports, "\x1b[?1004h"),
        (kept.graphemes, "\x1b[?2027h"),
        (kept.scheme_reports, "\x1b[?2031h"),
    ] {
        bytes.push_str(if is_set { sequence } else { "" });
    }
    if kept.modify_other_keys > 0 {
        bytes.push_str(&format!("\x1b[>4;{}m", kept.modify_other_keys));
    }
    bytes.push_str(&kept.keyboard_painted(alternate));
    bytes.push_str(&kept.charsets.painted());
    if !emulator.title.is_empty() {
        bytes.push_str(&format!("\x1b]2;{}\x1b\\", emulator.title));
    }
    // For a cursor past a blank last column, the library emits a step back that would go one column too far.
    bytes.replace("\x1b7\x08", &format!("\x1b7\x1b[{}G", screen.size().1))
}

/// The main screen below the alternate one, with the cursor where it will be restored.
fn main_screen(emulator: &Emulator) -> String {
    let screen = emulator.parser.screen();
    let (rows, cols) = screen.size();
    let mut below = vt100::Parser::new(rows, cols, 0);
    *below.screen_mut() = screen.clone();
    below.process(b"\x1b[?1049l");
    below.screen().contents_formatted()
}
