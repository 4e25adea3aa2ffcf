//! `cargo xtask kill-matrix`: kills runs with -9 before and after every transaction of theirs and around the
//! effects of their tools, resumes each, and checks from outside that nothing was lost or duplicated and nothing
//! hangs. With `--on-engine` the worker that holds a run on an engine is killed, before and after what leads to a
//! decision there.
//!
//! The matrix is generated: an undisturbed run of each scenario gives the number of points.

mod approver;
mod cell;
mod deadly_store;
mod deadly_worker;
mod evidence;
mod fault;
mod files;
mod laws;
mod model;
mod on_engine;
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

use crate::chaos::cluster::Cluster;
use plays::Place;
use scenario::Scenario;
use xtask::shell::built_provost;

/// The command by which this program starts itself to be killed.
pub(crate) const CHILD: &str = "kill-matrix-process";

/// The options.
struct Wanted {
    scenarios: Vec<&'static Scenario>,
    /// One in this many points is tried.
    every: usize,
    seed: u64,
    /// Whether the runs are on an engine.
    on_engine: bool,
}

/// Runs the matrix, or the part of it that `args` name.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    let wanted = wanted(args)?;
    if !wanted.on_engine {
        return rows(&wanted, &Place::Stores);
    }
    let folder = tempfile::tempdir()?;
    let Some(cluster) = Cluster::new(&built_provost(&[])?, folder.path(), 1)? else {
        println!("skipped: the engine's server isn't installed: `cargo xtask restate-server` installs it");
        return Ok(());
    };
    let done = cluster.addresses().and_then(|addresses| rows(&wanted, &Place::Engine(addresses)));
    cluster.down()?;
    done
}

fn rows(wanted: &Wanted, place: &Place) -> Result<()> {
    let started = Instant::now();
    let mut table = table::Table::new();
    for scenario in &wanted.scenarios {
        let row = plays::row(scenario, place, wanted.every, wanted.seed).unwrap_or_else(|error| {
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
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    let mut wanted = Wanted { scenarios: Vec::new(), every: 1, seed, on_engine: false };
    while let [flag, rest @ ..] = args {
        if *flag == "--on-engine" {
            (wanted.on_engine, args) = (true, rest);
            continue;
        }
        let [value, rest @ ..] = rest else { bail!("`{flag}` needs a value") };
        match *flag {
            "--scenario" => wanted.scenarios.push(named(value)?),
            "--every" => wanted.every = value.parse().context("--every needs a number")?,
            other => bail!("`{other}` isn't known"),
        }
        args = rest;
    }
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
