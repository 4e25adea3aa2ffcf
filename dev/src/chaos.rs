//! `cargo xtask chaos`: an engine of three nodes and three workers on this machine, on which runs of scripted agents work while
//! nodes and workers are killed with -9 at random moments. At the end it is checked from outside that every run ended
//! once, no entry was lost or doubled, no limit was passed, and nothing was done twice without a note in the log.

pub(crate) mod cluster;
mod fleet;
mod verify;

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use cluster::{Cluster, Victim};
use fleet::{Agents, Fleet};
use xtask::shell::{built_provost, workspace};

/// The shortest and the longest time between two kills, as parts of the time that is asked for.
const CALM: std::ops::Range<f64> = 0.4..1.6;
/// How long the runs may take to end once nothing is killed any more, besides what their models take.
const END_WITHIN: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_millis(250);
/// The shortest time between two looks at the runs. To list many takes longer, and no more than a fifth of the time
/// is used for that.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What is asked for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Options {
    /// The program, in place of a debug build of this tree.
    program: Option<PathBuf>,
    /// How long processes are killed.
    pub(crate) length: Duration,
    /// What the moments and victims are drawn from.
    pub(crate) seed: u64,
    /// Runs that are worked on at a time.
    runs: usize,
    /// Of each run.
    agents: Agents,
    /// How long a model takes for an answer.
    model_takes: Duration,
    /// The time between two kills, on average.
    kill_every: Duration,
}

impl Options {
    /// Of the command line.
    pub(crate) fn read(args: &[&str]) -> Result<Self> {
        let mut options = Self {
            program: None,
            length: Duration::from_secs(5 * 60),
            seed: fastrand::u64(..),
            runs: 12,
            agents: Agents { subs: 4 },
            model_takes: Duration::ZERO,
            kill_every: Duration::from_secs(5),
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let of = || format!("{arg} needs a value that fits");
            let mut value = || args.next().with_context(of);
            let mut time = |unit: f64, at_most: f64| -> Result<Duration> {
                let value: f64 = value()?.parse().with_context(of)?;
                ensure!(value >= 0.0 && value <= at_most, "{arg}: from 0 to {at_most}, not {value}");
                Ok(Duration::from_secs_f64(value * unit))
            };
            match *arg {
                "--minutes" => options.length = time(60.0, 600.0)?,
                "--model-seconds" => options.model_takes = time(1.0, 600.0)?,
                "--kill-every-seconds" => options.kill_every = time(1.0, 600.0)?,
                "--program" => options.program = Some(value()?.into()),
                "--sub-agents" => options.agents.subs = value()?.parse().with_context(of)?,
                "--runs" => options.runs = value()?.parse().with_context(of)?,
                "--seed" => options.seed = value()?.parse().with_context(of)?,
                other => bail!(
                    "`{other}` isn't known; there are --minutes M, --seed SEED, --runs N, \
                     --sub-agents N, --model-seconds S, --kill-every-seconds S and --program PATH"
                ),
            }
        }
        ensure!(
            !options.length.is_zero() && !options.kill_every.is_zero(),
            "--minutes and --kill-every-seconds are above 0"
        );
        ensure!((1..=1000).contains(&options.runs), "--runs: from 1 to 1000, not {}", options.runs);
        let subs = options.agents.subs;
        ensure!((1..=50).contains(&subs), "--sub-agents: from 1 to 50, not {subs}");
        Ok(options)
    }

    fn calm(&self, random: &mut fastrand::Rng) -> Duration {
        self.kill_every.mul_f64(CALM.start + random.f64() * (CALM.end - CALM.start))
    }
}

/// What was killed.
#[derive(Debug, Default)]
struct Tally {
    nodes: u32,
    workers: u32,
}

/// Runs it.
pub(crate) fn run(options: &Options) -> Result<()> {
    let program = match &options.program {
        Some(program) => program.clone(),
        None => built_provost(&[])?,
    };
    let folder = workspace().join("target").join("chaos");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    // What starts again is the same program, whatever is built in the meantime.
    let copy = folder.join("provost").with_extension(std::env::consts::EXE_EXTENSION);
    fs::copy(&program, &copy).with_context(|| format!("{} can't be copied", program.display()))?;
    let cluster = Cluster::new(&copy, &folder, 3)?;
    let Some(cluster) = cluster else {
        println!("skipped: the engine's server isn't installed: `cargo xtask restate-server` installs it");
        return Ok(());
    };
    let mut fleet = Fleet::new(&cluster, &folder, options.agents, options.model_takes);
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

fn play(options: &Options, cluster: &Cluster, fleet: &mut Fleet) -> Result<Tally> {
    cluster.up()?;
    let mut random = fastrand::Rng::with_seed(options.seed);
    let mut tally = Tally::default();
    let started = Instant::now();
    let mut next_kill = started + options.calm(&mut random);
    let mut next_look = started;
    while started.elapsed() < options.length {
        fleet.fill(options.runs)?;
        if Instant::now() >= next_kill {
            match cluster.kill_one(&mut random)? {
                Victim::Node => tally.nodes += 1,
                Victim::Worker => tally.workers += 1,
            }
            next_kill = Instant::now() + options.calm(&mut random);
            // It comes back, as a service manager would have it.
            cluster.up()?;
        }
        if Instant::now() >= next_look {
            next_look = look(fleet)?;
        }
        std::thread::sleep(PAUSE);
    }
    cluster.up()?;
    let calls = u32::try_from(options.agents.calls_in_a_row())?;
    let until = Instant::now() + END_WITHIN + options.model_takes * calls * 2;
    while !fleet.is_done() {
        ensure!(Instant::now() < until, "these runs haven't ended: {}", fleet.left());
        look(fleet)?;
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(tally)
}

/// Looks at the runs, and returns when to do so again.
fn look(fleet: &mut Fleet<'_>) -> Result<Instant> {
    let began = Instant::now();
    fleet.look()?;
    Ok(Instant::now() + LOOK_EVERY.max(began.elapsed() * 4))
}

fn humantime(length: Duration) -> String {
    format!("{:.1} minutes", length.as_secs_f64() / 60.0)
}
