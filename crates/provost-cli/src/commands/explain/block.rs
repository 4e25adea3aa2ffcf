//! A group of a page: a title, a table, and a note for each row, beside it where all fit and else below it.

use console::{Alignment, measure_text_width, pad_str};
use provost_view::explain::{RuleUse, UseState};

use crate::render::{Cells, Table, one_line};

const GAP: &str = "  ";
const BELOW: &str = "     ";
/// Columns of a name where there is no terminal to measure.
const NAME_WIDTH: usize = 200;
/// Columns of a table that has notes beside it: names of hooks are cut in favour of the notes.
const TABLE_WIDTH: usize = 90;
/// The narrowest that notes are set below rows.
const NOTE_MIN: usize = 20;

pub(super) struct Block {
    title: String,
    table: Table,
    notes: Vec<String>,
}

impl Block {
    /// A group without rows; its first column is for marks.
    pub(super) fn new(title: impl Into<String>, columns: &[(&str, Cells)]) -> Self {
        let mark = [(" ", Cells::Text)];
        let columns = mark.iter().chain(columns).copied().collect::<Vec<_>>();
        Self { title: title.into(), table: Table::new(&columns), notes: Vec::new() }
    }

    /// Adds a row; empty `notes` are left out.
    pub(super) fn row(&mut self, standing: &RuleUse, mut cells: Vec<String>, notes: Vec<String>) {
        cells.insert(0, mark(standing.say).to_owned());
        self.table.row(cells);
        let notes = standing.why.iter().cloned().chain(notes).filter(|note| !note.is_empty());
        self.notes.push(one_line(&notes.collect::<Vec<_>>().join("; "), usize::MAX));
    }

    pub(super) fn text(&self, width: Option<usize>) -> String {
        let narrow = self.table.lines(width.map(|width| width.min(TABLE_WIDTH)));
        self.beside(&narrow, width).unwrap_or_else(|| self.below(width))
    }

    /// With the notes beside their rows; `None` where one of them doesn't fit there.
    fn beside(&self, table: &str, width: Option<usize>) -> Option<String> {
        let wide = table.lines().map(measure_text_width).max().unwrap_or_default();
        let longest = self.notes.iter().map(|note| measure_text_width(note)).max().unwrap_or_default();
        if width.is_some_and(|width| longest > 0 && wide + GAP.len() + longest > width) {
            return None;
        }
        let row = |(line, note): (&str, &str)| {
            let line = format!("{}{GAP}{note}", pad_str(line, wide, Alignment::Left, None));
            format!("{}\n", line.trim_end())
        };
        Some(self.titled(self.with_notes(table).map(row).collect()))
    }

    fn below(&self, width: Option<usize>) -> String {
        let room = width.unwrap_or(usize::MAX).saturating_sub(BELOW.len()).max(NOTE_MIN);
        let row = |(line, note): (&str, &str)| {
            let lines = textwrap::wrap(note, room).into_iter().filter(|line| !line.is_empty());
            format!("{line}\n{}", lines.map(|line| format!("{BELOW}{line}\n")).collect::<String>())
        };
        self.titled(self.with_notes(&self.table.lines(width)).map(row).collect())
    }

    /// The lines of the table, each with its note; the heads have none.
    fn with_notes<'a>(&'a self, table: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        table.lines().zip(std::iter::once("").chain(self.notes.iter().map(String::as_str)))
    }

    fn titled(&self, rows: String) -> String {
        format!("\n{}\n{rows}", self.title)
    }
}

pub(super) const fn mark(say: UseState) -> &'static str {
    match say {
        UseState::NotSet | UseState::Consulted => "",
        UseState::NotReported => "?",
        UseState::Never => "-",
        UseState::Unreachable => "!",
    }
}

/// A name chosen by the user, for a cell.
pub(super) fn name(text: &str) -> String {
    one_line(text, NAME_WIDTH)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(width: Option<usize>, expected: Expect) {
        let mut block = Block::new("things", &[("NAME", Cells::CutAtEnd), ("CONSULTED", Cells::Numbers)]);
        let cells = |name: &str, count: u64| vec![name.to_owned(), count.to_string()];
        block.row(&RuleUse::of(1, String::new), cells("first", 1), Vec::new());
        let why = || "no answer came in all that time".to_owned();
        block.row(&RuleUse::of(0, why), cells("the second one", 0), vec![String::new()]);
        expected.assert_eq(&block.text(width));
    }

    #[test]
    fn notes_stand_beside_rows_where_all_fit_and_else_below() {
        check(
            None,
            expect![[r#"

            things
               NAME            CONSULTED
               first                   1
            -  the second one          0  no answer came in all that time
        "#]],
        );
        check(
            Some(61),
            expect![[r#"

            things
               NAME            CONSULTED
               first                   1
            -  the second one          0  no answer came in all that time
        "#]],
        );
        check(
            Some(60),
            expect![[r#"

            things
               NAME            CONSULTED
               first                   1
            -  the second one          0
                 no answer came in all that time
        "#]],
        );
        check(
            Some(26),
            expect![[r#"

            things
               NAME          CONSULTED
               first                 1
            -  the second …          0
                 no answer came in all
                 that time
        "#]],
        );
    }
}
