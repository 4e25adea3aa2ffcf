//! The last lines of a terminal, drawn again and again; what is above them stays as it is.

use std::io::Write as _;

use console::{measure_text_width, truncate_str};

use crate::locale::{in_ascii, wants_ascii};

/// Erases from the cursor to the end of the screen.
const ERASE_BELOW: &str = "\u{1b}[J";

/// The lines at the end of the terminal that are drawn again. What scrolls out above them is never touched, so that a
/// copy of it, or a recording, stays clean.
pub(super) struct Screen {
    shown: Vec<String>,
    is_ascii: bool,
}

impl Default for Screen {
    fn default() -> Self {
        Self { shown: Vec::new(), is_ascii: wants_ascii() }
    }
}

impl Screen {
    /// Prints `above` for good, a line or several without the last line's end, and `area` below it. The cursor stands
    /// behind the last line of the area.
    pub(super) fn draw(&mut self, above: &str, area: Vec<String>, columns: usize) {
        let area = area.into_iter().map(|line| fitted(&line, columns)).collect::<Vec<_>>();
        if above.is_empty() && area == self.shown {
            return;
        }
        let mut out = self.erased(columns);
        if !above.is_empty() {
            out.push_str(above);
            out.push('\n');
        }
        out.push_str(&area.join("\n"));
        self.shown = area;
        let out = if self.is_ascii { in_ascii(&out) } else { out };
        // A failed write doesn't stop the run.
        let _ = std::io::stderr().write_all(out.as_bytes());
    }

    /// Removes the area.
    pub(super) fn clear(&mut self, columns: usize) {
        if !self.shown.is_empty() {
            let out = self.erased(columns);
            self.shown.clear();
            let _ = std::io::stderr().write_all(out.as_bytes());
        }
    }

    /// What goes to the first column of the area and erases it. On a terminal that was made narrower its lines take
    /// several rows each.
    fn erased(&self, columns: usize) -> String {
        let rows = |line: &String| measure_text_width(line).div_ceil(columns.max(1)).max(1);
        let rows = self.shown.iter().map(rows).sum::<usize>();
        let up = if rows > 1 { format!("\u{1b}[{}A", rows - 1) } else { String::new() };
        if rows == 0 { String::new() } else { format!("\r{up}{ERASE_BELOW}") }
    }
}

/// One column stays free: a terminal may wrap behind the last one.
fn fitted(line: &str, columns: usize) -> String {
    truncate_str(line, columns.saturating_sub(1), "…").into_owned()
}
