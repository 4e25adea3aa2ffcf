//! Tables of text, as wide as what stands in them, or as the terminal.

use console::{Alignment, Term, measure_text_width, pad_str, truncate_str};

const GAP: &str = "  ";
const CUT: &str = "…";
/// Names that lost their beginning can still be told apart by what is left.
const END_MIN: usize = 16;

/// How the cells of a column are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cells {
    /// On the left.
    Text,
    /// On the right.
    Numbers,
    /// On the left; where the terminal is too narrow, without their end.
    CutAtEnd,
    /// On the left; where the terminal is too narrow, without their beginning.
    CutAtStart,
}

/// A table with a line of heads.
pub(crate) struct Table {
    columns: Vec<Cells>,
    rows: Vec<Vec<String>>,
}

/// The columns of the terminal that standard output is; `None` if it is none.
pub(crate) fn terminal_width() -> Option<usize> {
    Term::stdout().size_checked().map(|(_, columns)| usize::from(columns))
}

impl Table {
    /// A table without rows, its columns called by these heads.
    pub(crate) fn new(columns: &[(&str, Cells)]) -> Self {
        let heads = columns.iter().map(|(head, _)| (*head).to_owned()).collect();
        Self { columns: columns.iter().map(|(_, cells)| *cells).collect(), rows: vec![heads] }
    }

    /// Adds a row, a cell for each column.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The lines. Columns that may be cut give way to `width`, the last first, as far as that makes sense; what is
    /// still wider isn't cut.
    pub(crate) fn lines(&self, width: Option<usize>) -> String {
        let widths = self.widths(width);
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&self.columns).zip(&widths);
            let cells = cells.map(|((cell, cells), width)| set(cell, *cells, *width)).collect::<Vec<_>>();
            format!("{}\n", cells.join(GAP).trim_end())
        };
        self.rows.iter().map(line).collect()
    }

    fn widths(&self, width: Option<usize>) -> Vec<usize> {
        let cell =
            |row: &Vec<String>, column: usize| row.get(column).map_or(0, |cell| measure_text_width(cell));
        let widest = |column| self.rows.iter().map(|row| cell(row, column)).max().unwrap_or_default();
        let mut widths = (0..self.columns.len()).map(widest).collect::<Vec<_>>();
        let gaps = GAP.len() * widths.len().saturating_sub(1);
        let mut over = (widths.iter().sum::<usize>() + gaps).saturating_sub(width.unwrap_or(usize::MAX));
        let head = |column| self.rows.first().map_or(0, |heads| cell(heads, column));
        for (column, (cells, width)) in self.columns.iter().zip(&mut widths).enumerate().rev() {
            let min = match cells {
                Cells::Text | Cells::Numbers => continue,
                Cells::CutAtEnd => head(column),
                Cells::CutAtStart => head(column).max(END_MIN),
            };
            let gives = over.min(width.saturating_sub(min));
            *width -= gives;
            over -= gives;
        }
        widths
    }
}

fn set(cell: &str, cells: Cells, width: usize) -> String {
    match cells {
        Cells::Text => pad_str(cell, width, Alignment::Left, None).into_owned(),
        Cells::Numbers => pad_str(cell, width, Alignment::Right, None).into_owned(),
        Cells::CutAtEnd => {
            pad_str(&truncate_str(cell, width, CUT), width, Alignment::Left, None).into_owned()
        }
        Cells::CutAtStart => pad_str(&without_start(cell, width), width, Alignment::Left, None).into_owned(),
    }
}

fn without_start(cell: &str, width: usize) -> String {
    if measure_text_width(cell) <= width {
        return cell.to_owned();
    }
    let ends = cell.char_indices().filter_map(|(at, _)| cell.get(at..));
    let fitting = ends.skip(1).find(|end| measure_text_width(end) < width);
    format!("{CUT}{}", fitting.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::{Cells, Table};

    #[track_caller]
    fn check(width: Option<usize>, expected: Expect) {
        let mut table = Table::new(&[
            ("MODEL", Cells::CutAtStart),
            ("KIND", Cells::Text),
            ("CALLS", Cells::Numbers),
            ("GOAL", Cells::CutAtEnd),
        ]);
        table.row(["some/model-of-them-all", "a", "7", "find the parser"].map(str::to_owned).to_vec());
        table.row(["漢字漢字漢字/漢字漢字", "b", "1 200", ""].map(str::to_owned).to_vec());
        expected.assert_eq(&table.lines(width));
    }

    #[test]
    fn columns_are_as_wide_as_what_stands_in_them() {
        check(
            None,
            expect![[r#"
                MODEL                   KIND  CALLS  GOAL
                some/model-of-them-all  a         7  find the parser
                漢字漢字漢字/漢字漢字   b     1 200
            "#]],
        );
    }

    #[test]
    fn what_may_be_cut_gives_way_to_the_terminal_the_last_column_first() {
        check(
            Some(47),
            expect![[r#"
                MODEL                   KIND  CALLS  GOAL
                some/model-of-them-all  a         7  find the …
                漢字漢字漢字/漢字漢字   b     1 200
            "#]],
        );
        check(
            Some(39),
            expect![[r#"
                MODEL                 KIND  CALLS  GOAL
                …e/model-of-them-all  a         7  fin…
                …字漢字漢字/漢字漢字  b     1 200
            "#]],
        );
    }

    #[test]
    fn what_is_cut_can_still_be_told_apart() {
        check(
            Some(1),
            expect![[r#"
                MODEL             KIND  CALLS  GOAL
                …del-of-them-all  a         7  fin…
                …字漢字/漢字漢字  b     1 200
            "#]],
        );
    }
}
