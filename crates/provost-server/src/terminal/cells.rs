//! A screen as text and as cells.

use provost_terminal::{Colour, Run, Screen, Style};
use provost_view::ViewVersion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A screen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ScreenView {
    /// The version of the view.
    pub(crate) v: ViewVersion,
    /// Rows.
    pub(crate) rows: u16,
    /// Columns.
    pub(crate) cols: u16,
    /// The window's title; empty if none was set.
    pub(crate) title: String,
    /// Where the cursor is.
    pub(crate) cursor: CursorView,
    /// The text of each row.
    pub(crate) text: Vec<String>,
    /// The cells of each row, those of the same style together.
    pub(crate) cells: Vec<Vec<CellsView>>,
}

/// Where the cursor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CursorView {
    /// Its row, from 0.
    pub(crate) row: u16,
    /// Its column, from 0.
    pub(crate) col: u16,
    /// Whether it is shown.
    pub(crate) visible: bool,
}

/// Cells of a row with the same style.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CellsView {
    /// The first column, from 0.
    pub(crate) col: u16,
    /// Their text.
    pub(crate) text: String,
    /// The colour of the text, of the palette's 16 or as `#rrggbb`; absent for the terminal's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fg: Option<CellColour>,
    /// The colour behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bg: Option<CellColour>,
    /// Of `bold`, `dim`, `italic`, `underline`, `inverse` those that it has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) styles: Vec<CellStyle>,
}

/// A colour of cells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum CellColour {
    /// One of the palette's 16.
    Palette(u8),
    /// `#rrggbb`.
    Exact(String),
}

/// A style of cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CellStyle {
    /// Bold.
    Bold,
    /// Dim.
    Dim,
    /// Italic.
    Italic,
    /// Underlined.
    Underline,
    /// Text and what is behind it exchange their colours.
    Inverse,
}

impl CellStyle {
    /// The class on the page.
    pub(crate) const fn class(self) -> &'static str {
        match self {
            Self::Bold => "bold",
            Self::Dim => "dim",
            Self::Italic => "italic",
            Self::Underline => "underline",
            Self::Inverse => "inverse",
        }
    }
}

impl ScreenView {
    pub(crate) fn of(screen: &Screen) -> Self {
        let (size, cursor) = (screen.size(), screen.cursor());
        Self {
            v: ViewVersion,
            rows: size.rows,
            cols: size.cols,
            title: screen.title().to_owned(),
            cursor: CursorView { row: cursor.row, col: cursor.col, visible: cursor.visible },
            text: screen.rows(),
            cells: (0..size.rows).map(|row| cells(screen.runs(row))).collect(),
        }
    }
}

/// The cells of a row without the blanks behind its last text.
fn cells(runs: Vec<Run>) -> Vec<CellsView> {
    let mut cells = runs.into_iter().map(view).collect::<Vec<_>>();
    let is_blank = |cells: &CellsView| {
        cells.bg.is_none() && cells.styles.is_empty() && cells.text.trim_end_matches(' ').is_empty()
    };
    while cells.last().is_some_and(is_blank) {
        cells.pop();
    }
    cells
}

fn view(run: Run) -> CellsView {
    let Style { foreground, background, bold, dim, italic, underline, inverse } = run.style;
    let styles = [
        (bold, CellStyle::Bold),
        (dim, CellStyle::Dim),
        (italic, CellStyle::Italic),
        (underline, CellStyle::Underline),
        (inverse, CellStyle::Inverse),
    ];
    CellsView {
        col: run.col,
        text: run.text,
        fg: colour(foreground),
        bg: colour(background),
        styles: styles.into_iter().filter_map(|(is_on, style)| is_on.then_some(style)).collect(),
    }
}

/// The steps of a channel in the cube of the palette's upper colours, as xterm has them.
const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];

fn colour(colour: Colour) -> Option<CellColour> {
    let exact = |red: u8, green: u8, blue: u8| CellColour::Exact(format!("#{red:02x}{green:02x}{blue:02x}"));
    let step = |index: u8| STEPS.get(usize::from(index % 6)).copied().unwrap_or_default();
    Some(match colour {
        Colour::Default => return None,
        Colour::Indexed(index @ 0..16) => CellColour::Palette(index),
        Colour::Indexed(index @ 16..232) => {
            let index = index - 16;
            exact(step(index / 36), step(index / 6), step(index))
        }
        Colour::Indexed(index) => {
            let grey = 8 + 10 * (index - 232);
            exact(grey, grey, grey)
        }
        Colour::Rgb(red, green, blue) => exact(red, green, blue),
    })
}

#[cfg(test)]
mod tests {
    use provost_event::WindowSize;
    use provost_terminal::Screen;

    use super::{CellColour, ScreenView};

    #[test]
    fn a_screen_has_text_and_cells_with_their_styles() {
        let mut screen = Screen::new(WindowSize::new(3, 20));
        screen.feed(b"\x1b[1;31mred\x1b[0m plain \x1b[38;5;196mcube\r\n\x1b[48;2;1;2;3m <b> \x1b[0m");
        let view = ScreenView::of(&screen);
        assert_eq!(view.text, ["red plain cube", " <b>", ""]);
        let first = &view.cells[0];
        assert_eq!((first[0].text.as_str(), &first[0].fg), ("red", &Some(CellColour::Palette(1))));
        assert_eq!(first[2].fg, Some(CellColour::Exact("#ff0000".to_owned())));
        assert_eq!(view.cells[1][0].bg, Some(CellColour::Exact("#010203".to_owned())));
        assert!(view.cells[2].is_empty());
    }
}
