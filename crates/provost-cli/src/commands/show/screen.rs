//! Lines on a terminal that are drawn over each other, without flicker: only what is to be seen is written.

use console::{Term, measure_text_width};

use crate::output;

/// What a terminal that knows it shows only once all of it has come.
const BEGIN: &str = "\u{1b}[?2026h";
const END: &str = "\u{1b}[?2026l";
const ERASE_TO_LINE_END: &str = "\u{1b}[K";
const ERASE_TO_SCREEN_END: &str = "\u{1b}[J";

/// Where the lines stand that were drawn last.
pub(super) struct Screen {
    term: Term,
    drawn: Vec<String>,
}

impl Screen {
    /// Standard output; `None` if that is no terminal on which lines can be drawn over each other.
    pub(super) fn of_stdout() -> Option<Self> {
        let term = Term::stdout();
        let is_dumb = std::env::var("TERM").is_ok_and(|name| name == "dumb");
        (term.is_term() && !is_dumb).then_some(Self { term, drawn: Vec::new() })
    }

    /// Its rows and columns.
    pub(super) fn size(&self) -> (usize, usize) {
        let (rows, columns) = self.term.size();
        (rows.into(), columns.into())
    }

    /// Draws these lines where the last ones stood. None may be wider than the terminal.
    ///
    /// # Errors
    /// When the terminal can't be written.
    pub(super) fn draw(&mut self, lines: Vec<String>) -> std::io::Result<()> {
        if lines == self.drawn {
            return Ok(());
        }
        let mut out = format!("{BEGIN}{}", self.to_first_line());
        for line in &lines {
            out.push_str(line);
            out.push_str(ERASE_TO_LINE_END);
            out.push('\n');
        }
        out.push_str(ERASE_TO_SCREEN_END);
        out.push_str(END);
        self.drawn = lines;
        output::write(out.as_bytes())
    }

    /// Goes up over what was drawn; a terminal that has become narrower shows a line on several rows.
    fn to_first_line(&self) -> String {
        let columns = self.size().1.max(1);
        let rows = self.drawn.iter().map(|line| measure_text_width(line).div_ceil(columns).max(1));
        match rows.sum::<usize>() {
            0 => String::new(),
            rows => format!("\r\u{1b}[{rows}A"),
        }
    }
}
