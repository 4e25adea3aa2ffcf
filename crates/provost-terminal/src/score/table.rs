//! A score as numbers and as a table.

use std::fmt;

use super::{EventKind, Score};

/// The figures of one kind.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scored {
    /// Labels that were met.
    pub hits: usize,
    /// Labels that were missed.
    pub misses: usize,
    /// Predictions that met no label.
    pub false_alarms: usize,
    delays: Vec<f64>,
}

/// One row of the table; a figure without a value is `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoreRow {
    /// The kind's name, or `needs_human`.
    pub kind: &'static str,
    /// The figures.
    pub scored: Scored,
    /// Hits among all predictions that count, from 0 to 1.
    pub precision: Option<f64>,
    /// Hits among all labels, from 0 to 1.
    pub recall: Option<f64>,
    /// The median delay, in seconds.
    pub delay_p50: Option<f64>,
    /// The 90th percentile of the delay, in seconds.
    pub delay_p90: Option<f64>,
}

impl Scored {
    pub(super) fn label(&mut self, met: Option<f64>) {
        match met {
            Some(delay) => {
                self.hits += 1;
                self.delays.push(delay.max(0.0));
            }
            None => self.misses += 1,
        }
    }

    fn row(&self, kind: &'static str) -> ScoreRow {
        let mut delays = self.delays.clone();
        delays.sort_by(f64::total_cmp);
        ScoreRow {
            kind,
            scored: self.clone(),
            precision: share(self.hits, self.hits + self.false_alarms),
            recall: share(self.hits, self.hits + self.misses),
            delay_p50: median(&delays),
            delay_p90: (delays.len() > 1)
                .then(|| delays.get((delays.len() * 9 / 10).saturating_sub(1)).copied())
                .flatten(),
        }
    }
}

impl Score {
    /// The rows of the table: each kind, then "a person must act".
    #[must_use]
    pub fn rows(&self) -> Vec<ScoreRow> {
        let kinds = EventKind::SCORED.iter().zip(&self.kinds).map(|(kind, scored)| scored.row(kind.name()));
        kinds.chain([self.needs_human.row("needs_human")]).collect()
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:18} {:>4} {:>4} {:>5} {:>5} {:>6} {:>6} {:>7} {:>7}",
            "kind", "n", "hit", "false", "miss", "prec", "recall", "p50 s", "p90 s"
        )?;
        for row in self.rows() {
            let Scored { hits, misses, false_alarms, .. } = row.scored;
            let number =
                |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"));
            writeln!(
                f,
                "{:18} {:>4} {hits:>4} {false_alarms:>5} {misses:>5} {:>6} {:>6} {:>7} {:>7}",
                row.kind,
                hits + misses,
                number(row.precision),
                number(row.recall),
                number(row.delay_p50),
                number(row.delay_p90)
            )?;
        }
        Ok(())
    }
}

fn share(part: usize, of: usize) -> Option<f64> {
    let number = |count: usize| u32::try_from(count).map_or(f64::MAX, f64::from);
    (of > 0).then(|| number(part) / number(of))
}

fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    let lower = if sorted.len().is_multiple_of(2) { *sorted.get(middle.wrapping_sub(1))? } else { upper };
    Some(f64::midpoint(lower, upper))
}
