//! The style of cells.

use super::told;

/// A colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Colour {
    /// The terminal's default.
    #[default]
    Default,
    /// One of the palette's 256.
    Indexed(u8),
    /// Red, green, blue.
    Rgb(u8, u8, u8),
}

/// The style of a cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Style {
    /// The colour of the text.
    pub foreground: Colour,
    /// The colour behind it.
    pub background: Colour,
    /// Bold.
    pub bold: bool,
    /// Dim, often for placeholders and hints.
    pub dim: bool,
    /// Italic.
    pub italic: bool,
    /// Underlined.
    pub underline: bool,
    /// Foreground and background exchanged, often for the selected item of a menu.
    pub inverse: bool,
}

/// A part of a row with one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Its first column, from 0.
    pub col: u16,
    /// Its text; a cell without any is a blank.
    pub text: String,
    /// Its style.
    pub style: Style,
}

pub(crate) fn runs(screen: &vt100::Screen, row: u16) -> Vec<Run> {
    let (_, cols) = screen.size();
    let mut runs: Vec<Run> = Vec::new();
    for col in 0..cols.get() {
        let Some(cell) = screen.cell(row, col) else { break };
        if cell.is_wide_continuation() {
            continue;
        }
        let text = if cell.has_contents() { cell.contents() } else { " " };
        let style = style(cell);
        match runs.last_mut().filter(|run| run.style == style) {
            Some(run) => run.text.push_str(text),
            None => runs.push(Run { col, text: text.to_owned(), style }),
        }
    }
    for run in &mut runs {
        run.text = told(std::mem::take(&mut run.text));
    }
    runs
}

pub(crate) fn style(cell: &vt100::Cell) -> Style {
    Style {
        foreground: colour(cell.fgcolor()),
        background: colour(cell.bgcolor()),
        bold: cell.bold(),
        dim: cell.dim(),
        italic: cell.italic(),
        underline: cell.underline(),
        inverse: cell.inverse(),
    }
}

const fn colour(colour: vt100::Color) -> Colour {
    match colour {
        vt100::Color::Default => Colour::Default,
        vt100::Color::Idx(index) => Colour::Indexed(index),
        vt100::Color::Rgb(red, green, blue) => Colour::Rgb(red, green, blue),
    }
}
