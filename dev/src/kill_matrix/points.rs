//! The matrix of a scenario: the points at which its runs are killed, generated from an undisturbed run.

use std::fmt;

use super::cell::Course;
use super::deadly_store::SNAPSHOT;
use super::fault::{Of, Point, Side};
use super::files::FinalState;
use super::scenario::{Points, Scenario};

/// One in this many runs is killed a second time.
const TWICE_EVERY: usize = 4;
/// Half of the second kills are among the first transactions of the next process, which recover the run.
const FIRST: usize = 3;
/// Transactions around a snapshot's that are always tried.
const AROUND: usize = 3;

/// One cell of the matrix.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    pub(super) number: usize,
    /// For each process that works on the run, the point of its kill.
    pub(super) points: Vec<Option<Point>>,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = |point: &Option<Point>| point.map_or_else(|| "nowhere".to_owned(), |p| p.to_string());
        write!(f, "killed {}", self.points.iter().map(told).collect::<Vec<_>>().join(", then "))
    }
}

/// A point of one of the processes that worked on the undisturbed run.
type ProcessPoint = (usize, Point);

/// The number of a scenario's points, and the cells for those that are tried.
pub(super) fn cells(
    scenario: &Scenario,
    undisturbed: &Course,
    random: &mut fastrand::Rng,
) -> (usize, Vec<Cell>) {
    let final_states = &undisturbed.final_states;
    let all =
        final_states.iter().enumerate().flat_map(|(process, rest)| points(process, rest)).collect::<Vec<_>>();
    let count = all.len();
    let chosen = match scenario.points {
        Points::All => all,
        Points::AroundSnapshots(others) => around_snapshots(all, final_states, others, random),
    };
    let mut cells = Vec::new();
    for (place, (process, point)) in chosen.into_iter().enumerate() {
        let mut points = vec![None; process];
        points.push(Some(point));
        cells.push(Cell { number: cells.len(), points: points.clone() });
        if place % (TWICE_EVERY - 1) == 0 {
            let commits = final_states.get(process).map_or(0, |rest| rest.commits.len());
            points.push(Some(second(point, commits, random)));
            cells.push(Cell { number: cells.len(), points });
        }
    }
    (count, cells)
}

/// The point at which the next process after `first` is killed too; `commits` is the number of transactions
/// without a kill.
fn second(first: Point, commits: usize, random: &mut fastrand::Rng) -> Point {
    let done = if first.of == Of::Commit { first.number } else { 0 };
    let left = if random.bool() { 0 } else { commits.saturating_sub(done) };
    let side = if random.bool() { Side::Before } else { Side::After };
    Point { side, of: Of::Commit, number: random.usize(1..=FIRST + left) }
}

/// Every point of a process with this report.
fn points(process: usize, rest: &FinalState) -> Vec<ProcessPoint> {
    let snapshots = rest.commits.iter().filter(|kinds| has_snapshot(kinds)).count();
    let counts = [
        (Of::Commit, rest.commits.len()),
        (Of::Snapshot, snapshots),
        (Of::Effect, rest.effects),
        (Of::Answer, rest.answers),
    ];
    let mut points = Vec::new();
    for (of, count) in counts {
        for number in 1..=count {
            points.extend([Side::Before, Side::After].map(|side| (process, Point { side, of, number })));
        }
    }
    points
}

fn has_snapshot(kinds: &[String]) -> bool {
    kinds.iter().any(|kind| kind == SNAPSHOT)
}

/// The points around each snapshot, and some others.
fn around_snapshots(
    mut all: Vec<ProcessPoint>,
    final_states: &[FinalState],
    others: usize,
    random: &mut fastrand::Rng,
) -> Vec<ProcessPoint> {
    let is_snapshot = |process: usize, number: usize| {
        let commit = final_states.get(process).and_then(|rest| rest.commits.get(number - 1));
        commit.is_some_and(|kinds| has_snapshot(kinds))
    };
    let is_near = |(process, point): &ProcessPoint| {
        let from = point.number.saturating_sub(AROUND).max(1);
        let mut around = from..=point.number + AROUND;
        match point.of {
            Of::Commit => around.any(|number| is_snapshot(*process, number)),
            Of::Snapshot => true,
            Of::Effect | Of::Answer => false,
        }
    };
    random.shuffle(&mut all);
    let (mut chosen, mut others_of_it): (Vec<_>, Vec<_>) = all.into_iter().partition(is_near);
    others_of_it.truncate(others);
    chosen.append(&mut others_of_it);
    chosen
}
