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
    /// The same, but only where neither the other columns cut nor those left out make room enough.
    CutLast,
    /// On the left; where the terminal is too narrow, without their beginning.
    CutAtStart,
    /// On the right; where the terminal is too narrow even with all others cut, left out, the first such column
    /// first.
    LeftOut,
    /// As that, but after those.
    LeftOutLast,
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
            let cells = cells.filter_map(|((cell, cells), width)| Some(set(cell, *cells, (*width)?)));
            let cells = cells.collect::<Vec<_>>();
            format!("{}\n", cells.join(GAP).trim_end())
        };
        self.rows.iter().map(line).collect()
    }

    /// The width of each column; `None` for one that is left out.
    fn widths(&self, width: Option<usize>) -> Vec<Option<usize>> {
        let mut widths = (0..self.columns.len()).map(|column| Some(self.widest(column))).collect::<Vec<_>>();
        let over = |widths: &[Option<usize>]| {
            let gaps = GAP.len() * widths.iter().flatten().count().saturating_sub(1);
            (widths.iter().flatten().sum::<usize>() + gaps).saturating_sub(width.unwrap_or(usize::MAX))
        };
        let spare = |column: usize, width: &usize| width.saturating_sub(self.narrowest(column));
        let of =
            |cells: Cells| (0..self.columns.len()).filter(move |at| self.columns.get(*at) == Some(&cells));
        for column in of(Cells::LeftOut).chain(of(Cells::LeftOutLast)) {
            let spare =
                widths.iter().enumerate().filter_map(|(column, width)| Some(spare(column, width.as_ref()?)));
            if over(&widths) > spare.sum() {
                widths.get_mut(column).map(Option::take);
            }
        }
        let mut over = over(&widths);
        for (column, width) in widths.iter_mut().enumerate().rev() {
            let Some(width) = width else { continue };
            let gives = over.min(spare(column, width));
            *width -= gives;
            over -= gives;
        }
        for column in of(Cells::CutLast) {
            let Some(Some(width)) = widths.get_mut(column) else { continue };
            let gives = over.min(width.saturating_sub(END_MIN));
            *width -= gives;
            over -= gives;
        }
        widths
    }

    fn widest(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| measure_text_width(cell)).max().unwrap_or_default()
    }

    /// How far a column may be cut.
    fn narrowest(&self, column: usize) -> usize {
        let head = self.rows.first().and_then(|heads| heads.get(column));
        let head = head.map_or(0, |head| measure_text_width(head));
        match self.columns.get(column) {
            Some(Cells::CutAtEnd) => head,
            Some(Cells::CutAtStart) => head.max(END_MIN),
            Some(Cells::Text | Cells::Numbers | Cells::CutLast | Cells::LeftOut | Cells::LeftOutLast)
            | None => usize::MAX,
        }
    }
}

fn set(cell: &str, cells: Cells, width: usize) -> String {
    match cells {
        Cells::Text => pad_str(cell, width, Alignment::Left, None).into_owned(),
        Cells::Numbers | Cells::LeftOut | Cells::LeftOutLast => {
            pad_str(cell, width, Alignment::Right, None).into_owned()
        }
        Cells::CutAtEnd if width == 0 => String::new(),
        Cells::CutAtEnd | Cells::CutLast => {
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
    fn columns_that_may_go_are_left_out_where_cutting_is_not_enough() {
        let mut table = Table::new(&[
            ("RUN", Cells::Text),
            ("TURNS", Cells::LeftOut),
            ("COST", Cells::Numbers),
            ("AGE", Cells::LeftOut),
            ("GOAL", Cells::CutAtEnd),
        ]);
        table.row(["abcdef", "7", "$1", "3 s", "find the parser"].map(str::to_owned).to_vec());
        let first_line =
            |width| table.lines(Some(width)).lines().next().map(str::to_owned).unwrap_or_default();
        assert_eq!(first_line(30), "RUN     TURNS  COST  AGE  GOAL");
        assert_eq!(first_line(29), "RUN     COST  AGE  GOAL");
        assert_eq!(table.lines(Some(24)), "RUN     COST  AGE  GOAL\nabcdef    $1  3 s  find…\n");
        assert_eq!(table.lines(Some(22)), "RUN     COST  GOAL\nabcdef    $1  find th…\n");
    }

    #[test]
    fn a_column_that_matters_more_is_cut_last() {
        let columns = [
            ("RUN", Cells::Text),
            ("STATUS", Cells::CutLast),
            ("AGE", Cells::LeftOut),
            ("GOAL", Cells::CutAtEnd),
        ];
        let mut table = Table::new(&columns);
        table.row(
            ["abcdef", "suspended: the provider is overloaded", "3 s", "find it"].map(str::to_owned).to_vec(),
        );
        let last = |width| table.lines(Some(width)).lines().last().map(str::to_owned).unwrap_or_default();
        assert_eq!(last(60), "abcdef  suspended: the provider is overloaded  3 s  find it");
        assert_eq!(last(52), "abcdef  suspended: the provider is overloaded  find…");
        assert_eq!(last(40), "abcdef  suspended: the provider i…  fin…");
        assert_eq!(last(20), "abcdef  suspended: the …  fin…");
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
