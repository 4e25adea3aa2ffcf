//! `cargo xtask chaos`: an engine of three nodes and three workers on this machine, on which runs of scripted agents work while
//! nodes and workers are killed with -9 at random moments. At the end it is checked from outside that every run ended
//! once, no entry was lost or doubled, no limit was passed, and nothing was done twice without a note in the log.

pub(crate) mod cluster;
mod fleet;
mod verify;

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use cluster::{Cluster, Victim};
use fleet::Fleet;
use xtask::shell::{built_provost, workspace};

/// Runs that are worked on at a time.
const RUNS_AT_ONCE: usize = 12;
/// The shortest and the longest time between two kills.
const CALM: std::ops::Range<f64> = 2.0..8.0;
/// How long the runs may take to end once nothing is killed any more.
const END_WITHIN: Duration = Duration::from_secs(300);
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Options {
    /// How long processes are killed.
    pub(crate) length: Duration,
    /// What the moments and victims are drawn from.
    pub(crate) seed: u64,
}

impl Options {
    /// Of the command line: `[--minutes M] [--seed S]`.
    pub(crate) fn read(args: &[&str]) -> Result<Self> {
        let mut options = Self { length: Duration::from_secs(5 * 60), seed: fastrand::u64(..) };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match *arg {
                "--minutes" => {
                    let minutes: f64 = args.next().context("--minutes needs a number")?.parse()?;
                    ensure!(minutes > 0.0 && minutes <= 600.0, "--minutes: from 0 to 600, not {minutes}");
                    options.length = Duration::from_secs_f64(minutes * 60.0);
                }
                "--seed" => options.seed = args.next().context("--seed needs a number")?.parse()?,
                other => bail!("`{other}` isn't known; there are --minutes M and --seed S"),
            }
        }
        Ok(options)
    }
}

/// What was killed.
#[derive(Debug, Default)]
struct Tally {
    nodes: u32,
    workers: u32,
}

/// Runs it.
pub(crate) fn run(options: Options) -> Result<()> {
    let program = built_provost(&[])?;
    let folder = workspace().join("target").join("chaos");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let cluster = Cluster::new(&program, &folder, 3)?;
    let Some(cluster) = cluster else {
        println!("skipped: the engine's server isn't installed: `cargo xtask restate-server` installs it");
        return Ok(());
    };
    let mut fleet = Fleet::new(&cluster, &folder);
    let played = play(options, &cluster, &mut fleet);
    // Whatever came of it, nothing is left running.
    let down = cluster.down();
    let tally =
        played.with_context(|| format!("seed {}; what is left of it: {}", options.seed, folder.display()))?;
    down?;
    println!(
        "{} with seed {}: {} nodes and {} workers killed; {}",
        humantime(options.length),
        options.seed,
        tally.nodes,
        tally.workers,
        fleet.told()
    );
    fs::remove_dir_all(&folder)?;
    Ok(())
}

fn play(options: Options, cluster: &Cluster, fleet: &mut Fleet) -> Result<Tally> {
    cluster.up()?;
    let mut random = fastrand::Rng::with_seed(options.seed);
    let mut tally = Tally::default();
    let started = Instant::now();
    let mut next_kill = started + calm(&mut random);
    let mut last_look = started;
    while started.elapsed() < options.length {
        fleet.fill(RUNS_AT_ONCE)?;
        if Instant::now() >= next_kill {
            match cluster.kill_one(&mut random)? {
                Victim::Node => tally.nodes += 1,
                Victim::Worker => tally.workers += 1,
            }
            next_kill = Instant::now() + calm(&mut random);
            // It comes back, as a service manager would have it.
            cluster.up()?;
        }
        if last_look.elapsed() >= LOOK_EVERY * 4 {
            fleet.look()?;
            last_look = Instant::now();
        }
        std::thread::sleep(LOOK_EVERY);
    }
    cluster.up()?;
    let until = Instant::now() + END_WITHIN;
    while !fleet.is_done() {
        ensure!(Instant::now() < until, "these runs haven't ended: {}", fleet.left());
        fleet.look()?;
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(tally)
}

fn calm(random: &mut fastrand::Rng) -> Duration {
    Duration::from_secs_f64(CALM.start + random.f64() * (CALM.end - CALM.start))
}

fn humantime(length: Duration) -> String {
    format!("{:.1} minutes", length.as_secs_f64() / 60.0)
}
