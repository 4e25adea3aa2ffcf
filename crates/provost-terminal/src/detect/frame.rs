//! The screen as rules see it.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use unicode_width::UnicodeWidthStr as _;

use crate::Screen;
use crate::profile::bare;

/// Maximum rows of a wrapped prompt line.
const WRAPPED_ROWS_MAX: u16 = 6;

/// Prompts without words: the question stands above them.
const MARKS: [&str; 11] = [">", ">>", ">>>", ":", "?", "->", "=>", "❯", "›", "»", "→"];

/// How many line breaks may follow a question.
const LINE_BREAKS_MAX: usize = 2;

/// How close to the window's edge a text ends that a frame of the program may have wrapped.
const EDGE_COLS: usize = 4;

/// A snapshot of the screen, prepared for rules.
#[derive(Debug, Clone, Default)]
pub(crate) struct Frame {
    rows: Vec<String>,
    /// The columns of each row, those at which its text ends, and those at which the next column would be its edge.
    widths: Vec<usize>,
    ends: Vec<(usize, usize)>,
    /// Rows with blanks that aren't plain spaces.
    odd: Vec<bool>,
    /// The first row below the last answer.
    pub(crate) fresh: usize,
    /// What was written since then moved the cursor back: the line may have been painted over.
    pub(crate) is_painted_over: bool,
    /// The texts of rows that were written over since then.
    pub(crate) struck: Vec<String>,
    /// What was written since then changes the direction of writing.
    pub(crate) is_reordered: bool,
    /// The rows that aren't blank, from the last up.
    full: Vec<usize>,
    /// The last row that isn't blank.
    pub(crate) end: usize,
    pub(crate) cursor_row: usize,
    /// The cursor's position within its row's text, in characters.
    pub(crate) cursor_at: Option<usize>,
    /// The text left of the cursor on its line.
    pub(crate) line: String,
    /// Whether the rest of the line is blank.
    pub(crate) is_line_end: bool,
    pub(crate) is_alternate: bool,
    pub(crate) is_cursor_shown: bool,
}

impl Frame {
    pub(crate) fn of(screen: &Screen) -> Self {
        let texts = screen.rows();
        let rows: Vec<String> = texts.iter().map(|row| bare(row).to_owned()).collect();
        let full: Vec<usize> =
            (0..rows.len()).rev().filter(|row| rows.get(*row).is_some_and(|r| !r.is_empty())).collect();
        let cursor = screen.cursor();
        let right = screen.row_text(cursor.row, cursor.col, u16::MAX);
        Self {
            end: full.first().copied().unwrap_or(0),
            full,
            cursor_row: usize::from(cursor.row),
            cursor_at: within(
                &screen.row_text(cursor.row, 0, u16::MAX),
                &screen.row_text(cursor.row, 0, cursor.col),
            ),
            line: line(screen, cursor.row, cursor.col),
            is_line_end: bare(&right).is_empty() || right.starts_with("   "),
            is_cursor_shown: cursor.visible,
            is_alternate: screen.modes().alternate,
            widths: texts.iter().map(|row| row.trim_end().width()).collect(),
            ends: texts.iter().map(|row| ends(row, usize::from(screen.size().cols))).collect(),
            odd: texts.iter().map(|row| row.chars().any(|c| c != ' ' && c.is_whitespace())).collect(),
            fresh: 0,
            is_painted_over: false,
            struck: Vec::new(),
            is_reordered: false,
            rows,
        }
    }

    /// The same with the row above in the place of an empty line at the cursor, or of a bare mark: some programs end
    /// their question with a line break or two, and then read. `None` if that row is from before the last answer.
    pub(crate) fn with_line_above(&self) -> Option<Self> {
        let is_bare = self.line.is_empty() || MARKS.contains(&self.line.as_str());
        let above =
            self.above(self.cursor_row, 1).next().filter(|row| row + LINE_BREAKS_MAX >= self.cursor_row);
        let row = above.filter(|row| is_bare && *row >= self.fresh)?;
        let line = self.row(row).to_owned();
        (!line.is_empty()).then(|| Self { line, cursor_row: row, is_line_end: true, ..self.clone() })
    }

    /// A row; empty beyond the last.
    pub(crate) fn row(&self, row: usize) -> &str {
        self.rows.get(row).map_or("", String::as_str)
    }

    /// Whether a row's text ends so close to the window's edge that it may go on in the next one.
    pub(crate) fn fills(&self, row: usize) -> bool {
        self.ends.get(row).is_some_and(|(end, edge)| end + EDGE_COLS >= *edge)
    }

    /// Whether one of these rows has blanks that aren't plain spaces.
    pub(crate) fn has_odd_blanks(&self, mut rows: std::ops::RangeInclusive<usize>) -> bool {
        rows.any(|row| self.odd.get(row).copied().unwrap_or_default())
    }

    /// Whether the text of one of these rows took the place of another.
    pub(crate) fn is_struck(&self, mut rows: std::ops::RangeInclusive<usize>) -> bool {
        !self.struck.is_empty() && rows.any(|row| self.struck.iter().any(|struck| struck == self.row(row)))
    }

    /// The next row below one that isn't blank; empty if there is none.
    pub(crate) fn below(&self, row: usize) -> &str {
        (row + 1..=self.end).map(|row| self.row(row)).find(|row| !row.is_empty()).unwrap_or_default()
    }

    /// The first row of the line with the cursor.
    pub(crate) fn line_row(&self) -> usize {
        let mut columns = self.line.width();
        let mut row = self.cursor_row;
        while row > 0 && columns > self.widths.get(row).copied().unwrap_or_default() {
            columns -= self.widths.get(row).copied().unwrap_or_default();
            row -= 1;
        }
        row
    }

    /// Whether the screen is full, so that rows may have scrolled off.
    pub(crate) fn is_full(&self) -> bool {
        self.cursor_row + 1 >= self.rows.len() && !self.row(0).is_empty()
    }

    /// The last rows that aren't blank, from below.
    pub(crate) fn last_rows(&self, count: usize) -> impl Iterator<Item = usize> + '_ {
        self.full.iter().copied().take(count)
    }

    /// A digest of the letters in the rows: spinners, clocks, counters and frames don't change it.
    pub(crate) fn gist(&self, rows: impl Iterator<Item = usize>) -> u64 {
        let mut hasher = DefaultHasher::new();
        let letters = rows.flat_map(|row| self.row(row).chars()).filter(|c| c.is_alphabetic());
        letters.for_each(|letter| letter.hash(&mut hasher));
        hasher.finish()
    }

    /// A digest of all rows but the cursor's.
    pub(crate) fn rest(&self) -> u64 {
        self.gist(self.full.iter().copied().filter(|row| *row != self.cursor_row))
    }

    /// The rows above one that aren't blank, the nearest first.
    pub(crate) fn above(&self, row: usize, count: usize) -> impl Iterator<Item = usize> + '_ {
        self.full.iter().copied().filter(move |full| *full < row).take(count)
    }

    pub(crate) fn is_blank(&self) -> bool {
        self.full.is_empty()
    }
}

/// The column at which a row's text ends, and the one at which its frame or the window does.
fn ends(row: &str, cols: usize) -> (usize, usize) {
    let row = row.trim_end();
    let text = bare(row);
    let end = row.find(text).and_then(|begin| row.get(..begin + text.len())).map_or(0, |text| text.width());
    (end, if row.width() > end { row.width() - 1 } else { cols })
}

/// How many characters of a row's bare text are left of the cursor.
fn within(row: &str, left: &str) -> Option<usize> {
    let blank = row.find(bare(row))?;
    left.chars().count().checked_sub(row.get(..blank)?.chars().count())
}

fn line(screen: &Screen, row: u16, col: u16) -> String {
    let mut parts = vec![screen.row_text(row, 0, col)];
    let mut above = row;
    while above > 0 && parts.len() < usize::from(WRAPPED_ROWS_MAX) && screen.row_wraps(above - 1) {
        above -= 1;
        parts.push(screen.row_text(above, 0, u16::MAX));
    }
    parts.reverse();
    bare(&parts.concat()).to_owned()
}
