//! (l) What it costs to start a program: with its guard in a process namespace, with a guard alone, and with none.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, ensure};
use provost_process::{ChildSpec, Ending, Streams, guards_are_out_of_reach, run};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::Options;
use crate::case::Case;
use crate::measure::Start;
use crate::sample::{Sample, in_child, in_child_of};
use crate::table::{self, Target};

/// What stands between this process and the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Guard {
    /// Nothing: as the standard library starts it.
    None,
    /// A guard that shares this process's namespace, as an ordinary user has it.
    Plain,
    /// A guard that is the first process of a namespace, as root has it.
    Namespace,
}

/// Takes the right to make namespaces away from what it starts.
const WITHOUT_RIGHTS: [&str; 4] = ["setpriv", "--bounding-set", "-sys_admin", "--inh-caps=-all"];

/// Measures and prints.
pub(crate) fn report(options: &Options) -> anyhow::Result<()> {
    table::head("Programs started");
    let programs = options.sized(500, 5_000);
    for (what, guard) in [
        ("`true` by the standard library", Guard::None),
        ("`true` with a guard", Guard::Plain),
        ("`true` with a guard in a process namespace", Guard::Namespace),
    ] {
        if guard == Guard::Namespace && !guards_are_out_of_reach() {
            println!("| {what} | | not measured: this needs root's rights | | | |");
            continue;
        }
        let case = Case::Spawn { guard, programs };
        let sample = || match guard {
            Guard::Plain => in_child_of(&WITHOUT_RIGHTS, &case, options.dir()),
            Guard::None | Guard::Namespace => in_child(&case, options.dir()),
        };
        let samples = (0..options.runs).map(|_| sample()).collect::<anyhow::Result<Vec<_>>>()?;
        let wall =
            samples.iter().map(|sample| sample.each(sample.wall.as_secs_f64() * 1e6)).collect::<Vec<_>>();
        table::row(what, "one after the other", "µs/program", &wall, Target::None);
    }
    Ok(())
}

/// One run: so many programs, each once the one before has ended.
pub(crate) async fn case(guard: Guard, programs: usize, dir: &Path) -> anyhow::Result<Sample> {
    let cancel = CancellationToken::new();
    if guard != Guard::None {
        let is_apart = guards_are_out_of_reach();
        ensure!(is_apart == (guard == Guard::Namespace), "guards are in a namespace: {is_apart}");
    }
    let start = Start::now()?;
    for _ in 0..programs {
        match guard {
            Guard::None => bare(dir).await?,
            Guard::Plain | Guard::Namespace => guarded(dir, &cancel).await?,
        }
    }
    start.sample(programs)
}

async fn bare(dir: &Path) -> anyhow::Result<()> {
    let mut command = tokio::process::Command::new("true");
    let command = command.current_dir(dir).stdin(Stdio::null());
    let output = command.output().await.context("starting a program")?;
    ensure!(output.status.success(), "`true` failed");
    Ok(())
}

async fn guarded(dir: &Path, cancel: &CancellationToken) -> anyhow::Result<()> {
    let path = std::env::var_os("PATH").context("PATH isn't set")?;
    let spec = ChildSpec {
        program: "true".into(),
        args: Vec::new(),
        cwd: dir.to_path_buf(),
        env: vec![("PATH".into(), path)],
        stdin: Vec::new(),
        streams: Streams::Apart,
        keep_bytes_max: 1_024,
        timeout: None,
        grace: std::time::Duration::ZERO,
        ends_within: None,
    };
    let finished = run(spec, cancel).await?;
    ensure!(finished.ending == Ending::Exited(0), "`true` failed: {:?}", finished.ending);
    Ok(())
}
