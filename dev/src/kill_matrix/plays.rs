//! Runs the cells of a scenario's matrix, two at a time, and checks the evidence of each.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result, ensure};

use super::cell::{Course, play};
use super::evidence::Evidence;
use super::files::{Files, FinalState};
use super::laws::{Breach, Kind, broken};
use super::on_engine::Decider;
use super::points::{Cell, cells};
use super::scenario::Scenario;
use super::table::Row;
use crate::chaos::cluster::Addresses;

/// Where runs are kept.
pub(super) enum Place {
    /// Each in a store of its own.
    Stores,
    Engine(Addresses),
}

impl Place {
    /// Makes the place of the run of `files`; it is there as long as what is returned.
    fn prepare(&self, files: &Files) -> Result<Option<Decider>> {
        match self {
            Self::Stores => Ok(None),
            Self::Engine(addresses) => Decider::start(files, addresses).map(Some),
        }
    }
}

/// Runs at a time.
const AT_A_TIME: usize = 2;
/// The maximum of violations that are printed for a run.
const TOLD_MAX: usize = 5;

/// Kills runs of `scenario` at every `every`th of its points, and reports the violations.
///
/// # Errors
/// When the matrix can't do its work, or a run without kills violates a law.
pub(super) fn row(scenario: &Scenario, place: &Place, every: usize, seed: u64) -> Result<Row> {
    let folder = tempfile::Builder::new().prefix("kill-matrix-").tempdir_in(memory())?;
    let done = row_in(folder.path(), scenario, place, (every, seed));
    if !done.as_ref().is_ok_and(Row::is_clean) {
        eprintln!("what is left of it: {}", folder.keep().display());
    }
    done
}

/// Where runs are kept: in memory if there is such a place, for a kill keeps the system's memory, and a disk would
/// only be slower.
fn memory() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if std::env::var_os("TMPDIR").is_none() && memory.is_dir() { memory } else { std::env::temp_dir() }
}

fn row_in(folder: &Path, scenario: &Scenario, place: &Place, (every, seed): (usize, u64)) -> Result<Row> {
    let undisturbed = undisturbed(scenario, place, &Files::new(&folder.join("undisturbed"))?)?;
    let rest = undisturbed.final_states.last().context("it is suspended")?;
    let mut random = fastrand::Rng::with_seed(seed);
    let (points, cells) = cells(scenario, &undisturbed, &mut random);
    let first = random.usize(..every);
    let cells = cells.into_iter().skip(first).step_by(every).collect::<Vec<_>>();
    let (next, sum) = (AtomicUsize::new(0), Mutex::new(Row { points, ..Row::default() }));
    let add = |found: Row| {
        let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
        *sum = sum.plus(found);
    };
    let work = || -> Result<()> {
        while let Some(cell) = cells.get(next.fetch_add(1, Ordering::SeqCst)) {
            let files = Files::new(&folder.join(cell.number.to_string()))?;
            let found = judge(scenario, place, &files, (cell, rest));
            add(found);
            if found.is_clean() {
                fs::remove_dir_all(files.folder())?;
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers = (0..AT_A_TIME).map(|_| scope.spawn(work)).collect::<Vec<_>>();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    Ok(*sum.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A run without kills. It violates no law, and has the entries that the scenario tests.
fn undisturbed(scenario: &Scenario, place: &Place, files: &Files) -> Result<Course> {
    let _decider = place.prepare(files)?;
    let course = play(scenario, files, &[])?;
    let rest =
        course.final_states.last().filter(|_| !course.hangs).context("the undisturbed run doesn't rest")?;
    let seen = Evidence::collect(files, rest.clone(), 0)?;
    let breaches = broken(scenario, &seen, rest);
    ensure!(breaches.is_empty(), "the undisturbed run breaks laws: {breaches:#?}");
    let log = seen.logs.values().flatten().filter_map(|record| record.to_line().ok()).collect::<Vec<_>>();
    for wanted in scenario.shows {
        ensure!(log.iter().any(|line| line.contains(wanted)), "the undisturbed run doesn't come to {wanted}");
    }
    Ok(course)
}

/// Runs one cell, and checks the evidence.
fn judge(
    scenario: &Scenario,
    place: &Place,
    files: &Files,
    (cell, undisturbed): (&Cell, &FinalState),
) -> Row {
    let tell = |what: String| eprintln!("{} {cell}: {what} ({})", scenario.name, files.folder().display());
    let played = place.prepare(files).and_then(|decider| Ok((play(scenario, files, &cell.points)?, decider)));
    let (course, _decider) = match played {
        Ok(played) => played,
        Err(error) => {
            tell(format!("{error:#}"));
            return Row { runs: 1, wrong: 1, ..Row::default() };
        }
    };
    let missed = usize::from(course.kills == 0);
    let row = Row { runs: 1, kills: course.kills, missed, ..Row::default() };
    let Some(rest) = course.final_states.last().filter(|_| !course.hangs) else {
        tell("it hangs".to_owned());
        return Row { hung: 1, ..row };
    };
    let breaches = match Evidence::collect(files, rest.clone(), course.kills) {
        Ok(seen) => broken(scenario, &seen, undisturbed),
        Err(error) => vec![Breach { kind: Kind::Wrong, what: format!("it can't be read: {error:#}") }],
    };
    for Breach { kind, what } in breaches.iter().take(TOLD_MAX) {
        tell(format!("{kind:?}: {what}"));
    }
    let count = |kind: Kind| breaches.iter().filter(|breach| breach.kind == kind).count();
    Row { lost: count(Kind::Lost), doubled: count(Kind::Doubled), wrong: count(Kind::Wrong), ..row }
}
