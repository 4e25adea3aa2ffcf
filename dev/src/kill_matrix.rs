//! `cargo xtask kill-matrix`: kills runs with -9 before and after every transaction of theirs and around the
//! effects of their tools, resumes each, and checks from outside that nothing was lost or duplicated and nothing
//! hangs.
//!
//! The matrix is generated: an undisturbed run of each scenario gives the number of points.

mod approver;
mod cell;
mod deadly_store;
mod evidence;
mod fault;
mod files;
mod laws;
mod model;
mod plays;
mod points;
mod scenario;
mod scenarios;
mod stage;
mod table;
mod tools;

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};

use scenario::Scenario;

/// The command by which this program starts itself to be killed.
pub(crate) const CHILD: &str = "kill-matrix-process";

/// The options.
struct Wanted {
    scenarios: Vec<&'static Scenario>,
    /// One in this many points is tried.
    every: usize,
    seed: u64,
}

/// Runs the matrix, or the part of it that `args` name.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    let wanted = wanted(args)?;
    let started = Instant::now();
    let mut table = table::Table::new();
    for scenario in wanted.scenarios {
        let row = plays::row(scenario, wanted.every, wanted.seed).unwrap_or_else(|error| {
            eprintln!("{}: {error:#}", scenario.name);
            table::Row { wrong: 1, ..table::Row::default() }
        });
        table.add(scenario.name, row);
    }
    table.end(started.elapsed(), wanted.seed);
    ensure!(table.is_clean(), "laws are broken; what is left of those runs is kept");
    Ok(())
}

/// Works on the run in `folder`; this process may kill itself at `point`.
pub(crate) fn child(scenario: &str, folder: &str, point: &str) -> Result<()> {
    let point = if point == "nowhere" { None } else { Some(point.parse()?) };
    stage::perform(named(scenario)?, Path::new(folder), point)
}

fn wanted(mut args: &[&str]) -> Result<Wanted> {
    let seed = std::env::var("KILL_MATRIX_SEED").ok().and_then(|text| text.parse().ok());
    let mut wanted =
        Wanted { scenarios: Vec::new(), every: 1, seed: seed.unwrap_or_else(|| fastrand::u64(..)) };
    while let [flag, value, rest @ ..] = args {
        match *flag {
            "--scenario" => wanted.scenarios.push(named(value)?),
            "--every" => wanted.every = value.parse().context("--every needs a number")?,
            other => bail!("`{other}` isn't known"),
        }
        args = rest;
    }
    ensure!(args.is_empty(), "`{}` needs a value", args.join(" "));
    ensure!(wanted.every > 0, "--every needs a number above 0");
    if wanted.scenarios.is_empty() {
        wanted.scenarios = scenarios::ALL.iter().collect();
    }
    Ok(wanted)
}

fn named(name: &str) -> Result<&'static Scenario> {
    let names = || scenarios::ALL.iter().map(|scenario| scenario.name).collect::<Vec<_>>().join(", ");
    let found = scenarios::ALL.iter().find(|scenario| scenario.name == name);
    found.with_context(|| format!("no scenario is called `{name}`; there are: {}", names()))
}
