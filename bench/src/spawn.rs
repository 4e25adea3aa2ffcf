//! (l) What it costs to start a program: with its guard in a process namespace, with a guard alone, and with none.

use std::path::Path;
use std::process;

use anyhow::{Context as _, ensure};
use provost_process::{ChildSpec, Confinement, Ending, Launch, Stdio, Streams, guards_are_out_of_reach, run};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::Options;
use crate::case::Case;
use crate::measure::Start;
use crate::sample::{Sample, in_child};
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
        let samples =
            (0..options.runs).map(|_| in_child(&case, options.dir())).collect::<anyhow::Result<Vec<_>>>()?;
        let wall =
            samples.iter().map(|sample| sample.each(sample.wall.as_secs_f64() * 1e6)).collect::<Vec<_>>();
        table::row(what, "one after the other", "µs/program", &wall, Target::None);
    }
    Ok(())
}

/// One run: programs, each once the one before has ended.
pub(crate) async fn case(guard: Guard, programs: usize, dir: &Path) -> anyhow::Result<Sample> {
    let cancel = CancellationToken::new();
    if guard == Guard::Namespace {
        ensure!(guards_are_out_of_reach(), "guards can't be in a namespace");
    }
    let start = Start::now()?;
    for _ in 0..programs {
        match guard {
            Guard::None => bare(dir).await?,
            Guard::Plain => guarded(dir, Confinement::Guard, &cancel).await?,
            Guard::Namespace => guarded(dir, Confinement::Strongest, &cancel).await?,
        }
    }
    start.sample(programs)
}

async fn bare(dir: &Path) -> anyhow::Result<()> {
    let mut command = tokio::process::Command::new("true");
    let command = command.current_dir(dir).stdin(process::Stdio::null());
    let output = command.output().await.context("starting a program")?;
    ensure!(output.status.success(), "`true` failed");
    Ok(())
}

async fn guarded(dir: &Path, confinement: Confinement, cancel: &CancellationToken) -> anyhow::Result<()> {
    let path = std::env::var_os("PATH").context("PATH isn't set")?;
    let spec = ChildSpec {
        launch: Launch {
            program: "true".into(),
            args: Vec::new(),
            env: vec![("PATH".into(), path)],
            cwd: dir.to_path_buf(),
            stdio: Stdio { input: Vec::new(), streams: Streams::Apart },
            confinement,
        },
        keep_bytes_max: 1_024,
        timeout: None,
        grace: std::time::Duration::ZERO,
        ends_within: None,
    };
    let finished = run(spec, cancel).await?;
    ensure!(finished.ending == Ending::Exited(0), "`true` failed: {:?}", finished.ending);
    Ok(())
}
