//! The screen as rules see it.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::Screen;
use crate::profile::bare;

/// Maximum rows of a wrapped prompt line.
const WRAPPED_ROWS_MAX: u16 = 6;

/// A snapshot of the screen, prepared for rules.
#[derive(Debug, Default)]
pub(crate) struct Frame {
    rows: Vec<String>,
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
        let rows: Vec<String> = screen.rows().iter().map(|row| bare(row).to_owned()).collect();
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
            rows,
        }
    }

    /// A row; empty beyond the last.
    pub(crate) fn row(&self, row: usize) -> &str {
        self.rows.get(row).map_or("", String::as_str)
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
