//! The table: a scenario's points, and the results of the runs that were killed there.

use std::time::Duration;

/// The result of one scenario.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Row {
    /// Places at which a run can be killed.
    pub(super) points: usize,
    pub(super) runs: usize,
    pub(super) kills: usize,
    /// Runs that didn't reach their point: the grouping into transactions varies.
    pub(super) missed: usize,
    pub(super) lost: usize,
    pub(super) doubled: usize,
    pub(super) hung: usize,
    pub(super) wrong: usize,
}

impl Row {
    pub(super) const fn plus(self, other: Self) -> Self {
        Self {
            points: self.points + other.points,
            runs: self.runs + other.runs,
            kills: self.kills + other.kills,
            missed: self.missed + other.missed,
            lost: self.lost + other.lost,
            doubled: self.doubled + other.doubled,
            hung: self.hung + other.hung,
            wrong: self.wrong + other.wrong,
        }
    }

    /// Whether there is no violation.
    pub(super) const fn is_clean(&self) -> bool {
        self.lost + self.doubled + self.hung + self.wrong == 0
    }
}

/// Prints rows as they come.
pub(super) struct Table {
    sum: Row,
}

impl Table {
    pub(super) fn new() -> Self {
        println!("scenario               | points |  runs | kills | missed | lost | doubled | hung | wrong");
        println!("-----------------------|--------|-------|-------|--------|------|---------|------|------");
        Self { sum: Row::default() }
    }

    pub(super) fn add(&mut self, name: &str, row: Row) {
        print(name, row);
        self.sum = self.sum.plus(row);
    }

    pub(super) fn end(&self, took: Duration, seed: u64) {
        print("all", self.sum);
        println!("{:.0} s, seed {seed}", took.as_secs_f32());
    }

    pub(super) const fn is_clean(&self) -> bool {
        self.sum.is_clean()
    }
}

fn print(name: &str, row: Row) {
    let Row { points, runs, kills, missed, lost, doubled, hung, wrong } = row;
    let found = format!("{lost:>4} | {doubled:>7} | {hung:>4} | {wrong:>5}");
    println!("{name:<22} | {points:>6} | {runs:>5} | {kills:>5} | {missed:>6} | {found}");
}
